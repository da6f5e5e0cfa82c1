"""Budgets that nest and tools that the products of a phase can hold agents to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.protocol.diagnostics import Report
    from eop.protocol.draft import Draft, Placed
    from eop.protocol.model import Phase


def check_budgets(draft: Draft, report: Report) -> None:
    """A phase's budget, times its branches, must fit into the run's."""
    run = draft.budget
    for phase in draft.phases:
        times = draft.most_branches(phase.value.branch) or 1
        own = phase.value.budget
        for key, part, whole in (
            ("actions", own.actions, run.actions),
            ("wall", own.wall_s, run.wall_s),
        ):
            if part is not None and whole is not None and part * times > whole:
                unit = " s" if key == "wall" else ""
                sum_ = f"{part} x {times} branches = {part * times}" if times > 1 else f"{part}"
                message = f"{key} {sum_}{unit} does not fit into the run's {whole}{unit}"
                hint = "lower it, or raise the budget in the front matter"
                report.error("EOP501", message, phase.node.at("budget", key), hint)


def check_tools(draft: Draft, report: Report, products: Mapping[str, frozenset[str]]) -> None:
    """Every product of a phase must be able to enforce the phase's allow-list."""
    for phase in draft.phases:
        for role, product in phase.value.nodes.items():
            if product in products:
                _enforceable(phase, role, product, products[product], report)


def _enforceable(
    phase: Placed[Phase], role: str, product: str, able: frozenset[str], report: Report
) -> None:
    beyond = [tool for tool in phase.value.tools if tool not in able]
    if beyond:
        message = f"'{product}' cannot hold its agent to the tools {', '.join(beyond)}"
        hint = (
            f"it can enforce: {', '.join(sorted(able)) or 'none'}; drop them or change the product"
        )
        report.error("EOP502", message, phase.node.at("nodes", role), hint)
