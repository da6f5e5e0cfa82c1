"""Budgets that nest and leave nothing out, and tools that products can hold their agents to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.errors import did_you_mean
from eop.protocol.checks.phases import product_place
from eop.protocol.markers import KINDS
from eop.protocol.model import UNITS, shown
from eop.protocol.products import MEASURES, UNDENIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.protocol.diagnostics import Report
    from eop.protocol.draft import Draft, Placed
    from eop.protocol.model import Budget, Phase


def check_budgets(draft: Draft, report: Report) -> None:
    """Check that what a phase may cost is known, measured, and fits into what is around it.

    So all that is at work at a time is set aside beforehand, and the run never overdrawn.
    """
    held = _run_measured(draft, report)
    for phase in draft.phases:
        _own_amounts(phase, held, report)
        _fits_the_run(phase, draft, report)
        for role in phase.value.node_budgets:
            _fits_the_phase(phase, role, report)
        _measured(phase, report)


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
        silent = [(role, name) for role, name in value.cast if unit not in _reported(name)]
        for role, product in silent:
            message = f"the run limits {unit}, and '{product}' reports none"
            hint = f"take a product that reports {unit}, or drop it from the run's budget"
            report.error("EOP521", message, product_place(phase, role, product), hint)
        unreadable = written is not None and unit in getattr(written, "keys", (unit,))
        if getattr(value.budget, UNITS[unit]) is None and not silent and not unreadable:
            missing.append(unit)
    if missing:
        message = f"'{value.id}' has no {' and no '.join(missing)} of its own, which the run limits"
        span = phase.node.key("budget") if written is not None else phase.name
        wanted = ", ".join(f"{unit}: ..." for unit in missing)
        add = f"add {wanted}" if written is not None else f"add budget: {{{wanted}}}"
        hint = f"{add}; it is set aside before the phase starts"
        report.error("EOP522", message, span, hint)


def _reported(product: str) -> frozenset[str]:
    """The units that somebody measures of what a product does; an unknown one may report all."""
    return MEASURES.get(product, frozenset(UNITS)) | {"wall"}


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
    """A limit in a unit that nobody reports would hold nothing."""
    products = {product for _, product in phase.value.cast}
    if not products and not phase.value.function:
        return
    places: list[tuple[tuple[str, ...], Budget, set[str]]] = [
        (("budget",), phase.value.budget, products)
    ]
    for role, budget in phase.value.node_budgets.items():
        own = {product for name, product in phase.value.cast if name == role}
        places.append((("nodes", role, "budget"), budget, own))
    for path, budget, measurers in places:
        for unit in _unmeasured(budget, measurers):
            who = (
                f"no product of '{phase.value.id}' reports" if products else "a function spends no"
            )
            message = f"{who} {unit}"
            report.error("EOP521", message, phase.node.at(*path, unit), "drop it, or limit wall")


def _run_measured(draft: Draft, report: Report) -> tuple[str, ...]:
    """The units that the run limits and its products can be held to."""
    limited = [unit for unit, field in UNITS.items() if getattr(draft.budget, field) is not None]
    products = {product for phase in draft.phases for _, product in phase.value.cast}
    if not products or draft.front_node is None:
        return tuple(limited)
    unmeasured = _unmeasured(draft.budget, products)
    for unit in unmeasured:
        message = f"no product of this protocol reports {unit}"
        report.error("EOP521", message, draft.front_node.at("budget", unit), "drop it")
    return tuple(unit for unit in limited if unit not in unmeasured)


def _unmeasured(budget: Budget, products: set[str]) -> list[str]:
    """Units that are limited and that none of ``products`` reports; unknown products may."""
    if products - MEASURES.keys():
        return []
    known = {unit for product in products for unit in MEASURES[product]} | {"wall"}
    return [u for u, f in UNITS.items() if getattr(budget, f) is not None and u not in known]


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
