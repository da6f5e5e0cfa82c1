"""I6: randomness is seeded, is what the config says in training, and is absent in evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hstu.models import score_histories
from hstu.preflight.bench import Finding
from hstu.training import draw_negatives, make_optimizer, training_loss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from hstu.models import Hstu
    from hstu.preflight.bench import Bench

ID = "I6"
TITLE = "mode: seeded training, no randomness in evaluation, dropout as configured"

_ROWS = 16
_STEPS = 2
_NEGATIVES = 8


def check(bench: Bench) -> Finding:
    """Train and score twice, and record every random operation of both."""
    with _RandomOps() as in_training:
        first = _short_run(bench)
    second = _short_run(bench)
    model = bench.perturbed().train()
    with _RandomOps() as in_evaluation:
        scores = _scores(model, bench)
    configured = sorted(_rates(bench.config.to_json()))
    problems = []
    if not all(torch.equal(a, b) for a, b in zip(first, second, strict=True)):
        problems.append("two trainings with one seed end with different weights")
    if not torch.equal(scores, _scores(model, bench)):
        problems.append("two evaluations of one model differ")
    if not torch.equal(scores, _scores(model.eval(), bench)):
        problems.append("scores depend on the mode that the model was left in")
    if in_evaluation.names:
        problems.append(f"random in evaluation: {', '.join(sorted(in_evaluation.names))}")
    if in_training.rates != set(configured):
        problems.append(
            f"dropout rates at work {sorted(in_training.rates)}, configured {configured}"
        )
    measured = {
        "configured": configured,
        "at_work": sorted(in_training.rates),
        "random_in_evaluation": sorted(in_evaluation.names),
    }
    return Finding(not problems, "; ".join(problems) or "as configured", measured)


def _rates(section: dict[str, Any]) -> set[float]:
    """The rates above zero of all dropouts that the config names, in whatever section."""
    found: set[float] = set()
    for key, value in section.items():
        if isinstance(value, dict):
            found |= _rates(value)
        elif "dropout" in key and value > 0:
            found.add(value)
    return found


class _RandomOps(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Names of the operations that draw from a generator, and the rates of dropout among them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()
        self.rates: set[float] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        name = func.overloadpacket.__name__
        # A dropout that is off still reaches this point: (input, rate, on).
        off = "dropout" in name and not args[2]
        if torch.Tag.nondeterministic_seeded in func.tags and not off:
            self.names.add(name)
            if "dropout" in name:
                self.rates.add(round(float(args[1]), 6))
            elif name == "bernoulli_":  # a dropout's mask of what is kept
                self.rates.add(round(1 - float(args[1]), 6))
        return func(*args, **(kwargs or {}))


def _short_run(bench: Bench) -> list[Tensor]:
    """Weights after a few steps from seed 0."""
    model = bench.fresh().train()
    optimizer = make_optimizer(model, bench.config.train)
    batch, generator = bench.batch(_ROWS), torch.Generator().manual_seed(0)
    for _ in range(_STEPS):
        optimizer.zero_grad()
        negatives = draw_negatives(batch, len(bench.items), _NEGATIVES, generator)
        torch.autograd.backward(training_loss(model, batch, negatives).mean())
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


def _scores(model: Hstu, bench: Bench) -> Tensor:
    return torch.cat(list(score_histories(model, bench.rows.histories[:_ROWS])))
