"""Snapshots: the state of an unfinished training run, so that a killed one goes on."""

from __future__ import annotations

import hashlib
import io
import pickle
from typing import TYPE_CHECKING, Any

import torch

from hstu.data.errors import HstuError
from hstu.data.files import write_bytes
from hstu.training.curve import EpochResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from hstu.models import Hstu

_DIGEST_BYTES = 32
_PARTS = {"identity", "model", "optimizer", "curve"}


class Snapshot:
    """One file, replaced atomically; it belongs to one ``identity`` (config, data, seed, ...).

    Its first bytes are the SHA-256 of the others.
    """

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        self.path = path
        self.identity = identity

    def restore(
        self, model: Hstu, optimizer: torch.optim.Optimizer, note: Callable[[str], None]
    ) -> list[EpochResult]:
        """Load the state, if there is one of this run; return the curve so far.

        A snapshot of another run is left out of account, and ``note`` is told in what it differs.
        Raises ``HstuError`` for a file that is no snapshot, such as a truncated one, and for one
        of a model that this code does not make any more.
        """
        if not self.path.is_file():
            return []
        state = self._read(model.device)
        if differing := self._differing(state["identity"]):
            note(f"{self.path} belongs to another run ({differing} differs): starting afresh")
            return []
        try:
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            curve = [EpochResult(*row) for row in state["curve"]]
        except (RuntimeError, KeyError, TypeError, ValueError) as error:
            raise self._unusable(f"it does not fit this version of the code: {error}") from error
        note(f"going on after epoch {len(curve)} ({self.path})")
        return curve

    def identity_there(self) -> dict[str, Any] | None:
        """Whose state is kept there; ``None`` without one. Raises as ``restore`` does."""
        if not self.path.is_file():
            return None
        identity = self._read(torch.device("cpu"))["identity"]
        return identity if isinstance(identity, dict) else {}

    def save(
        self, model: Hstu, optimizer: torch.optim.Optimizer, curve: Sequence[EpochResult]
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
        payload = buffer.getvalue()
        write_bytes(self.path, hashlib.sha256(payload).digest() + payload)

    def remove(self) -> None:
        """Forget the state: the run is complete."""
        self.path.unlink(missing_ok=True)

    def _read(self, device: torch.device) -> dict[str, Any]:
        content = self.path.read_bytes()
        digest, payload = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if hashlib.sha256(payload).digest() != digest:
            raise self._unusable("the file is truncated or foreign")
        try:
            state = torch.load(io.BytesIO(payload), weights_only=True, map_location=device)
        except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
            raise self._unusable(f"torch cannot read it: {error}") from error
        if not isinstance(state, dict) or state.keys() != _PARTS:
            raise self._unusable(f"it does not hold {', '.join(sorted(_PARTS))}")
        return state

    def _unusable(self, why: str) -> HstuError:
        return HstuError(
            f"not a snapshot of a training run: {why}",
            where=str(self.path),
            hint="restore it, or remove it to train from the beginning",
        )

    def _differing(self, other: Any) -> str:
        if not isinstance(other, dict):
            return "identity"
        names = sorted(self.identity.keys() | other.keys())
        return ", ".join(name for name in names if self.identity.get(name) != other.get(name))
