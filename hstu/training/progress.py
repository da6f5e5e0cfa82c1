"""How a training run shows itself: a bar on a terminal, a line an epoch elsewhere, on stderr."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from hstu.training.curve import EpochResult


class Reporter(Protocol):
    """Told what happens in a run; a context manager around it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def batch(self, so_far: EpochResult, done: float) -> None:
        """A step is over, and with it the share ``done`` of its epoch."""

    def epoch(self, row: EpochResult, epochs: int) -> None:
        """The epoch of ``row`` is over, of ``epochs`` in all."""

    def note(self, text: str) -> None:
        """Something that a person should know."""


class Lines:
    """One line an epoch, for logs."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def batch(self, so_far: EpochResult, done: float) -> None:
        """Say nothing: a log of steps helps nobody."""

    def epoch(self, row: EpochResult, epochs: int) -> None:
        """Print the epoch's line."""
        watched = "".join(f"  {name} {value:.4f}" for name, value in row.watched.items())
        self.note(f"epoch {row.epoch}/{epochs}  loss {row.loss:.4f}{watched}  {_speed(row)}")

    def note(self, text: str) -> None:
        """Print ``text``."""
        print(text, file=sys.stderr, flush=True)


class Silent(Lines):
    """Nothing, for a process whose run another one shows."""

    def note(self, text: str) -> None:
        """Say nothing."""


class Bar(Lines):
    """A progress bar with loss, tokens per second and, once an epoch is over, what is left."""

    def __init__(self, epochs: int, seed: int) -> None:
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[loss]}"),
            TextColumn("{task.fields[speed]}"),
            TextColumn("{task.fields[left]}"),
            console=self._console,
        )
        self._epochs, self._seed = epochs, seed
        self._over: list[float] = []
        self._task = self._progress.add_task(
            f"seed {seed}", total=epochs, loss="", speed="", left=""
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def batch(self, so_far: EpochResult, done: float) -> None:
        """Move the bar."""
        self._progress.update(
            self._task,
            completed=so_far.epoch - 1 + done,
            description=f"seed {self._seed} epoch {so_far.epoch}/{self._epochs}",
            loss=f"loss {so_far.loss:.4f}",
            speed=_speed(so_far),
            left=self._left(self._epochs - so_far.epoch + 1 - done),
        )

    def epoch(self, row: EpochResult, epochs: int) -> None:
        """Print the epoch's line, and go by its time."""
        super().epoch(row, epochs)
        self._over.append(row.seconds)

    def _left(self, epochs: float) -> str:
        """The time of so many epochs, by the mean of those that this process has seen."""
        if not self._over:
            return ""
        seconds = round(epochs * sum(self._over) / len(self._over))
        return f"about {timedelta(seconds=seconds)} left"

    def note(self, text: str) -> None:
        """Print ``text`` above the bar."""
        self._console.print(text, highlight=False, markup=False)


def reporter(epochs: int, seed: int) -> Reporter:
    """A bar where stderr is a terminal, lines elsewhere."""
    return Bar(epochs, seed) if sys.stderr.isatty() else Lines()


def _speed(row: EpochResult) -> str:
    return f"{row.tokens / max(row.seconds, 1e-9):,.0f} tokens/s"
