"""What the run limits, each phase has an amount of, and each of its products reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from eop.protocol.compiler import check

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENT = """---
{{eop: 1, name: some, version: 0.1.0, target: hstu, budget: {run}}}
---
```eop
phase: look
pattern: linear
nodes: {{first: {first}, second: {second}}}
tools: [read, edit, shell]
budget: {own}
outputs: {{report: {{file: report.md}}}}
```
Say what you see.
"""
LIMITED = "{actions: 9, wall: 1h, tokens: 90, usd: 2}"


def found(
    project: Path, unpriced: dict[str, str] | None = None, **parts: str
) -> list[tuple[str, str]]:
    path = project / "some.eop.md"
    path.write_text(DOCUMENT.format(**{"first": "claude-code", "second": "claude-code", **parts}))
    return [(one.code, one.message) for one in check(path, root=project, unpriced=unpriced or {})]


@pytest.mark.parametrize(
    ("own", "missing"),
    [
        (LIMITED, None),
        ("{actions: 9, wall: 1h, tokens: 90}", "no usd"),
        ("{actions: 9, wall: 1h}", "no tokens and no usd"),
        ("{attempts: 2}", "no actions and no tokens and no usd and no wall"),
    ],
)
def test_a_phase_has_an_amount_of_all_that_the_run_limits(
    project: Path, own: str, missing: str | None
) -> None:
    expected = [f"'look' has {missing} of its own, which the run limits"] if missing else []
    assert found(project, run=LIMITED, own=own) == [("EOP522", message) for message in expected]


def test_of_what_the_run_does_not_limit_none_is_needed(project: Path) -> None:
    assert found(project, run="{actions: 9, wall: 1h}", own="{actions: 9, wall: 1h}") == []


def test_dollars_are_limited_only_where_every_model_has_a_price(project: Path) -> None:
    def faults(run: str, own: str, **nodes: str) -> list[str]:
        unpriced = {"codex": "a-model"}
        return [message for _, message in found(project, unpriced, run=run, own=own, **nodes)]

    message = "'codex' has the model 'a-model', whose price is not known"
    unlimited, own = "{actions: 9, wall: 1h}", "{actions: 9, wall: 1h, tokens: 90, usd: 1}"
    assert faults(LIMITED, own) == []
    # Where the run and the phase limit dollars, each says so.
    assert faults(LIMITED, own, second="codex") == [message, message]
    assert faults(unlimited, own, second="codex") == [message]
    assert faults(unlimited, unlimited, second="codex") == []
    alone = "{product: codex, budget: {usd: 1}}"
    assert faults(unlimited, unlimited, second=alone) == [message]
    assert (
        faults(unlimited, unlimited, first="codex", second=alone.replace("codex", "qwen-code"))
        == []
    )


def test_a_budget_that_cannot_be_read_is_one_fault(project: Path) -> None:
    codes = [
        code
        for code, _ in found(
            project, run=LIMITED, own="{actions: 9, wall: soon, tokens: 9, usd: 1}"
        )
    ]
    assert codes == ["EOP305"]
    assert [code for code, _ in found(project, run=LIMITED, own="9")] == ["EOP301"]
