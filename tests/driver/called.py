"""A command of `eop` in a process of its own, on a terminal or with pipes; nothing is imported."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import termios
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from eop.cli import main

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

COLOURS = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")


class Called(NamedTuple):
    """How it ended, and what it wrote; a terminal shows both streams as one."""

    status: int
    stdout: str
    stderr: str = ""


def in_a_pipe(root: Path, arguments: Sequence[str], **environment: str) -> Called:
    """With standard output and standard error in pipes, and nothing to read."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    (out, out_in), (err, err_in) = os.pipe(), os.pipe()
    child = _start(root, arguments, (nothing, out_in, err_in), environment)
    for used in (nothing, out_in, err_in):
        os.close(used)
    # Both are small: neither pipe is full while the other is read.
    stdout, stderr = _read(out), _read(err)
    return Called(_status(child), stdout, stderr)


def on_a_terminal(
    root: Path, arguments: Sequence[str], columns: int = 80, **environment: str
) -> Called:
    """On a terminal of its own."""
    screen, inside = os.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = _start(root, arguments, (inside, inside, inside), environment)
    os.close(inside)
    shown = _read(screen)
    return Called(_status(child), shown)


def _start(
    root: Path,
    arguments: Sequence[str],
    streams: tuple[int, int, int],
    environment: dict[str, str],
) -> int:
    child = os.fork()
    if child:
        return child
    status = 99
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        for name in COLOURS:
            os.environ.pop(name, None)
        os.environ.update({"TERM": "xterm-256color", **environment})
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode) for number, mode in enumerate("rww")
        )
        os.chdir(root)
        sys.argv = ["eop", *arguments]
        main()
        status = 0
    except SystemExit as ended:
        status = int(ended.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _read(handle: int) -> str:
    parts = []
    # A terminal whose other end is closed is an error on Linux, and the end of what it shows.
    with suppress(OSError):
        while part := os.read(handle, 1 << 16):
            parts.append(part)
    os.close(handle)
    return b"".join(parts).decode()


def _status(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
