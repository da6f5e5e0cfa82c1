"""Advisory locks that the kernel frees when their holder dies."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from eop.core.files import writing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class LockHeldError(Exception):
    """Another live process holds the lock; the message says which."""


def acquire(path: Path, *, wait: bool = False) -> IO[str]:
    """Take an exclusive lock on ``path``; it is held until the returned file is closed.

    The holder's pid and host are written inside, so that whoever is refused can be told.
    Raises ``LockHeldError`` when another process holds it and ``wait`` is false.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("a+")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        stream.seek(0)
        holder = stream.read().strip() or "unknown holder"
        stream.close()
        raise LockHeldError(holder) from None
    with writing(path):
        stream.seek(0)
        stream.truncate()
        stream.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        stream.flush()
    return stream


@contextmanager
def exclusive(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock on ``path`` for the length of a block."""
    stream = acquire(path, wait=wait)
    try:
        yield
    finally:
        stream.close()
