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


def found(project: Path, **parts: str) -> list[tuple[str, str]]:
    path = project / "some.eop.md"
    path.write_text(DOCUMENT.format(**{"first": "claude-code", "second": "claude-code", **parts}))
    return [(one.code, one.message) for one in check(path, root=project)]


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


def test_a_product_that_does_not_report_what_the_run_limits_cannot_be_held_to_it(
    project: Path,
) -> None:
    own = "{actions: 9, wall: 1h, tokens: 90, usd: 1}"
    message = "the run limits usd, and 'codex' reports none"
    assert found(project, run=LIMITED, own=own, second="codex") == [("EOP521", message)]
    nobody = "no product of this protocol reports usd"
    every = {"first": "codex", "second": "codex"}
    assert ("EOP521", nobody) in found(project, run=LIMITED, own=own, **every)
    unlimited = "{actions: 9, wall: 1h, tokens: 90}"
    assert found(project, run=unlimited, own=unlimited, second="codex") == []


def test_a_budget_that_cannot_be_read_is_one_fault(project: Path) -> None:
    codes = [
        code
        for code, _ in found(
            project, run=LIMITED, own="{actions: 9, wall: soon, tokens: 9, usd: 1}"
        )
    ]
    assert codes == ["EOP305"]
    assert [code for code, _ in found(project, run=LIMITED, own="9")] == ["EOP301"]
