"""Which cases are measured: models, lengths of histories, kernels and threads."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from benchmarks.shapes import MODELS
from benchmarks.synthetic import LENGTHS

if TYPE_CHECKING:
    from benchmarks.child import Row

KERNELS = ("native", "torch")


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What to measure, and how long."""

    models: tuple[str, ...] = MODELS
    lengths: tuple[str, ...] = LENGTHS
    kernels: tuple[str, ...] = KERNELS
    threads: tuple[int, ...] = (1, 2)
    quick: bool = False

    def cases(self, *, kernels: bool = True) -> list[Row]:
        """Every combination; without ``kernels`` those that the project prefers."""
        return [
            {
                "model": model,
                "lengths": lengths,
                "kernels": kernel,
                "threads": threads,
                "quick": self.quick,
                "repeats": 1 if self.quick else 7,
                "budget_s": 20.0,
            }
            for model, lengths, kernel, threads in product(
                self.models, self.lengths, self.kernels if kernels else ("auto",), self.threads
            )
        ]


def environment(case: Row) -> dict[str, str]:
    """The variables that a child needs before it imports torch."""
    threads = str(case["threads"])
    return {
        "HSTU_KERNELS": case.get("kernels", "auto"),
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
    }
