"""The functions that a protocol may name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.functions.baseline import baseline
from eop.functions.candidate import evaluate, preflight, train
from eop.functions.promote import promote
from eop.functions.publish import publish

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from eop.functions.context import Context

# Each returns the file of the phase's one output, or raises CandidateError.
FUNCTIONS: dict[str, Callable[[Context], Path]] = {
    "baseline": baseline,
    "preflight": preflight,
    "train": train,
    "evaluate": evaluate,
    "promote": promote,
    "publish": publish,
}
