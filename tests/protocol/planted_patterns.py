"""Planted faults of patterns other than those of the sound protocol."""

from __future__ import annotations

from planted_faults import Fault

_LINEAR = "pattern: linear\nnodes: {proposer: scripted}\n"
_NODES = "{breakdown: scripted, worker: [scripted, qwen-code]}"


def bta(nodes: str = _NODES, workers: str = "workers: {max: 4}\n") -> str:
    """A breakdown in the place of the sound protocol's `propose`."""
    return f"pattern: bta\nnodes: {nodes}\n{workers}"


def capped(products: str) -> str:
    """The roles of a breakdown whose workers have a budget of their own."""
    return f"{{breakdown: scripted, worker: {{product: {products}, budget: {{actions: 1}}}}}}"


_DUAL = "pattern: dual\nnodes: {implementer: scripted, reviewer: scripted, fixer: scripted}\n"


def planned(nodes: str, pattern: str = "plan_then_implement", vendor: str = "other") -> str:
    """A plan before the change, in the place of the sound protocol's review loop."""
    change = "implementer: scripted, reviewer: scripted-peer, fixer: scripted"
    review = f"review: {{vendor: {vendor}, rounds: 2}}\n"
    return f"pattern: {pattern}\nnodes: {{{nodes}, {change}}}\n{review}"


_REVIEWED = f"{_DUAL}review: {{until: minor, rounds: 2}}\n"
_RANKED = "ranking: {file: ranking.json, schema: ranking}"
PATTERN_FAULTS = [
    Fault(
        "EOP214",
        "outputs: {report: {file: report.md}}",
        f"outputs: {{report: {{file: report.json, schema: directions}}, {_RANKED}}}",
        "scripted",
        "'reader' ranks what 'writer' has named, and both are scripted",
    ),
    Fault(
        "EOP215",
        "{analyst: scripted}",
        "{damaged: scripted}",
        "nodes",
        "config/prompts/damaged.md:3:5: unknown variable 'tsk'",
    ),
    Fault(
        "EOP214",
        "rounds: 2}",
        "rounds: 2, vendor: other}",
        "scripted",
        "'reviewer' and 'implementer' are of one vendor, scripted",
    ),
    Fault(
        "EOP214",
        _REVIEWED,
        planned("planner: scripted, plan_reviewer: scripted"),
        "scripted",
        "'plan_reviewer' and 'planner'",
    ),
    Fault(
        "EOP214",
        _REVIEWED,
        planned("planner: scripted-peer, plan_reviewer: scripted-peer", "plan_merge"),
        "scripted-peer",
        "'co_planner' and 'planner'",
    ),
    Fault(
        "EOP214",
        _REVIEWED,
        planned(
            "planner: scripted, plan_reviewer: scripted-peer, merger: scripted-peer", "plan_merge"
        ),
        "scripted-peer",
        "'plan_reviewer' and 'merger'",
    ),
    Fault(
        "EOP302",
        _REVIEWED,
        planned("planner: scripted, plan_reviewer: scripted-peer", vendor="others"),
        "others",
        "unknown vendor",
    ),
    Fault("EOP207", _REVIEWED, planned("planner: scripted"), "nodes", "'plan_reviewer'"),
    Fault(
        "EOP207",
        _REVIEWED,
        planned("planner: scripted, plan_reviewer: scripted-peer, merger: scripted"),
        "merger",
        "no role",
    ),
    Fault("EOP113", _LINEAR, bta(workers=""), "propose", "'workers'"),
    Fault(
        "EOP113", _LINEAR, bta(workers="workers: {concurrency: 2}\n"), "{concurrency: 2}", "'max'"
    ),
    Fault("EOP112", _LINEAR, bta(workers="workers: {max: 4, least: 2}\n"), "least", "'least'"),
    Fault("EOP303", _LINEAR, bta(workers="workers: {max: 21}\n"), "21", "between 1 and 20"),
    Fault("EOP303", _LINEAR, bta(workers="workers: {max: 3, concurrency: 4}\n"), "4", "max of 3"),
    Fault("EOP303", _LINEAR, bta(workers="workers: {max: 3, at_least: 5}\n"), "5", "at_least 5"),
    Fault("EOP207", _LINEAR, bta("{worker: scripted}"), "nodes", "'breakdown'"),
    Fault(
        "EOP207",
        _LINEAR,
        bta("{breakdown: scripted, worker: scripted, agregate: scripted}"),
        "agregate",
        "no role",
    ),
    Fault(
        "EOP207",
        _LINEAR,
        bta("{breakdown: [scripted, qwen-code], worker: scripted}"),
        "breakdown",
        "by one product",
    ),
    Fault(
        "EOP207",
        "{analyst: scripted}",
        "{analyst: [scripted, qwen-code]}",
        "analyst",
        "by one product",
    ),
    Fault(
        "EOP204",
        _LINEAR,
        bta(_NODES.replace("qwen-code", "qwen-cod")),
        "qwen-cod",
        "unknown product",
    ),
    Fault("EOP310", _LINEAR, bta(_NODES.replace("qwen-code", "scripted")), "scripted", "twice"),
    Fault("EOP502", _LINEAR, bta(_NODES.replace("qwen-code", "bounded")), "bounded", "read"),
    # Products that are written with a budget of their role's own: alone, one of several, stood in.
    Fault(
        "EOP502",
        "{analyst: scripted}",
        "{analyst: {product: bounded, budget: {actions: 1}}}",
        "bounded",
    ),
    Fault("EOP502", _LINEAR, bta(capped("bounded")), "bounded"),
    Fault("EOP502", _LINEAR, bta(capped("[scripted, bounded]")), "bounded"),
    Fault("EOP204", _LINEAR, bta(capped("[scripted, scriptd]")), "scriptd"),
    Fault(
        "EOP414", _LINEAR, f"{_LINEAR}workers: {{max: 4}}\n", "workers", "on the pattern 'linear'"
    ),
    Fault("EOP414", _LINEAR, f"{bta()}review: {{rounds: 2}}\n", "review", "on the pattern 'bta'"),
    Fault(
        "EOP414",
        "function: publish",
        "function: publish\nworkers: {max: 4}",
        "workers",
        "on a function",
    ),
    Fault(
        "EOP504",
        f"{_LINEAR}tools: [read]\noutputs: {{proposals",
        f"{bta()}tools: [read]\noutputs: {{patch: {{file: p.diff, patch: true}}, proposals",
        "true",
        "workers leave no patch",
    ),
    Fault(
        "EOP512",
        f"{_LINEAR}tools: [read]\noutputs: {{proposals",
        f"{bta()}tools: [read]\noutputs: {{summary: {{file: s.md}}, proposals",
        "nodes",
        "'summary'",
    ),
    Fault(
        "EOP523",
        f"{_LINEAR}tools: [read]\n",
        bta(_NODES).replace(
            "worker: [scripted, qwen-code]",
            "worker: {product: [scripted, qwen-code], budget: {usd: 1}}",
        )
        + "tools: [read]\n",
        "1",
        "'qwen-code' has the model 'house-model', whose price is not known",
    ),
]
