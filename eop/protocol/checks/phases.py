"""A phase by itself: pattern or function, the roles, the markers that go with each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.errors import did_you_mean
from eop.protocol.model import OTHER
from eop.protocol.patterns import PATTERNS, REVIEWED, WORKER, Pattern
from eop.protocol.products import vendor_of
from eop.protocol.signatures import FUNCTIONS, NETWORK
from eop.protocol.yaml_nodes import Listing
from eop.protocol.yaml_nodes import Mapping as YamlMapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.protocol.diagnostics import Report, Span
    from eop.protocol.draft import Draft, Placed
    from eop.protocol.model import Phase
    from eop.protocol.yaml_nodes import Node

_OF_PATTERNS = ("nodes", "workers", "review", "check", "tools", "context")
_OF_REVIEWED = ("review", "check")
_WITH_WORKERS = tuple(name for name, pattern in PATTERNS.items() if WORKER in pattern.names)


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
        _gpus(phase, report)
    _teams(draft, report)


def _teams(draft: Draft, report: Report) -> None:
    """What is compared is trained alike: by other numbers of processes it is another draw."""
    trains = [
        phase
        for phase in draft.phases
        if (signature := FUNCTIONS.get(phase.value.function or "")) and signature.trains
    ]
    for phase in trains[1:]:
        first, own = (max(1, one.value.resources.gpus) for one in (trains[0], phase))
        if own != first:
            given = phase.value.resources.gpus
            place = phase.node.at("resources", "gpus") if given else phase.name
            message = (
                f"'{phase.value.id}' trains by {own} process{'es' * (own > 1)} and "
                f"'{trains[0].value.id}' by {first}, and their numbers are compared"
            )
            hint = f"write resources: {{gpus: {max(own, first)}}} on every phase that trains"
            report.error("EOP419", message, place, hint)


def _gpus(phase: Placed[Phase], report: Report) -> None:
    """GPUs are dear: they are set aside for phases that can use them."""
    signature = FUNCTIONS.get(phase.value.function or "")
    gpus, place = phase.value.resources.gpus, phase.node.at("resources", "gpus")
    if gpus and (signature is None or signature.runs != NETWORK):
        users = ", ".join(name for name, one in FUNCTIONS.items() if one.runs == NETWORK)
        message = f"'gpus' means nothing on '{phase.value.id}': it would hold a GPU and not use it"
        report.error("EOP414", message, place, f"only {users} do")
    elif gpus > 1 and signature and not signature.trains:
        users = ", ".join(name for name, one in FUNCTIONS.items() if one.trains)
        message = f"'{phase.value.function}' judges on one GPU, not on {gpus}"
        report.error("EOP303", message, place, f"write gpus: 1; only {users} train on several")


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
    if set(phase.value.on_branch) - {"completed"}:
        message = f"'{phase.value.id}' would run in branches that never left what it works on"
        hint = "drop it: a function runs in branches whose phases before it have completed"
        report.error("EOP416", message, phase.node.key("on_branch"), hint)


def _pattern(phase: Placed[Phase], report: Report, products: Mapping[str, frozenset[str]]) -> None:
    node, value = phase.node, phase.value
    if "with" in node.keys:
        message = "'with' means nothing on a pattern"
        report.error("EOP414", message, node.key("with"), "tell the agent in the prose below")
    _bearing(phase, _OF_REVIEWED, REVIEWED, "reviews", report)
    _bearing(phase, ("workers",), _WITH_WORKERS, "has workers", report)
    needed = {"nodes": "{writer: scripted}", "tools": "[read]"}
    if value.pattern in _WITH_WORKERS:
        needed["workers"] = "{max: 4}"
    for key, example in needed.items():
        if key not in node.keys:
            message = f"an agent phase needs the key '{key}'"
            report.error("EOP113", message, phase.name, f"add '{key}: {example}'")
    _workers(phase, report)
    if not value.body:
        message = f"no prose tells the agent of '{value.id}' what to do"
        report.error("EOP116", message, phase.name, "write it below the fence")
    _roles(phase, report)
    _vendors(phase, report)
    for role, product in value.cast:
        if product not in products:
            hint = did_you_mean(product, products) or f"known: {', '.join(products)}"
            message = f"unknown product '{product}'"
            report.error("EOP204", message, product_place(phase, role, product), hint)


def _vendors(phase: Placed[Phase], report: Report) -> None:
    """Where another vendor is asked for, nobody judges the work of their own."""
    value = phase.value
    if value.pattern is None or value.review is None or value.review.vendor != OTHER:
        return
    vendors = {role: vendor_of(product) for role, product in value.nodes.items()}
    for judge, authors in PATTERNS[value.pattern].apart.items():
        own = [role for role in authors if role in vendors and vendors[role] == vendors.get(judge)]
        if own:
            message = f"'{judge}' and '{own[0]}' are of one vendor, {vendors[judge]}"
            hint = f"give '{judge}' a product of another vendor, or drop 'vendor: {OTHER}'"
            place = product_place(phase, judge, value.nodes[judge])
            report.error("EOP214", message, place, hint)


def product_place(phase: Placed[Phase], role: str, product: str) -> Span:
    """Where the product of a role is written: one of several for workers, a stand-in's own."""
    pattern = PATTERNS.get(phase.value.pattern or "", Pattern())
    if _written_products(phase, role)[0] is None:
        role = pattern.stand_ins.get(role, role)
    written = _written_products(phase, role)
    path = ("nodes", role, "product") if isinstance(written[0], YamlMapping) else ("nodes", role)
    if isinstance(written[1], Listing) and phase.value.workers:
        return phase.node.at(*path, phase.value.workers.products.index(product))
    return phase.node.at(*path)


