"""Scores come back in the order of the histories, whatever is padded together, chunk by chunk."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hstu.config import parse_config
from hstu.data.batches import History
from hstu.data.errors import HstuError
from hstu.data.items import Items
from hstu.models import Hstu, build, scoring
from hstu.models.scoring import score_histories

CORPUS, LIMIT = 25, 12
CONFIG = {
    "model": {"dim": 6, "blocks": 2, "heads": 1, "dqk": 6, "dv": 6, "history_length": LIMIT}
    | {"out_len": 1, "input_dropout": 0.5, "linear_dropout": 0.5, "temperature": 0.05},
    "train": {"epochs": 1, "batch_users": 8, "learning_rate": 1e-3, "betas": [0.9, 0.98]}
    | {"weight_decay": 0.0, "negatives": 4},
}


@pytest.fixture(scope="module")
def model() -> Hstu:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    nothing = [""] * CORPUS
    items = Items.of_columns(np.arange(CORPUS), nothing, nothing, np.zeros(CORPUS, np.int64))
    return build(parse_config(CONFIG, source="test"), items)


@pytest.fixture(scope="module")
def histories() -> list[History]:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, LIMIT + 8, size=61)
    return [
        History(rng.integers(1, CORPUS + 1, size=n), np.arange(n) * 3600, int(n) * 3600 + user)
        for user, n in enumerate(lengths)
    ]


def one_by_one(model: Hstu, histories: list[History]) -> torch.Tensor:
    return torch.cat([torch.cat(list(score_histories(model, [one]))) for one in histories])


@pytest.mark.parametrize("window", [1, 10, 4096])
@pytest.mark.parametrize("chunk", [1, 7, 128])
def test_each_user_gets_the_own_scores(
    model: Hstu,
    histories: list[History],
    window: int,
    chunk: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scoring, "_WINDOW", window)
    chunks = list(score_histories(model, histories, chunk))
    assert {len(part) for part in chunks[:-1]} <= {chunk}
    scores = torch.cat(chunks)
    torch.testing.assert_close(scores, one_by_one(model, histories), atol=1e-5, rtol=1e-4)
    assert len({tuple(row.tolist()) for row in scores}) > 50, "users differ"


def test_like_lengths_are_padded_together(
    model: Hstu, histories: list[History], monkeypatch: pytest.MonkeyPatch
) -> None:
    padded = []
    query = model.query

    def spy(batch):  # type: ignore[no-untyped-def]
        padded.append(int((~batch.valid).sum()))
        return query(batch)

    monkeypatch.setattr(model, "query", spy)
    list(score_histories(model, histories, 10))
    lengths = [min(len(history.item_index), LIMIT) for history in histories]
    unsorted = sum(
        sum(max(lengths[at : at + 10]) - length for length in lengths[at : at + 10])
        for at in range(0, len(lengths), 10)
    )
    assert sum(padded) < unsorted / 3


def test_it_streams(model: Hstu, histories: list[History], monkeypatch: pytest.MonkeyPatch) -> None:
    """The second window is not touched before the first one's scores have been taken."""
    monkeypatch.setattr(scoring, "_WINDOW", 10)
    asked = []
    query = model.query

    def spy(batch):  # type: ignore[no-untyped-def]
        asked.append(len(batch.lengths))
        return query(batch)

    monkeypatch.setattr(model, "query", spy)
    stream = score_histories(model, histories, 5)
    next(stream)
    next(stream)
    assert sum(asked) == 10
    next(stream)
    assert sum(asked) == 20


def test_the_mode_is_given_back_and_nothing_is_dropped(
    model: Hstu, histories: list[History]
) -> None:
    model.train()
    stream = score_histories(model, histories[:20], 5)
    first = next(stream)
    assert model.training
    scores = torch.cat([first, *stream])
    model.eval()
    assert torch.equal(scores, torch.cat(list(score_histories(model, histories[:20], 5))))
    assert not model.training


def test_an_empty_history_is_named_by_its_place(model: Hstu, histories: list[History]) -> None:
    nothing = np.empty(0, np.int64)
    with pytest.raises(HstuError, match="history 33"):
        list(score_histories(model, [*histories[:33], History(nothing, nothing, 5)], 8))
