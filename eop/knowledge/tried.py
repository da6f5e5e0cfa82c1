"""What was tried before: what the next proposer is told, so that it does not repeat it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.leaderboard import read_entries

if TYPE_CHECKING:
    from pathlib import Path

_TITLE = 120


@dataclass(frozen=True)
class Tried:
    """One candidate of the past; ``delta`` is NDCG@10 against its parent, if it was measured."""

    entry: str
    title: str
    outcome: str
    delta: float | None
    promoted: bool


def tried(root: Path) -> list[Tried]:
    """All candidates of the leaderboard, by entry id; titles are cut to one line."""
    return [
        Tried(
            entry.id,
            _short(entry.proposal.title),
            entry.outcome,
            entry.decision.delta if entry.decision else None,
            bool(entry.decision and entry.decision.promoted),
        )
        for entry in read_entries(root)
        if entry.kind == "candidate"
    ]


def tried_text(root: Path) -> str:
    """A Markdown section for a task text; empty when nothing was tried."""
    items = tried(root)
    if not items:
        return ""
    return "\n".join(["## What was tried before", "", *map(_item, items)]) + "\n"


def _item(item: Tried) -> str:
    measured = "not measured" if item.delta is None else f"{item.delta:+.4f} NDCG@10"
    promoted = ", promoted" if item.promoted else ""
    return f"- {item.title} ({item.entry}): {item.outcome}, {measured}{promoted}"


def _short(title: str) -> str:
    line = " ".join(title.split())
    return line if len(line) <= _TITLE else line[: _TITLE - 1] + "…"
