"""A tiny network with parameters that matter, and histories for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from small import config_data

from hstu.config import parse_config
from hstu.data.batches import Batch, History, collate
from hstu.data.items import Items
from hstu.models import Hstu, build

if TYPE_CHECKING:
    from collections.abc import Sequence

START = 1_600_000_000


def items_of(count: int) -> Items:
    ids = np.arange(1, count + 1)
    return Items(ids, ("",) * count, np.zeros((count, 0), bool), (), np.zeros(count, np.int64))


def network(items: int = 40, **model: Any) -> Hstu:
    """A network whose parameters are all random and large enough to matter."""
    data = config_data()
    data["model"] |= model
    torch.manual_seed(0)
    torch.set_num_threads(1)
    made = build(parse_config(data, source="test"), items_of(items))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return made.eval()


def history(items: Sequence[int], gaps: Sequence[int] | None = None) -> History:
    """Events an hour apart, or ``gaps`` apart; the last gap is that to the request."""
    steps = [3600] * len(items) if gaps is None else gaps
    times = START + np.cumsum([0, *steps])
    return History(np.array(items), times[:-1], int(times[-1]))


def batch_of(*histories: History, history_length: int = 10) -> Batch:
    return collate(histories, history_length=history_length)
