"""The events of a run with so many proposals, made without a disk and without agents."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from eop.protocol.model import (
    Budget,
    FanOut,
    Gate,
    Join,
    Loop,
    OnReject,
    Output,
    Phase,
    Plan,
)
from eop.runtime.due import due, opens
from eop.runtime.events import GENESIS, Event
from eop.runtime.frontier import frontier
from eop.runtime.reduce import branch_names, reduce

if TYPE_CHECKING:
    from eop.runtime.node import Instance

PER_ITERATION = 50
_TIME = "2026-01-01T00:00:00.000+00:00"


def procedure(proposals: int) -> Plan:
    """Propose, a gate, four phases per proposal, a join; as many turns as the proposals need."""
    turns = math.ceil(proposals / PER_ITERATION)
    nodes = {"worker": "scripted"}
    agent = {"pattern": "linear", "nodes": nodes, "budget": Budget(actions=10, wall_s=60)}
    steps: dict[str, dict[str, Any]] = {
        "propose": {**agent, "outputs": (Output("proposals", "proposals.json"),)},
        "implement": {
            **agent,
            "needs": ("approve",),
            "branch": "proposal",
            "fan_out": FanOut("proposal", "proposals", PER_ITERATION),
        },
        "train": {"needs": ("implement",), "branch": "proposal", "function": "train"},
        "evaluate": {"needs": ("train",), "branch": "proposal", "function": "evaluate"},
        "analyze": {**agent, "needs": ("evaluate",), "branch": "proposal"},
        "promote": {"join": Join("analyze"), "function": "promote"},
    }
    return Plan(
        name="proposals",
        version="1",
        title="",
        source="proposals.eop.md",
        target="hstu",
        variables={},
        budget=Budget(),
        phases=tuple(
            Phase(name, line, "", "", **more) for line, (name, more) in enumerate(steps.items())
        ),
        gates=(Gate("approve", 9, ("propose",), ("proposals",), OnReject()),),
        loop=Loop("again", 10, ("promote",), "propose", turns) if turns > 1 else None,
    )


def play(plan: Plan, proposals: int) -> list[Event]:
    """What a run of ``plan`` leaves in which every node of so many ``proposals`` succeeds."""
    return _History(plan, proposals).events


class _History:
    def __init__(self, plan: Plan, proposals: int) -> None:
        self.plan = plan
        self.left = proposals
        self.events: list[Event] = []
        facts = {
            "run": "bench",
            "plan": plan.digest,
            "config": "c",
            "snapshot": "s",
            "variables": {},
        }
        first = Event(1, "run_started", facts, GENESIS, _TIME, "host")
        self.state = reduce(plan, None, first)
        self.events.append(first)
        while not self.state.ended:
            self._go_on()

    def _add(self, kind: str, **data: Any) -> None:
        event = Event(len(self.events) + 1, kind, data, self.events[-1].digest, _TIME, "host")
        self.state = reduce(self.plan, self.state, event)
        self.events.append(event)

    def _go_on(self) -> None:
        found = due(self.plan, self.state)
        if found is None:
            self._open() if opens(self.plan, self.state) else self._work()
            return
        kind, data = found
        self._add(kind, **data)
        if kind == "gate_requested":
            self._add("gate_approved", **data, by="a person", reason="")

    def _open(self) -> None:
        listed = self.state.artifact(self.plan, "proposals", self.state.iteration)
        assert listed is not None
        names = branch_names(min(self.left, PER_ITERATION))
        self.left -= len(names)
        self._add(
            "branches_opened",
            iteration=self.state.iteration,
            item="proposal",
            branches={name: f"Proposal {name}" for name in names},
            artifact=listed.sha256,
        )

    def _work(self) -> None:
        for node in frontier(self.plan, self.state).instances:
            phase = self.plan.steps[node.step]
            if isinstance(phase, Phase) and self.state.node(node) is None:
                self._do(node, phase)

    def _do(self, node: Instance, phase: Phase) -> None:
        attempt = {"node": node.key, "attempt": 1}
        folder = f"runs/bench/{node.directory}/artifacts"
        files = [
            {"name": o.name, "path": f"{folder}/{o.file}", "sha256": "0" * 64, "size": 1}
            for o in phase.outputs
        ]
        usage = {"actions": 3, "wall_s": 1.5}
        end = {
            "outcome": "completed",
            "reason": "",
            "artifacts": files,
            "facts": {},
            "usage": usage,
        }
        self._add("node_entered", **attempt, reserve=phase.reservation._asdict())
        self._add("node_left", **attempt, **end)
