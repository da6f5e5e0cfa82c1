"""A project in whose last iteration the branches have just opened, after so many proposals.

The protocol is the demo's with other bounds. The events are made without a job and without agents:
every node succeeds at once.
"""

from __future__ import annotations

import math
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from eop.core.files import write_bytes, write_text
from eop.driver.demo import make_project
from eop.driver.start import open_run
from eop.driver.workflow import load_project
from eop.project.config import read_raw
from eop.protocol.model import Phase
from eop.runtime.due import due, opens
from eop.runtime.events import Event, encode
from eop.runtime.frontier import frontier
from eop.runtime.node import Instance
from eop.runtime.reduce import branch_names, reduce
from eop.runtime.trace import finished
from eop.runtime.trace_files import EventFiles
from eop.runtime.witnesses import remember

if TYPE_CHECKING:
    from pathlib import Path

    from eop.project.project import Project
    from eop.protocol.model import Plan
    from eop.runtime.state import State

PER_ITERATION = 50
PROTOCOL = "config/protocols/demo.eop.md"
_TIME = "2026-01-01T00:00:00.000+00:00"
_CONTENT = b"made by a benchmark\n"
_GOOD = {"boolean": True, "integer": 1, "number": 1.0, "string": "good"}
"""What expressions read, by type: every guard of the demo's lets in."""
_FILE = {"sha256": sha256(_CONTENT).hexdigest(), "size": len(_CONTENT)}


def project_with(folder: Path, proposals: int) -> Project:
    """A project in ``folder`` with a run of so many proposals."""
    make_project(folder)
    path = folder / PROTOCOL
    write_text(path, _unbounded(path.read_text(), proposals))
    project = load_project(folder, read_raw(folder))
    history = _History(project.plan, open_run(project).events()[0], proposals)
    _write(project, history.events, history.state)
    return project


def _unbounded(demo: str, proposals: int) -> str:
    """The demo's protocol with room for the proposals: a run budget, branches and turns."""
    turns = max(2, math.ceil(proposals / PER_ITERATION))
    demo = re.sub(r"(?m)^budget: .*$", "budget: {actions: 1000000, wall: 999h}", demo, count=1)
    demo = demo.replace("in: proposals, max: 4}", f"in: proposals, max: {PER_ITERATION}}}")
    return re.sub(r"(goto: propose\nmax:) \d+", rf"\1 {turns}", demo)


def _write(project: Project, events: list[Event], state: State) -> None:
    """Put events after the first on the disk as a run leaves them: packed where history is over."""
    files = EventFiles(project.trace_dir)
    packed = 0
    for pack in finished(events):
        contents = [encode(event) for event in events[pack.first - 1 : pack.last]]
        assert files.pack(pack, contents)
        packed = pack.last
    for event in events[max(packed, 1) :]:
        assert files.publish(event.seq, encode(event))
    remember(project.run_dir, state)
    # What the nodes of the last branches build on is looked at when they enter.
    for key, node in state.nodes.items():
        if Instance.parse(key).branch is None:
            for artifact in node.artifacts:
                write_bytes(project.root / artifact.path, _CONTENT)


class _History:
    def __init__(self, plan: Plan, first: Event, proposals: int) -> None:
        self.plan = plan
        self.left = proposals
        self.events = [first]
        self.state = reduce(plan, None, first)
        while self.left:
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
        folder = f"runs/{self.state.run}/{node.directory}/artifacts"
        files = [
            {"name": output.name, "path": f"{folder}/{output.file}", **_FILE}
            for output in phase.outputs
        ]
        amount = phase.reservation._asdict()
        reserve = {unit: amount[unit] for unit in ("actions", "wall_s")}
        usage = {"actions": 0 if phase.function else 3, "wall_s": 1.5}
        facts = {term: _GOOD[kind] for term, kind in self.plan.owed(phase.id).items()}
        end = {"outcome": "completed", "reason": "", "artifacts": files, "facts": facts}
        self._add("node_entered", **attempt, reserve=reserve)
        self._add("node_left", **attempt, **end, usage=usage)
