"""A whole project of agents alone, small and without torch, and a driver of it that can die.

The driver is what `eop run` is without Snakemake: it compiles, runs every node that may run, in a
process of its own, and answers the gate. It dies at boundaries: where a file gets its name.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from entry_samples import REPOSITORY

from eop.core.errors import EopError
from eop.core.files import write_json, write_text
from eop.driver.node import record_gate, run_node
from eop.driver.workflow import advance_and_compile, load_project, lock_project
from eop.project.config import read_raw
from eop.project.project import Project
from eop.protocol.model import Phase
from eop.runtime.frontier import has_left, is_approved

if TYPE_CHECKING:
    from collections.abc import Callable

RUN = "small-toy"
PROTOCOL = """---
{eop: 1, name: small, version: 0.1.0, target: toy, budget: {actions: 4000, wall: 90h}}
---
```eop
phase: propose
pattern: linear
nodes: {writer: scripted}
tools: [read]
outputs: {proposals: {file: proposals.json, schema: proposals}}
budget: {actions: 10, wall: 2m}
```
Propose.
```eop
{gate: agree, after: [propose], shows: [proposals], on_reject: {end: true}}
```
```eop
phase: implement
needs: [agree]
for_each: {item: proposal, in: proposals, max: 2}
pattern: linear
nodes: {worker: scripted}
tools: [read, edit]
outputs: {patch: {file: patch.diff, patch: true}}
budget: {actions: 10, wall: 2m}
```
Implement.
```eop
phase: gather
join: {of: implement, wait: all, at_least: 1}
pattern: linear
nodes: {writer: scripted}
tools: [read]
outputs: {summary: {file: summary.md}}
budget: {actions: 10, wall: 2m}
```
Sum up.
"""
PROPOSALS = [
    {"id": name, "title": name, "hypothesis": "h", "change": "c", "falsifier": "f", "risks": []}
    for name in ("wide", "crash")
]
PLAYBOOK = [
    {
        "when": {"phase": "propose"},
        "do": [{"write": {"output": "proposals", "json": PROPOSALS}}],
    },
    {"when": {"phase": "implement", "proposal": "crash"}, "do": [{"crash": 3}]},
    {
        "when": {"phase": "implement"},
        "do": [{"edit": {"file": "toy/model.py", "find": "1", "replace": "2"}}],
    },
    {"when": {"phase": "gather"}, "do": [{"write": {"output": "summary", "text": "done"}}]},
]


def small_project(root: Path) -> Path:
    """Write the project to ``root``; nothing has run."""
    config = {
        "protocol": "config/protocols/small.eop.md",
        "dataset": "toy",
        "experiment": "config/experiments/base.yaml",
        "isolation": "off",
    }
    raw = yaml.safe_load((REPOSITORY / "config/config.yaml").read_text())
    write_text(root / "config/config.yaml", yaml.safe_dump({**raw, **config}))
    for name in ("schemas", "prompts"):
        shutil.copytree(REPOSITORY / "config" / name, root / "config" / name)
    write_text(root / "config/protocols/small.eop.md", PROTOCOL)
    write_text(root / "config/playbooks/small.yaml", yaml.safe_dump({"steps": PLAYBOOK}))
    write_text(root / "config/experiments/base.yaml", "name: base\n")
    target = {"name": "toy", "snapshot": ["toy"], "editable": ["toy/**"]}
    write_text(root / "config/targets/toy.yaml", yaml.safe_dump(target))
    write_text(root / "toy/model.py", "width = 1\n")
    write_json(root / "data/splits/toy/manifest.json", {"dataset": "toy"})
    return root


def of_run(root: Path) -> Project:
    """The project of the run that has begun."""
    return Project.of_run(root, RUN)


def drive(root: Path) -> None:
    """Bring the run to its end; every gate is approved."""
    project = load_project(root, read_raw(root))
    with lock_project(root):
        while not (position := advance_and_compile(project)).ended:
            for gate in position.waiting:
                gate.approve.touch()
            for node in position.frontier.instances:
                phase = isinstance(project.plan.steps[node.step], Phase)
                if phase and not has_left(position.state, node):
                    run_node(root, project.run, node.key)
                elif not phase and is_approved(position.state, node):
                    record_gate(root, project.run, node.key)


def in_a_process(work: Callable[[], Any]) -> int:
    """Do ``work`` in a child of this process; its exit status, negative for a signal.

    As for a command, an ``EopError`` is printed and gives the status.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except EopError as error:
            status = int(error.exit_code)
            print(error, file=sys.stderr, flush=True)
        except BaseException:
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die_at(kind: str, when: str, log: Path) -> None:
    """From now on, this process is killed at each boundary of ``kind`` that is not in ``log``.

    ``when``: ``before`` a file has its name, or ``after``; or not killed, but told that the disk
    is ``full``.
    """
    for name in ("link", "replace", "rename"):
        setattr(os, name, _deadly(getattr(os, name), kind, when, log))


def _deadly(call: Callable[..., None], kind: str, when: str, log: Path) -> Callable[..., None]:
    def wrapped(source: Any, target: Any, **more: Any) -> None:
        found, name = boundary(Path(source), Path(target))
        known = log.read_text().splitlines() if log.is_file() else []
        due = found == kind and name not in known
        if due and when == "before":
            _die(log, name)
        if due and when == "full":
            _note(log, name)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        call(source, target, **more)
        if due:
            _die(log, name)

    return wrapped


def _note(log: Path, name: str) -> None:
    with log.open("a") as stream:
        stream.write(f"{name}\n")


def _die(log: Path, name: str) -> None:
    _note(log, name)
    os.kill(os.getpid(), signal.SIGKILL)


def boundary(source: Path, target: Path) -> tuple[str, str]:
    """What kind of thing gets its name, and which of them; an event is known by what it says."""
    if target.parent.name == "trace":
        text = source.read_text()
        about = re.search(r'"(?:node|gate)":"(\w+)"', text)
        kind = re.search(r'"type":"(\w+)"', text)
        assert kind is not None
        return "event", f"{kind[1]} {about[1] if about else ''}"
    for part, kind in (("artifacts", "artifact"), ("work", "work"), ("rules", "rules")):
        if part in target.parts:
            # The next attempt names the same things in a folder of its own.
            return kind, re.sub(r"/a\d+(?=/)", "/a", str(target))
    return ("outcome" if target.name == "outcome.json" else "other"), str(target)
