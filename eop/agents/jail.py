"""Jails: bubblewrap, else Landlock, else none; everything that is not named is out of reach."""

from __future__ import annotations

import functools
import os
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from eop.agents import landlock
from eop.agents.gateway import forwarder
from eop.core.errors import EopError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/sys")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
# Of /proc only the machine's facts and the command's own entry: the command lines and environments
# of other programs are theirs.
_PROC = ("self", "cpuinfo", "meminfo", "stat", "sys", "filesystems", "version")
_FIRST_WITH_TCP = 4
_ACCELERATORS = ("nvidia*", "dri", "kfd")
_BWRAP = (
    "--die-with-parent", "--new-session", "--unshare-user", "--unshare-pid", "--unshare-ipc",
    "--unshare-uts", "--unshare-net", "--cap-drop", "ALL",
    "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
)  # fmt: skip
# A root who may not set file capabilities can make no user namespace of his own, which Codex's
# sandbox needs; and no other user id will do: his alone is sure to have a name. Anybody else needs
# no capability, and bubblewrap inside the jail would not start with one.
_OF_ROOT = ("--cap-add", "CAP_SETFCAP")
_PRIVATE_IN = Path("/etc")


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


class Containment(StrEnum):
    """What holds a command to the one way out that it is given, from strong to not at all."""

    NAMESPACE = "namespace"  # it has a network of its own, and reaches nothing else
    PORT = "port"  # it may connect by TCP to that port alone, of any host; UDP is open
    NONE = "none"


@dataclass(frozen=True)
class Way:
    """The one way out of a jail: a TCP port of the loopback.

    ``socket``: the Unix socket behind that port, when the jail has a network of its own.
    """

    port: int
    socket: Path | None = None


@dataclass(frozen=True)
class Jail:
    """A way to start commands so that they reach only what they are given."""

    kind: Level

    def level(self) -> Level:
        """How strong it is, for reports."""
        return self.kind

    @property
    def layers(self) -> int:
        """Processes between the one that is started and the command: bwrap and its first child."""
        return 2 if self.kind is Level.BWRAP else 0

    def containment(self) -> Containment:
        """What holds a command that is given a way out to that way, on this machine."""
        match self.kind:
            case Level.BWRAP:
                return Containment.NAMESPACE
            case Level.LANDLOCK if landlock_has_networks():
                return Containment.NAMESPACE
            case Level.LANDLOCK if landlock.abi() >= _FIRST_WITH_TCP:
                return Containment.PORT
        return Containment.NONE

    def wrap(
        self,
        argv: Sequence[str],
        *,
        read: Iterable[Path] = (),
        write: Iterable[Path] = (),
        hidden: Iterable[Path] = (),
        way: Way | None = None,
        loopback: bool = False,
    ) -> list[str]:
        """The command line that runs ``argv`` confined.

        ``read`` and ``write`` are files or folders that exist; the system's folders and this
        interpreter are readable always. ``hidden`` stays out of reach even below those. The
        current directory and the environment pass through. There is no network but ``way``, as far
        as ``containment`` says; without ``way`` Landlock denies TCP (ABI 4 on), bubblewrap every
        network. ``loopback``: its processes may talk to each other over a loopback that is theirs
        alone. ``EopError`` when ``hidden`` or ``loopback`` cannot be held.
        """
        readable = [*_base_paths(), *_real(read)]
        writable, concealed = _real(write), _real(hidden)
        if way and way.socket:
            readable += [Path(forwarder.__file__).resolve(), way.socket.parent.resolve()]
            argv = _forwarded(argv, way.port, way.socket)
        match self.kind:
            case Level.BWRAP:
                return _bwrap(argv, readable, writable, concealed)
            case Level.LANDLOCK:
                return _landlock(argv, readable, writable, concealed, _network(way, loopback))
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
            hint=f"{_remedy()}, or use a kernel with Landlock (5.13 or later); "
            "'isolation: off' runs without, at your risk",
            exit_code=ExitCode.ENVIRONMENT,
        )
    return Jail(best)


@functools.cache
def available() -> tuple[Level, ...]:
    """The levels that work here, the strongest first; tried out once per process."""
    tried = {Level.BWRAP: _bwrap_works(), Level.LANDLOCK: landlock.abi() >= 1}
    return tuple(level for level, works in tried.items() if works)


def detect() -> Level:
    """The strongest level that works here."""
    return next(iter(available()), Level.NONE)


def describe(level: Level) -> str:
    """What a level holds, and how to get the best one: one line for people."""
    held = {
        Level.BWRAP: "bubblewrap: files, processes, network and IPC of their own",
        Level.LANDLOCK: "Landlock: files, TCP and signals, but not local sockets",
        Level.NONE: "none: agents that are not trusted are refused",
    }
    return f"jail: {held[level]}" + (f"; better: {_remedy()}" if level is not Level.BWRAP else "")


