"""I4: every parameter learns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from hstu.preflight.bench import Finding
from hstu.training import draw_negatives, make_optimizer, training_loss

if TYPE_CHECKING:
    from hstu.preflight.bench import Bench

ID = "I4"
TITLE = "gradient reach: every parameter moves and is optimised once"

_STEPS = 2
_NEGATIVES = 32


def check(bench: Bench) -> Finding:
    """Take two optimiser steps without weight decay, which would move even dead parameters."""
    model = bench.fresh()
    model.train()
    optimizer = make_optimizer(model, replace(bench.config.train, weight_decay=0.0))
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    owned = [id(p) for group in optimizer.param_groups for p in group["params"]]
    started = {name: p.detach().clone() for name, p in model.named_parameters()}
    reached: set[str] = set()
    batch, generator = bench.batch(), torch.Generator().manual_seed(0)
    for _ in range(_STEPS):
        optimizer.zero_grad()
        negatives = draw_negatives(batch, len(bench.items), _NEGATIVES, generator)
        torch.autograd.backward(training_loss(model, batch, negatives).mean())
        reached |= {
            name
            for name, p in model.named_parameters()
            if p.grad is not None and bool(p.grad.any())
        }
        optimizer.step()
    faults = {
        "no gradient reaches": [name for name in started if name not in reached],
        "did not move": [n for n, p in model.named_parameters() if torch.equal(p, started[n])],
        "not in exactly one optimiser group": [
            name for key, name in names.items() if owned.count(key) != 1
        ],
    }
    problems = [f"{what}: {', '.join(found)}" for what, found in faults.items() if found]
    measured = {"parameters": len(started), "reached": len(reached)}
    return Finding(not problems, "; ".join(problems) or "every parameter moved", measured)
