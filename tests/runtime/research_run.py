"""A small research procedure, and a run of it on disk that tests drive by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from eop.core.files import write_bytes, write_json
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
from eop.runtime.advance import Position, advance
from eop.runtime.lifecycle import Entered, enter, leave
from eop.runtime.migration import kept_plan
from eop.runtime.node import Instance, NodeResult, Outcome, Usage
from eop.runtime.signatures import SIGNERS_COPY
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path

    from eop.runtime.signatures import Signers

PROPOSALS = [{"id": "wide", "title": "A wider net"}, {"id": "deep", "title": "A deeper net"}]


def agent(name: str, line: int, **more: object) -> Phase:
    defaults: dict[str, object] = {
        "pattern": "linear",
        "nodes": {"worker": "scripted"},
        "outputs": (Output(f"{name}_text", f"{name}.md"),),
        "budget": Budget(actions=10, wall_s=60),
    }
    return Phase(name, line, name.title(), f"Do {name}.", **{**defaults, **more})  # type: ignore[arg-type]


def research(**more: object) -> Plan:
    phases = (
        agent("investigate", 10),
        agent("propose", 30, needs=("confirm",), outputs=(Output("proposals", "proposals.json"),)),
        agent(
            "implement",
            50,
            needs=("approve",),
            branch="proposal",
            fan_out=FanOut("proposal", "proposals", 3),
            budget=Budget(actions=20, wall_s=60, attempts=2),
        ),
        Phase(
            "train",
            60,
            "Train",
            "",
            needs=("implement",),
            branch="proposal",
            function="train",
            budget=Budget(attempts=2),
            outputs=(Output("metrics", "metrics.json"),),
        ),
        agent(
            "analyze",
            70,
            needs=("train",),
            branch="proposal",
            on_branch=("completed", "failed"),
        ),
        Phase(
            "promote",
            80,
            "Promote",
            "",
            join=Join("analyze", 1),
            function="promote",
            outputs=(Output("decision", "decision.json"),),
        ),
    )
    gates = (
        Gate("confirm", 20, ("investigate",), ("investigate_text",), OnReject("investigate", 1)),
        Gate("approve", 40, ("propose",), ("proposals",), OnReject("propose", 2), "Go on?"),
        Gate("evolve", 90, ("promote",), ("decision",), OnReject()),
    )
    plan = Plan(
        name="research",
        version="1",
        title="Research",
        source="research.eop.md",
        target="hstu",
        variables={},
        budget=Budget(actions=500, wall_s=36000),
        phases=phases,
        gates=gates,
        loop=Loop("again", 100, ("evolve",), "propose", 2),
    )
    return replace(plan, **more)  # type: ignore[arg-type]


@dataclass
class Run:
    """A run on disk. ``do`` plays a node, ``touch`` a person."""

    root: Path
    plan: Plan = field(default_factory=research)
    name: str = "r1"
    signers: Signers | None = None
    variables: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.trace = Trace(self.folder / "trace", self.plan)
        if not self.trace.events():
            write_json(self.folder / "plan.json", self.plan.to_json())
            facts = {"run": self.name, "plan": self.plan.digest}
            if self.signers is not None:
                write_bytes(self.folder / SIGNERS_COPY, self.signers.content)
                facts["signers"] = self.signers.digest
            values = {name: kind["default"] for name, kind in self.plan.variables.items()}
            more = {"config": "c", "snapshot": "s", "variables": {**values, **self.variables}}
            self.trace.append("run_started", {**facts, **more})

    @property
    def folder(self) -> Path:
        return self.root / "runs" / self.name

    @property
    def gates(self) -> Path:
        return self.root / "gates" / self.name

    def migrate(self, plan: Plan) -> Run:
        """The same run under another plan; of no use itself from then on."""
        for kept in (self.plan, plan):
            write_json(self.folder / kept_plan(kept.digest), kept.to_json())
        data = {"from": self.plan.digest, "to": plan.digest, "by": "ann@lab", "reason": ""}
        self.trace.append("plan_changed", data)
        write_json(self.folder / "plan.json", plan.to_json())
        return Run(self.root, plan, self.name, self.signers)

    def advance(self) -> Position:
        return advance(self.root, self.name, self.plan, self.trace)

    def enter(self, key: str) -> Entered:
        return enter(self.trace, self.plan, Instance.parse(key))

    def files(self, key: str, text: str | None = None) -> dict[str, Path]:
        """Write every output of a node, as the work of the node would."""
        instance = Instance.parse(key)
        found = {}
        for output in self.plan.phase(instance.step).outputs:
            path = self.folder / instance.directory / "artifacts" / output.file
            path.parent.mkdir(parents=True, exist_ok=True)
            proposals = json.dumps(PROPOSALS) if output.name == "proposals" else f"{key}\n"
            path.write_text(proposals if text is None else text)
            found[output.name] = path
        return found

    def do(
        self,
        key: str,
        outcome: Outcome = Outcome.COMPLETED,
        usage: Usage | None = None,
        text: str | None = None,
    ) -> dict[str, object]:
        """Enter a node, leave its outputs (when completed), and leave with ``outcome``."""
        entered = self.enter(key)
        assert entered.kind == "run", entered
        files = self.files(key, text) if outcome is Outcome.COMPLETED else {}
        result = NodeResult(outcome, "", files, usage or Usage(3, 1.0))
        return leave(self.trace, self.root, Instance.parse(key), entered.attempt, result)

    def touch(self, status: str = "approved", reason: str = "") -> Position:
        """Answer every gate that waits."""
        for view in self.advance().waiting:
            path = view.approve if status == "approved" else view.reject
            path.write_text(reason)
        return self.advance()

    def to_branches(self) -> Position:
        """Run up to the opened branches of iteration 1."""
        self.do("it01_investigate")
        self.touch()
        self.do("it01_propose")
        return self.touch()

    def to_second_turn(self) -> Position:
        """Run up to the begin of iteration 2, all well."""
        self.to_branches()
        self.branch("p01")
        self.branch("p02")
        self.do("it01_promote")
        return self.touch()

    def branch(self, branch: str, iteration: int = 1) -> None:
        for step in ("implement", "train", "analyze"):
            self.do(f"it{iteration:02d}_{branch}_{step}")
