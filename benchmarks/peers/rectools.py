"""RecTools' HSTU: its network, loss, optimiser and ranker, on the benchmark's own events.

Runs in an environment of its own, since RecTools wants an older numpy; there is no `hstu` in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from rectools.dataset import Dataset
from rectools.models import HSTUModel
from rectools.models.rank import Distance, TorchRanker
from scipy.sparse import csr_matrix

from benchmarks.measure import peak_mib, repeated
from benchmarks.shapes import Shape, shape
from benchmarks.synthetic import Events, make_events

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.child import Row

_TEMPERATURE = 0.05
_TOP = 10
_RANKED_TOGETHER = 256  # RecTools' own default


def measure(case: Row) -> Row:
    """A training step or an evaluation, in this process."""
    chosen = shape(case["model"], quick=case["quick"])
    users, longest = case["users"], chosen.history_length
    made = make_events(users, chosen.items, lengths=case["lengths"], history_length=longest)
    make = {"steps": _step, "evaluation": _evaluation}[case["topic"]]
    work = make(_lightning_module(chosen), chosen, made)
    timing = repeated(work, repeats=case["repeats"], budget_s=case["budget_s"])
    return {**timing, "peak_mib": peak_mib(), "data": made.digest}


def _lightning_module(shape: Shape) -> Any:
    """What ``HSTUModel`` trains, made as its users make it: by a fit, here on a few events."""
    rows = np.arange(2 * shape.items)
    interactions = pd.DataFrame(
        {
            "user_id": rows // shape.history_length,
            "item_id": rows % shape.items + 1,
            "weight": 1,
            "datetime": pd.Timestamp("2000-01-01") + pd.to_timedelta(rows, "s"),
        }
    )
    model = HSTUModel(
        n_blocks=shape.blocks,
        n_heads=shape.heads,
        n_factors=shape.dim,
        session_max_len=shape.history_length,
        loss="sampled_softmax",
        n_negatives=shape.negatives,
        epochs=1,
        lightning_module_kwargs={"logits_t": _TEMPERATURE},
    )
    model.fit(Dataset.construct(interactions))
    return model.lightning_model


class _Sessions(NamedTuple):
    """Histories padded on the left, as RecTools has them."""

    items: torch.Tensor
    """[U, L] int64, 0 in padding."""
    times: torch.Tensor
    """[U, L + 1] int64 seconds, the request's last; padding repeats the first event's."""
    targets: torch.Tensor
    """[U, L] int64 item after each event, 0 in padding."""

    def batch(self, users: slice) -> dict[str, torch.Tensor]:
        """The inputs of the network for some users."""
        return {"x": self.items[users], "unix_ts": self.times[users]}


def _sessions(made: Events, width: int) -> _Sessions:
    items, targets = np.zeros((2, len(made), width), np.int64)
    times = np.zeros((len(made), width + 1), np.int64)
    for user, (first, end) in enumerate(zip(made.offsets[:-1], made.offsets[1:], strict=True)):
        start = width - (end - first)
        items[user, start:] = made.items[first:end]
        targets[user, start:] = [*made.items[first + 1 : end], made.targets[user]]
        times[user, start:-1] = made.timestamps[first:end]
        times[user, -1] = made.request_timestamps[user]
        times[user, :start] = times[user, start]
    return _Sessions(*map(torch.from_numpy, (items, times, targets)))


def _step(module: Any, shape: Shape, made: Events) -> Callable[[], None]:
    """Forward, backward and Adam on a batch that is made before, negatives included."""
    sessions = _sessions(made, shape.history_length)
    size = (*sessions.items.shape, shape.negatives)
    batch = {
        **sessions.batch(slice(None)),
        "y": sessions.targets,
        "yw": (sessions.targets > 0).float(),
        "negatives": torch.randint(1, shape.items + 1, size),
    }
    optimizer = module.configure_optimizers()
    module.train()

    def step() -> None:
        optimizer.zero_grad()
        logits = module.get_batch_logits(batch)
        module.loss_calculator(logits, batch["y"], batch["yw"]).backward()
        optimizer.step()

    return step


def _evaluation(module: Any, shape: Shape, made: Events) -> Callable[[], None]:
    """Queries of sessions that are made before, and the top ten of the unseen items."""
    sessions = _sessions(made, shape.history_length)
    seen = csr_matrix(
        (np.ones(len(made.items), np.float32), made.items, made.offsets),
        shape=(len(made), shape.items + 1),
    )
    network, starts = module.torch_model, range(0, len(made), _RANKED_TOGETHER)
    batches = [sessions.batch(slice(start, start + _RANKED_TOGETHER)) for start in starts]
    corpus = np.arange(1, shape.items + 1)
    module.eval()

    def evaluate() -> None:
        with torch.no_grad():
            items = network.item_model.get_all_embeddings()
            found = [network.encode_sessions(batch, items)[:, -1] for batch in batches]
        ranker = TorchRanker(Distance.COSINE, "cpu", torch.cat(found), items)
        ranker.rank(np.arange(len(made)), _TOP, seen, corpus)

    return evaluate