def _remedy() -> str:
    if shutil.which("bwrap") is None:
        return "install bubblewrap (apt-get install bubblewrap, dnf install bubblewrap)"
    return (
        "let bubblewrap make user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        " or user.max_user_namespaces, or a container that may)"
    )


def _bwrap_works() -> bool:
    if shutil.which("bwrap") is None:
        return False
    trial = _bwrap(["true"], _base_paths(), [], [])
    return subprocess.run(trial, capture_output=True, check=False).returncode == 0


@functools.cache
def landlock_has_networks() -> bool:
    """Whether a process can leave this machine's network here, tried out once per process."""
    trial = _landlock(["true"], _base_paths(), [], [], landlock.OWN)
    return subprocess.run(trial, capture_output=True, check=False).returncode == 0


def _network(way: Way | None, loopback: bool) -> str:
    if loopback and not landlock_has_networks():
        raise EopError(
            "EOP862",
            "the processes of one command talk by TCP, and Landlock alone cannot keep that inside",
            hint="install bubblewrap, or allow this machine network namespaces; a training in one "
            "process (gpus: 1) needs neither",
            exit_code=ExitCode.ENVIRONMENT,
        )
    if way is None:
        return landlock.OWN if loopback else landlock.CLOSED
    return landlock.OWN if way.socket else str(way.port)


def _forwarded(argv: Sequence[str], port: int, socket: Path) -> list[str]:
    program = [sys.executable, "-I", "-S", str(Path(forwarder.__file__).resolve())]
    return [*program, "--socket", str(socket.resolve()), "--port", str(port), "--", *argv]


def _base_paths() -> list[Path]:
    interpreter = [Path(sys.prefix), Path(sys.base_prefix)]
    system = [Path(name) for name in _SYSTEM]
    return [path for path in [*system, *interpreter] if path.exists()]


@functools.cache
def _private() -> tuple[Path, ...]:
    """Files and folders of ``/etc`` that only their owner may read: keys, password hashes.

    An agent of root's would be that owner. Links are left out: what they lead to is judged itself.
    """
    found = []
    for folder, subfolders, files in os.walk(_PRIVATE_IN):
        for names, needed in ((subfolders, 0o5), (files, 0o4)):
            for name in list(names):
                path = Path(folder, name)
                mode = path.lstat().st_mode
                if not stat.S_ISLNK(mode) and mode & needed != needed:
                    found.append(path)
                    if names is subfolders:
                        names.remove(name)
    return tuple(sorted(found))


def _devices() -> list[Path]:
    return [path for pattern in _ACCELERATORS for path in sorted(Path("/dev").glob(pattern))]


def _real(paths: Iterable[Path]) -> list[Path]:
    return [path.resolve() for path in paths]


def _below(path: Path, roots: Iterable[Path]) -> Path | None:
    return next((root for root in roots if path.is_relative_to(root.resolve())), None)


def _bwrap(
    argv: Sequence[str], read: list[Path], write: list[Path], hidden: list[Path]
) -> list[str]:
    options = [*_BWRAP, *(_OF_ROOT if os.geteuid() == 0 else ())]
    for path in _devices():
        options += ["--dev-bind", str(path), str(path)]
    for flag, paths in (("--ro-bind", read), ("--bind", write)):
        for path in paths:
            options += [flag, str(path), str(path)]
    for path in [*_private(), *hidden]:
        if _below(path, [*read, *write]) and path.exists():
            options += _cover(path)
    # Last, or nothing could be mounted any more: a write to no named place fails, and is seen to.
    options += ["--remount-ro", "/"]
    return ["bwrap", *options, "--", *argv]


def _cover(path: Path) -> list[str]:
    if path.is_dir():
        return ["--tmpfs", str(path), "--remount-ro", str(path)]
    return ["--ro-bind", os.devnull, str(path)]


def _landlock(
    argv: Sequence[str], read: list[Path], write: list[Path], hidden: list[Path], network: str
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
    shown = [piece for path in read for piece in _pieces(path)]
    for flag, paths in (("--ro", shown), ("--rw", [*devices, *_devices(), *write])):
        for path in paths:
            options += [flag, str(path)]
    # By file and isolated: nothing in the current directory or PYTHONPATH may run before the jail.
    options += ["--network", network]
    return [sys.executable, "-I", "-S", landlock.__file__, *options, "--", *argv]


def _pieces(path: Path) -> list[Path]:
    """The largest parts of a folder that hold nothing private: Landlock cannot take away again."""
    inside = [hidden for hidden in _private() if hidden.is_relative_to(path)]
    if not inside:
        return [path]
    children = [child for child in sorted(path.iterdir()) if not child.is_symlink()]
    return [piece for child in children if child not in inside for piece in _pieces(child)]


if __name__ == "__main__":
    print(describe(detect()))
