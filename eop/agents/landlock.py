"""Confine a command with Landlock. As a program: ``python -I landlock.py --ro P --rw P -- CMD``.

``--network`` is ``none``, ``own`` (a network of its own, with nothing but a loopback) or a port, to
which alone the command may connect by TCP; then UDP is not held.

What is not named cannot be opened, listed, made, renamed or deleted, whoever owns it; mounts and
signals to processes outside are denied, and every capability of root is dropped. Not held by the
kernel: existence and ``stat`` of a path, ``chmod`` and ``utime``, and truncation before ABI 3.
Standard library only: it starts before the command with nothing else on its path.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH, _NET_PORT = 1, 2
_NO_NEW_PRIVS, _DROP_BOUNDING = 38, 24
_CAPSET, _CAP_VERSION_3, _LAST_CAP = {"x86_64": 126, "aarch64": 91}, 0x20080522, 63

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_SINCE_1 = (1 << 13) - 1
_BIND_TCP, _CONNECT_TCP = 0b01, 0b10
_NEW_IPC, _NEW_USER, _NEW_NET = 0x08000000, 0x10000000, 0x40000000
_SCOPES = 0b11
_SET_FLAGS, _UP = 0x8914, 0x1
CLOSED, OWN = "none", "own"

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """The kernel's Landlock version; 0 when there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)))


def handled_rights(version: int) -> int:
    """Every file right that this version of Landlock can deny."""
    rights = _SINCE_1
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL)):
        rights |= right if version >= since else 0
    return rights


def restrict(read: list[Path], write: list[Path], *, network: str) -> None:
    """Confine this process and its children for good. ``OSError`` when the kernel refuses."""
    version = abi()
    rights = handled_rights(version)
    sizes = 8 if version < 4 else 16 if version < 6 else 24
    tcp = 0 if network == OWN else _BIND_TCP | _CONNECT_TCP
    attributes = struct.pack("=QQQ", rights, tcp, _SCOPES)[:sizes]
    ruleset = _checked(_libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(sizes), 0))
    for path in read:
        _allow(ruleset, path, _READ & rights)
    for path in write:
        _allow(ruleset, path, rights)
    if network.isdecimal():
        rule = struct.pack("=QQ", _CONNECT_TCP, int(network))
        _checked(_libc.syscall(_ADD_RULE, ruleset, _NET_PORT, rule, 0))
    _checked(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)
    _drop_capabilities()


def isolate(*, network: str) -> None:
    """Leave the machine's IPC and, if it may not be seen, its network: Landlock holds neither.

    Shared memory, message queues, UDP and abstract sockets would let two candidates talk. Where
    namespaces are not to be had the process goes on without: ``Jail.level`` says what is promised.
    ``OSError`` when the network of its own, by which it is to reach its gateway, is not to be had.
    """
    wanted = _NEW_IPC | (0 if network.isdecimal() else _NEW_NET)
    code = _libc.unshare(wanted)
    if code != 0:
        code = _libc.unshare(_NEW_USER | wanted)
    if network == OWN:
        _checked(code)
        _raise_loopback()


def _raise_loopback() -> None:
    """A new network has a loopback that is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, _SET_FLAGS, struct.pack("16sH22x", b"lo", _UP))


def _allow(ruleset: int, path: Path, rights: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not path.is_dir():
            rights &= _ON_FILES
        rule = struct.pack("=Qi", rights, handle)
        _checked(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    finally:
        os.close(handle)


def _drop_capabilities() -> None:
    """Root keeps its user id and nothing else: no reading of other processes, no chown."""
    if os.geteuid() != 0:
        return
    for capability in range(_LAST_CAP + 1):
        if _libc.prctl(_DROP_BOUNDING, capability, 0, 0, 0):
            break
    number = _CAPSET.get(os.uname().machine)
    if number is not None:
        header, empty = struct.pack("=Ii", _CAP_VERSION_3, 0), struct.pack("=6I", *[0] * 6)
        _checked(_libc.syscall(number, header, empty))


def _checked(code: int) -> int:
    if code < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return code


def main(arguments: list[str]) -> None:
    """Read the options, confine, and become the command."""
    if "--" not in arguments:
        raise SystemExit("usage: landlock.py [--ro PATH] [--rw PATH] [--network N] -- COMMAND ...")
    split = arguments.index("--")
    options, command = arguments[:split], arguments[split + 1 :]
    named: dict[str, list[str]] = {"--ro": [], "--rw": [], "--network": []}
    words = iter(options)
    for option in words:
        named[option].append(next(words))
    network = named["--network"][-1] if named["--network"] else CLOSED
    try:
        isolate(network=network)
        restrict([*map(Path, named["--ro"])], [*map(Path, named["--rw"])], network=network)
        os.execvp(command[0], command)
    except OSError as error:
        raise SystemExit(f"landlock: cannot confine or start {command[0]}: {error}") from error


if __name__ == "__main__":
    main(sys.argv[1:])
