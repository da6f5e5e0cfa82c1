"""Tests of this folder run on request only (`-m products`), each where its program is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the real products out, unless the marker is named."""
    if "products" in (config.option.markexpr or ""):
        return
    real = [item for item in items if item.get_closest_marker("products")]
    if real:
        config.hook.pytest_deselected(items=real)
        items[:] = [item for item in items if item not in real]


def pytest_make_parametrize_id(val: object) -> str | None:
    """Products by their names."""
    return getattr(val, "name", None) if type(val).__name__ == "Kit" else None
