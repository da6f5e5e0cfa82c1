"""The dependency graph of a draft: who comes after whom, and whom not to judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eop.protocol.draft import Draft


@dataclass(frozen=True)
class Graph:
    """Steps and what each requires, in document order. A step runs when all of it is done.

    Hence an ancestor is passed on every path: for a gate, to be an ancestor is to dominate.
    ``doubtful`` steps have unknown edges above them, so what they miss may be there.
    """

    requires: dict[str, tuple[str, ...]]
    doubtful: frozenset[str]

    @classmethod
    def of(cls, draft: Draft) -> Graph:
        """The graph of a draft whose references are resolved."""
        requires: dict[str, tuple[str, ...]] = {}
        for phase in draft.phases:
            join = phase.value.join
            joined = (join.of,) if join else ()
            requires[phase.value.id] = tuple(dict.fromkeys([*phase.value.needs, *joined]))
        requires |= {gate.value.id: gate.value.after for gate in draft.gates}
        ordered = {step.value.id: requires[step.value.id] for step in draft.steps}
        bare = cls(ordered, frozenset())
        roots = {step.value.id for step in draft.steps if step.doubtful}
        roots |= {step for cycle in bare.cycles() for step in cycle}
        return cls(ordered, bare.below(roots))

    def ancestors(self, *names: str) -> frozenset[str]:
        """All that must be done before any of ``names`` may run; without ``names`` themselves.

        In a cycle a step is its own ancestor.
        """
        found: set[str] = set()
        todo = [parent for name in names for parent in self.requires.get(name, ())]
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo.extend(self.requires.get(name, ()))
        return frozenset(found)

    def below(self, names: Iterable[str]) -> frozenset[str]:
        """``names`` and all that comes after them."""
        roots = set(names)
        after = {step for step in self.requires if roots & self.ancestors(step)}
        return frozenset(roots | after)

    def cycles(self) -> list[list[str]]:
        """One cycle for each tangle of steps, as the steps along it, each requiring the next."""
        found: list[list[str]] = []
        covered: set[str] = set()
        for name in self.requires:
            if name in covered or name not in self.ancestors(name):
                continue
            found.append(self._way_back(name))
            covered |= {step for step in self.ancestors(name) if name in self.ancestors(step)}
        return found

    def _way_back(self, start: str) -> list[str]:
        """The shortest way from ``start`` over requirements back to it."""
        ways = [[start]]
        seen: set[str] = set()
        while ways:
            way = ways.pop(0)
            for parent in self.requires.get(way[-1], ()):
                if parent == start:
                    return way
                if parent not in seen:
                    seen.add(parent)
                    ways.append([*way, parent])
        raise ValueError(f"'{start}' is on no cycle")
