"""``check`` and ``load``: from the path of a protocol to diagnostics or a plan."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from eop.core.errors import did_you_mean
from eop.protocol.checks.artifacts import check_artifacts
from eop.protocol.checks.branches import check_branches
from eop.protocol.checks.budgets import check_budgets, check_tools
from eop.protocol.checks.decisions import check_decisions
from eop.protocol.checks.flow import check_flow
from eop.protocol.checks.optional import check_optional
from eop.protocol.checks.phases import check_phases
from eop.protocol.checks.prompts import check_prompts
from eop.protocol.checks.rankings import check_rankings
from eop.protocol.checks.references import resolve_references
from eop.protocol.diagnostics import Diagnostic, ProtocolErrors, Report
from eop.protocol.document import split_document
from eop.protocol.draft import Draft, build_draft
from eop.protocol.graph import Graph
from eop.protocol.held import check_held
from eop.protocol.model import Plan
from eop.protocol.products import PRODUCTS
from eop.protocol.prompts import prompts_of
from eop.protocol.source import Source, check_characters, read_source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from eop.protocol.model import Phase

_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Analysis:
    """All that is known of a protocol: its draft, unless it cannot be read, and its faults.

    ``facts`` are the fields of artifacts that expressions read, with their types.
    """

    source: Source | None
    draft: Draft | None
    diagnostics: list[Diagnostic]
    facts: dict[str, str] = field(default_factory=dict)


def load(
    path: Path,
    *,
    root: Path,
    products: Mapping[str, frozenset[str]] = PRODUCTS,
    unpriced: Mapping[str, str] = _NONE,
) -> Plan:
    """The plan of the protocol at ``path``; ``root`` is the project with ``config/``.

    ``unpriced`` are the products whose model has no price, with the model. Raises
    ``ProtocolErrors`` with every fault when there is one.
    """
    analysis = analyse(path, root=root, products=products, unpriced=unpriced)
    if analysis.diagnostics or analysis.draft is None or analysis.source is None:
        raise ProtocolErrors(analysis.diagnostics)
    return _plan(analysis.draft, analysis.source, analysis.facts, root)


def check(
    path: Path,
    *,
    root: Path,
    products: Mapping[str, frozenset[str]] = PRODUCTS,
    unpriced: Mapping[str, str] = _NONE,
) -> list[Diagnostic]:
    """Every fault of the protocol at ``path``, in the order of the file; empty when it is sound.

    Never raises for what the file holds.
    """
    return analyse(path, root=root, products=products, unpriced=unpriced).diagnostics


def analyse(
    path: Path,
    *,
    root: Path,
    products: Mapping[str, frozenset[str]],
    unpriced: Mapping[str, str] = _NONE,
) -> Analysis:
    """Read and check the protocol at ``path``."""
    source = read_source(path, root)
    if isinstance(source, Diagnostic):
        return Analysis(None, None, [source])
    report = Report(source.path, source.lines)
    if not check_characters(source, report):
        return Analysis(source, None, report.diagnostics)
    draft = resolve_references(build_draft(split_document(source, report), report), report)
    graph = Graph.of(draft)
    check_held(draft, report)
    _check_target(draft, report, root)
    check_phases(draft, report, products)
    check_rankings(draft, report)
    check_prompts(draft, report, root)
    check_flow(draft, graph, report)
    check_branches(draft, graph, report)
    check_artifacts(draft, graph, report, root)
    check_optional(draft, graph, report)
    facts = check_decisions(draft, graph, report, root)
    check_budgets(draft, report, unpriced)
    check_tools(draft, report, products)
    return Analysis(source, draft, report.diagnostics, facts)


def _check_target(draft: Draft, report: Report, root: Path) -> None:
    target, node = draft.front.get("target"), draft.front_node
    folder = root / "config" / "targets"
    if target is None or node is None or (folder / f"{target}.yaml").is_file():
        return
    known = sorted(path.stem for path in folder.glob("*.yaml"))
    hint = did_you_mean(target, known) or f"write config/targets/{target}.yaml"
    message = f"config/targets/{target}.yaml does not exist"
    report.error("EOP209", message, node.at("target"), hint)


def _told(draft: Draft, source: Source) -> str:
    """The document's text, if an agent is told all of it."""
    full = any(phase.value.pattern and phase.value.context == "full" for phase in draft.phases)
    return "\n".join(source.lines) if full else ""


def _pinned(phase: Phase, root: Path) -> Phase:
    """The phase with the prompts that its agents are told by, so that a change of one is seen."""
    if not phase.pattern:
        return phase
    found = prompts_of(phase, root)
    return replace(phase, prompts={name: prompt.digest for name, prompt in found.items()})


def _plan(draft: Draft, source: Source, facts: dict[str, str], root: Path) -> Plan:
    front = draft.front
    return Plan(
        name=front["name"],
        version=front["version"],
        title=draft.title,
        source=source.path,
        target=front["target"],
        variables=front.get("variables", {}),
        budget=draft.budget,
        phases=tuple(_pinned(phase.value, root) for phase in draft.phases),
        gates=tuple(gate.value for gate in draft.gates),
        loop=draft.loops[0].value if draft.loops else None,
        facts=facts,
        document=_told(draft, source),
    )
