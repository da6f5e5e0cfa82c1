"""Run a command in a jail without a network, with one way out: ``python -I -S forwarder.py``.

``--socket FOLDER/NAME --port N -- COMMAND``: what connects to TCP port N of this machine, which
inside a network namespace is the command's alone, is connected to the gateway's Unix socket.
The command gets every signal that comes here (SIGTERM and SIGHUP with all of its group), and its
end is the end of this program, with the same exit status or by the same signal. It dies with this
program, too. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

_SET_DEATH_SIGNAL = 1
_PASSED_ON = (
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGCONT,
)  # fmt: skip
_PIECE = 1 << 16


def main(arguments: list[str]) -> None:
    """Listen, start the command, and end as it ends."""
    split = arguments.index("--")
    options = dict(zip(arguments[:split:2], arguments[1:split:2], strict=True))
    listener = socket.create_server(("127.0.0.1", int(options["--port"])), backlog=64)
    way = Path(options["--socket"])
    # A path to a socket holds 107 bytes at most; one through an open folder is always short.
    folder = os.open(way.parent, os.O_PATH | os.O_CLOEXEC)
    address = f"/proc/self/fd/{folder}/{way.name}"
    child = _start(arguments[split + 1 :])
    threading.Thread(target=_accept, args=(listener, address), daemon=True).start()
    _end_like(_wait(child))


def _start(command: list[str]) -> int:
    # From here on a signal waits until there is somebody to pass it on to.
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    parent = os.getpid()
    child = os.fork()
    if child:
        for number in _PASSED_ON:
            signal.signal(number, lambda got, _: _pass_on(child, got))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        return child
    try:
        # A group of its own: what is sent to the whole group must not reach it twice.
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: cannot be started: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _pass_on(child: int, number: int) -> None:
    tell = os.killpg if number in (signal.SIGTERM, signal.SIGHUP) else os.kill
    with suppress(ProcessLookupError):
        tell(child, number)


def _wait(child: int) -> int:
    """Wait for the command, reaping whatever orphans this program is given."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == child:
            return status


def _end_like(status: int) -> None:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        # Reached as the first process of a PID namespace, which its own signals do not end.
        os._exit(128 + number)
    os._exit(os.waitstatus_to_exitcode(status))


def _accept(listener: socket.socket, address: str) -> None:
    while True:
        inside, _ = listener.accept()
        threading.Thread(target=_connect, args=(inside, address), daemon=True).start()


def _connect(inside: socket.socket, address: str) -> None:
    outside = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with inside, outside:
        try:
            outside.connect(address)
        except OSError:
            return
        inside.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=_copy, args=(outside, inside), daemon=True)
        back.start()
        _copy(inside, outside)
        back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy to the end of ``source``, then tell ``target`` that there will be no more."""
    with suppress(OSError):
        while piece := source.recv(_PIECE):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
        return
    # One side is gone: the other must not wait for it.
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    main(sys.argv[1:])
