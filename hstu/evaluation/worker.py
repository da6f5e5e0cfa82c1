"""The worker: scores histories with a checkpoint. Runs in the tree under judgement."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import torch

from hstu.data.batches import History
from hstu.data.histories import HistoryTable
from hstu.data.items import Items
from hstu.evaluation.stream import write_scores
from hstu.models import load, score_histories
from hstu.models.devices import choose_device

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def work(
    out: BinaryIO,
    checkpoints: Sequence[Path],
    items_path: Path,
    histories_path: Path,
    *,
    chunk: int,
    threads: int | None,
    device: str,
) -> None:
    """Write each checkpoint's scores of all items for all histories, ``chunk`` users at a time.

    ``threads`` is a number of CPU threads, ``None`` for torch's choice; ``device`` a name for
    ``choose_device``.
    """
    if threads:
        torch.set_num_threads(threads)
    place = choose_device(device)
    items = Items.read(items_path)
    histories = histories_of(HistoryTable.read(histories_path), items)
    for checkpoint in checkpoints:
        model = load(checkpoint, items).to(place)
        scores = (rows.numpy() for rows in score_histories(model, histories, chunk))
        write_scores(out, scores, users=len(histories), corpus=len(items))


def histories_of(table: HistoryTable, items: Items) -> list[History]:
    """One history a user, in the table's order; the arrays are views."""
    index = items.index(table.item_ids)
    bounds = zip(table.offsets[:-1], table.offsets[1:], strict=True)
    return [
        History(index[start:end], table.timestamps[start:end], int(request))
        for (start, end), request in zip(bounds, table.request_timestamps, strict=True)
    ]
