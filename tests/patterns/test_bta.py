"""Breakdown, workers at once, aggregate: bounds, typed failures, an order that owes no luck."""

from __future__ import annotations

import json
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from toy_target import SCHEMAS, bta_phase, scripted, task

from eop.agents.products.scripted import Scripted
from eop.core.files import dumps
from eop.patterns import run
from eop.patterns.joined import join
from eop.patterns.together import together
from eop.protocol.model import Budget, Output, Workers
from eop.runtime.node import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from eop.runtime.node import NodeResult

PARTS = ("loss", "inputs", "data")
OUTPUTS = (Output("ideas", "ideas.json"), Output("workers", "workers.json"))


class Understudy(Scripted):
    """The same program under another name."""

    name = "other"


def breakdown(*names: str) -> dict[str, Any]:
    parts = [{"id": name, "task": f"Look at the {name}."} for name in names]
    return {
        "when": {"role": "breakdown"},
        "do": [{"write": {"output": "parts", "json": parts}}],
    }


def worker(part: str, *before: dict[str, Any], ideas: list[Any] | None = None) -> dict[str, Any]:
    listed = [{"id": part}] if ideas is None else ideas
    write = {"write": {"output": "ideas", "json": listed}}
    return {"when": {"role": "worker", "part": part}, "do": [*before, write]}


def read(result: NodeResult, name: str) -> Any:
    return json.loads(result.artifacts[name].read_text())


def limits(folder: Path, role: str) -> list[int]:
    """How many actions each node of a role was allowed."""
    paths = sorted((folder / "node/work").glob(f"*-{role}/a01/request.json"))
    return [json.loads(path.read_text())["limits"]["actions"] for path in paths]


@pytest.mark.parametrize("slow", ["loss", "data"])
def test_the_order_is_that_of_the_parts_whoever_ends_first(tmp_path: Path, slow: str) -> None:
    steps = [worker(name, *([{"hang": 0.7}] if name == slow else [])) for name in PARTS]
    product = scripted(tmp_path, breakdown(*PARTS), *steps)
    result = run(task(tmp_path, bta_phase(outputs=OUTPUTS), product))
    assert (result.outcome, result.reason) == (Outcome.COMPLETED, "")
    assert result.artifacts["ideas"].read_text() == dumps([{"id": name} for name in PARTS])
    record = read(result, "workers")
    jsonschema.validate(record, SCHEMAS["workers"])
    assert [one["part"] for one in record["workers"]] == list(PARTS)


def test_a_failed_worker_is_a_row_and_the_others_go_on(tmp_path: Path) -> None:
    crash = {"when": {"role": "worker", "part": "inputs"}, "do": [{"crash": 3}]}
    product = scripted(tmp_path, breakdown(*PARTS), crash, worker("loss"), worker("data"))
    result = run(task(tmp_path, bta_phase(outputs=OUTPUTS), product))
    assert result.outcome is Outcome.COMPLETED
    assert result.reason == "1 of 3 workers did not complete"
    assert [one["id"] for one in read(result, "ideas")] == ["loss", "data"]
    failed = read(result, "workers")["workers"][1]
    assert (failed["outcome"], failed["outputs"]) == ("failed", {})
    assert failed["reason"] == "worker: invalid_output: exit status 3, without a final report"


def test_too_few_workers_fail_the_phase_and_the_record_is_kept(tmp_path: Path) -> None:
    crash = {"when": {"role": "worker", "part": "data"}, "do": [{"edit_protected": "toy/x"}]}
    product = scripted(tmp_path, breakdown(*PARTS), crash, worker("loss"), worker("inputs"))
    phase = bta_phase(outputs=OUTPUTS, workers=Workers(("scripted",), 3, 3, at_least=3))
    result = run(task(tmp_path, phase, product))
    assert result.outcome is Outcome.TAMPERED
    assert result.reason.startswith("2 of 3 workers completed, 3 are needed: data: worker: policy")
    assert [one["outcome"] for one in read(result, "workers")["workers"]] == [
        "completed",
        "completed",
        "tampered",
    ]
    assert "ideas" not in result.artifacts


def test_products_take_turns(tmp_path: Path) -> None:
    product = scripted(tmp_path, breakdown(*PARTS), *(worker(name) for name in PARTS))
    other = Understudy(product.playbook, product.edit_files)
    phase = bta_phase(outputs=OUTPUTS, workers=Workers(("scripted", "other"), 3))
    work = task(tmp_path, phase, product, products={"scripted": product, "other": other})
    record = read(run(work), "workers")
    assert [one["product"] for one in record["workers"]] == ["scripted", "other", "scripted"]


