"""Run every check and report. What breaks inside a check is an error, never a pass."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch

from hstu.data.errors import HstuError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "preflight/1"
INVARIANTS = {
    "I1": "causal",
    "I4": "gradients",
    "I5": "scoring",
    "I6": "mode",
    "I7": "isolation",
    "I8": "losses",
}


def preflight(config: Path, data: Path, *, threads: int = 1) -> dict[str, Any]:
    """The report: ``{schema, passed, invariants: [{id, title, status, detail, measured}]}``.

    ``status`` is ``passed``, ``failed`` or ``error``. Raises ``HstuError`` when the config or the
    data cannot be read; a tree whose model cannot be imported or built gets a report of errors.
    """
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    results = [_result(name, module, config, data) for name, module in INVARIANTS.items()]
    passed = all(result["status"] == "passed" for result in results)
    return {"schema": SCHEMA, "passed": passed, "invariants": results}


def _result(name: str, module: str, config: Path, data: Path) -> dict[str, Any]:
    result: dict[str, Any] = {"id": name, "title": module, "measured": {}}
    try:
        check = import_module(f"hstu.preflight.{module}")
        result["title"] = check.TITLE
        bench = import_module("hstu.preflight.bench").Bench.load(config, data)
        finding = check.check(bench)
    except HstuError:
        raise
    # The tree under test may raise anything at all; that is a finding about the tree.
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
        return result | {"status": "error", "detail": detail}
    status = "passed" if finding.passed else "failed"
    return result | {"status": status, "detail": finding.detail, "measured": finding.measured}
