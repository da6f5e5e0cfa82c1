"""The files of a trace: one for each event, or one for many, and how they come and go.

A pack is on the disk for good before the single files of its events are removed. So where a
single file is missing, it is in a pack or was never there; and where both exist, the pack counts:
a writer that slept while others packed may have made the name once more, and takes it back.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eop.core.files import writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SINGLE = re.compile(r"(\d{8})\.json")
# Of an event that is looked up alone: longer ones are found by reading the whole trace.
_LONGEST_LINE = 1 << 20
_PACK = re.compile(r"(\d{8})-(\d{8})\.jsonl")


@dataclass(frozen=True, order=True)
class Pack:
    """A file with the events ``first`` to ``last``, a line each."""

    first: int
    last: int

    @property
    def name(self) -> str:
        """Its file's name."""
        return f"{self.first:08d}-{self.last:08d}.jsonl"


@dataclass(frozen=True)
class Listing:
    """What a folder held when it was read: packs in order, numbers of single files."""

    packs: tuple[Pack, ...]
    singles: frozenset[int]

    @property
    def last(self) -> int:
        """The highest number of an event; 0 when there is none."""
        return max([0, *self.singles, *(pack.last for pack in self.packs)])

    def pack_of(self, seq: int) -> Pack | None:
        """The pack that holds event ``seq``; the first, should there be several."""
        return next((pack for pack in self.packs if pack.first <= seq <= pack.last), None)

    def room_from(self, seq: int) -> int | None:
        """How many numbers there are from ``seq`` to the next pack; ``None`` when none follows."""
        return min((pack.first - seq for pack in self.packs if pack.first > seq), default=None)


class EventFiles:
    """The event files in ``directory``, as bytes; what they say is not looked at here."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def single(self, seq: int) -> Path:
        """Where event ``seq`` lies as long as it is not packed."""
        return self.directory / f"{seq:08d}.json"

    def listing(self) -> Listing:
        """All names that are there now; what comes or goes meanwhile may be missed."""
        try:
            names = os.listdir(self.directory)  # noqa: PTH208 - a path for each name costs more
        except FileNotFoundError:
            names = []
        singles = (_SINGLE.fullmatch(name) for name in names)
        packs = (_PACK.fullmatch(name) for name in names)
        return Listing(
            tuple(sorted(Pack(int(m[1]), int(m[2])) for m in packs if m)),
            frozenset(int(m[1]) for m in singles if m),
        )

    def read_singles(self, seq: int) -> list[bytes]:
        """Contents of the single files from ``seq`` on, up to the first that is not there."""
        found: list[bytes] = []
        with suppress(FileNotFoundError):
            while True:
                found.append(_read(f"{self.directory}/{seq + len(found):08d}.json"))
        return found

    def event(self, seq: int) -> bytes | None:
        """The content of one event, alone or the last of its pack; else ``None``."""
        pack = self.listing().pack_of(seq)
        if pack is not None:
            return self._last_line(pack) if pack.last == seq else None
        found = self.single(seq)
        return found.read_bytes() if found.is_file() else None

    def _last_line(self, pack: Pack) -> bytes | None:
        if not (self.directory / pack.name).is_file():
            return None
        with (self.directory / pack.name).open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - _LONGEST_LINE))
            return stream.read().removesuffix(b"\n").rpartition(b"\n")[2] or None

    def read_pack(self, pack: Pack) -> list[bytes]:
        """The lines of a pack, without their ends, and what follows the last of these."""
        return _read(f"{self.directory}/{pack.name}").split(b"\n")

    def publish(self, seq: int, content: bytes) -> bool:
        """Make ``content`` event ``seq``; say whether its number was still free."""
        path = self.single(seq)
        with writing(path), self._finished(content) as temporary:
            won = _link(temporary, path)
        if won and self.listing().pack_of(seq):
            path.unlink(missing_ok=True)
            return False
        if won:
            self._sync()
        return won

    def unpacked(self, packs: Iterable[Pack]) -> list[Pack]:
        """Those that are not there, or whose single files are not gone."""
        listing = self.listing()
        there = set(listing.packs)
        return [
            pack
            for pack in packs
            if pack not in there or any(pack.first <= seq <= pack.last for seq in listing.singles)
        ]

    def pack(self, pack: Pack, contents: Sequence[bytes]) -> bool:
        """Put events into one file and remove their single files.

        Idempotent, and safe to be killed anywhere. Says whether the pack holds just these
        contents; if one does not that was there before, nothing is removed.
        """
        whole = b"".join(content + b"\n" for content in contents)
        path = self.directory / pack.name
        listing = self.listing()
        if pack not in listing.packs:
            with writing(path), self._finished(whole) as temporary:
                _link(temporary, path)
        left = sorted(seq for seq in listing.singles if pack.first <= seq <= pack.last)
        if left or pack not in listing.packs:
            if path.read_bytes() != whole:
                return False
            self._sync()
        for seq in left:
            self.single(seq).unlink(missing_ok=True)
        return True

    @contextmanager
    def _finished(self, content: bytes) -> Iterator[Path]:
        """A temporary file with ``content`` that is on the disk for good."""
        self.directory.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".event.", suffix=".tmp", dir=self.directory)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            Path(name).chmod(0o444)
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)

    def _sync(self) -> None:
        handle = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _link(source: Path, target: Path) -> bool:
    """Give a file a second name; say whether that name was free."""
    try:
        os.link(source, target)
    except FileExistsError:
        # A network file system may answer "exists" to a repeated request that had succeeded:
        # the link count tells.
        return source.stat().st_nlink == 2
    return True


class UnreadableError(Exception):
    """Why what has an event file's name cannot be read, and which it is."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(why)
        self.name = os.path.basename(path)  # noqa: PTH119 - as `_read`, without a path object


def _read(path: str) -> bytes:
    try:
        # Not blocking: a pipe of this name would be waited for without end.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableError(path, f"it cannot be read: {error.strerror}") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableError(path, "it is not a regular file")
        size = status.st_size
        parts = [os.read(handle, size + 1)]
        while parts[-1]:
            parts.append(os.read(handle, size + 1))
        return b"".join(parts)
    finally:
        os.close(handle)
