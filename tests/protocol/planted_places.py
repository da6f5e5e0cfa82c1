"""Faults that are passed over unless they are looked for: what is hidden, swallowed, unwritten."""

from __future__ import annotations

from planted_faults import SOUND, Fault

_AGREE = SOUND[SOUND.index("```eop\ngate: agree") : SOUND.index("```eop\nphase: base")].rstrip()
_INDENTED = "".join(f"    {line}\n" for line in _AGREE.splitlines())
_BEGINS = "```eop\ngate: agree"
_NAME = "n" * 61

PLACE_FAULTS = [
    # A gate that people see, and the machine does not.
    Fault("EOP114", _AGREE, f"<details>\n{_AGREE}\n</details>", "```eop", "HTML"),
    Fault("EOP114", _AGREE, f"<!--\n{_AGREE}\n-->", "```eop", "comment"),
    Fault("EOP114", _AGREE, _INDENTED, "    ```eop", "indented"),
    Fault("EOP115", _BEGINS, "```yaml eop\ngate: agree", "```yaml eop"),
    Fault("EOP115", _BEGINS, "```{.eop}\ngate: agree", "```{.eop}"),
    Fault("EOP115", _BEGINS, "```eop,gate\ngate: agree", "```eop,gate"),
    Fault("EOP115", _BEGINS, "```yaml\ngate: agree", "```yaml", "does not say so"),
    Fault("EOP115", _BEGINS, "```\n{gate: agree,", "```", "does not say so"),
    # Text that a reviewer would read as something else.
    Fault("EOP104", "what you see", "what \u202eyou see", "\u202e", "U+202E"),
    Fault("EOP104", "what you see", "what you\u200b see", "\u200b", "U+200B"),
    Fault("EOP104", "what you see", "what you\U000e0041 see", "\U000e0041", "U+E0041"),
    Fault("EOP104", "what you see", "what you\x85 see", "\x85", "U+0085"),
    # What is not written stands where it was due.
    Fault("EOP301", "needs: [base]", "needs:", "needs", "found nothing"),
    Fault("EOP301", "needs: [base]", "needs: # later", "needs", "found nothing"),
    Fault("EOP301", "max: 4}", "max: }", "max", "found nothing"),
    Fault("EOP113", "with: {seeds: [1, 2]}\nbudget", "with: {}\nbudget", "{}", "'with' of"),
    Fault("EOP304", "name: sound", f"name: {_NAME}", _NAME, "61 characters"),
    Fault("EOP305", "wall: 30m", "wall: 0m", "0m"),
    # Two readings.
    Fault("EOP304", "  patience: {", "  report: {", "report", "an artifact as well"),
    Fault(
        "EOP307", "report: {file: report.md", "report: {file: a.md, schema: review", "a.md", "JSON"
    ),
]