def test_an_agent_aggregates_from_what_workers_left_and_how_they_ended(tmp_path: Path) -> None:
    aggregate = {
        "when": {"role": "aggregate"},
        "do": [{"report": {"output": "ideas", "template": '["{workers.workers.1.outcome}"]'}}],
    }
    crash = {"when": {"part": "inputs"}, "do": [{"crash": 3}]}
    steps = [breakdown(*PARTS), crash, worker("loss"), worker("data"), aggregate]
    result = run(task(tmp_path, bta_phase(aggregate=True), scripted(tmp_path, *steps)))
    assert read(result, "ideas") == ["failed"]
    [folder] = (tmp_path / "node/work").glob("*-aggregate")
    assert sorted(path.name for path in (folder / "a01/inputs").iterdir()) == [
        "item.json",
        "worker-01-loss-ideas.json",
        "worker-03-data-ideas.json",
        "workers.json",
    ]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (["a", "b", "c", "d", "e"], "is too long"),
        (["a", "b", "a"], "breakdown: two parts are named a"),
        ([], "should be non-empty"),
    ],
)
def test_a_breakdown_is_bounded(tmp_path: Path, parts: list[str], said: str) -> None:
    result = run(task(tmp_path, bta_phase(), scripted(tmp_path, breakdown(*parts))))
    assert result.outcome is Outcome.FAILED
    assert said in result.reason
    assert not list((tmp_path / "node/work").glob("*-worker"))


def test_what_is_joined_must_fit_the_output_s_schema(tmp_path: Path) -> None:
    schema = {"type": "array", "maxItems": 3}
    ideas = [{"id": "x"}, {"id": "y"}]
    steps = [worker("loss", ideas=ideas), worker("data", ideas=[{"id": "z"}, {"id": "w"}])]
    phase = bta_phase(outputs=(Output("ideas", "ideas.json", schema="ideas"),))
    product = scripted(tmp_path, breakdown("loss", "data"), *steps)
    result = run(task(tmp_path, phase, product, schemas={**SCHEMAS, "ideas": schema}))
    assert result.outcome is Outcome.FAILED
    assert result.reason.startswith("joined ideas.json: top level: ")
    assert "is too long" in result.reason


def test_equal_items_are_kept_once_and_the_record_says_so(tmp_path: Path) -> None:
    steps = [worker("loss", ideas=[{"id": "x", "n": 1}]), worker("data", ideas=[{"id": "x"}, 7])]
    product = scripted(tmp_path, breakdown("loss", "data"), *steps)
    result = run(task(tmp_path, bta_phase(outputs=OUTPUTS), product))
    assert read(result, "ideas") == [{"id": "x", "n": 1}, 7]
    rows = read(result, "workers")["workers"]
    assert [row["dropped"] for row in rows] == [{}, {"ideas": ["x"]}]


def test_join_keeps_the_first_of_equal_items() -> None:
    assert join([[1, {"id": "a"}, 1], [{"id": "a", "more": 2}, [1]]]) == (
        [1, {"id": "a"}, [1]],
        [["1"], ["a"]],
    )


def test_workers_at_once_cannot_overdraw_the_phase(tmp_path: Path) -> None:
    """Each of three has a third of what the breakdown left; the one that wants more is stopped."""
    greedy = [{"hang": 0.01}] * 7
    steps = [worker("loss", *greedy), worker("inputs"), worker("data")]
    phase = bta_phase(outputs=OUTPUTS, budget=Budget(actions=10))
    result = run(task(tmp_path, phase, scripted(tmp_path, breakdown(*PARTS), *steps)))
    rows = read(result, "workers")["workers"]
    assert [row["outcome"] for row in rows] == ["budget_exhausted", "completed", "completed"]
    assert limits(tmp_path, "worker") == [3, 3, 3]


def test_an_aggregate_finds_its_share(tmp_path: Path) -> None:
    """A fourth of what the breakdown left is each worker's, and a fourth is kept for it."""
    aggregate = {"when": {"role": "aggregate"}, "do": [{"write": {"output": "ideas", "json": []}}]}
    steps = [breakdown(*PARTS), *(worker(name, {"hang": 0.01}) for name in PARTS), aggregate]
    phase = bta_phase(aggregate=True, budget=Budget(actions=10))
    result = run(task(tmp_path, phase, scripted(tmp_path, *steps)))
    assert (result.outcome, result.usage.actions) == (Outcome.COMPLETED, 8)
    assert limits(tmp_path, "worker") == [2, 2, 2]
    assert limits(tmp_path, "aggregate") == [3]


def test_no_more_at_once_than_the_protocol_allows() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def call() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1

    together([call] * 9, 3)
    assert most == 3


def test_results_are_in_the_order_of_the_calls_though_they_end_in_reverse() -> None:
    ended = [threading.Event() for _ in range(4)]
    ended[3].set()

    def call(number: int) -> int:
        if number < 3:
            assert ended[number + 1].wait(10)
        ended[number].set()
        return number

    assert together([partial(call, number) for number in range(4)], 4) == [0, 1, 2, 3]


def test_the_first_fault_in_order_is_raised_and_nothing_more_begins() -> None:
    begun: list[int] = []
    both = threading.Barrier(2)

    def call(number: int) -> None:
        begun.append(number)
        both.wait(5)
        if number == 0:
            time.sleep(0.05)
        raise ValueError(number)

    with pytest.raises(ValueError, match="0"):
        together([partial(call, number) for number in range(6)], 2)
    assert sorted(begun) == [0, 1]
