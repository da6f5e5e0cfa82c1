"""What a person must be told of the order that they gave directions in, where it says too much."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from eop.core.errors import EopError
from eop.core.files import read_json
from eop.functions.artifacts import Artifacts
from eop.runtime.gates import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.project.project import Project
    from eop.runtime.state import State


def order_notes(project: Project, state: State) -> list[str]:
    """A line for each order of a person that could not be taken as it was written.

    Of the turn that the run is in, and of the one before it, whose choice this one is told.
    """
    notes = []
    for iteration in (state.iteration - 1, state.iteration):
        # A choice that somebody has changed is told of where it is used.
        with suppress(EopError):
            path = Artifacts(project, state).of_function("pick", iteration)
            found = read_json(path) if path else {}
            if found.get("ignored"):
                notes.append(_order_note(iteration, found))
    return notes


def _order_note(iteration: int, found: Mapping[str, Any]) -> str:
    words = ", ".join(f"'{visible(word)}'" for word in found["ignored"])
    count = len(found["directions"]) + len(found["left"])
    told = ", ".join(str(one["direction"]) for one in found["directions"])
    whose = "the rest was taken" if found["order"] == "person" else f"the {found['order']}'s holds"
    return (
        f"iteration {iteration}: the answer's line `order:` names {words}, and the directions are "
        f"numbered 1 to {count}: {whose}, and the next turn is told {told}"
    )
