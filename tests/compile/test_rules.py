"""Generated rules are literal, deterministic, and safe whatever an agent called its proposal."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eop.compile.rules import Rule


def make(**changes: object) -> Rule:
    values: dict[str, object] = {
        "name": "it01_p01_train",
        "comment": "demo.eop.md:60  phase train, iteration 1, p01",
        "inputs": ("runs/demo/it01/p01/preflight/outcome.json",),
        "output": "runs/demo/it01/p01/train/outcome.json",
        "params": {"run": "demo", "node": "it01_p01_train"},
        "log": "runs/demo/logs/it01_p01_train.log",
        "benchmark": "runs/demo/benchmarks/it01_p01_train.tsv",
        "message": "train (iteration 1, p01: Genres)",
        "script": "../../../scripts/phase.py",
    }
    return Rule(**{**values, **changes})  # type: ignore[arg-type]


def test_the_text_of_a_rule() -> None:
    assert make().text() == (
        "# demo.eop.md:60  phase train, iteration 1, p01\n"
        "rule it01_p01_train:\n"
        "    input:\n"
        "        'runs/demo/it01/p01/preflight/outcome.json',\n"
        "    output:\n"
        "        'runs/demo/it01/p01/train/outcome.json',\n"
        "    params:\n"
        "        node='it01_p01_train',\n"
        "        run='demo',\n"
        "    log:\n"
        "        'runs/demo/logs/it01_p01_train.log',\n"
        "    benchmark:\n"
        "        'runs/demo/benchmarks/it01_p01_train.tsv'\n"
        "    threads: 1\n"
        "    resources:\n"
        "        runtime=60,\n"
        "    message:\n"
        "        'train (iteration 1, p01: Genres)'\n"
        "    script:\n"
        "        '../../../scripts/phase.py'\n"
    )


def test_a_gate_runs_on_the_spot() -> None:
    assert "\n    localrule: True\n" in make(local=True).text()


def test_what_a_job_asks_for_and_where_it_runs() -> None:
    text = make(gpus=2, ram_mb=16000, threads=8, group="training").text()
    assert "    threads: 8\n" in text
    assert "        runtime=60,\n        gpu=2,\n        mem_mb=16000,\n" in text
    assert "\n    group: 'training'\n    input:\n" in text


@given(st.text())
def test_a_title_stays_one_literal(title: str) -> None:
    text = make(message=title, comment=title).text()
    line = text.splitlines()[text.splitlines().index("    message:") + 1]
    assert ast.literal_eval(line.strip()).format() == title
    assert text.splitlines()[1] == "rule it01_p01_train:"


def test_a_name_that_is_no_identifier_is_refused() -> None:
    with pytest.raises(ValueError, match="not a rule name"):
        make(name="it01; import os").text()
