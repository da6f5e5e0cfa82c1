from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import scale, targets
from benchmarks.child import BenchmarkError
from benchmarks.document import Document
from benchmarks.measure import repeated
from benchmarks.peers.comparison import Comparison
from benchmarks.synthetic import make_events
from benchmarks.table import Table

ROOT = Path(__file__).parents[1]


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", "--quick", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_the_benchmark_runs_and_its_json_has_the_rows(tmp_path: Path) -> None:
    document, rows = tmp_path / "page.md", tmp_path / "rows.json"
    names = ("steps", "evaluation", "targets")
    document.write_text(
        "".join(f"<!-- bench:{n} -->\nwas here before\n<!-- end:{n} -->\n" for n in names)
    )
    chosen = ["--model", "base", "--lengths", "ml1m", "--kernels", "torch", "--threads", 1]
    topics = ["--only", "steps", "--only", "evaluation"]
    done = bench(*topics, *chosen, "--json", rows, "--write", document)
    assert done.returncode == 0, done.stderr
    found = json.loads(rows.read_text())
    assert set(found["rows"]) == {"steps", "evaluation"}
    (step,), (evaluation,) = found["rows"]["steps"], found["rows"]["evaluation"]
    assert step["tokens_per_cpu_s"] == pytest.approx(step["tokens"] / step["cpu_s"])
    assert evaluation["users_per_cpu_s"] == pytest.approx(32 / evaluation["cpu_s"])
    assert step["peak_mib"] > step["start_mib"] > 0
    written = document.read_text()
    assert "was here before" not in written
    for table in ("tokens/CPU s", "users/CPU s", "not measured"):
        assert table in written and table in done.stdout


def test_a_missing_peer_is_one_line_that_says_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"pip install .*rectools\[torch\]") as caught:
        Comparison(tmp_path / "python").require()
    assert "\n" not in str(caught.value)


def test_growth_is_last_over_first() -> None:
    first = dict.fromkeys(scale.FIGURES, 2.0) | {"factor": 1}
    last = dict.fromkeys(scale.FIGURES, 20.0) | {"factor": 10}
    assert {row[-1] for row in scale.table([first, last]).rows} == {"10.0"}


def test_lengths_are_those_of_the_data_set() -> None:
    made = make_events(6040, 3706, lengths="ml1m", history_length=200)
    lengths = np.diff(made.offsets)
    assert (lengths.min(), lengths.max()) == (19, 200)
    assert abs(np.median(lengths) - 96) < 4 and 105 < lengths.mean() < 115
    assert made.items.min() == 1 and made.items.max() == 3706
    inner = np.delete(np.diff(made.timestamps), made.offsets[1:-1] - 1)
    assert (inner >= 0).all()
    ends = made.timestamps[made.offsets[1:] - 1]
    assert (made.request_timestamps >= ends).all()


def test_equal_seeds_make_equal_events_and_others_do_not() -> None:
    made = [
        make_events(9, 50, lengths="ml1m", history_length=20, seed=seed).digest
        for seed in (1, 1, 2)
    ]
    assert made[0] == made[1] != made[2]


def test_the_first_users_are_the_same_users() -> None:
    made = make_events(9, 50, lengths="ml1m", history_length=20)
    few = made.first(4)
    assert len(few) == 4
    assert np.array_equal(few.items, made.items[: made.offsets[4]])


@pytest.mark.parametrize(("seconds", "holds"), [(0.9, "yes"), (0.91, "no")])
def test_a_target_holds_up_to_its_limit(seconds: float, holds: str) -> None:
    case = {"model": "base", "lengths": "full", "kernels": "native", "threads": 1, "quick": False}
    cells = targets.table({"steps": [case | {"cpu_s": seconds, "peak_mib": 1.0}]}).rows[0]
    assert cells[-1] == holds


def test_quick_figures_meet_no_target() -> None:
    case = {"model": "base", "lengths": "full", "kernels": "native", "threads": 1, "quick": True}
    cells = targets.table({"steps": [case | {"cpu_s": 0.1, "peak_mib": 1.0}]}).rows[0]
    assert cells[-2:] == ["not measured", ""]


def test_the_warm_up_does_not_count() -> None:
    calls: list[int] = []
    timing = repeated(lambda: calls.append(1), repeats=3, budget_s=60)
    assert (len(calls), timing["repeats"]) == (4, 3)


def test_a_spent_budget_ends_the_repeats() -> None:
    assert repeated(lambda: None, repeats=50, budget_s=0)["repeats"] == 2


def test_a_document_without_the_place_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- bench:steps -->\n<!-- end:steps -->\n")
    Document(page).require(["steps"])
    with pytest.raises(BenchmarkError, match="no place for scale"):
        Document(page).require(["steps", "scale"])


def test_numbers_stand_to_the_right() -> None:
    lines = Table("t", "n", ["what", "s"], [["a", "1.5"], ["long", "10.0"]]).text().splitlines()
    assert lines == ["| what |    s |", "| ---- | ---: |", "| a    |  1.5 |", "| long | 10.0 |"]


def test_the_page_has_a_place_for_every_topic() -> None:
    names = ["harness", "steps", "evaluation", "rectools", "scale", "profile", "targets"]
    Document(ROOT / "docs" / "performance.md").require(names)
