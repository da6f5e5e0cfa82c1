"""Events that several processes append to one trace at once: `python -m benchmarks.writers 1 4 16`.

What hosts of a cluster do on a shared folder, less the network: each takes the next free number,
loses some races, and has its event on the disk before it goes on.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.table import Table, number
from eop.runtime.trace_files import EventFiles

_EACH = 100
_CONTENT = b"x" * 600
_NOTE = f"{_EACH} events of {len(_CONTENT)} bytes a writer, each synced; seconds by the clock."


def _write(folder: Path, lost: multiprocessing.Queue[int]) -> None:
    files, races, seq = EventFiles(folder), 0, 1
    for _ in range(_EACH):
        while not files.publish(seq, _CONTENT):
            # Another's event: whoever appends reads it before it tries the next number.
            races += 1
            seq += len(files.read_singles(seq))
        seq += 1
    lost.put(races)


def measure(writers: int) -> list[str]:
    """A line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        lost: multiprocessing.Queue[int] = multiprocessing.Queue()
        jobs = [
            multiprocessing.Process(target=_write, args=(Path(folder), lost))
            for _ in range(writers)
        ]
        began = time.perf_counter()
        for job in jobs:
            job.start()
        races = sum(lost.get() for _ in jobs)
        for job in jobs:
            job.join()
        took = time.perf_counter() - began
        kept = EventFiles(Path(folder)).listing().last
    assert kept == writers * _EACH, "no event is lost and no number is skipped"
    return [str(writers), str(kept), number(took), number(kept / took), number(races / kept)]


def main() -> None:
    """One line for each number of writers."""
    counts = [int(word) for word in sys.argv[1:]] or [1, 4, 16]
    titles = ["writers", "events", "s", "events/s", "lost races per event"]
    print(Table("Writers", _NOTE, titles, [measure(count) for count in counts]).text())


if __name__ == "__main__":
    main()
