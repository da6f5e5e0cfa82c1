"""Recorded runs of real products, and how one is judged: as if it had just ended.

A recording is a folder with ``meta.json`` (product, argv, exit facts, what is expected), the
product's ``stdout`` and ``stderr``, and whatever session files it kept. ``expect`` is the status,
``x`` where the recorder knew none; ``usage`` and ``actions`` are optional.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from eop.agents import events as told
from eop.agents.answer import leave
from eop.agents.contract import Expected, Mode, Recording, Status, Stop
from eop.agents.outputs import collect
from eop.agents.products import REAL
from eop.agents.products.program import Settings
from eop.agents.status import Facts, decide
from eop.agents.stream import tail

if TYPE_CHECKING:
    from eop.agents.contract import Counters, Reason, Usage
    from eop.agents.events import Event

FIXTURES = Path(__file__).parents[1] / "fixtures/agents"
# The command line of OpenHands is judged by the same adapter as its SDK.
ALIASES = {"openhands-cli": "openhands"}
_OWN = ("meta.json", "stdout", "stderr")


def folder() -> Path:
    """Where the recordings are."""
    return Path(os.environ.get("RANKEVOLVE_AGENT_SAMPLES") or FIXTURES)


@dataclass(frozen=True)
class Judged:
    status: Status
    reason: Reason
    usage: Usage
    counters: Counters
    events: tuple[Event, ...]


@dataclass(frozen=True)
class Case:
    """One recording."""

    directory: Path
    meta: dict[str, Any]

    @property
    def name(self) -> str:
        return "/".join(self.directory.parts[-3:])

    def recording(self) -> Recording:
        sessions = (path for path in sorted(self.directory.iterdir()) if path.name not in _OWN)
        return Recording(
            self.directory / "stdout",
            self.directory / "stderr",
            tuple(sessions),
            self.meta["exit"].get("rc"),
        )


def cases(root: Path) -> list[Case]:
    found = sorted(root.rglob("meta.json"))
    return [Case(path.parent, json.loads(path.read_text())) for path in found]


def judge(meta: dict[str, Any], recording: Recording) -> Judged:
    """What the runtime makes of a run: the same steps as when it has just ended."""
    product = meta["product"]
    adapter = REAL[ALIASES.get(product, product)](Settings(binary="-", model="-"))
    events = tuple(adapter.parse(recording))
    ended = meta["exit"]
    status, reason = decide(
        Facts(
            mode=Mode.WRITE if ended.get("writes_expected") else Mode.READ_ONLY,
            stop=Stop(ended["stop"]) if ended.get("stop") else None,
            rc=ended.get("rc"),
            violations=tuple(ended.get("violations", ())),
            events=events,
            missing=tuple(_missing(meta, events)),
            changed=not ended.get("patch_empty"),
            complaint=tail(recording.stderr),
        )
    )
    return Judged(status, reason, told.usage(events), told.counters(events), events)


def _missing(meta: dict[str, Any], events: tuple[Event, ...]) -> list[str]:
    """What is wrong with the structured answer, where one was asked for."""
    if not meta["exit"].get("schema_expected"):
        return []
    expected = Expected("answer", "answer.json", _schema(meta.get("argv", [])))
    final = told.final(events)
    with TemporaryDirectory() as outputs:
        if final is not None:
            leave(Path(outputs) / expected.file, expected, final)
        return collect(Path(outputs), [expected])[1]


def _schema(argv: list[str]) -> dict[str, Any]:
    """The schema of the command line; a file that was not recorded can only ask for an object."""
    if "--json-schema" in argv:
        schema: dict[str, Any] = json.loads(argv[argv.index("--json-schema") + 1])
        return schema
    return {"type": "object"}
