"""Facts: the fields of artifacts that expressions read, recorded when their producer leaves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from eop.protocol.expressions import fields_of, is_of
from eop.runtime.node import Instance

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from eop.protocol.expressions import Value
    from eop.protocol.model import Phase, Plan
    from eop.runtime.node import Artifact
    from eop.runtime.state import State


def read(
    root: Path, plan: Plan, phase: Phase, files: Iterable[Artifact]
) -> tuple[dict[str, Value], list[str]]:
    """The facts in a phase's committed files, and why others that it owes are not among them."""
    found: dict[str, Value] = {}
    faults = []
    paths = {file.name: root / file.path for file in files}
    for term, kind in plan.owed(phase.id).items():
        artifact = fields_of(term)[0]
        if artifact not in paths:
            continue
        try:
            found[term] = _fact(paths[artifact], term, kind)
        except ValueError as error:
            faults.append(str(error))
    return found, faults


def mismatch(plan: Plan, phase: Phase, facts: Mapping[str, Any]) -> str | None:
    """In which way ``facts`` are not those that a completed ``phase`` owes."""
    expected = plan.owed(phase.id)
    if facts.keys() != expected.keys():
        return f"its facts must be {', '.join(expected) or 'none'}"
    wrong = [term for term, kind in expected.items() if not is_of(facts[term], kind)]
    return f"its fact '{wrong[0]}' is not of type {expected[wrong[0]]}" if wrong else None


def contradictions(root: Path, plan: Plan, state: State) -> list[str]:
    """Recorded facts that are not in the artifacts, one readable line each."""
    findings = []
    for key, node in state.nodes.items():
        if not node.facts:
            continue
        found, _ = read(root, plan, plan.phase(Instance.parse(key).step), node.artifacts)
        findings += [
            f"{key}: the fact '{term}' is not what its artifact says"
            for term, value in node.facts.items()
            if term not in found or found[term] != value
        ]
    return findings


def _fact(path: Path, term: str, kind: str) -> Value:
    """The value of one fact; ``ValueError`` says why there is none."""
    try:
        value: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        raise ValueError(f"'{term}' cannot be read: {path.name} is not JSON") from None
    for field in fields_of(term)[1:]:
        if not isinstance(value, dict) or field not in value:
            raise ValueError(f"'{term}' is missing in {path.name}")
        value = value[field]
    if term.startswith("len("):
        if not isinstance(value, list | str):
            raise ValueError(f"'{term}' is asked of what has no length in {path.name}")
        value = len(value)
    if not is_of(value, kind):
        raise ValueError(f"'{term}' is not of type {kind}, or too large, in {path.name}")
    fact: Value = value
    return fact
