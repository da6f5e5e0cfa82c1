"""I1: an output depends on the past and on the moment of the request, never on the future."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from hstu.preflight.bench import Finding

if TYPE_CHECKING:
    from torch import Tensor

    from hstu.data.batches import Batch
    from hstu.models import Hstu
    from hstu.preflight.bench import Bench

ID = "I1"
TITLE = "causal: no output depends on a later event"

_ROWS = 32
_SHIFT_S = 3 * 86_400


def check(bench: Bench) -> Finding:
    """Edit one event of each history and compare the outputs before it bit for bit."""
    inputs = bench.batch(_ROWS).inputs
    edited = torch.arange(len(inputs.lengths)) % inputs.lengths  # one position in each row
    edits = {
        "item": (_other_item(inputs, edited, len(bench.items)), edited),
        # The stamp of event p is known at p - 1: it is the time of that request.
        "timestamp": (_other_time(inputs, edited), edited - 1),
    }
    measured: dict[str, float] = {}
    problems = []
    for state, model in bench.states():
        for mode in ("eval", "train"):
            model.train(mode == "train")
            before = _encode(model, inputs)
            for edit, (changed, first) in edits.items():
                name = f"{state}/{mode}/{edit}"
                moved = (_encode(model, changed) - before).abs().amax(-1)  # [B, W]
                earlier = inputs.valid & (torch.arange(inputs.width) < first[:, None])
                measured[f"{name}/before"] = float(moved[earlier].max())
                measured[f"{name}/after"] = float(moved[inputs.valid & ~earlier].max())
                if measured[f"{name}/before"] != 0:
                    problems.append(f"{name}: outputs before the edited event changed")
                # A model need not read the times; one that does not read the items is broken.
                if edit == "item" and not measured[f"{name}/after"] > 0:
                    problems.append(f"{name}: the edit changed no output at all")
    return Finding(not problems, "; ".join(problems) or "no earlier output moved", measured)


@torch.no_grad()
def _encode(model: Hstu, inputs: Batch) -> Tensor:
    torch.manual_seed(0)
    return model.encode(inputs)


def _other_item(inputs: Batch, place: Tensor, items: int) -> Batch:
    rows = torch.arange(len(place))
    ids = inputs.items.clone()
    ids[rows, place] = ids[rows, place] % items + 1
    return inputs._replace(items=ids)


def _other_time(inputs: Batch, place: Tensor) -> Batch:
    rows = torch.arange(len(place))
    stamps, nexts = inputs.timestamps.clone(), inputs.next_timestamps.clone()
    stamps[rows, place] += _SHIFT_S
    has_previous = place > 0
    nexts[rows[has_previous], place[has_previous] - 1] += _SHIFT_S
    return inputs._replace(timestamps=stamps, next_timestamps=nexts)
