"""Several calls at once, and their results in the order of the calls."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


def together(calls: Sequence[Callable[[], T]], at_once: int) -> list[T]:
    """Call each of ``calls``, at most ``at_once`` at a time; results in their order.

    When one raises, no further call begins; the first exception in the order of ``calls`` is
    raised once those at work have ended. An interrupt of the calling thread does not wait for
    them: the threads are daemons, and what they have started ends with this process.
    """
    waiting = iter(range(len(calls)))
    results: dict[int, T] = {}
    faults: dict[int, BaseException] = {}
    lock = threading.Lock()

    def take() -> int | None:
        with lock:
            return None if faults else next(waiting, None)

    def work() -> None:
        while (index := take()) is not None:
            try:
                results[index] = calls[index]()
            except BaseException as fault:
                faults[index] = fault

    threads = [threading.Thread(target=work, daemon=True) for _ in calls[:at_once]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[min(faults)]
    return [results[index] for index in range(len(calls))]
