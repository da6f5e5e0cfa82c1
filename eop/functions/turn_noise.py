"""How much seeds alone move the numbers of a turn's rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.core.files import read_json
from eop.functions.lineage import base_id, start
from eop.functions.promote import ranks_by_seed
from eop.stats import seed_noise

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from eop.functions.context import Context
    from eop.functions.results import Result
    from eop.stats import SeedNoise


@dataclass(frozen=True)
class TurnNoise:
    """The noise of each target; ``None`` when no model has two seeds."""

    validation: SeedNoise | None = None
    test: SeedNoise | None = None


def turn_noise(context: Context, results: Sequence[Result]) -> TurnNoise:
    """From all models of the turn, the champion and the base: two seeds say little by themselves.

    What is not trained has no seeds and is none of them.
    """
    parent = start(context.project, context.state, context.instance.iteration)
    base = read_json(context.produced("baseline"))
    trained = [result for result in results if result.kind == "candidate"]
    # By name: the champion of the first turn is the base.
    shown = {
        base_id(context.project): base["metrics"],
        parent.entry: parent.metrics,
        **{result.id: result.metrics for result in trained},
    }
    sealed = {
        base_id(context.project): base.get("refit", base["metrics"]),
        parent.entry: parent.sealed,
        **{result.id: result.sealed for result in trained},
    }
    tests = [document["sealed"] for document in sealed.values() if document]
    return TurnNoise(
        _noise(context, (document["seeds"] for document in shown.values() if document)),
        _noise(context, (test["seeds"] for test in tests if test)),
    )


def _noise(context: Context, models: Iterable[list[dict[str, Any]]]) -> SeedNoise | None:
    return seed_noise([list(ranks_by_seed(context.root, seeds).values()) for seeds in models])
