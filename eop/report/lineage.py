"""A run's rows as a tree: who stands on whom, turn by turn, and which branches have no row yet."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from eop.report.view import NodeView

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eop.leaderboard import Entry
    from eop.report.view import RunView


@dataclass(frozen=True)
class Turn:
    """What was tried on one row in one iteration."""

    iteration: int | None
    tried: tuple[Entry, ...]

    @property
    def size(self) -> int:
        """How many rows that are."""
        return len(self.tried)


@dataclass(frozen=True)
class Stem:
    """A row that others stand on, or that stands on none, and what was tried on it."""

    entry: Entry
    turns: tuple[Turn, ...]


@dataclass(frozen=True)
class OpenBranch:
    """A proposal that is on its way and no row yet; ``step`` is where it stands."""

    iteration: int
    branch: str
    title: str
    step: str
    status: str


def tree(entries: Iterable[Entry]) -> tuple[Stem, ...]:
    """The tree of ``entries`` by its stems: those that stand on none of them first, then by turn.

    Of the first, those on which nothing was tried come before those that the tree grows from.

    A run may go on for hundreds of turns, each on the champion of the one before: as lists within
    lists, its tree would be as deep.
    """
    known = {entry.id: entry for entry in entries}
    tried: dict[str, list[Entry]] = {}
    for entry in sorted(known.values(), key=_order):
        tried.setdefault(entry.parent or "", []).append(entry)
    roots = [entry for entry in known.values() if entry.parent not in known]
    stems = [known[name] for name in tried if name in known and known[name].parent in known]
    return tuple(
        _stem(entry, tried.get(entry.id, []))
        for entry in [
            *sorted(roots, key=lambda root: (root.id in tried, *_order(root))),
            *sorted(stems, key=_order),
        ]
    )


def open_branches(view: RunView, entries: Iterable[Entry]) -> tuple[OpenBranch, ...]:
    """Branches of the run that no row of ``entries`` tells of yet, each at its newest step."""
    told = {(entry.iteration, entry.branch) for entry in entries}
    found = []
    for iteration in view.iterations:
        steps = [step for step in iteration.steps if isinstance(step, NodeView)]
        for opened in iteration.branches.values():
            for name, title in opened.items():
                own = [step for step in steps if step.branch == name]
                begun = [step for step in own if step.status != "waiting"] or own
                if begun and not view.ended and (iteration.number, name) not in told:
                    last = begun[-1]
                    found.append(OpenBranch(iteration.number, name, title, last.step, last.status))
    return tuple(found)


def _stem(entry: Entry, tried: list[Entry]) -> Stem:
    turns = groupby(tried, key=lambda child: child.iteration)
    return Stem(entry, tuple(Turn(number, tuple(group)) for number, group in turns))


def _order(entry: Entry) -> tuple[int, str]:
    return (entry.iteration or 0, entry.id)
