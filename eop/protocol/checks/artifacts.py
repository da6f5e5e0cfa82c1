"""Artifacts: one producer each, produced before use, of a form that the user can take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.errors import did_you_mean
from eop.protocol.patterns import AGGREGATE, WORKERS_OUTPUT
from eop.protocol.schemas import Schemas
from eop.protocol.signatures import FUNCTIONS

if TYPE_CHECKING:
    from pathlib import Path

    from eop.protocol.diagnostics import Report, Span
    from eop.protocol.draft import Draft, Placed
    from eop.protocol.graph import Graph
    from eop.protocol.model import Output, Phase
    from eop.protocol.signatures import Signature


def check_artifacts(draft: Draft, graph: Graph, report: Report, root: Path) -> None:
    """Check outputs, their schemas, what gates show, what the fan-out runs over, functions."""
    producers = _producers(draft, report)
    schemas = Schemas(root, report)
    for phase in draft.phases:
        _outputs(phase, schemas, report)
        _lists(phase, schemas, report)
        if phase.value.function:
            _function(phase, draft, graph, report)
        elif phase.value.check and not any(out.patch for out in phase.value.outputs):
            message = f"the check '{phase.value.check}' has no patch to work on"
            hint = "declare it: outputs: {patch: {file: patch.diff, patch: true}}"
            report.error("EOP416", message, phase.node.at("check"), hint)
    for gate in draft.gates:
        for index, artifact in enumerate(gate.value.shows):
            span = gate.node.at("shows", index)
            _use(artifact, gate.value.id, span, producers, draft, graph, report)
    for head in draft.phases:
        if head.value.fan_out:
            _fan_out(head, producers, schemas, draft, graph, report)


def _producers(draft: Draft, report: Report) -> dict[str, tuple[Placed[Phase], Output]]:
    found: dict[str, tuple[Placed[Phase], Output]] = {}
    for phase in draft.phases:
        for output in phase.value.outputs:
            if output.name in found:
                first = found[output.name][0].value.id
                message = f"'{output.name}' is produced by '{first}' already"
                span = phase.node.at("outputs", output.name)
                report.error("EOP506", message, span, "give it another name")
            else:
                found[output.name] = (phase, output)
    return found


def _outputs(phase: Placed[Phase], schemas: Schemas, report: Report) -> None:
    files: set[str] = set()
    patches = [output for output in phase.value.outputs if output.patch]
    for output in phase.value.outputs:
        span = phase.node.at("outputs", output.name, "file")
        if output.file in files:
            report.error("EOP505", f"two outputs share the file '{output.file}'", span)
        elif output.schema and not output.patch and not output.file.endswith(".json"):
            message = f"'{output.file}' has a schema, and is not the name of a JSON file"
            hint = f"name it {output.name}.json, or drop the schema"
            report.error("EOP307", message, span, hint)
        files.add(output.file)
        if output.schema:
            schemas.load(output.schema, phase.node.at("outputs", output.name, "schema"))
    for patch in patches:
        span = phase.node.at("outputs", patch.name, "patch")
        if patch.schema:
            message, hint = "a patch has no schema", "drop one of the two"
        elif phase.value.function:
            message, hint = "a function leaves no patch", "only agents change the target"
        elif patch is not patches[0]:
            message, hint = "a phase leaves at most one patch", "drop one of the two"
        else:
            continue
        report.error("EOP504", message, span, hint)
    if patches and phase.value.workers:
        message, hint = "workers leave no patch", "let a later phase implement what they propose"
        report.error("EOP504", message, phase.node.at("outputs", patches[0].name, "patch"), hint)
        return
    edits = "edit" in phase.value.tools or "tools" not in phase.node.keys
    if patches and phase.value.pattern and not edits:
        message = "a patch is due, but the tool 'edit' is not allowed"
        report.error("EOP503", message, phase.node.at("tools"), "add 'edit' to the tools")


def _lists(phase: Placed[Phase], schemas: Schemas, report: Report) -> None:
    """What workers leave is joined by the runtime where no agent does: lists alone can be."""
    if phase.value.workers is None or AGGREGATE in phase.value.nodes:
        return
    for output in phase.value.outputs:
        span = phase.node.at("outputs", output.name, "schema")
        schema = schemas.load(output.schema, span) if output.schema else {}
        if output.name == WORKERS_OUTPUT or output.patch or schema is None:
            continue
        if schema.get("type") != "array":
            message = f"nobody aggregates '{output.name}', and the runtime joins lists alone"
            hint = f"give it a schema of type array, or add '{AGGREGATE}: ...' to the nodes"
            report.error("EOP512", message, phase.node.key("nodes"), hint)


def _function(phase: Placed[Phase], draft: Draft, graph: Graph, report: Report) -> None:
    function = str(phase.value.function)
    signature, span = FUNCTIONS[function], phase.node.at("function")
    expected = ", ".join(_written(output) for output in signature.leaves)
    if phase.value.outputs and phase.value.outputs != signature.leaves:
        message = f"'{function}' leaves other outputs than these"
        report.error("EOP510", message, phase.node.key("outputs"), f"write outputs: {{{expected}}}")
    if phase.value.id in graph.doubtful or draft.broken:
        return
    above = graph.ancestors(phase.value.id)
    seen = _sees(phase.value, draft)
    before = [p.value for p in draft.phases if p.value.id in above and p.value.branch in seen]
    if signature.join and phase.value.join is None:
        hint = "add 'join: {of: ..., wait: all, at_least: 0}'"
        report.error("EOP416", f"'{function}' works on joined branches", span, hint)
        return
    for needed in signature.after:
        if not any(other.function == needed for other in before):
            elsewhere = any(other.value.function == needed for other in draft.phases)
            why = "is in another fan-out or does not" if elsewhere else "does not"
            message = f"'{function}' works on what '{needed}' leaves, which {why} come before it"
            report.error("EOP416", message, span, f"let it need a phase with 'function: {needed}'")
    changed = any(out.patch for other in before for out in other.outputs)
    changed = changed or any(other.function == "compose" for other in before)
    if signature.change and not changed and draft.outputs_known:
        hint = "let it need a phase with an output {file: patch.diff, patch: true}"
        report.error(
            "EOP416", f"'{function}' works on a patch, and none comes before it", span, hint
        )
    if signature.branch:
        _in_branch(phase, signature, draft, report)


def _sees(phase: Phase, draft: Draft) -> set[str | None]:
    """Where what a function works on may lie: outside branches, in its own, in those it joins."""
    joined = draft.branch_of(phase.join.of) if phase.join else None
    return {None, phase.branch, joined}


def _in_branch(phase: Placed[Phase], signature: Signature, draft: Draft, report: Report) -> None:
    """The phase runs once per branch, opened by the items that its function works on."""
    function, items = phase.value.function, signature.items
    opener = draft.heads.get(phase.value.branch) if phase.value.branch else None
    head = opener.value.fan_out if opener else None
    if not phase.value.branch:
        message = f"'{function}' works in a branch, and this phase is in none"
    elif items and head and draft.outputs_known and not _leaves(items, head.artifact, draft):
        message = f"'{function}' works on what '{items}' leaves, not on '{head.artifact}'"
    else:
        return
    hint = f"write for_each: {{item: ..., in: {items}, max: ...}}" if items else "add its for_each"
    report.error("EOP416", message, phase.node.at("function"), hint)


def _leaves(function: str, artifact: str, draft: Draft) -> bool:
    return any(
        phase.value.function == function and any(o.name == artifact for o in phase.value.outputs)
        for phase in draft.phases
    )


def _written(output: Output) -> str:
    schema = f", schema: {output.schema}" if output.schema else ""
    return f"{output.name}: {{file: {output.file}{schema}}}"


def _use(
    artifact: str,
    user: str,
    span: Span,
    producers: dict[str, tuple[Placed[Phase], Output]],
    draft: Draft,
    graph: Graph,
    report: Report,
) -> Output | None:
    """The artifact that ``user`` uses at run level, if it may."""
    if artifact not in producers:
        if draft.outputs_known:
            hint = did_you_mean(artifact, producers) or f"known: {', '.join(producers)}"
            report.error("EOP203", f"no phase leaves an artifact '{artifact}'", span, hint)
        return None
    phase, output = producers[artifact]
    if phase.value.branch:
        message = f"'{artifact}' is left once per branch, by '{phase.value.id}'"
        report.error("EOP508", message, span, "use what the phase that joins them leaves")
    elif phase.value.id not in graph.ancestors(user) and user not in graph.doubtful:
        message = f"'{artifact}' is left by '{phase.value.id}', which '{user}' does not come after"
        report.error("EOP507", message, span, f"let '{user}' come after '{phase.value.id}'")
    return output


def _fan_out(
    head: Placed[Phase],
    producers: dict[str, tuple[Placed[Phase], Output]],
    schemas: Schemas,
    draft: Draft,
    graph: Graph,
    report: Report,
) -> None:
    fan_out = head.value.fan_out
    if fan_out is None:
        return
    span = head.node.at("for_each", "in")
    output = _use(fan_out.artifact, head.value.id, span, producers, draft, graph, report)
    if output is None:
        return
    schema = schemas.load(output.schema, span) if output.schema else None
    if schema is None and output.schema:
        return
    items = (schema or {}).get("items", {})
    if (schema or {}).get("type") != "array" or not {"id", "title"} <= set(
        items.get("required", ())
    ):
        message = f"'{fan_out.artifact}' is not a list of items with 'id' and 'title'"
        hint = "give its output a schema of that form, as config/schemas/proposals.schema.yaml is"
        report.error("EOP509", message, span, hint)
