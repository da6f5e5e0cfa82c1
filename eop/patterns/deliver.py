"""From the end of a pattern to the artifacts of its node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.agents import patch
from eop.core.files import write_bytes
from eop.patterns.task import EXPERIMENT, EXPERIMENT_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from eop.patterns.nodes import Nodes


def deliver(nodes: Nodes, tree: str, left: Mapping[str, Path]) -> dict[str, Path]:
    """Write the phase's outputs to the node's ``artifacts/`` and return them by name.

    A patch leads from the pinned snapshot to ``tree``, the experiment config left out, which is
    the output ``experiment``; the others are copies of what agents ``left``. What nobody left is
    absent, and so is the patch of a tree in which nothing has changed.
    """
    artifacts = nodes.task.directory / "artifacts"
    artifacts.mkdir(parents=True, exist_ok=True)
    made = {}
    for output in nodes.task.phase.outputs:
        path = artifacts / output.file
        if output.patch:
            if tree == nodes.base:
                continue
            bare = patch.without(nodes.store, tree, EXPERIMENT)
            write_bytes(path, patch.diff(nodes.store, nodes.snapshot, bare))
        elif output.name == EXPERIMENT_OUTPUT:
            content = patch.blob(nodes.store, tree, EXPERIMENT)
            if content is None:
                continue
            write_bytes(path, content)
        elif output.name in left:
            write_bytes(path, left[output.name].read_bytes())
        else:
            continue
        made[output.name] = path
    return made
