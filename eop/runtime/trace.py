"""The trace: one file per event, appended by compare-and-swap, read as a chain."""

from __future__ import annotations

import json
import os
import random
import re
import socket
import tempfile
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eop.core.canonical import canonical_json
from eop.core.errors import EopError, ExitCode, Where
from eop.runtime.events import GENESIS, Event
from eop.runtime.reduce import Refused, reduce

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.protocol.model import Plan
    from eop.runtime.state import State

_NAME = re.compile(r"(\d{8})\.json")
_TRIES = 400
_PAUSE_S = 0.05


class Trace:
    """The events of one run in ``directory`` (``<root>/runs/<run>/trace``).

    Every reader folds the files anew as they come and checks the chain while it does: a gap, a
    wrong predecessor or an edited event is EOP731, exit 7. Safe for any number of processes on
    several hosts of a shared file system; one ``Trace`` object is for one thread.
    """

    def __init__(self, directory: Path, plan: Plan) -> None:
        self.directory = directory
        self.plan = plan
        self._events: list[Event] = []
        self._state: State | None = None

    @property
    def root(self) -> Path:
        """The project's root, to which the paths of artifacts are relative."""
        return self.directory.absolute().parents[2]

    def events(self) -> tuple[Event, ...]:
        """All events so far, in order."""
        self._catch_up()
        return tuple(self._events)

    def state(self) -> State:
        """The fold of all events so far; EOP733 when the run has not started."""
        self._catch_up()
        if self._state is None:
            raise EopError(
                "EOP733",
                "the run has not started: its trace is empty",
                where=Where(str(self.directory)),
                hint="`eop run` or `snakemake` starts it",
                exit_code=ExitCode.STATE,
            )
        return self._state

    def append(self, kind: str, data: Mapping[str, Any]) -> State:
        """Make one event the next of the trace and return the state after it.

        The state machine judges the event against what the trace holds at that very moment:
        ``Refused`` (EOP730, exit 7) leaves the trace as it is.
        """
        for _ in range(_TRIES):
            self._catch_up()
            event = self._next(kind, data)
            after = reduce(self.plan, self._state, event)
            if self._publish(event):
                self._events.append(event)
                self._state = after
                return after
            time.sleep(random.uniform(0, _PAUSE_S))
        raise EopError(
            "EOP732",
            f"could not append to the trace: others were faster {_TRIES} times",
            where=Where(str(self.directory)),
            hint="try again when fewer processes write to this run",
            exit_code=ExitCode.LOCKED,
        )

    def _next(self, kind: str, data: Mapping[str, Any]) -> Event:
        return Event(
            seq=len(self._events) + 1,
            type=kind,
            data=data,
            prev=self._events[-1].digest if self._events else GENESIS,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            host=socket.gethostname(),
        )

    def _path(self, seq: int) -> Path:
        return self.directory / f"{seq:08d}.json"

    def _publish(self, event: Event) -> bool:
        """Give a finished, synced file the event's name; say whether the name was still free."""
        self.directory.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".event.", suffix=".tmp", dir=self.directory)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(encode(event))
                stream.flush()
                os.fsync(stream.fileno())
            temporary.chmod(0o444)
            with suppress(FileExistsError):
                os.link(temporary, self._path(event.seq))
            # A network file system may answer "exists" to a repeated request that had succeeded:
            # the link count tells.
            won = temporary.stat().st_nlink == 2
        finally:
            temporary.unlink(missing_ok=True)
        if won:
            self._sync_directory()
        return won

    def _sync_directory(self) -> None:
        handle = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _catch_up(self) -> None:
        """Fold the files that came since the last call."""
        while self._fold_next():
            pass
        last = self._last_number()
        # Events may have come while the directory was listed; a gap is there to stay.
        while len(self._events) < last:
            if not self._fold_next():
                raise self._broken(len(self._events) + 1, "the event is missing, later ones exist")

    def _last_number(self) -> int:
        if not self.directory.is_dir():
            return 0
        matches = (_NAME.fullmatch(path.name) for path in self.directory.iterdir())
        return max((int(match[1]) for match in matches if match), default=0)

    def _fold_next(self) -> bool:
        seq = len(self._events) + 1
        try:
            content = self._path(seq).read_bytes()
        except FileNotFoundError:
            return False
        try:
            event = decode(content)
            if event.seq != seq:
                raise ValueError(f"it says that it is event {event.seq}")
            state = reduce(self.plan, self._state, event)
        except ValueError as error:
            raise self._broken(seq, str(error)) from None
        except Refused as error:
            raise self._broken(seq, error.reason) from None
        self._events.append(event)
        self._state = state
        return True

    def _broken(self, seq: int, why: str) -> EopError:
        path = self._path(seq)
        return EopError(
            "EOP731",
            f"trace is broken at {path.name}: {why}",
            where=Where(str(path)),
            hint="events are never edited: restore the file from a copy, or start another run",
            exit_code=ExitCode.STATE,
        )


def encode(event: Event) -> bytes:
    """An event's file: canonical JSON of its six fields and of its own digest."""
    return canonical_json({**event.to_json(), "digest": event.digest})


def decode(content: bytes) -> Event:
    """The inverse of ``encode``; ``ValueError`` when one byte differs from what was written."""
    value = json.loads(content)
    if not isinstance(value, dict):
        raise ValueError("not an event")
    own = value.pop("digest", None)
    event = Event.from_json(value)
    if own != event.digest or content != encode(event):
        raise ValueError("it was edited: its content does not have its digest")
    return event
