"""Snapshots: the state of an unfinished training run, so that a killed one goes on."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

import torch

from hstu.data.files import write_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hstu.models import Hstu


class Snapshot:
    """One file, replaced atomically; it belongs to one ``identity`` (config, data, seed)."""

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        self.path = path
        self.identity = identity

    def restore(self, model: Hstu, optimizer: torch.optim.Optimizer) -> list[list[Any]]:
        """Load the state, if there is one of this run; return the curve's rows so far."""
        if not self.path.is_file():
            return []
        state = torch.load(self.path, weights_only=True)
        if state["identity"] != self.identity:
            print(f"{self.path} belongs to another run: starting afresh", file=sys.stderr)
            return []
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        rows: list[list[Any]] = state["curve"]
        print(f"going on after epoch {len(rows)} ({self.path})", file=sys.stderr)
        return rows

    def save(
        self, model: Hstu, optimizer: torch.optim.Optimizer, curve: Sequence[Sequence[Any]]
    ) -> None:
        """Write the state; epochs draw their randomness afresh, so no generator is kept."""
        buffer = io.BytesIO()
        state = {
            "identity": self.identity,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "curve": [list(row) for row in curve],
        }
        torch.save(state, buffer)
        write_bytes(self.path, buffer.getvalue())

    def remove(self) -> None:
        """Forget the state: the run is complete."""
        self.path.unlink(missing_ok=True)
