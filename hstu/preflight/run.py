"""Run every check and report. What breaks inside a check is an error, never a pass."""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch

from hstu.data.errors import HstuError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hstu.preflight.bench import Bench

SCHEMA = "preflight/1"
INVARIANTS = {
    "I1": "causal",
    "I4": "gradients",
    "I5": "scoring",
    "I6": "mode",
    "I7": "isolation",
    "I8": "losses",
    "I11": "wiring",
}


def preflight(
    config: Path, data: Path, *, recipes: Sequence[Path] = (), threads: int = 1
) -> dict[str, Any]:
    """The report: ``{schema, passed, invariants: [{id, title, status, detail, measured}]}``.

    ``status`` is ``passed``, ``failed`` or ``error``. Raises ``HstuError`` when the config or the
    data cannot be read; a tree whose model cannot be imported or built gets a report of errors.
    """
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    try:
        bench = import_module("hstu.preflight.bench").Bench.load(config, data, recipes)
    except HstuError:
        raise
    # The tree under test may raise anything at all; that is a finding about the tree.
    except Exception as error:
        results = [_error(name, module, error) for name, module in INVARIANTS.items()]
    else:
        results = [_result(name, module, bench) for name, module in INVARIANTS.items()]
    passed = all(result["status"] == "passed" for result in results)
    return {"schema": SCHEMA, "passed": passed, "invariants": results}


def _result(name: str, module: str, bench: Bench) -> dict[str, Any]:
    try:
        check = import_module(f"hstu.preflight.{module}")
        finding = check.check(bench)
    except Exception as error:  # as above
        return _error(name, module, error)
    return {
        "id": name,
        "title": check.TITLE,
        "status": "passed" if finding.passed else "failed",
        "detail": finding.detail,
        "measured": {key: _plain(value) for key, value in finding.measured.items()},
    }


def _error(name: str, module: str, error: Exception) -> dict[str, Any]:
    detail = f"{type(error).__name__}: {error}"
    return {"id": name, "title": module, "status": "error", "detail": detail, "measured": {}}


def _plain(value: Any) -> Any:
    """JSON has no infinity and no not-a-number: they are reported as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
