"""I11: what the experiment turns on does something, and does what its name says.

An intervention that is on must change scores or gradients, from random parameters, so that a zero
gate hides nothing. Fine-tuning on preferences must start with no gain on its reference, gain in a
few steps, and leave the reference alone.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import torch

from hstu.models import score_histories
from hstu.preflight.bench import Finding
from hstu.training import make_optimizer
from hstu.training.objective import NextItem
from hstu.training.preference import Preference

if TYPE_CHECKING:
    from torch import Tensor

    from hstu.models import Hstu
    from hstu.preflight.bench import Bench
    from hstu.training.objective import Step

ID = "I11"
TITLE = "wiring: what is turned on has an effect"

_ROWS = 32
_STEPS = 3
# Far above what another order of summation does, far below what a change does.
_LEAST_EFFECT = 1e-4


def check(bench: Bench) -> Finding:
    """Turn the interventions off one by one; take a few steps of preference training."""
    changes = bench.config.interventions
    names = [f.name for f in fields(changes) if getattr(changes, f.name) is not None]
    effects = {name: _effect(bench, name) for name in names}
    problems = [f"{name} changes nothing" for name in names if not effects[name] >= _LEAST_EFFECT]
    measured = {f"effect of {name}": effect for name, effect in effects.items()}
    if bench.config.train.preference is not None:
        gains, moved = _gains(bench)
        measured |= {"gain at the start": gains[0], "gain after a few steps": gains[-1]}
        if gains[0] != 0:
            problems.append(f"preference training starts with a gain of {gains[0]:.3g}, not 0")
        if gains[-1] == 0:
            problems.append("preference training gains nothing: the reference is the model itself")
        if moved:
            problems.append("preference training changes its reference")
    return Finding(not problems, "; ".join(problems) or "all that is on has an effect", measured)


def _effect(bench: Bench, name: str) -> float:
    """Largest change, relative to the largest value, of any gradient or score without ``name``."""
    without = replace(bench.config.interventions, **{name: None})
    plain = replace(bench, config=replace(bench.config, interventions=without)).fresh()
    model = bench.perturbed()
    own = plain.state_dict()
    plain.load_state_dict({key: value for key, value in model.state_dict().items() if key in own})
    ours, theirs = _outputs(model, bench), _outputs(plain, bench)
    return max(_difference(ours[key], theirs[key]) for key in theirs)


def _outputs(model: Hstu, bench: Bench) -> dict[str, Tensor]:
    """Gradients of one batch without dropout, and scores."""
    _step(NextItem(model.config.train, len(bench.items)), model.eval(), bench)
    found = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    scores = torch.cat(list(score_histories(model, bench.rows.histories[:_ROWS])))
    return {**found, "scores": scores}


def _difference(ours: Tensor, theirs: Tensor) -> float:
    return float((ours - theirs).abs().max() / theirs.abs().max().clamp(min=1e-12))


def _step(objective: NextItem | Preference, model: Hstu, bench: Bench) -> Step:
    """Gradients of one batch in ``model``, drawn alike at every call."""
    generator, rows = torch.Generator().manual_seed(0), bench.rows
    model.zero_grad()
    for change in model.changes:
        rows = change.rows(rows, generator)
    users = torch.randperm(len(rows), generator=generator)[:_ROWS].tolist()
    return objective.backward(model, rows, users, generator)


def _gains(bench: Bench) -> tuple[list[float], bool]:
    """Mean delta of a pair before each step, and whether the reference moved on its way."""
    section = bench.config.train.preference
    if section is None:
        raise ValueError("there is no preference training to look at")
    model = bench.perturbed()
    objective = Preference(section, model, len(bench.items))
    optimizer = make_optimizer(model, bench.config.train)
    before = [parameter.clone() for parameter in objective.reference.parameters()]
    gains = []
    for _ in range(_STEPS):
        step = _step(objective, model, bench)
        gains.append(step.watched["delta"] / step.tokens)
        optimizer.step()
    after = objective.reference.parameters()
    return gains, not all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
