"""What real products make of faults: typed statuses, and nothing of them is left running."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from attempts_real import LIMITS, attempt, works
from kits import CLAUDE, CODEX, KITS, OPENCODE, OPENHANDS, QWEN, Kit
from scripted_model import Fault, Say

from eop.agents.contract import Status, Stop

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.products
SLOW_DOWN = Fault(429, "rate_limit_error", "slow down", times=1)
BROKEN = Fault(500, "api_error", "internal error")
SILENCE = Fault()


@pytest.mark.parametrize("kit", KITS)
def test_a_refused_key_asks_for_a_person(kit: Kit, tmp_path: Path) -> None:
    done = attempt(kit, tmp_path, works(kit), token="wrong")
    assert done.result.status is Status.AUTH_ERROR, done.result.reason
    # OpenHands says it in words.
    assert done.result.reason.http_status == (None if kit is OPENHANDS else 401)
    assert not done.result.retryable
    assert done.model.said == []
    assert {seen.refusal for seen in done.model.seen if seen.method == "POST"} == {
        "invalid x-api-key"
    }


@pytest.mark.parametrize("kit", [CLAUDE, OPENCODE, QWEN, OPENHANDS])
def test_one_429_is_waited_for(kit: Kit, tmp_path: Path) -> None:
    done = attempt(kit, tmp_path, lambda space: [replace(SLOW_DOWN), *works(kit)(space)])
    assert done.result.status is Status.OK, done.result.reason
    # Claude Code alone tells of it.
    assert done.result.counters.retries == (kit is CLAUDE)
    assert [type(seen.step) for seen in done.model.seen if seen.step] == [Fault, Say, Say]
    assert (done.result.usage.input, done.result.usage.output) == done.spent


def test_one_429_ends_codex_and_is_worth_another_attempt(tmp_path: Path) -> None:
    """It asks no second time; the pattern does (test_iteration)."""
    done = attempt(CODEX, tmp_path, lambda space: [SLOW_DOWN, *works(CODEX)(space)])
    assert done.result.status is Status.TRANSIENT_ERROR, done.result.reason
    assert done.result.reason.http_status == 429
    assert done.result.retryable


@pytest.mark.parametrize("kit", [CLAUDE, CODEX, OPENHANDS])
def test_a_broken_service_is_worth_another_attempt(kit: Kit, tmp_path: Path) -> None:
    done = attempt(kit, tmp_path, lambda space: [BROKEN])
    assert done.result.status is Status.TRANSIENT_ERROR, done.result.reason
    assert done.result.retryable
    assert 2 <= len(done.model.asked) <= 8


@pytest.mark.parametrize(
    ("kit", "fault", "idle_s"),
    # Long enough to start in: until it asks its model, a slow starter shows no progress.
    [
        (CLAUDE, SILENCE, 10), (CODEX, SILENCE, 10), (OPENCODE, BROKEN, 30), (QWEN, SILENCE, 30),
        (OPENHANDS, SILENCE, 30),
    ],
)  # fmt: skip
def test_endless_waiting_is_ended(kit: Kit, fault: Fault, idle_s: float, tmp_path: Path) -> None:
    limits = replace(LIMITS, idle_s=idle_s)
    done = attempt(kit, tmp_path, lambda space: [fault], limits=limits)
    assert (done.result.status, done.result.reason.code) == (Status.TIMEOUT, "idle")
    assert done.result.exit is not None
    assert done.result.exit.stop is Stop.IDLE
    assert done.model.asked != []


@pytest.mark.parametrize("kit", [CLAUDE, CODEX, OPENCODE])
def test_a_denied_tool_is_no_success(kit: Kit, tmp_path: Path) -> None:
    """Every one of them ends with status 0 and calls it done."""
    outside = tmp_path / "attempt/outside.txt"
    steps = [Say("I write.", (kit.put(outside, "x\n"),)), Say("Done.")]
    done = attempt(kit, tmp_path, lambda space: steps)
    assert done.result.status is Status.BLOCKED, done.result.reason
    assert (done.result.counters.actions, done.result.counters.denied) == (1, 1)
    assert done.result.exit is not None
    assert done.result.exit.rc == 0
    assert not outside.exists()


@pytest.mark.parametrize("kit", [QWEN, OPENHANDS])
def test_where_the_product_denies_nothing_the_jail_does(kit: Kit, tmp_path: Path) -> None:
    outside = tmp_path / "attempt/outside.txt"
    steps = [Say("I write.", (kit.put(outside, "x\n"),)), Say("Done.")]
    done = attempt(kit, tmp_path, lambda space: steps)
    assert done.result.status is Status.NO_CHANGE, done.result.reason
    assert done.result.counters.actions == 1
    assert not outside.exists()
