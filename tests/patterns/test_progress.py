"""What agents at work are seen to do: their role, their budget, the last thing, no secrets."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eop.agents.events import Event, Kind
from eop.agents.products.scripted import Scripted
from eop.core.files import write_json, write_text
from eop.patterns import attempts
from eop.patterns.progress import PhaseProgress, Reader, last_thing

if TYPE_CHECKING:
    from eop.agents.contract import Recording

CALL = {"type": "tool_call", "id": "1", "name": "Edit", "target": "hstu/models/hstu.py"}


@dataclass(frozen=True)
class Counted(Scripted):
    """Counts how often a stream is parsed."""

    parsed = 0

    def parse(self, recording: Recording) -> list[Event]:
        type(self).parsed += 1
        return super().parse(recording)


@pytest.fixture
def product() -> Counted:
    Counted.parsed = 0
    return Counted(Path("playbook.yaml"), ())


def attempt(work: Path, node: str, number: int = 1, *lines: dict[str, Any]) -> Path:
    at = work / node / f"a{number:02d}"
    at.mkdir(parents=True)
    attempts.begin(at, "same", "scripted")
    turn = {"role": node.partition("-")[2], "round": 2, "part": None}
    write_json(at / "request.json", {"turn": turn, "limits": {"actions": 40, "tokens": 9000}})
    write_text(at / "stdout", "".join(json.dumps(line) + "\n" for line in lines))
    return at


def look(work: Path, product: Counted, reader: Reader | None = None) -> PhaseProgress:
    return (reader or Reader()).phase(work, {"scripted": product})


def test_an_agent_at_work_is_named_with_what_it_has_done(tmp_path: Path, product: Counted) -> None:
    assert look(tmp_path, product) == PhaseProgress(None, ())
    at = attempt(tmp_path, "03-fixer", 1, {"type": "started"}, CALL)
    seen = look(tmp_path, product)
    (agent,) = seen.agents
    assert (agent.role, agent.product, agent.round, agent.attempt) == ("fixer", "scripted", 2, 1)
    assert (agent.spent.actions, agent.actions, agent.tokens) == (1, 40, 9000)
    assert agent.last == "Edit hstu/models/hstu.py"
    assert agent.told_at == (at / "stdout").stat().st_mtime
    assert seen.spent == agent.spent


def test_what_is_judged_or_committed_is_at_work_no_more(tmp_path: Path, product: Counted) -> None:
    attempt(tmp_path, "01-implementer", 1, CALL)
    write_json(tmp_path / "01-implementer/committed.json", {"usage": {"actions": 7}})
    attempt(tmp_path, "02-reviewer", 1, CALL)
    attempt(tmp_path, "02-reviewer", 2, {"type": "started"})
    seen = look(tmp_path, product)
    (agent,) = seen.agents
    assert (agent.role, agent.attempt, agent.last) == ("reviewer", 2, "has begun")
    assert seen.spent.actions == 7 + 1, "the attempt that was cut short, too"


def test_a_stream_is_parsed_again_only_when_it_has_grown(tmp_path: Path, product: Counted) -> None:
    at = attempt(tmp_path, "01-reader", 1, {"type": "started"})
    reader = Reader()
    for _ in range(3):
        look(tmp_path, product, reader)
    assert product.parsed == 1
    with (at / "stdout").open("a") as stream:
        stream.write(json.dumps(CALL) + '\n{"type": "tool_ca')
    assert look(tmp_path, product, reader).agents[0].last == "Edit hstu/models/hstu.py"
    assert product.parsed == 2
    write_text(at / "ledger.jsonl", '{"call": 1, "charged": {"input": 5, "output": 2}}\n')
    assert look(tmp_path, product, reader).spent.tokens == 7


def test_an_attempt_whose_request_is_not_there_yet(tmp_path: Path, product: Counted) -> None:
    at = attempt(tmp_path, "01-reader")
    (at / "request.json").unlink()
    (at / "stdout").unlink()
    (agent,) = look(tmp_path, product).agents
    assert (agent.role, agent.round, agent.actions, agent.told_at) == ("reader", 1, None, None)


def test_a_product_that_this_machine_does_not_know_shows_nothing(tmp_path: Path) -> None:
    attempt(tmp_path, "01-reader")
    assert Reader().phase(tmp_path, {}) == PhaseProgress(None, ())


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        (Kind.TOOL_CALL, {"name": "Bash", "target": "curl\n -H 'sk-ant1-0123456789abcdefghij'"},
         "Bash curl -H '[redacted]'"),
        (Kind.MESSAGE, {"text": "I look.\n\nThen I think."}, "I look. Then I think."),
        (Kind.MESSAGE, {"text": "x" * 5000}, "x" * 200),
        (Kind.RETRY, {"detail": "overloaded"}, "tries its model again: overloaded"),
        (Kind.FINAL, {"status": "success"}, "has ended, and is being judged"),
        (Kind.USAGE, {"input": 1}, "has begun"),
        (Kind.TOOL_CALL, {"name": None, "target": None}, "acts"),
    ],
)  # fmt: skip
def test_the_last_thing_in_words(kind: Kind, data: dict[str, Any], words: str) -> None:
    assert last_thing([Event(Kind.STARTED), Event(kind, data), Event(Kind.OTHER)]) == words


def test_of_nothing_there_is_no_last_thing() -> None:
    assert last_thing([]) == last_thing([Event(Kind.OTHER, {"raw": "x"})]) == ""
