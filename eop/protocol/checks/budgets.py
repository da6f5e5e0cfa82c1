"""Budgets that nest and leave nothing out, and tools that products can hold their agents to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.errors import did_you_mean
from eop.protocol.checks.phases import product_place
from eop.protocol.markers import KINDS
from eop.protocol.model import UNITS, shown
from eop.protocol.products import UNDENIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.protocol.diagnostics import Report
    from eop.protocol.draft import Draft, Placed
    from eop.protocol.model import Budget, Phase
    from eop.protocol.yaml_nodes import Mapping as Node


def check_budgets(draft: Draft, report: Report, unpriced: Mapping[str, str]) -> None:
    """Check that what a phase may cost is known, measured, and fits into what is around it.

    So all that is at work at a time is set aside beforehand, and the run never overdrawn.
    ``unpriced`` maps products to their models of which nobody knows what they cost.
    """
    limited = tuple(
        unit for unit, field in UNITS.items() if getattr(draft.budget, field) is not None
    )
    cast = {product for phase in draft.phases for _, product in phase.value.cast}
    if draft.front_node is not None:
        _priced(draft.budget, cast, unpriced, draft.front_node, ("budget", "usd"), report)
    for phase in draft.phases:
        _own_amounts(phase, limited, report)
        _fits_the_run(phase, draft, report)
        for role in phase.value.node_budgets:
            _fits_the_phase(phase, role, report)
        _measured(phase, report)
        _priced_phase(phase, unpriced, report)


def _fits_the_run(phase: Placed[Phase], draft: Draft, report: Report) -> None:
    """All that a phase may spend in one turn: agents share what is theirs, functions try anew."""
    branches = draft.most_branches(phase.value.branch) or 1
    attempts = phase.value.budget.attempts if phase.value.function else 1
    for unit, field in UNITS.items():
        part, whole = getattr(phase.value.budget, field), getattr(draft.budget, field)
        if part is None or whole is None or part * attempts * branches <= whole:
            continue
        times = f" x {attempts} attempts" if attempts > 1 else ""
        times += f" x {branches} branches" if branches > 1 else ""
        total = f"{shown(field, part)}{times}"
        total += f" = {shown(field, part * attempts * branches)}" if times else ""
        message = f"{unit} {total} does not fit into the run's {shown(field, whole)}"
        hint = "lower it, or raise the budget in the front matter"
        report.error("EOP501", message, phase.node.at("budget", unit), hint)


def _own_amounts(phase: Placed[Phase], limited: tuple[str, ...], report: Report) -> None:
    """A phase has an amount of its own of all that the run limits and it can spend."""
    value, written = phase.value, phase.node.values.get("budget")
    misspelt = any(
        did_you_mean(key, ["budget"]) for key in phase.node.keys.keys() - KINDS["phase"].keys()
    )
    if misspelt or not (value.pattern or value.function):
        return
    missing = []
    for unit in (one for one in limited if UNITS[one] in value.spends):
        unreadable = written is not None and unit in getattr(written, "keys", (unit,))
        if getattr(value.budget, UNITS[unit]) is None and not unreadable:
            missing.append(unit)
    if missing:
        message = f"'{value.id}' has no {' and no '.join(missing)} of its own, which the run limits"
        span = phase.node.key("budget") if written is not None else phase.name
        wanted = ", ".join(f"{unit}: ..." for unit in missing)
        add = f"add {wanted}" if written is not None else f"add budget: {{{wanted}}}"
        hint = f"{add}; it is set aside before the phase starts"
        report.error("EOP522", message, span, hint)


def _fits_the_phase(phase: Placed[Phase], role: str, report: Report) -> None:
    own, whole = phase.value.node_budgets[role], phase.value.budget
    for unit, field in (*UNITS.items(), ("attempts", "attempts")):
        part, limit = getattr(own, field), getattr(whole, field)
        if part is not None and limit is not None and part > limit:
            message = f"{unit} {shown(field, part)} of '{role}' does not fit into the phase's "
            message += shown(field, limit)
            span = phase.node.at("nodes", role, "budget", unit)
            report.error("EOP520", message, span, "lower it, or raise the phase's budget")


def _measured(phase: Placed[Phase], report: Report) -> None:
    """A limit in a unit that nobody counts would hold nothing: a function only takes time."""
    if not phase.value.function:
        return
    for unit, field in UNITS.items():
        if getattr(phase.value.budget, field) is not None and field not in phase.value.spends:
            message = f"a function spends no {unit}"
            report.error("EOP521", message, phase.node.at("budget", unit), "drop it, or limit wall")


def _priced_phase(phase: Placed[Phase], unpriced: Mapping[str, str], report: Report) -> None:
    cast = {product for _, product in phase.value.cast}
    _priced(phase.value.budget, cast, unpriced, phase.node, ("budget", "usd"), report)
    for role, budget in phase.value.node_budgets.items():
        own = {product for name, product in phase.value.cast if name == role}
        path = ("nodes", role, "budget", "usd")
        _priced(budget, own, unpriced, phase.node, path, report)


def _priced(
    budget: Budget,
    cast: set[str],
    unpriced: Mapping[str, str],
    node: Node,
    path: tuple[str, ...],
    report: Report,
) -> None:
    """A budget in dollars needs the price of every model that spends from it."""
    if budget.micro_usd is None:
        return
    for product in sorted(cast & unpriced.keys()):
        message = f"'{product}' has the model '{unpriced[product]}', whose price is not known"
        hint = "add it to config/prices.yaml, or limit tokens instead"
        report.error("EOP523", message, node.at(*path), hint)


def check_tools(draft: Draft, report: Report, products: Mapping[str, frozenset[str]]) -> None:
    """Every product of a phase must be able to enforce the phase's allow-list."""
    for phase in draft.phases:
        for role, product in phase.value.cast:
            if product in products:
                _enforceable(phase, role, product, products[product], report)
                _deniable(phase, role, product, report)


def _enforceable(
    phase: Placed[Phase], role: str, product: str, able: frozenset[str], report: Report
) -> None:
    beyond = [tool for tool in phase.value.tools if tool not in able]
    if beyond:
        message = f"'{product}' cannot hold its agent to the tools {', '.join(beyond)}"
        hint = (
            f"it can enforce: {', '.join(sorted(able)) or 'none'}; drop them or change the product"
        )
        report.error("EOP502", message, product_place(phase, role, product), hint)


def _deniable(phase: Placed[Phase], role: str, product: str, report: Report) -> None:
    if not phase.value.tools:
        return
    for tool, because in UNDENIABLE.get(product, {}).items():
        if tool not in phase.value.tools:
            message = f"'{product}' cannot be denied '{tool}': {because}"
            hint = f"add '{tool}' to the tools, or give the node another product"
            report.error("EOP502", message, product_place(phase, role, product), hint)
