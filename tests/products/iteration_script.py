"""What the model says in a whole iteration: it tries the demo's leaky genre feature, and mends it.

Claude Code writes, Codex reviews. Answers rest on what the product was shown: the author edits
files that it has read, the reviewer judges the patch that it was handed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kits import CLAUDE, CODEX, ROOT
from scripted_model import Call, Fault, Part, Say, Script

from eop.core.yaml_files import read_yaml

if TYPE_CHECKING:
    from collections.abc import Callable

    from scripted_model import Asked

    Step = Say | Fault | Callable[[Asked], Say]

LEAK = "rows = rows + self.config.model.genre_alpha"
PROPOSALS = [
    {
        "id": "genre-input",
        "title": "Genres as a side feature of the input",
        "hypothesis": "Rare items are like others of their genres.",
        "change": "The mean vector of an item's genres is added to its token.",
        "falsifier": "NDCG@10 on validation does not rise beyond the noise.",
        "risks": ["The feature reaches the positives of the loss but not the negatives."],
    }
]
DIRECTIONS = [{"title": "Genres in the score as well", "why": "They helped the input."}]
RANKING = [{"direction": 1, "why": "The gain on validation points there."}]
FINDING = {
    "id": "lookup-of-targets",
    "severity": "major",
    "family": "tensor_routing",
    "file": "hstu/models/hstu.py",
    "claim": "The genre part is added where the loss looks up its targets",
    "evidence": "The patch adds it in embed_items, which negatives do not pass.",
    "suggested_check": "Score an item as a positive and as a negative.",
}
_FOLDER = re.compile(r"[Ww]orking directory: (\S+)")


def script() -> Script:
    """The whole play: one part for each role of a phase."""
    implement = "Implement the proposal"
    return Script(
        [
            Part(_report("An item's score is a cosine."), ("how an item gets its score",)),
            Part(_report("Events in stable time order."), ("Describe the data as",)),
            Part([CLAUDE.answer(PROPOSALS), Say("Done.")], ("Propose up to four changes",)),
            Part(_edits("genre-leaky", setting=True), (implement, "role: implementer")),
            Part(_edits("genre-input-only"), (implement, "role: fixer")),
            Part(_review(), (implement, "role: reviewer")),
            Part(_analysis(), ("Say what came of the proposal",)),
            Part([CLAUDE.answer(DIRECTIONS), Say("Done.")], ("From this turn's analyses",)),
            Part([CODEX.answer(RANKING)], ("Rank the directions by number",)),
        ]
    )


def _report(text: str) -> list[Step]:
    return [_read("experiment.yaml"), Say(text)]


def _in(asked: Asked, path: str) -> str:
    found = _FOLDER.search(asked.text)
    assert found is not None, "the product does not say where it works"
    return f"{found[1]}/{path}"


def _read(path: str) -> Callable[[Asked], Say]:
    return lambda asked: Say(calls=(Call("Read", {"file_path": _in(asked, path)}),))


def _edit(path: str, old: str, new: str) -> Callable[[Asked], Say]:
    def say(asked: Asked) -> Say:
        change = {"file_path": _in(asked, path), "old_string": old, "new_string": new}
        return Say(calls=(Call("Edit", change),))

    return say


def _edits(name: str, *, setting: bool = False) -> list[Step]:
    """Read every file that is edited, then the edits of the demo's playbook one by one."""
    edits = read_yaml(ROOT / f"config/playbooks/demo/{name}.yaml")
    steps: list[Step] = [_read(path) for path in sorted({edit["file"] for edit in edits})]
    steps += [_edit(edit["file"], edit["find"], edit["replace"]) for edit in edits]
    if setting:
        steps.append(_read("experiment.yaml"))
        steps.append(_edit("experiment.yaml", "model:\n", "model:\n  genre_alpha: 0.5\n"))
    return [*steps, Say("Done.")]


def _review() -> list[Step]:
    """Its first request meets a rate limit, which ends Codex and is worth another attempt."""

    def judged(asked: Asked) -> Say:
        leaks = LEAK in asked.told[0]
        assert "diff --git" in asked.told[0], asked.told
        finding = {**FINDING, "status": "open" if leaks else "resolved"}
        summary = "The targets leak." if leaks else "The leak is mended."
        review: dict[str, Any] = {"summary": summary, "findings": [finding]}
        return CODEX.answer(review)(asked)

    limit = Fault(429, "rate_limit_error", "slow down", times=1)
    return [limit, Say(calls=(CODEX.run("cat ../inputs/patch.diff"),)), judged]


def _analysis() -> list[Step]:
    def told(asked: Asked) -> Say:
        found = re.search(r'"ndcg@10": ([0-9.]+)', asked.told[0])
        assert found is not None, asked.told
        return Say(f"NDCG@10 on validation is {found[1]}.\n\nLesson: genres are worth it.")

    return [_read("../inputs/metrics.json"), told]
