"""Sentinels: the files by which people answer gates. Nothing here creates one."""

from __future__ import annotations

import os
import pwd
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.runtime.gates import (
    APPROVED,
    REJECTED,
    REQUEST,
    SIGNATURE,
    gate_file,
    signature_file,
    visible,
)
from eop.runtime.signatures import UnsignedError, statement

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from eop.runtime.node import Instance
    from eop.runtime.signatures import Signers

_LONGEST = 16384
_LISTED = 10


@dataclass(frozen=True)
class Decision:
    """What the sentinels of one digest say.

    ``status`` is ``approved``, ``rejected`` or ``none``. ``by`` is the principal that signed, or
    without signatures the user that owns the sentinel; ``reason`` is its text, ``signature`` the
    armored one. ``problems`` names sentinels that count for nothing.
    """

    status: str
    by: str = ""
    reason: str = ""
    signature: str = ""
    problems: tuple[str, ...] = ()


class UnusableError(Exception):
    """Why a file that has a sentinel's name decides nothing."""


@dataclass(frozen=True)
class Content:
    """A file as it was read: its owner's name, how many names it has, its bytes."""

    owner: str
    links: int
    data: bytes


def read_sentinel(
    gates: Path, run: str, gate: Instance, digest: str, signers: Signers | None = None
) -> Decision:
    """The decision that the files of exactly this digest record; a rejection wins over both.

    With ``signers`` only what one of them has signed counts. An approval counts only where
    nothing has the rejection's name: who tried to say no is heard first.
    """
    for status in (REJECTED, APPROVED):
        path = gate_file(gates, run, gate, digest, status)
        try:
            content = read(path)
            if content is None:
                continue
            if content.links != 1:
                raise UnusableError("a hard link, whose owner did not make this name")
            if signers is None:
                return Decision(status, content.owner, _text(content.data))
            return _signed(path, content.data, (run, gate, digest, status), signers)
        except UnusableError as error:
            held = "; while it is there no approval counts" if status == REJECTED else ""
            return Decision("none", problems=(f"{path.name}: {error}, it decides nothing{held}",))
    return Decision("none")


def read(path: Path) -> Content | None:
    """A small regular file, ``None`` when the name is free.

    Never waits and never follows a link; raises ``UnusableError`` for anything else.
    """
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise UnusableError("not a regular file")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnusableError(f"cannot be read ({error.strerror})") from None
    # Something else may have taken the name meanwhile: O_NONBLOCK, or a FIFO would wait for ever.
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UnusableError(f"cannot be read ({error.strerror})") from None
    with os.fdopen(handle, "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise UnusableError("not a regular file")
        data = stream.read(_LONGEST + 1)
    if len(data) > _LONGEST:
        raise UnusableError(f"longer than {_LONGEST} bytes")
    return Content(user_name(status.st_uid), status.st_nlink, data)


def user_name(uid: int) -> str:
    """The login name of a user of this machine, its number when it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _text(data: bytes) -> str:
    return visible(data.decode(errors="replace")).strip()


def _signed(
    path: Path, data: bytes, about: tuple[str, Instance, str, str], signers: Signers
) -> Decision:
    """A sentinel that is exactly the statement about this gate, signed by one of ``signers``."""
    reason = _text(data.partition(b"\n")[2])
    message = statement(*about, reason)
    if data != message:
        first = statement(*about, "").decode().rstrip()
        raise UnusableError(f"its first line must be '{first}', the reason plain text below it")
    beside = signature_file(path)
    content = read(beside)
    if content is None:
        raise UnusableError(f"not signed ({beside.name} is missing)")
    try:
        signature = content.data.decode("ascii")
        return Decision(about[-1], signers.principal(message, signature), reason, signature)
    except (UnicodeDecodeError, UnsignedError) as error:
        raise UnusableError(f"not signed by an allowed signer ({error})") from None


def says(path: Path, decision: Decision, message: bytes) -> str | None:
    """Why the sentinel at ``path`` does not say what was recorded; ``None`` when it does.

    ``message`` is the statement of a signed ``decision``.
    """
    try:
        content = read(path)
        beside = read(signature_file(path)) if decision.signature else None
    except UnusableError as error:
        return f"{path.name} {error}"
    if content is None:
        return f"its sentinel is missing: {path.name}"
    if not decision.signature:
        same = _text(content.data) == decision.reason
        return None if same else f"its sentinel gives another reason now: {path.name}"
    signed = beside is not None and beside.data == decision.signature.encode()
    if content.data == message and signed:
        return None
    return f"its sentinel or its signature has changed: {path.name}"


def strays(
    gates: Path, run: str, gate: Instance, digest: str, answered: Mapping[str, str]
) -> list[str]:
    """Files named like sentinels of this gate that decide nothing, one readable line each.

    Those of its step and turn, and those that bear its digest by whatever name.
    ``answered`` maps the names of files that belong to earlier requests of the gate, revisions
    of this iteration, to what is to be said of them; an empty text for what was recorded.
    """
    folder = gates / run
    if not folder.is_dir():
        return []
    prefix = re.compile(rf"it{gate.iteration:02d}-{re.escape(gate.step)}(\.r\d+)?\.", re.IGNORECASE)
    paths = [gate_file(gates, run, gate, digest, status) for status in (APPROVED, REJECTED)]
    valid = {path.name for path in (*paths, *map(signature_file, paths))}
    found = []
    for name in sorted(os.listdir(folder)):  # noqa: PTH208
        if name in valid or name.endswith(f".{REQUEST}"):
            continue
        if not prefix.match(name) and digest not in name.lower():
            continue
        why = answered.get(name.removesuffix(f".{SIGNATURE}"))
        if why != "":
            found.append(
                f"{_named(name)}: decides nothing, {why or _other(name, paths[0], digest)}"
            )
    more = len(found) - _LISTED
    return [*found[:_LISTED], *([f"{more} more files decide nothing"] if more > 0 else [])]


def _other(name: str, approval: Path, digest: str) -> str:
    """Why a name is not that of an answer: it was made for another request, or is misspelt."""
    if digest in name.lower():
        return f"an answer is named exactly {approval.name}, or .{REJECTED} at the end"
    return f"the gate now asks for digest {digest}"


def _named(name: str) -> str:
    """A file's name in one line, in quotation marks when it holds more than plain characters."""
    return name if re.fullmatch(r"[\w.\-]+", name, re.ASCII) else ascii(name)
