"""The networks and batches that are measured.

Imports nothing but Python: a peer's environment reads it too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A network, its corpus and its batch. Queries, keys and values have ``head_dim`` channels."""

    name: str
    blocks: int
    heads: int
    head_dim: int
    dim: int = 50
    history_length: int = 200
    out_len: int = 11
    items: int = 3706
    batch_users: int = 128
    negatives: int = 128


_SHAPES = {
    "base": Shape(name="BASE", blocks=2, heads=1, head_dim=50),
    "large": Shape(name="LARGE", blocks=8, heads=2, head_dim=25),
}
MODELS = tuple(_SHAPES)


def shape(model: str, *, quick: bool) -> Shape:
    """The shape of ``base`` or ``large``; a ``quick`` one only shows that everything runs."""
    full = _SHAPES[model]
    if not quick:
        return full
    return replace(full, history_length=24, out_len=3, items=300, batch_users=8, negatives=16)
