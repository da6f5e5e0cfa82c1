"""The equations of the network once more, plain and slow, and fixtures made with them.

Nothing of the project is used: each user is computed alone, each query by itself, in float64; torch
serves for its gradients. Names of arrays are those of the parity fixtures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    Arrays = dict[str, NDArray[Any]]

TEMPERATURE = 0.05
RATE, ADAM_EPS = 1e-3, 1e-8
STEPPED = ("item_emb", "block0.uvqk", "block0.time_bias")


class Shape(NamedTuple):
    """What a made fixture looks like."""

    dim: int = 12
    heads: int = 2
    dqk: int = 4
    dv: int = 3
    blocks: int = 2
    history: int = 8
    out_len: int = 3
    lengths: tuple[int, ...] = (1, 5, 8)
    largest_id: int = 30
    corpus: int = 20
    negatives: int = 5
    concat_ua: bool = False
    double: bool = False
    attention_std: float = 0.4
    longest_gap: float = 1e8
    outsiders: bool = False
    """Whether histories and negatives hold items that are no candidates."""

    @property
    def width(self) -> int:
        return self.history + self.out_len


def make(shape: Shape, seed: int) -> Arrays:
    """A whole fixture: inputs, weights, and all results."""
    random = np.random.default_rng(seed)
    dtype = np.float64 if shape.double else np.float32
    arrays = inputs(shape, random)
    for name, array in weights(shape, random).items():
        arrays[f"w.{name}"] = array.astype(dtype)
    for name, array in results(arrays).items():
        arrays[name] = array.astype(dtype) if array.dtype == np.float64 else array
    return arrays


def inputs(shape: Shape, random: np.random.Generator) -> Arrays:
    """Events of users whose gaps go from none to ``longest_gap``, and negatives."""
    users, (history, width) = len(shape.lengths), (shape.history, shape.width)
    corpus = random.permutation(np.arange(1, shape.largest_id + 1))[: shape.corpus]
    pool = np.arange(1, shape.largest_id + 1) if shape.outsiders else corpus
    cfg = [*shape[:7], width, users, shape.largest_id, shape.negatives, shape.concat_ua]
    ids, ratings, stamps = (np.zeros((users, history), np.int64) for _ in range(3))
    padded_ids, padded_stamps = (np.zeros((users, width), np.int64) for _ in range(2))
    targets, asked = np.zeros(users, np.int64), np.zeros(users, np.int64)
    for user, length in enumerate(shape.lengths):
        targets[user] = random.choice(corpus)
        ids[user, :length] = random.choice(pool[pool != targets[user]], length)
        gaps = np.exp(random.uniform(0, np.log(shape.longest_gap), length + 1)).astype(np.int64)
        gaps[random.random(length + 1) < 0.25] = 0
        times = 10**9 + np.cumsum(gaps)
        stamps[user, :length], asked[user] = times[:-1], times[-1]
        padded_stamps[user, : length + 1] = times
        padded_ids[user, : length + 1] = [*ids[user, :length], targets[user]]
    tokens = sum(shape.lengths)
    negatives = random.choice(pool, (tokens, shape.negatives))
    negatives[0, 0] = padded_ids[0, 1]
    return {
        "cfg": np.array(cfg, np.int64),
        "lengths": np.array(shape.lengths, np.int64),
        "hist_ids": ids,
        "hist_timestamps": stamps,
        "hist_ratings": ratings,
        "target_ids": targets,
        "target_timestamps": asked,
        "target_ratings": np.zeros(users, np.int64),
        "all_item_ids": corpus,
        "timestamps_N": padded_stamps,
        "ids_N_train": padded_ids,
        "negative_ids": negatives,
        "token_weights": random.uniform(0.1, 2, tokens).astype(np.float32),
    }


def weights(shape: Shape, random: np.random.Generator) -> Arrays:
    """Weights large enough that every term moves the output."""
    inner, parts = shape.heads * shape.dv, 3 if shape.concat_ua else 1
    made = {
        "item_emb": random.normal(0, 0.3, (shape.largest_id + 1, shape.dim)),
        "pos_emb": random.normal(0, 0.3, (shape.width, shape.dim)),
    }
    for block in range(shape.blocks):
        columns = 2 * inner + 2 * shape.heads * shape.dqk
        made |= {
            f"block{block}.uvqk": random.normal(0, shape.attention_std, (shape.dim, columns)),
            f"block{block}.time_bias": random.normal(0, shape.attention_std, 129),
            f"block{block}.pos_bias": random.normal(0, shape.attention_std, 2 * shape.width - 1),
            f"block{block}.out_weight": random.normal(0, 0.5, (shape.dim, parts * inner)),
            f"block{block}.out_bias": random.normal(0, 0.3, shape.dim),
        }
    return made


def results(arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """All that follows from inputs and weights."""
    names = [name[2:] for name in arrays if name.startswith("w.")]
    w = {name: torch.tensor(arrays[f"w.{name}"]).double().requires_grad_() for name in names}
    found, users = encode(arrays, w)
    found |= ranking(arrays, w, [outputs[-1] for outputs in users])
    losses = token_losses(arrays, w, torch.cat(users))
    losses.mean().backward()
    per_token = losses.detach().numpy()
    weight = arrays["token_weights"].astype(np.float64)
    found |= {
        "supervision_ids_jagged": positives(arrays),
        "loss_per_token": per_token,
        "loss": per_token.mean(),
        "loss_weighted": (weight * per_token).sum() / weight.sum(),
    }
    total = 0.0
    for name in names:
        gradient = w[name].grad.numpy()
        found[f"g.{name}"] = gradient
        found[f"gnorm.{name}"] = np.float64(np.linalg.norm(gradient))
        total += np.square(gradient).sum()
    found["gnorm_total"] = np.float64(np.sqrt(total))
    for name in STEPPED:
        gradient = found[f"g.{name}"]
        step = RATE * gradient / (np.abs(gradient) + ADAM_EPS)
        found[f"w_after_adamw.{name}"] = arrays[f"w.{name}"].astype(np.float64) - step
    return {name: np.asarray(array) for name, array in found.items()}


def encode(arrays: Mapping[str, NDArray[Any]], w: dict[str, Tensor]) -> tuple[Arrays, list[Tensor]]:
    """Numbers inside the encoder, and the unit vectors [n, D] of each user's events."""
    users, width = arrays["ids_N_train"].shape
    blocks = int(arrays["cfg"][4])
    stamps = arrays["timestamps_N"]
    buckets = np.stack([time_buckets(row) for row in stamps])
    found: Arrays = {"time_buckets": buckets}
    place = np.arange(width)
    for block in range(blocks):
        by_time = w[f"block{block}.time_bias"][torch.tensor(buckets)]
        offset = torch.tensor(width - 1 + place[None] - place[:, None])
        bias = by_time + w[f"block{block}.pos_bias"][offset]
        found[f"bias.block{block}"] = bias.detach().numpy()
    per_user = [one_user(arrays, w, found, user) for user in range(users)]
    for name in per_user[0][0]:
        parts = [parts[name].detach().numpy() for parts, _ in per_user]
        if name.endswith("_jagged"):
            found[name] = np.concatenate(parts)
        else:
            found[name] = np.stack([np.pad(p, ((0, width - len(p)), (0, 0))) for p in parts])
    found["encoded_train"] = found["encoded"]
    found["current"] = np.stack([outputs[-1].detach().numpy() for _, outputs in per_user])
    return found, [outputs for _, outputs in per_user]


