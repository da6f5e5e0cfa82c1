"""Published numbers that rows of a data set are seen beside; never compared in pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.core.errors import EopError, ExitCode, Where
from eop.core.schema import problems
from eop.core.yaml_files import read_yaml

if TYPE_CHECKING:
    from pathlib import Path

FILE = "config/anchors.yaml"
SCHEMA_FILE = "config/schemas/anchors.schema.yaml"


@dataclass(frozen=True)
class Anchor:
    """A published NDCG@10 on the canonical test of a data set, of another's split and code."""

    name: str
    ndcg: float
    source: str


def read_anchors(root: Path) -> dict[str, list[Anchor]]:
    """The anchors by data set, the first of each the one that rows are set against.

    None without a file. Raises ``EopError`` (EOP665) when the file breaks its schema.
    """
    path = root / FILE
    if not path.is_file():
        return {}
    data = read_yaml(path)
    if found := problems(data, read_yaml(root / SCHEMA_FILE)):
        raise EopError(
            "EOP665",
            "not valid anchors:\n  " + "\n  ".join(found),
            where=Where(FILE),
            exit_code=ExitCode.CONFIG,
        )
    return {
        dataset: [Anchor(item["name"], item["ndcg@10"], item["source"]) for item in items]
        for dataset, items in data.items()
    }
