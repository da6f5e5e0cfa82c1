"""A measurement in a process of its own, so that memory and threads are its alone.

``python -m benchmarks.child MODULE`` calls that module's ``measure`` with the JSON object on
standard input and prints what it returns.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[1]
Row = dict[str, Any]
"""What a measurement is of, and its figures."""


class BenchmarkError(Exception):
    """A measurement that could not be made."""


def run(
    module: str, case: Row, *, python: str = sys.executable, environment: Mapping[str, str]
) -> Row:
    """``case`` with what ``module``'s ``measure`` found; ``python`` is the one to run it.

    Raises ``BenchmarkError`` with the end of the child's messages when it fails.
    """
    done = subprocess.run(
        [python, "-m", __spec__.name, module],
        input=json.dumps(case),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
    )
    if done.returncode:
        tail = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise BenchmarkError(f"{module} with {case} failed:\n{tail}")
    figures: Row = json.loads(done.stdout.splitlines()[-1])
    return {**case, **figures}


def main() -> None:
    """Measure what standard input asks for."""
    measure = importlib.import_module(sys.argv[1]).measure
    print(json.dumps(measure(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
