"""Function ``screen``: which proposals repeat a recorded negative, before they cost anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import read_json, write_json
from eop.core.yaml_files import read_yaml
from eop.functions.lineage import start
from eop.knowledge.conditions import flat
from eop.knowledge.entities import read_registry
from eop.knowledge.repeats import screening
from eop.knowledge.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from eop.functions.context import Context


def screen(context: Context) -> Path:
    """Compare the proposals of this iteration with all notes; the report, whatever it says.

    It is for the gate that follows to show. Raises ``EopError`` (EOP683) when nothing that this
    phase builds on has left a list that opens branches.
    """
    proposals = read_json(_proposals(context))
    with open_store(context.root) as store:
        found = screening(store, read_registry(context.root), proposals, conditions_now(context))
    report = context.work / "screening.json"
    write_json(report, found)
    return report


def _proposals(context: Context) -> Path:
    plan, at = context.project.plan, context.instance
    lists = {phase.fan_out.artifact for phase in plan.phases if phase.fan_out}
    for phase in plan.phases:
        if context.phase.id in plan.descendants(phase.id):
            for output in phase.outputs:
                path = context.artifacts.named(output.name, at.iteration)
                if output.name in lists and path is not None:
                    return path
    raise EopError(
        "EOP683",
        f"'{context.phase.id}' screens proposals, and nothing before it has left any",
        where=Where(plan.source),
        hint="its `needs` must lead to the phase whose list opens the branches",
        exit_code=ExitCode.STATE,
    )


def conditions_now(context: Context) -> dict[str, Any]:
    """What a proposal would be tried on now: the data, and the settings of the champion."""
    project = context.project
    champion = start(project, context.state, context.instance.iteration)
    split = read_json(project.split_dir / "manifest.json")
    return {
        "dataset": split["dataset"],
        "split": split["digest"],
        **dict(flat(read_yaml(champion.experiment), "base")),
    }
