"""Published numbers that rows of a data set are seen beside; never compared in pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.leaderboard.published import read_published

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Anchor:
    """A published NDCG@10 on the canonical test of a data set, of another's split and code."""

    name: str
    ndcg: float
    source: str


def read_anchors(root: Path) -> dict[str, list[Anchor]]:
    """The anchors by data set, the first of each the one that rows are set against.

    None without a file. Raises ``EopError`` (EOP665) when the file is no YAML or breaks its schema.
    """
    return {
        dataset: [Anchor(item["name"], item["ndcg@10"], item["source"]) for item in items]
        for dataset, items in (read_published(root, "anchors", "EOP665") or {}).items()
    }