def time_buckets(stamps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Buckets [N, N] from key j to the event after query i."""
    following = np.append(stamps[1:], stamps[-1])
    gaps = np.abs(following[:, None] - stamps[None, :])
    logs = np.log(np.maximum(gaps, 1).astype(np.float32))
    return np.clip(np.floor(logs / np.float32(0.301)), 0, 128).astype(np.int64)


def one_user(
    arrays: Mapping[str, NDArray[Any]], w: dict[str, Tensor], shared: Arrays, user: int
) -> tuple[dict[str, Tensor], Tensor]:
    """The encoder for one user: arrays of its n events by name, and its unit vectors [n, D]."""
    dim, heads, dqk, dv, blocks = arrays["cfg"][:5].tolist()
    width, concat_ua = int(arrays["cfg"][7]), bool(arrays["cfg"][11])
    length = int(arrays["lengths"][user])
    ids = torch.tensor(arrays["hist_ids"][user, :length])
    x = dim**0.5 * w["item_emb"][ids] + w["pos_emb"][:length]
    found = {"preproc_out": x}
    for block in range(blocks):
        name = f"block{block}"
        p = silu(normalised(x) @ w[f"{name}.uvqk"])
        ends = np.cumsum([heads * dv, heads * dv, heads * dqk, heads * dqk])
        u, v, q, k = (p[:, a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True))
        found |= {f"{name}.v_jagged": v, f"{name}.q_padded": q, f"{name}.k_padded": k}
        bias = bias_of(w, shared["time_buckets"][user], name, width)
        mixed = []
        for i in range(length):
            parts = []
            for head in range(heads):
                keys, values = k[: i + 1, head * dqk :][:, :dqk], v[: i + 1, head * dv :][:, :dv]
                scores = keys @ q[i, head * dqk :][:dqk] + bias[i, : i + 1]
                parts.append(silu(scores) / width @ values)
            mixed.append(torch.cat(parts))
        a = normalised(torch.stack(mixed))
        gated = torch.cat([u, a, u * a], dim=1) if concat_ua else u * a
        x = x + gated @ w[f"{name}.out_weight"].T + w[f"{name}.out_bias"]
        found[f"{name}.out_jagged"] = x
    found["encoded"] = direction(x)
    return found, found["encoded"]


def bias_of(w: dict[str, Tensor], buckets: NDArray[np.int64], name: str, width: int) -> Tensor:
    """The relative bias [N, N] of one user, with its gradient."""
    place = torch.arange(width)
    by_position = w[f"{name}.pos_bias"][width - 1 + place[None] - place[:, None]]
    return w[f"{name}.time_bias"][torch.tensor(buckets)] + by_position


def silu(x: Tensor) -> Tensor:
    return x / (1 + torch.exp(-x))


def normalised(x: Tensor) -> Tensor:
    centred = x - x.mean(1, keepdim=True)
    return centred / torch.sqrt(centred.square().mean(1, keepdim=True) + 1e-6)


def direction(x: Tensor) -> Tensor:
    return x / x.square().sum(1, keepdim=True).sqrt().clamp(min=1e-6)


def ranking(
    arrays: Mapping[str, NDArray[Any]], w: dict[str, Tensor], current: list[Tensor]
) -> Arrays:
    """Scores of the candidates, which of them are seen, and the target's rank among the others."""
    candidates = arrays["all_item_ids"]
    table = direction(w["item_emb"][torch.tensor(candidates)]).detach().numpy()
    scores = np.stack([table @ query.detach().numpy() for query in current])
    seen = np.stack(
        [
            np.isin(candidates, ids[:length])
            for ids, length in zip(arrays["hist_ids"], arrays["lengths"], strict=True)
        ]
    )
    ranks = []
    for row, hidden, target in zip(scores, seen, arrays["target_ids"], strict=True):
        order = [candidates[place] for place in np.argsort(-row) if not hidden[place]]
        ranks.append(order.index(target) + 1)
    found = {"corpus_scores": scores, "seen_mask": seen, "rank_seen_filtered": np.array(ranks)}
    if len(candidates) >= 10:
        rank = found["rank_seen_filtered"]
        found["ref_hr10"] = rank <= 10
        found["ref_ndcg10"] = np.where(rank <= 10, 1 / np.log2(rank + 1), 0.0)
        found["ref_mrr"] = 1 / rank
    return found


def token_losses(
    arrays: Mapping[str, NDArray[Any]], w: dict[str, Tensor], queries: Tensor
) -> Tensor:
    """Sampled softmax loss [T], one token after the other."""
    table = direction(w["item_emb"])
    losses = []
    for token, (positive, drawn) in enumerate(
        zip(positives(arrays), arrays["negative_ids"], strict=True)
    ):
        logits = [table[positive] @ queries[token] / TEMPERATURE]
        for negative in drawn:
            logit = table[negative] @ queries[token] / TEMPERATURE
            logits.append(torch.full_like(logit, -5e4) if negative == positive else logit)
        losses.append(torch.logsumexp(torch.stack(logits), 0) - logits[0])
    return torch.stack(losses)


def positives(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """The item after each event [T], user by user."""
    rows = zip(arrays["ids_N_train"], arrays["lengths"], strict=True)
    return np.concatenate([ids[1 : length + 1] for ids, length in rows])
