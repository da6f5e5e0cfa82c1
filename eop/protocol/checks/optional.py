"""Optional phases: others go on without them, so nobody may require what they leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.protocol.signatures import FUNCTIONS

if TYPE_CHECKING:
    from eop.protocol.diagnostics import Report, Span
    from eop.protocol.draft import Draft, Placed
    from eop.protocol.graph import Graph
    from eop.protocol.model import Phase


def check_optional(draft: Draft, graph: Graph, report: Report) -> None:
    """What an optional phase leaves is shown by no gate, opens no branch, feeds no function."""
    optional = [phase for phase in draft.phases if phase.value.optional]
    left = {output.name: phase for phase in optional for output in phase.value.outputs}
    for gate in draft.gates:
        for index, artifact in enumerate(gate.value.shows):
            if artifact in left:
                _required(artifact, left[artifact], gate.node.at("shows", index), report)
    for head in draft.phases:
        fan_out = head.value.fan_out
        if fan_out is not None and fan_out.artifact in left:
            span = head.node.at("for_each", "in")
            _required(fan_out.artifact, left[fan_out.artifact], span, report)
    for phase in optional:
        for user in draft.phases:
            fed = _fed(phase.value, user.value)
            if fed and phase.value.id in graph.ancestors(user.value.id):
                _required(fed, phase, user.node.at("function"), report)


def _fed(phase: Phase, user: Phase) -> str | None:
    """The artifact of ``phase`` that the function of ``user`` works on."""
    if user.function is None:
        return None
    signature = FUNCTIONS[user.function]
    for output in phase.outputs:
        if phase.function in signature.after or (signature.change and output.patch):
            return output.name
    return None


def _required(artifact: str, phase: Placed[Phase], span: Span, report: Report) -> None:
    message = f"'{artifact}' is left by '{phase.value.id}', which is optional"
    hint = f"drop 'optional' from '{phase.value.id}': others cannot do without it"
    report.error("EOP511", message, span, hint)
