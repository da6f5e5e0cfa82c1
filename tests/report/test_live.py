"""What is at work, for how long and at what cost; what happens, a line each; both in 80 columns."""

from __future__ import annotations

from datetime import datetime, timedelta
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from research_run import Run
from rich.console import Console

from eop.core.canonical import canonical_json
from eop.patterns.progress import PhaseProgress
from eop.report import Follower
from eop.report.live import print_live
from eop.report.progress import duration, line
from eop.report.view import at_work, view
from eop.runtime.events import SHAPES, Event
from eop.runtime.node import Outcome, Usage

if TYPE_CHECKING:
    from pathlib import Path


def shown(run: Run, seen: dict[str, PhaseProgress], after_s: float) -> str:
    state, events = run.trace.state(), run.trace.events()
    console = Console(file=StringIO(), width=80)
    now = datetime.fromisoformat(events[-1].time) + timedelta(seconds=after_s)
    with console.capture() as capture:
        print_live(
            console, view(run.plan, state, events), at_work(run.plan, state, events, seen), now
        )
    return capture.get()


def test_what_is_at_work_stands_at_the_top_with_time_and_actions(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    run.do("it01_p01_implement")
    run.enter("it01_p02_implement")
    run.enter("it01_p01_train")
    spent = PhaseProgress(Usage(7, tokens=12_345, micro_usd=123_456), ())
    text = shown(run, {"it01_p02_implement": spent}, 200)
    lines = text.splitlines()
    assert lines[0].startswith("r1")
    rows = [" ".join(row.split()) for row in lines]
    cost = "7 actions so far, 20 reserved; 12,345 tokens; 0.13 USD"
    assert cost in " ".join(" ".join(rows).split())
    free = shown(run, {"it01_p02_implement": PhaseProgress(Usage(7), ())}, 200).splitlines()
    told = [" ".join(row.split()) for row in free]
    assert "it01_p02_implement 3 m 20 s 7 actions so far, 20 reserved" in told
    assert "it01_p01_train 3 m 20 s" in rows
    assert max(map(len, lines)) <= 80
    assert rows.index("it01_p01_train 3 m 20 s") < rows.index("Iteration 1")
    unseen = shown(run, {}, -5)
    assert "0 s  no action seen yet, 20 reserved" in unseen, "a clock that is behind"


def test_a_halted_run_says_who_halted_it(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.trace.append("run_paused", {"by": "ann@lab", "reason": "lunch"})
    text = shown(run, {}, 0)
    assert "paused" in text.splitlines()[0]
    assert "the run is paused by ann@lab: lunch" in text
    assert "nothing is at work" in text


def test_news_are_told_once_and_history_is_none(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    follower = Follower(run.folder / "trace", run.plan)
    assert follower.news() == []
    run.touch()
    run.enter("it01_propose")
    news = follower.news()
    assert [text[10:].split()[0] for text in news[:-1]] == [
        "it01_confirm",
        "it01_confirm",
        "it01_propose",
    ]
    assert news[-1] == (
        "  spent 3 of 500 actions, 1.0 s of 10 h 00 m of work, tokens unknown, US dollars unknown; "
        "at work: it01_propose"
    )
    assert follower.news() == []


def test_nobody_knows_is_not_zero(tmp_path: Path) -> None:
    run = Run(tmp_path)
    follower = Follower(run.folder / "trace", run.plan)
    run.do("it01_investigate", Outcome.FAILED, Usage(None, 2.0))
    assert any("failed after 2.0 s, actions unknown" in text for text in follower.news())


def test_a_broken_trace_is_no_news(tmp_path: Path) -> None:
    run = Run(tmp_path)
    follower = Follower(run.folder / "trace", run.plan)
    (run.folder / "trace" / "00000002.json").write_bytes(canonical_json({"no": "event"}))
    assert follower.news() == []


@pytest.mark.parametrize("kind", sorted(SHAPES))
def test_every_event_has_words(kind: str) -> None:
    data = dict.fromkeys(SHAPES[kind], "x")
    data |= {"usage": {"actions": 1, "wall_s": 1.0}, "branches": {}, "by": "a", "reason": "b\nc"}
    text = line(Event(1, kind, data, "", "2026-01-02T03:04:05.000+00:00", "h"))
    assert text.startswith("03:04:05  ")
    assert "\n" not in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (59.94, "59.9 s"), (60, "1 m 00 s"), (3599, "59 m 59 s"), (3600, "1 h 00 m")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
