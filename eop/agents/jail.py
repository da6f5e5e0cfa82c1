"""Jails: bubblewrap, else Landlock, else none; everything that is not named is out of reach."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from eop.agents import landlock
from eop.core.errors import EopError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/sys")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
# Of /proc only the machine's facts and the command's own entry: the command lines and environments
# of other programs are theirs.
_PROC = ("self", "cpuinfo", "meminfo", "stat", "sys", "filesystems", "version")
_ACCELERATORS = ("nvidia*", "dri", "kfd")
_BWRAP = (
    "--die-with-parent", "--new-session", "--unshare-user", "--unshare-pid", "--unshare-ipc",
    "--unshare-uts", "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
)  # fmt: skip
# A root without capabilities is nobody's root: Codex's own sandbox, for one, then fails to start.
_NOT_ROOT = ("--uid", "1000", "--gid", "1000")


class Level(StrEnum):
    """What holds a process in, from strong to not at all."""

    BWRAP = "bwrap"
    LANDLOCK = "landlock"
    NONE = "none"


class Isolation(StrEnum):
    """The operator's policy: best there is, a jail or nothing, none on purpose."""

    AUTO = "auto"
    REQUIRE = "require"
    OFF = "off"


@dataclass(frozen=True)
class Jail:
    """A way to start commands so that they reach only what they are given."""

    kind: Level

    def level(self) -> Level:
        """How strong it is, for reports."""
        return self.kind

    def wrap(
        self,
        argv: Sequence[str],
        *,
        read: Iterable[Path] = (),
        write: Iterable[Path] = (),
        hidden: Iterable[Path] = (),
        network: bool = False,
    ) -> list[str]:
        """The command line that runs ``argv`` confined.

        ``read`` and ``write`` are files or folders that exist; the system's folders and this
        interpreter are readable always. ``hidden`` stays out of reach even below those. The
        current directory and the environment pass through. Landlock denies TCP (ABI 4 on) when
        ``network`` is false, bubblewrap every network. ``EopError`` when ``hidden`` cannot be held.
        """
        readable = [*_base_paths(network=network), *_real(read)]
        writable, concealed = _real(write), _real(hidden)
        match self.kind:
            case Level.BWRAP:
                return _bwrap(argv, readable, writable, concealed, network=network)
            case Level.LANDLOCK:
                return _landlock(argv, readable, writable, concealed, network=network)
            case Level.NONE:
                return list(argv)


def choose(isolation: Isolation | str, *, trusted: bool) -> Jail:
    """The jail that this machine and the operator's policy give.

    ``auto`` takes the best there is and refuses an untrusted command without one, ``require``
    refuses any, ``off`` takes none. Refusal is an ``EopError`` with exit ENVIRONMENT.
    """
    policy = Isolation(isolation)
    if policy is Isolation.OFF:
        return Jail(Level.NONE)
    best = detect()
    if best is Level.NONE and (policy is Isolation.REQUIRE or not trusted):
        raise EopError(
            "EOP860",
            "this machine has no jail for agents: neither bubblewrap nor Landlock works",
            hint="install bubblewrap (apt install bubblewrap) and allow user namespaces, or use a "
            "kernel with Landlock (5.13 or later); 'isolation: off' runs without, at your risk",
            exit_code=ExitCode.ENVIRONMENT,
        )
    return Jail(best)


@functools.cache
def detect() -> Level:
    """The strongest level that works here, tried out once per process."""
    if _bwrap_works():
        return Level.BWRAP
    return Level.LANDLOCK if landlock.abi() >= 1 else Level.NONE


def _bwrap_works() -> bool:
    if shutil.which("bwrap") is None:
        return False
    trial = _bwrap(["true"], _base_paths(network=False), [], [], network=False)
    return subprocess.run(trial, capture_output=True, check=False).returncode == 0


def _base_paths(*, network: bool) -> list[Path]:
    interpreter = [Path(sys.prefix), Path(sys.base_prefix)]
    names = [Path("/etc/resolv.conf").resolve()] if network else []
    system = [Path(name) for name in _SYSTEM]
    return [path for path in [*system, *interpreter, *names] if path.exists()]


def _devices() -> list[Path]:
    return [path for pattern in _ACCELERATORS for path in sorted(Path("/dev").glob(pattern))]


def _real(paths: Iterable[Path]) -> list[Path]:
    return [path.resolve() for path in paths]


def _below(path: Path, roots: Iterable[Path]) -> Path | None:
    return next((root for root in roots if path.is_relative_to(root.resolve())), None)


def _bwrap(
    argv: Sequence[str], read: list[Path], write: list[Path], hidden: list[Path], *, network: bool
) -> list[str]:
    options = [*_BWRAP, *([] if network else ["--unshare-net"])]
    if os.geteuid() == 0:
        options += _NOT_ROOT
    for path in _devices():
        options += ["--dev-bind", str(path), str(path)]
    for flag, paths in (("--ro-bind", read), ("--bind", write)):
        for path in paths:
            options += [flag, str(path), str(path)]
    for path in hidden:
        if _below(path, [*read, *write]) and path.exists():
            cover = ["--tmpfs"] if path.is_dir() else ["--ro-bind", "/dev/null"]
            options += [*cover, str(path)]
    return ["bwrap", *options, "--", *argv]


def _landlock(
    argv: Sequence[str], read: list[Path], write: list[Path], hidden: list[Path], *, network: bool
) -> list[str]:
    for path in hidden:
        root = _below(path, [*read, *write])
        if root is not None:
            raise EopError(
                "EOP861",
                f"{path} must stay hidden but lies below {root}, which the command may read",
                hint="install bubblewrap, or move the project out of that folder",
                exit_code=ExitCode.ENVIRONMENT,
            )
    devices = [path for name in _DEVICES if (path := Path("/dev", name)).exists()]
    options = []
    for name in _PROC:
        options += ["--ro", f"/proc/{name}"]
    for flag, paths in (("--ro", read), ("--rw", [*devices, *_devices(), *write])):
        for path in paths:
            options += [flag, str(path)]
    closed = [] if network else ["--no-network"]
    # By file and isolated: nothing in the current directory or PYTHONPATH may run before the jail.
    return [sys.executable, "-I", "-S", landlock.__file__, *options, *closed, "--", *argv]
