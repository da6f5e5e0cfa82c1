"""How the markers of one document are held, line by line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.protocol.compiler import analyse
from eop.protocol.diagnostics import ProtocolErrors
from eop.protocol.held import HELD, markers_of
from eop.protocol.products import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Coverage:
    """One marker of a document: its line, its step (``None`` in front matter), how it is held."""

    line: int
    step: str | None
    marker: str
    held: str
    by: str

    @property
    def name(self) -> str:
        """The marker with its step before it."""
        return f"{self.step}.{self.marker}" if self.step else self.marker


def coverage(
    path: Path, root: Path, *, products: Mapping[str, frozenset[str]] = PRODUCTS
) -> list[Coverage]:
    """Every marker of the protocol at ``path``, in the order of the file.

    Raises ``ProtocolErrors`` when the protocol is not sound: then nothing is held.
    """
    analysis = analyse(path, root=root, products=products)
    draft = analysis.draft
    if analysis.diagnostics or draft is None or draft.front_node is None:
        raise ProtocolErrors(analysis.diagnostics)
    rows = []
    for step, marker, entry, span in markers_of(draft):
        held, by = HELD[entry]
        rows.append(Coverage(span.line, step, marker, held, by))
    return sorted(rows, key=lambda row: row.line)
