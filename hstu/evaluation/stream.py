"""The stream from worker to judge: for each checkpoint a header line, then float32 rows.

The header is JSON, {"schema": "hstu.scores/1", "users": U, "corpus": X}; then come U rows of X
little-endian float32 scores, in the order of the histories, columns in the order of the items.
After the last checkpoint's rows comes nothing.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from hstu.data.errors import ExitCode, HstuError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import ArrayLike, NDArray

SCHEMA = "hstu.scores/1"
_LONGEST_HEADER = 4096
_READ = 1 << 20


class WorkerError(HstuError):
    """The worker broke the contract: a fault of the tree that it runs, not of the data."""

    def __init__(self, message: str, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, where=where, hint=hint, exit_code=ExitCode.FAILURE)


def write_scores(out: BinaryIO, chunks: Iterable[ArrayLike], users: int, corpus: int) -> None:
    """Write the header and the score ``chunks`` [b, X], which together have ``users`` rows."""
    header = {"schema": SCHEMA, "users": users, "corpus": corpus}
    out.write(json.dumps(header).encode() + b"\n")
    for chunk in chunks:
        rows = np.ascontiguousarray(chunk, dtype="<f4")
        if rows.ndim != 2 or rows.shape[1] != corpus:
            raise WorkerError(f"scores of shape {rows.shape}, not [b, {corpus}]")
        out.write(rows.data)
    out.flush()


@contextmanager
def reserved_stdout() -> Iterator[BinaryIO]:
    """Standard output for the caller alone; what others print goes to standard error."""
    sys.stdout.flush()
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        yield out


class Pipe:
    """Reads of a file descriptor that end at ``deadline`` (of ``time.monotonic``)."""

    def __init__(self, descriptor: int, deadline: float) -> None:
        self._descriptor = descriptor
        self._deadline = deadline

    def read(self, size: int) -> bytes:
        """1 to ``size`` bytes, or none at the end; ``WorkerError`` when the time is over."""
        left = max(self._deadline - time.monotonic(), 0.0)
        ready, _, _ = select.select([self._descriptor], [], [], left)
        if not ready:
            raise WorkerError(
                "the worker did not finish in time", hint="raise --timeout, or mend the model"
            )
        return os.read(self._descriptor, size)

    def fill(self, buffer: memoryview) -> int:
        """Fill ``buffer``; return how many bytes came, fewer only at the end of the stream."""
        done = 0
        while done < len(buffer):
            block = self.read(min(len(buffer) - done, _READ))
            if not block:
                break
            buffer[done : done + len(block)] = block
            done += len(block)
        return done


def read_scores(
    pipe: Pipe, users: int, corpus: int, chunk_bytes: int
) -> Iterator[NDArray[np.float32]]:
    """Score chunks [b, X] of at most ``chunk_bytes`` (or one row), ``users`` rows in all.

    A yielded chunk is overwritten by the next. ``WorkerError``: another header, or too few bytes.
    """
    _read_header(pipe, {"schema": SCHEMA, "users": users, "corpus": corpus})
    rows = max(1, min(users, chunk_bytes // (4 * corpus)))
    buffer = np.empty((rows, corpus), "<f4")
    for start in range(0, users, rows):
        chunk = buffer[: min(rows, users - start)]
        came = pipe.fill(chunk.data.cast("B"))
        if came < chunk.nbytes:
            got = start * corpus * 4 + came
            raise WorkerError(f"scores ended after {got} of {users * corpus * 4} bytes")
        yield chunk


def read_end(pipe: Pipe) -> None:
    """Nothing may follow the last score; ``WorkerError`` when something does."""
    if pipe.read(1):
        raise WorkerError("the worker wrote more scores than it was asked for")


def _read_header(pipe: Pipe, expected: dict[str, object]) -> None:
    line = bytearray()
    # Byte by byte, since what follows the line belongs to the scores.
    while not line.endswith(b"\n"):
        byte = pipe.read(1)
        if not byte:
            raise WorkerError(f"output ended within the header: {bytes(line[:80])!r}")
        line += byte
        if len(line) > _LONGEST_HEADER:
            raise WorkerError(f"no header line but {bytes(line[:80])!r}...")
    try:
        header = json.loads(line)
    except ValueError as error:
        raise WorkerError(f"the header is not JSON: {bytes(line[:80])!r}") from error
    if header != expected:
        raise WorkerError(f"the header is {header}, not {expected}")
