"""This project's numbers under the names of a parity fixture, and where the two disagree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from parity_case import FLOAT32

from hstu.evaluation.metrics import contributions, ranks
from hstu.kernels import native, relative_bias, split, time_buckets
from hstu.training import make_optimizer, training_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray
    from parity_case import Case

    from hstu.data.batches import TrainingBatch
    from hstu.models import Hstu

    Measured = dict[str, NDArray[Any]]

EQUAL = ("time_buckets", "seen_mask", "rank_seen_filtered", "supervision_ids_jagged", "ref_hr10")
# AdamW's first step is the sign of the gradient, as far as that is more than noise.
_CLEAR_GRADIENT = 1e-6
# A gradient that is zero but for rounding has no scale of its own; below the floor all are zero.
_ROUNDING = 1e-7
_FLOOR = 1e-12
# The reference gives a target beyond this rank up.
_DEEPEST_RANK = 2500


BACKENDS = ("torch", "native")


def use(backend: str, patch: pytest.MonkeyPatch) -> None:
    """Let the backend compute; skip the test where it is not available."""
    torch.set_num_threads(1)
    if backend == "torch":
        patch.setattr(native, "library", lambda: None)
    elif native.library() is None:
        pytest.skip("the compiled kernels are not available here")


def measurable(files: Iterable[str], blocks: int) -> list[str]:
    """The arrays of a file that are compared: results, with whatever they are made of."""
    files = set(files)
    forward = {"preproc_out", "encoded", "encoded_train", "current", "time_buckets"}
    forward |= {"supervision_ids_jagged", "corpus_scores", "seen_mask", "rank_seen_filtered"}
    forward |= {"ref_ndcg10", "ref_hr10", "ref_mrr"}
    for block in range(blocks):
        forward |= {f"block{block}.{part}" for part in ("q_padded", "k_padded")}
        forward |= {f"block{block}.{part}" for part in ("v_jagged", "out_jagged")}
        forward.add(f"bias.block{block}")
    wanted = forward
    if "negative_ids" in files:
        wanted = wanted | {"loss", "loss_per_token", "gnorm_total"}
        wanted |= {"loss_weighted"} if "token_weights" in files else set()
        prefixes = ("g.", "gnorm.", "w_after_adamw.")
        wanted |= {name for name in files if name.startswith(prefixes)}
    return sorted(wanted & files)


def measure(case: Case) -> Measured:
    """All of our numbers for a case."""
    model, batch = case.model(), case.padded()
    found = _inner(case, model, batch) | _ranking(case, model, batch)
    found["supervision_ids_jagged"] = _ids(case, batch.targets[batch.inputs.valid])
    if "negative_ids" in case.arrays:
        found |= _learning(case, model, batch)
    return found


def disagreements(case: Case, measured: Measured) -> dict[str, str]:
    """What is wrong with each array that disagrees."""
    found = {}
    for name in measurable(case.arrays, case.blocks):
        if problem := compare(case, name, measured[name]):
            found[name] = problem
    return found


def compare(case: Case, name: str, ours: NDArray[Any]) -> str | None:
    """What is wrong with our array, ``None`` when nothing is."""
    theirs = case.arrays[name]
    if name == "rank_seen_filtered" or name.startswith("ref_"):
        ours, theirs = ours[case.judged], theirs[case.judged]
    if ours.shape != theirs.shape:
        return f"{name}: shape {ours.shape}, expected {theirs.shape}"
    if name in EQUAL:
        wrong = np.flatnonzero(ours != theirs)
        return f"{name}: {len(wrong)} entries differ, first {wrong[:5]}" if len(wrong) else None
    if name.startswith("w_after_adamw."):
        return _compare_step(case, name, ours)
    bound = _bound(case, name, theirs)
    gap = np.abs(ours - theirs).max(initial=0.0)
    return None if gap <= bound else f"{name}: off by {gap:.3g}, at most {bound:.3g} is allowed"


def _bound(case: Case, name: str, theirs: NDArray[Any]) -> float:
    allowed, largest = case.tolerance, float(np.abs(theirs).max(initial=0.0))
    if name == "loss_per_token":
        return allowed.token
    if name.startswith("g."):
        return max(allowed.gradient * largest, _rounding(case))
    if name.startswith("gnorm"):
        return max(allowed.gradient * largest, 10 * _rounding(case))
    if name == "loss_weighted" and case.arrays["token_weights"].dtype == np.float32:
        return FLOAT32.relative * largest  # their sum may have been taken in their precision
    if name in ("loss", "loss_weighted"):
        return max(_FLOOR, allowed.relative * largest)
    return allowed.forward * max(1.0, largest / 10)


def _rounding(case: Case) -> float:
    """The size of a gradient that is rounding and nothing else."""
    total = float(case.arrays.get("gnorm_total", 0.0))
    return max(_FLOOR, _ROUNDING * total * (case.tolerance.gradient / FLOAT32.gradient))


def _compare_step(case: Case, name: str, ours: NDArray[Any]) -> str | None:
    parameter = name.removeprefix("w_after_adamw.")
    start, theirs = case.arrays[f"w.{parameter}"], case.arrays[name]
    gradient = case.arrays.get(f"g.{parameter}")
    if gradient is None:
        return None
    clear = np.abs(gradient) > _CLEAR_GRADIENT
    gap = np.abs(ours - theirs)[clear].max(initial=0.0)
    if gap > case.tolerance.forward:
        return f"{name}: off by {gap:.3g}, at most {case.tolerance.forward:.3g} is allowed"
    idle = (gradient == 0).reshape(len(gradient), -1).all(1)
    moved = np.flatnonzero((ours != start).reshape(len(start), -1).any(1) & idle)
    return f"{name}: rows without gradient moved, first {moved[:5]}" if len(moved) else None


@torch.no_grad()
def _inner(case: Case, model: Hstu, batch: TrainingBatch) -> Measured:
    """Numbers inside the encoder, block by block, and its outputs."""
    inputs, valid = batch.inputs, batch.inputs.valid
    tokens: list[tuple[torch.Tensor, torch.Tensor]] = []

    def keep(_block: object, given: tuple[Any, ...], made: torch.Tensor) -> None:
        tokens.append((given[0], made))

    hooks = [block.register_forward_hook(keep) for block in model.blocks]
    found = {"preproc_out": model.embed_inputs(inputs), "encoded": model.encode(inputs)}
    for hook in hooks:
        hook.remove()
    found["encoded_train"] = model.encode(case.padded(target_in_padding=True).inputs)
    found["time_buckets"] = time_buckets(inputs.timestamps, inputs.next_timestamps)
    for number, (block, (given, made)) in enumerate(zip(model.blocks, tokens, strict=True)):
        _, v, q, k = split(block.project(given), block.shape)
        name, padding = f"block{number}", ~valid[..., None]
        found[f"{name}.q_padded"] = q.flatten(2).masked_fill(padding, 0.0)
        found[f"{name}.k_padded"] = k.flatten(2).masked_fill(padding, 0.0)
        found[f"{name}.v_jagged"] = v.flatten(2)[valid]
        found[f"{name}.out_jagged"] = made[valid]
        found[f"bias.{name}"] = relative_bias(block.bias, found["time_buckets"])
    return {name: tensor.numpy() for name, tensor in found.items()}


@torch.no_grad()
def _ranking(case: Case, model: Hstu, batch: TrainingBatch) -> Measured:
    """Scores of the corpus, and the target's rank by the evaluator's own rule."""
    query = model.query(batch.inputs)
    scores = model.score_corpus(query)[:, : case.corpus].numpy()
    found = {"current": query.numpy(), "corpus_scores": scores}
    seen = np.zeros(scores.shape, bool)
    for row, index in enumerate(_histories(batch)):
        seen[row, index[index <= case.corpus] - 1] = True
    found["seen_mask"] = seen
    rows = case.judged
    rank = np.zeros(len(scores), np.int64)
    target = case.index(case.arrays["target_ids"])[rows] - 1
    rank[rows] = ranks(scores[rows], target, *np.nonzero(seen[rows]))
    found["rank_seen_filtered"] = rank
    for name, metric in (("ref_ndcg10", "ndcg@10"), ("ref_hr10", "hr@10"), ("ref_mrr", "mrr")):
        if name in case.arrays:
            found[name] = np.zeros(len(scores))
            found[name][rows] = contributions(metric, rank[rows], case.corpus)
    if "ref_mrr" in found:
        found["ref_mrr"][rank > _DEEPEST_RANK] = 1 / (_DEEPEST_RANK + 1)
    return found


def _histories(batch: TrainingBatch) -> Iterator[NDArray[np.int64]]:
    for items, length in zip(batch.inputs.items.numpy(), batch.inputs.lengths, strict=True):
        yield items[:length]


def _learning(case: Case, model: Hstu, batch: TrainingBatch) -> Measured:
    """The loss, its gradients, and the parameters after one step of the optimiser."""
    losses = training_loss(model, batch, case.negatives())
    found = {"loss_per_token": losses.detach().numpy()}
    if "token_weights" in case.arrays:
        weights = case.arrays["token_weights"]
        found["loss_weighted"] = np.average(found["loss_per_token"], weights=weights)
    loss = losses.mean()
    found["loss"] = loss.detach().numpy()
    optimizer = make_optimizer(model, case.config.train)
    torch.autograd.backward(loss)
    found |= _parameters(case, model, "g", lambda p: p.grad)
    norms = {f"gnorm.{n[2:]}": _norm(g) for n, g in found.items() if n.startswith("g.")}
    norms["gnorm_total"] = _norm(np.array(list(norms.values())))
    optimizer.step()
    return found | norms | _parameters(case, model, "w_after_adamw", torch.Tensor.detach)


def _parameters(
    case: Case, model: Hstu, prefix: str, part: Callable[[Any], torch.Tensor]
) -> Measured:
    names = case.names()
    return {
        f"{prefix}.{names[name]}": case.theirs(part(parameter).numpy().copy(), names[name])
        for name, parameter in model.named_parameters()
    }


def _norm(array: NDArray[Any]) -> NDArray[np.float64]:
    return np.sqrt(np.square(array.astype(np.float64)).sum())


def _ids(case: Case, index: torch.Tensor) -> NDArray[np.int64]:
    ids: NDArray[np.int64] = case.items.ids[index.numpy() - 1]
    return ids
