"""Recorded runs of real products end with the status, usage and actions that they are known for.

``pytest -m recorded`` runs this alone. ``RANKEVOLVE_AGENT_SAMPLES`` names another folder of
recordings: other cases and other versions of the same products are welcome.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest
from recordings import ALIASES, Case, Judged, cases, folder, judge

from eop.agents.contract import Status
from eop.agents.events import Kind
from eop.agents.products import REAL

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.recorded
CASES = cases(folder())


def test_there_are_recordings() -> None:
    assert CASES, f"no meta.json below {folder()}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_recorded_run(case: Case) -> None:
    product = case.meta["product"]
    assert ALIASES.get(product, product) in REAL, f"no adapter for the product '{product}'"
    judged = judge(case.meta, case.recording())
    wrong = [*_unexpected(case.meta, judged), *_impossible(case.meta, judged)]
    assert not wrong, f"{case.name} ({judged.reason}):\n  " + "\n  ".join(wrong)


def _unexpected(meta: dict[str, Any], judged: Judged) -> Iterator[str]:
    """Where the run differs from what its recorder knows of it."""
    expected = meta.get("expect")
    # A status that the contract does not know stands for: nobody knew.
    if expected in set(Status) and judged.status != expected:
        yield f"status is {judged.status}, expected {expected}"
    counters = {**meta.get("counters", {})}
    if "actions" in meta:
        counters["actions"] = meta["actions"]
    for title, found, wanted in (
        ("usage", asdict(judged.usage), meta.get("usage") or {}),
        ("counters", asdict(judged.counters), counters),
    ):
        for name, value in wanted.items():
            if name not in found:
                warnings.warn(f"meta.json expects an unknown {title}.{name}", stacklevel=2)
            elif found[name] != (pytest.approx(value) if name == "usd" and value else value):
                yield f"{title}.{name} is {found[name]}, expected {value}"


def _impossible(meta: dict[str, Any], judged: Judged) -> Iterator[str]:
    """What no run can be, whatever was recorded."""
    usage, counters = judged.usage, judged.counters
    for name, value in {**asdict(usage), **asdict(counters)}.items():
        if isinstance(value, int | float) and value < 0:
            yield f"{name} is negative: {value}"
    if usage.input is not None:
        if usage.input < (usage.cache_read or 0) + (usage.cache_write or 0):
            yield "input is less than what of it was cached"
        if (usage.output or 0) < (usage.reasoning or 0):
            yield "output is less than the reasoning in it"
    if (counters.model_calls or 0) > meta.get("model_requests", counters.model_calls or 0):
        # What the recorder counted as a request is its own affair.
        said = f"{counters.model_calls} model calls of {meta['model_requests']} requests"
        warnings.warn(said, stacklevel=2)
    unknown = {event.kind for event in judged.events} - set(Kind)
    if unknown:
        yield f"events of unknown kinds: {', '.join(sorted(unknown))}"
    if judged.status is Status.OK and usage.output == 0:
        yield "ok without one token of output"
