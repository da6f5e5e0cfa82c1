"""The record of who looked at the test target with a checkpoint, and how often.

``test_reads.jsonl`` lies within the checkpoint's folder, so that it moves with the weights. It is
only ever appended to: one line a read, written before the read begins, so that one that is cut
short counts. Reads of other weights, which lay in the folder before, do not count.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hstu.data.errors import ExitCode, HstuError
from hstu.data.files import sha256

if TYPE_CHECKING:
    from pathlib import Path

LEDGER = "test_reads.jsonl"
_WEIGHTS = "model.safetensors"


def count_read(checkpoint: Path, *, split: str, users: int, purpose: str) -> int:
    """Record that the test target is about to be read; return how often it then has been.

    Raises ``HstuError`` when the read cannot be recorded: then it must not happen.
    """
    line = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "purpose": purpose,
        "users": users,
        "split": split,
        "weights": _weights(checkpoint),
    }
    try:
        with (checkpoint / LEDGER).open("ab", buffering=0) as stream:
            stream.write(json.dumps(line).encode() + b"\n")
            os.fsync(stream.fileno())
    except OSError as error:
        raise HstuError(
            f"the read of the test target cannot be recorded: {error}",
            where=str(checkpoint / LEDGER),
            hint="copy the checkpoint to a folder that can be written to",
            exit_code=ExitCode.ENVIRONMENT,
        ) from error
    return reads(checkpoint)


def reads(checkpoint: Path) -> int:
    """How often the test target has been read with the weights that are in the folder now."""
    path = checkpoint / LEDGER
    weights = _weights(checkpoint)
    lines = path.read_bytes().splitlines() if path.is_file() else []
    records = [_record(line, f"{path}:{number}") for number, line in enumerate(lines, start=1)]
    return sum(record["weights"] == weights for record in records)


def _record(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
        if isinstance(value, dict) and isinstance(value["weights"], str):
            return value
    except (ValueError, KeyError):
        pass
    raise HstuError(
        f"not a record of a read: {line[:80]!r}",
        where=where,
        hint="restore the file: without it nobody knows how often the test was read",
        exit_code=ExitCode.FAILURE,
    )


def _weights(checkpoint: Path) -> str:
    path = checkpoint / _WEIGHTS
    if not path.is_file():
        raise HstuError("the checkpoint's weights are missing", where=str(path))
    return sha256(path)
