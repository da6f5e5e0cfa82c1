"""One self-contained note per entry: ``knowledge/notes/<id>.md``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from eop.core.files import write_if_changed
from eop.knowledge.facts import entry_facts

if TYPE_CHECKING:
    from pathlib import Path

    from eop.knowledge.facts import Facts
    from eop.leaderboard import Entry, Scores

NOT_MEASURED = "not measured"


def note_path(root: Path, entry_id: str) -> Path:
    """Where the note of an entry lies."""
    return root / "knowledge" / "notes" / f"{entry_id}.md"


def write_note(root: Path, entry: Entry, analysis: str | None) -> Path:
    """Write the note of an entry on the leaderboard; return its path. The same text is left alone.

    ``analysis`` is what the analyst wrote, Markdown, or ``None`` when there was no analysis. Words
    of agents are quoted, so that none of them can pass for a recorded number.
    """
    path = note_path(root, entry.id)
    write_if_changed(path, note_text(entry, entry_facts(root, entry, analysis), analysis))
    return path


def note_text(entry: Entry, facts: Facts, analysis: str | None) -> str:
    """The whole text of a note, a pure function of the entry, its facts and the analysis."""
    sections = {
        "What was tried": _quoted(entry.proposal.hypothesis) or "No hypothesis was recorded.",
        "What happened": _happened(entry),
        "Why": _quoted(analysis or "") or "No analysis was written.",
        "Conditions": _conditions(entry),
        "How to reproduce": _reproduce(entry),
    }
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())
    front = yaml.safe_dump(facts.to_json(), sort_keys=False, allow_unicode=True, width=100)
    return f"---\n{front}---\n\n# {_line(entry.proposal.title)}\n\n{body}\n"


def _happened(entry: Entry) -> str:
    reason = f" ({_line(entry.reason)})" if entry.reason.strip() else ""
    lines = [
        f"Outcome: **{entry.outcome}**{reason}.",
        "",
        "| target | NDCG@10 | HR@10 | MRR | seeds |",
        "|---|---|---|---|---|",
        _scores("validation", entry.validation),
        _scores("test (canonical)", entry.test),
        "",
        f"Against its parent ({entry.parent or 'none'}): {_decision(entry)}",
    ]
    if entry.on_test:
        low, high = entry.on_test.interval
        seeds = ", ".join(map(str, entry.on_test.seeds))
        lines += [
            "",
            f"On the test, where nothing is decided: {entry.on_test.delta:+.4f} NDCG@10, "
            f"95 % interval [{low:+.4f}, {high:+.4f}] over the common seeds {seeds}.",
        ]
    preflight = entry.evidence["preflight"]
    if preflight and not preflight["passed"]:
        lines += ["", f"Failed invariants: {', '.join(preflight['failed'])}."]
    return "\n".join(lines)


def _scores(target: str, scores: Scores | None) -> str:
    if scores is None:
        return f"| {target} | {NOT_MEASURED} | {NOT_MEASURED} | {NOT_MEASURED} | none |"
    values = " | ".join(f"{scores.mean[name]:.4f}" for name in ("ndcg@10", "hr@10", "mrr"))
    return f"| {target} | {values} | {', '.join(scores.seeds) or 'none'} |"


def _decision(entry: Entry) -> str:
    decision = entry.decision
    if decision is None:
        return "no comparison was made."
    delta = NOT_MEASURED if decision.delta is None else f"{decision.delta:+.4f} NDCG@10"
    if decision.interval:
        low, high = decision.interval
        delta += f", 95 % interval [{low:+.4f}, {high:+.4f}]"
    if decision.seeds:
        delta += f" over the common seeds {', '.join(map(str, decision.seeds))}"
    verdict = "promoted" if decision.promoted else "not promoted"
    return f"{delta}; {verdict}: {_line(decision.reason)}."


def _conditions(entry: Entry) -> str:
    evidence = entry.evidence
    split, plan, snapshot = evidence["split"], evidence["plan"], evidence["snapshot"]
    patch = evidence["patch"]
    facts = {
        "data set": f"{split['dataset']}, split {split['digest'][:16]}",
        "protocol": f"{plan['name']} {plan['version']}, plan {plan['digest'][:16]}",
        "target": f"snapshot {snapshot['sha256'][:16]}" if snapshot else "none",
        "patch": f"{patch['sha256'][:16]}, {patch['size']} bytes" if patch else "none",
        "training time": _seconds(entry.cost.train_s),
        "agent actions": NOT_MEASURED if entry.cost.actions is None else str(entry.cost.actions),
        "tokens": NOT_MEASURED if entry.cost.tokens is None else str(entry.cost.tokens),
        "US dollars": NOT_MEASURED if entry.cost.usd is None else f"{entry.cost.usd:.6g}",
    }
    return "\n".join(f"- {name}: {fact}" for name, fact in facts.items())


def _seconds(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.1f} s"


def _reproduce(entry: Entry) -> str:
    if entry.not_reproducible is not None:
        return f"Not possible: {_line(entry.not_reproducible)}."
    command = f"dvc repro -f -s --no-run-cache leaderboard/{entry.id}/dvc.yaml:reproduce"
    return f"```sh\n{command}\n```\n\nA metric may differ by {entry.tolerance:g} at most."


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


def _line(text: str) -> str:
    """Text of others on one line, without a full stop: it must not break the structure."""
    return " ".join(text.split()).removesuffix(".")
