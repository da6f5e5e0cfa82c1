"""What trainings and agents at work do, in words and in time, on any width."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from rich.console import Console

from eop.functions.training_progress import Epoch, TrainingProgress
from eop.patterns.progress import AgentProgress
from eop.report.doing import Beat, doing, doing_json, doing_table
from eop.report.view import AtWork
from eop.runtime.node import Usage

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SINCE = (NOW - timedelta(seconds=200)).isoformat()
TRAINING = TrainingProgress(
    seed=7, place=1, seeds=2, epoch=12, epochs=40,
    last=Epoch(3.52021, 2.0, {"margin": 0.25}), share=0.15, left_s=136.0,
)  # fmt: skip
AGENT = AgentProgress(
    role="implementer", product="claude-code", part=None, round=2, attempt=1,
    began_at=NOW.timestamp() - 62, spent=Usage(7, tokens=12_345), actions=60, tokens=200_000,
    last="Edit hstu/models/hstu.py", told_at=NOW.timestamp() - 12,
)  # fmt: skip


def trains(training: TrainingProgress = TRAINING, attempt: int = 1) -> AtWork:
    return AtWork("it01_p01_train", attempt, SINCE, None, training=training)


def works(*agents: AgentProgress, spent: Usage | None = None) -> AtWork:
    return AtWork("it01_p02_implement", 1, SINCE, 60, spent or Usage(7), agents)


def test_a_training_in_words() -> None:
    assert list(doing(trains(), NOW)) == [
        "seed 7 (1 of 2), epoch 12 of 40, loss 3.5202, margin 0.25, about 2 m 16 s left"
    ]


def test_no_time_is_told_that_nobody_can_know() -> None:
    begun = replace(TRAINING, epoch=0, last=None, share=0.0, left_s=None)
    assert list(doing(trains(begun, attempt=2), NOW)) == [
        "attempt 2: seed 7 (1 of 2), no epoch of 40 yet"
    ]
    unknown = replace(TRAINING, epochs=None, share=None, left_s=None)
    assert "epoch 12, loss" in next(doing(trains(unknown), NOW))


def test_an_agent_in_words() -> None:
    assert list(doing(works(AGENT), NOW)) == [
        "7 actions so far, 60 reserved",
        "implementer (claude-code), round 2 for 1 m 02 s: 7 of 60 actions, "
        "12,345 of 200,000 tokens",
        "12 s ago: Edit hstu/models/hstu.py",
    ]


def test_a_clock_that_is_behind_is_now() -> None:
    ahead = replace(AGENT, began_at=NOW.timestamp() + 5, told_at=NOW.timestamp() + 5)
    lines = list(doing(works(ahead), NOW))
    assert "for 0 s" in lines[1]
    assert lines[2].startswith("now: ")


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits_and_what_agents_say_colours_nothing(width: int) -> None:
    hostile = replace(AGENT, last="\x1b[31m\x1b]0;title\x07 [bold]red[/bold]\nnext " * 9)
    console = Console(file=StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(doing_table([trains(), works(hostile)], NOW))
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b[31m" not in text
    assert "\x1b]0" not in text
    assert "[bold]" in text, "markup of theirs is text"
    assert "\N{BOX DRAWINGS HEAVY HORIZONTAL}\N{BOX DRAWINGS LIGHT HORIZONTAL}" in text, "a bar"


def test_as_data() -> None:
    data = json.loads(json.dumps([doing_json(trains()), doing_json(works(AGENT))]))
    assert data[0]["training"]["last"] == {
        "loss": 3.52021,
        "seconds": 2.0,
        "watched": {"margin": 0.25},
    }
    assert data[0]["spent"] is None
    assert data[1]["spent"]["actions"] == 7
    assert data[1]["agents"][0]["spent"]["tokens"] == 12_345


def test_a_line_comes_when_something_has_changed_and_not_too_often() -> None:
    beat = Beat(every_s=15)

    def told(seconds: float, epoch: int) -> list[str]:
        node = trains(replace(TRAINING, epoch=epoch))
        return beat.lines([node], NOW + timedelta(seconds=seconds))

    assert told(0, 1) == [], "it has just begun"
    assert told(14, 3) == []
    (line,) = told(15, 4)
    assert line.startswith("03:04:20  it01_p01_train           seed 7 (1 of 2), epoch 4 of 40")
    assert told(29, 5) == []
    assert told(31, 4) == [], "nothing has changed since the last line"
    assert len(told(32, 6)) == 1


def test_a_node_without_a_sign_has_no_line() -> None:
    beat = Beat(every_s=0)
    silent = AtWork("it01_promote", 1, SINCE, None)
    assert beat.lines([silent, works()], NOW) == []
    assert len(beat.lines([works(AGENT)], NOW)) == 1
