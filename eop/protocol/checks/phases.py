"""A phase by itself: pattern or function, the roles, the markers that go with each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.errors import did_you_mean
from eop.protocol.markers import PATTERNS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.protocol.diagnostics import Report
    from eop.protocol.draft import Draft, Placed
    from eop.protocol.model import Phase

_OF_PATTERNS = ("nodes", "review", "check", "tools", "context")
_OF_DUAL = ("review", "check")


def check_phases(draft: Draft, report: Report, products: Mapping[str, frozenset[str]]) -> None:
    """Every phase has one way to work, complete roles, and only markers that bear on it."""
    for phase in draft.phases:
        keys = phase.node.keys
        if ("pattern" in keys) == ("function" in keys):
            _neither_or_both(phase, report)
        elif "pattern" in keys:
            _pattern(phase, report, products)
        else:
            _function(phase, report)
        if "on_branch" in keys and "for_each" not in keys:
            message = "'on_branch' means nothing outside a branch"
            report.error("EOP414", message, phase.node.key("on_branch"), "add for_each or drop it")


def _neither_or_both(phase: Placed[Phase], report: Report) -> None:
    if "pattern" in phase.node.keys:
        message, span = "a phase has a pattern or a function, not both", phase.node.key("function")
        hint = "split it into two phases"
    else:
        message, span = "the phase has neither a pattern nor a function", phase.name
        hint = "add 'pattern: linear' for an agent, or 'function: ...'"
    report.error("EOP413", message, span, hint)


def _function(phase: Placed[Phase], report: Report) -> None:
    for key in _OF_PATTERNS:
        if key in phase.node.keys:
            message = f"'{key}' means nothing on a function"
            report.error("EOP414", message, phase.node.key(key), "no agent works in this phase")


def _pattern(phase: Placed[Phase], report: Report, products: Mapping[str, frozenset[str]]) -> None:
    node, value = phase.node, phase.value
    if "with" in node.keys:
        message = "'with' means nothing on a pattern"
        report.error("EOP414", message, node.key("with"), "tell the agent in the prose below")
    if value.pattern not in (None, "dual"):
        for key in _OF_DUAL:
            if key in node.keys:
                message = f"'{key}' means nothing on the pattern '{value.pattern}'"
                report.error("EOP414", message, node.key(key), "only 'dual' reviews")
    for key, example in (("nodes", "{writer: scripted}"), ("tools", "[read]")):
        if key not in node.keys:
            message = f"an agent phase needs the key '{key}'"
            report.error("EOP113", message, phase.name, f"add '{key}: {example}'")
    if not value.body:
        message = f"no prose tells the agent of '{value.id}' what to do"
        report.error("EOP116", message, phase.name, "write it below the fence")
    _roles(phase, report)
    for role, product in value.nodes.items():
        if product not in products:
            hint = did_you_mean(product, products) or f"known: {', '.join(products)}"
            message = f"unknown product '{product}'"
            report.error("EOP204", message, node.at("nodes", role, "product"), hint)


def _roles(phase: Placed[Phase], report: Report) -> None:
    value = phase.value
    needed = PATTERNS.get(value.pattern) if value.pattern else None
    nodes = phase.node.values.get("nodes")
    written = getattr(nodes, "keys", None)
    if needed is None or written is None:
        return
    missing = [role for role in needed if role not in written]
    for role, span in written.items():
        if role not in needed:
            hint = did_you_mean(role, missing) or f"its roles: {', '.join(needed)}"
            report.error("EOP207", f"'{value.pattern}' has no role '{role}'", span, hint)
    # A misspelt role is one fault: it is not reported as missing too.
    if missing and len(written) <= len(needed) - len(missing):
        message = f"'{value.pattern}' lacks the role {', '.join(repr(role) for role in missing)}"
        report.error("EOP207", message, phase.node.key("nodes"), f"its roles: {', '.join(needed)}")
