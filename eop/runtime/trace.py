"""The trace: events appended by compare-and-swap, read as a chain, packed when they are history."""

from __future__ import annotations

import gc
import random
import socket
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import read_json
from eop.protocol.model import Plan
from eop.runtime.events import GENESIS, Event, decode, encode
from eop.runtime.migration import kept_plan, obstacles
from eop.runtime.reduce import Refused, reduce
from eop.runtime.saved import save, saved
from eop.runtime.trace_files import EventFiles, Listing, Pack, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from eop.runtime.state import State

NOT_CANONICAL = "it was written by another program: its JSON is not canonical"
_TRIES = 400
_PAUSE_S = 0.05


class Trace:
    """The events of one run in ``directory`` (``<root>/runs/<run>/trace``).

    Every reader folds the files anew as they come and checks the chain while it does: a gap, a
    wrong predecessor or an edited event is EOP731, exit 7. Safe for any number of processes on
    several hosts of a shared file system; one ``Trace`` object is for one thread.

    ``plan`` is the one that the run is under now. Plans that it was under before are read from the
    run's folder; EOP716 when it goes on under another than ``plan``.
    """

    def __init__(self, directory: Path, plan: Plan) -> None:
        self.directory = directory
        self.plan = plan
        self._files = EventFiles(directory)
        # The events read so far are those after the first ``_skipped``.
        self._skipped = 0
        self._events: list[Event] = []
        self._state: State | None = None
        self._plans = {plan.digest: plan}

    @classmethod
    def resumed(cls, directory: Path, plan: Plan) -> Trace:
        """A trace that is read from the state on that ``save`` left: for jobs of one node.

        Where that is not the state at an event of this trace under this plan, all is read.
        """
        trace = cls(directory, plan)
        state = saved(directory.parent)
        if state is not None and state.plan == plan.digest and trace._holds(state.seq, state.head):
            trace._skipped, trace._state = state.seq, state
        return trace

    @property
    def root(self) -> Path:
        """The project's root, to which the paths of artifacts are relative."""
        return self.directory.absolute().parents[2]

    @property
    def begun(self) -> bool:
        """Whether there is any event, sound or not."""
        return self._files.listing().last > 0

    def events(self) -> tuple[Event, ...]:
        """All events so far, in order."""
        if self._skipped:
            return Trace(self.directory, self.plan).events()
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
        self._must_be_current(self._state)
        return self._state

    def append(self, kind: str, data: Mapping[str, Any]) -> State:
        """Make one event the next of the trace and return the state after it.

        The state machine judges the event against what the trace holds at that very moment:
        ``Refused`` (EOP730, exit 7) leaves the trace as it is.
        """
        for _ in range(_TRIES):
            self._catch_up()
            if self._state is not None:
                self._must_be_current(self._state)
            event = self._next(kind, data)
            after = self._after(event)
            if self._files.publish(event.seq, encode(event)):
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

    def compact(self) -> None:
        """Pack the events of every finished iteration into one file each.

        For any process at any time, beside writers and readers: the events stay as they are.
        EOP731 when a pack of other content is there.
        """
        events = self.events()
        for pack in self._files.unpacked(finished(events)):
            rows = events[pack.first - 1 : pack.last]
            odd = next((event.seq for event in rows if not event.is_canonical), None)
            if odd is not None:
                raise self._broken(self._files.single(odd).name, NOT_CANONICAL)
            if not self._files.pack(pack, [encode(event) for event in rows]):
                raise self._broken(pack.name, "its events are not those that were read")

    def save(self) -> None:
        """Leave the state of now for jobs to begin with."""
        save(self.directory.parent, self.state())

    def _holds(self, seq: int, digest: str) -> bool:
        """Whether event ``seq`` of the files has this digest; the ones before are not read."""
        content = self._files.event(seq)
        try:
            return content is not None and decode(content).digest == digest
        except ValueError:
            return False

    @property
    def _seq(self) -> int:
        """The number of the next event."""
        return self._skipped + len(self._events) + 1

    def _next(self, kind: str, data: Mapping[str, Any]) -> Event:
        return Event(
            seq=self._seq,
            type=kind,
            data=data,
            prev=self._state.head if self._state else GENESIS,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            host=socket.gethostname(),
        )

    def _catch_up(self) -> None:
        """Fold what came since the last call."""
        try:
            with _uncollected():
                self._fold_new()
        except UnreadableError as error:
            raise self._broken(error.name, str(error)) from None

    def _fold_new(self) -> None:
        suspect = None
        while True:
            seq = self._seq
            contents = self._files.read_singles(seq)
            # Looked at after the single files were read: what is packed by now is read from there.
            listing = self._files.listing()
            pack = listing.pack_of(seq)
            if pack is not None:
                self._fold_pack(pack, seq)
            elif contents:
                self._fold_singles(contents[: listing.room_from(seq)])
            elif listing.last < seq:
                return
            elif listing == suspect:
                # Twice the same, so nobody was at work: a gap is there to stay.
                raise self._missing(seq, listing)
            else:
                suspect = listing

    def _fold_singles(self, contents: Iterable[bytes]) -> None:
        for content in contents:
            seq = self._seq
            self._fold(content, self._files.single(seq).name)

    def _fold_pack(self, pack: Pack, seq: int) -> None:
        *lines, rest = self._files.read_pack(pack)
        for number in range(seq, pack.last + 1):
            place = f"{pack.name}, event {number}"
            if number - pack.first >= len(lines):
                raise self._broken(place, "the pack ends before or within it")
            self._fold(lines[number - pack.first], place)
        if rest or len(lines) > pack.last - pack.first + 1:
            raise self._broken(f"{pack.name}, event {pack.last}", "more follows it in the pack")

    def _fold(self, content: bytes, place: str) -> None:
        seq = self._seq
        try:
            event = decode(content)
            if event.seq != seq:
                raise ValueError(f"it says that it is event {event.seq}")
            state = self._after(event)
        except ValueError as error:
            raise self._broken(place, str(error)) from None
        except Refused as error:
            raise self._broken(place, error.reason) from None
        self._events.append(event)
        self._state = state

    def _after(self, event: Event) -> State:
        """The state after an event that comes next, by the plan that is in force there."""
        before = self._state
        if before is None:
            return reduce(self._named(event.data.get("plan")) or self.plan, None, event)
        plan = self._plans[before.plan]
        after = reduce(plan, before, event)
        if after.plan != before.plan:
            new = self._named(after.plan)
            if new is None:
                name = kept_plan(after.plan)
                raise Refused(f"{name} is missing, or is not the plan that the event names")
            against = obstacles(plan, new, before, self._history(before.seq))
            if against:
                raise Refused("; ".join(against))
        return after

    def _history(self, seq: int) -> Sequence[Event]:
        """The events up to ``seq``."""
        whole = Trace(self.directory, self.plan).events() if self._skipped else self._events
        return whole[:seq]

    def _named(self, digest: object) -> Plan | None:
        """The plan of this digest, if it is the present one or was kept."""
        if isinstance(digest, str) and digest not in self._plans:
            path = self.directory.parent / kept_plan(digest)
            kept = Plan.from_json(read_json(path)) if path.is_file() else None
            if kept is not None and kept.digest == digest:
                self._plans[digest] = kept
        return self._plans.get(str(digest))

    def _must_be_current(self, state: State) -> None:
        if state.plan != self.plan.digest:
            raise EopError(
                "EOP716",
                f"the run goes on under plan {state.plan[:16]}, not under {self.plan.digest[:16]}",
                where=Where(str(self.directory.parent / "plan.json")),
                hint="a change of the plan was cut short: `eop migrate` completes it",
                exit_code=ExitCode.STATE,
            )

    def _missing(self, seq: int, listing: Listing) -> EopError:
        why = f"the event is missing, and event {listing.last} is there"
        return self._broken(self._files.single(seq).name, why)

    def _broken(self, place: str, why: str) -> EopError:
        return EopError(
            "EOP731",
            f"trace is broken at {place}: {why}",
            where=Where(str(self.directory / place.split(",")[0])),
            hint="events are never edited: restore the file from a copy, or start another run",
            exit_code=ExitCode.STATE,
        )


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection meanwhile.

    Folding leaves no cycles behind, but so many objects that to go through them again and again
    costs 40 % of the fold of 100,000 events.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def finished(events: Sequence[Event]) -> list[Pack]:
    """The rows of events that belong to finished iterations: up to each turn, and to the end."""
    ends = [event.seq for event in events if event.type in ("loop_continued", "run_ended")]
    return [Pack(before + 1, last) for before, last in pairwise([0, *ends])]
