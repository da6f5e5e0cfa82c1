"""The deterministic functions of a protocol: what they are given, work on and leave."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from eop.protocol.model import Output
from eop.protocol.shapes import Field, described, integer, listing, mismatch, name, table
from eop.protocol.yaml_nodes import Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.protocol.diagnostics import Report
    from eop.protocol.shapes import Shape
    from eop.protocol.yaml_nodes import Node


def _share(low: float, high: float) -> Shape[float]:
    """A number between ``low`` and ``high``, both included."""

    @described({"type": "number", "minimum": low, "maximum": high})
    def read(node: Node, report: Report) -> float | None:
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            mismatch(node, "a number", report)
            return None
        if not low <= value <= high:
            report.error("EOP303", f"{value} is not between {low} and {high}", node.span)
            return None
        return float(value)

    return read


# What agents leave for `pick` and for the next turn, by the schema of the artifact.
DIRECTIONS = "directions"
RANKING = "ranking"

_SEED_LIST = listing(integer(0, 2**31 - 1))
_SEEDS = Field(_SEED_LIST, required=True)
_FOLDER = name(
    re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)*", re.ASCII),
    "folder",
    "a path below the project, such as config/recipes",
)
_RECIPE = name(
    re.compile(r"[a-z0-9]([a-z0-9_-]*[a-z0-9])?"),
    "recipe name",
    "lower-case letters, digits, '-' and '_': the file's name without .yaml",
)


# What a function runs of the recommender.
NETWORK, CHECKING = "network", "checks"


@dataclass(frozen=True)
class Signature:
    """A function's contract.

    ``arguments`` are the typed keys of ``with``; ``after`` are functions that must run before it;
    ``guard`` is a field of what those leave without which it must not run;
    ``change`` says that it works on a patch or on a composed experiment config; ``join`` that it
    works on joined branches; ``items`` that it works in a branch, opened by an item of what the
    function of that name leaves; ``branch`` that it works in a branch of any kind; ``leaves``
    are the artifacts it writes, which its phase must declare; ``runs`` says what it runs of the
    recommender: ``network``, which may use many cores and a GPU, ``checks``, which takes a minute
    of one core, or nothing; ``trains`` says that it can use several GPUs, a process for each.
    """

    leaves: tuple[Output, ...]
    arguments: Mapping[str, Field] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    guard: str | None = None
    change: bool = False
    join: bool = False
    branch: bool = False
    items: str | None = None
    runs: str | None = None
    trains: bool = False


FUNCTIONS: Mapping[str, Signature] = MappingProxyType(
    {
        "baseline": Signature(
            (Output("baseline", "baseline.json"),),
            {"seeds": _SEEDS, "twins": Field(_SEED_LIST)},
            runs=NETWORK,
            trains=True,
        ),
        "recipes": Signature(
            (Output("recipes", "recipes.json", "recipes"),),
            {
                "folder": Field(_FOLDER, required=True),
                "names": Field(listing(_RECIPE)),
                "from": Field(table(_RECIPE, _RECIPE)),
            },
        ),
        "compose": Signature(
            (Output("experiment", "experiment.yaml"),),
            after=("recipes",),
            branch=True,
            items="recipes",
        ),
        "preflight": Signature(
            (Output("preflight", "preflight.json", "preflight"),), change=True, runs=CHECKING
        ),
        "train": Signature(
            (Output("checkpoint", "checkpoint.json", "checkpoint"),),
            {"seeds": _SEEDS},
            after=("preflight",),
            guard="preflight.passed",
            runs=NETWORK,
            trains=True,
        ),
        "evaluate": Signature(
            (Output("metrics", "metrics.json", "metrics"),), after=("train",), runs=NETWORK
        ),
        "refit": Signature(
            (Output("refit", "refit.json", "refit"),),
            after=("evaluate",),
            branch=True,
            runs=NETWORK,
            trains=True,
        ),
        "promote": Signature(
            (Output("decision", "decision.json", "decision"),),
            {"alpha": Field(_share(0.0001, 0.2)), "seeds": Field(integer(2, 1000))},
            after=("baseline", "evaluate"),
            join=True,
        ),
        "screen": Signature((Output("screening", "screening.json", "screening"),)),
        "summarize": Signature((Output("summary", "summary.json", "summary"),), after=("publish",)),
        "contradictions": Signature(
            (Output("contradictions", "contradictions.json", "contradictions"),)
        ),
        "reconcile": Signature(
            (Output("reconciled", "reconciled.json", "reconciled"),), after=("contradictions",)
        ),
        "pick": Signature(
            (Output("picked", "picked.json", "picked"),), {"keep": Field(integer(1, 9))}
        ),
        "publish": Signature((Output("rows", "rows.json"),), after=("promote",)),
    }
)

# Functions that a dual pattern may run on a patch before each review.
CHECKS = ("preflight",)