def _written_products(phase: Placed[Phase], role: str) -> tuple[Node | None, Node | None]:
    """The node of a role as written, and in it what names its products."""
    nodes = phase.node.values.get("nodes")
    node = nodes.values.get(role) if isinstance(nodes, YamlMapping) else None
    return node, node.values.get("product") if isinstance(node, YamlMapping) else node


def _bearing(
    phase: Placed[Phase], keys: tuple[str, ...], patterns: tuple[str, ...], do: str, report: Report
) -> None:
    """Markers that mean something on a few patterns stand on no other."""
    pattern = phase.value.pattern
    for key in keys:
        if pattern is not None and pattern not in patterns and key in phase.node.keys:
            message = f"'{key}' means nothing on the pattern '{pattern}'"
            who = ", ".join(f"'{name}'" for name in patterns)
            report.error("EOP414", message, phase.node.key(key), f"only {who} {do}")


def _workers(phase: Placed[Phase], report: Report) -> None:
    """No more workers at once, or needed, than there can be."""
    workers = phase.value.workers
    if workers is None:
        return
    for key in ("concurrency", "at_least"):
        value = getattr(workers, key)
        if value > workers.max:
            message = f"{key} {value} is more than the workers' max of {workers.max}"
            report.error("EOP303", message, phase.node.at("workers", key), "lower it, or raise max")


def _roles(phase: Placed[Phase], report: Report) -> None:
    value = phase.value
    pattern = PATTERNS.get(value.pattern) if value.pattern else None
    nodes = phase.node.values.get("nodes")
    written = getattr(nodes, "keys", None)
    if pattern is None or written is None:
        return
    for role, span in written.items():
        several = isinstance(_written_products(phase, role)[1], Listing)
        if several and not (role == WORKER and role in pattern.names):
            message = f"'{role}' is played by one product"
            report.error("EOP207", message, span, "only the workers of 'bta' may be several")
    if pattern.roles is None:
        return
    needed = pattern.roles
    missing = [role for role in needed if role not in written]
    for role, span in written.items():
        if role not in pattern.names:
            hint = did_you_mean(role, missing) or f"its roles: {', '.join(pattern.names)}"
            report.error("EOP207", f"'{value.pattern}' has no role '{role}'", span, hint)
    # A misspelt role is one fault: it is not reported as missing too.
    if missing and len(written) <= len(needed) - len(missing):
        message = f"'{value.pattern}' lacks the role {', '.join(repr(role) for role in missing)}"
        report.error("EOP207", message, phase.node.key("nodes"), f"its roles: {', '.join(needed)}")
