"""A run whose decisions hang on the verdict of its first phase."""

from __future__ import annotations

import json

import pytest
from research_run import Run, agent, research

from eop.protocol.model import Output, Phase, Plan
from eop.runtime.reduce import Refused

WHEN = "verdict.go and verdict.score > least"
FACTS = {"verdict.go": "boolean", "verdict.score": "number"}
LEAST = {"least": {"type": "number", "default": 1.5}}


def judge(line: int = 10, **more: object) -> Phase:
    return agent("judge", line, outputs=(Output("verdict", "verdict.json"),), **more)


def chain(*phases: Phase, **more: object) -> Plan:
    """A judge and what comes after it; without gates or a loop unless given."""
    fixed = {"variables": LEAST, "facts": FACTS, "gates": (), "loop": None}
    return research(phases=phases, **{**fixed, **more})


def says(*, go: bool = True, score: float = 2.0) -> str:
    return json.dumps({"go": go, "score": score})


def status(run: Run, key: str) -> tuple[str, str]:
    node = run.trace.state().nodes[key]
    return str(node.status), node.reason


def skip(run: Run, *keys: str) -> None:
    for key in keys:
        assert run.enter(key).kind == "skip"


def refuse(run: Run, kind: str, **data: object) -> str:
    with pytest.raises(Refused) as caught:
        run.trace.append(kind, data)
    return caught.value.reason


def entry(key: str) -> dict[str, object]:
    return {"node": key, "attempt": 1, "reserve": {"actions": 10, "wall_s": 60}}
