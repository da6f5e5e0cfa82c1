"""Who is champion when an iteration begins."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from function_runs import PATCH, plan_of, small

from eop.core.errors import EopError
from eop.functions.lineage import start

if TYPE_CHECKING:
    from pathlib import Path

    from function_runs import Small


def turn(run: Small, iteration: int, champion: str, **branch: Any) -> None:
    """One whole iteration that ends with ``champion``; ``branch`` is about its first branch."""
    run.to_branches(iteration)
    run.branch("p01", iteration, **branch)
    run.lose("p02", iteration)
    at = f"it{iteration:02d}"
    run.play(f"{at}_promote", {"decision": {"champion": champion}})
    run.play(f"{at}_publish")


def test_before_anything_is_measured_it_is_the_base(tmp_path: Path) -> None:
    run = small(tmp_path)
    found = start(run.project, run.state, 1)
    assert (found.entry, found.patch, found.metrics) == ("r1-base", None, None)
    assert found.experiment == run.project.base_experiment


def test_a_base_that_nobody_beats_stays(tmp_path: Path) -> None:
    run = small(tmp_path)
    turn(run, 1, "r1-base")
    found = start(run.project, run.state, 2)
    assert found.entry == "r1-base"
    assert found.metrics is not None
    assert found.metrics["metrics"]["ndcg@10"] == 0.1


def test_a_champion_outlives_iterations_that_do_not_beat_it(tmp_path: Path) -> None:
    run = small(tmp_path)
    turn(run, 1, "r1-it01-p01", ndcg=0.2)
    assert start(run.project, run.state, 1).entry == "r1-base", "history does not change"
    turn(run, 2, "r1-it01-p01", ndcg=0.15)
    found = start(run.project, run.state, 3)
    assert found.entry == "r1-it01-p01"
    assert found.patch is not None
    assert found.patch.read_text() == PATCH
    assert found.experiment.read_text() == "name: p01\n"
    assert found.metrics is not None
    assert found.metrics["metrics"]["ndcg@10"] == 0.2


def test_a_later_champion_replaces_it(tmp_path: Path) -> None:
    run = small(tmp_path)
    turn(run, 1, "r1-it01-p01", ndcg=0.2)
    turn(run, 2, "r1-it02-p01", ndcg=0.25, patch="")
    found = start(run.project, run.state, 3)
    assert found.entry == "r1-it02-p01"
    assert found.patch is None, "its settings changed, its code did not"
    assert found.experiment == run.run.folder / "it02/p01/implement/artifacts/experiment.yaml"


def test_nothing_is_built_on_a_patch_that_was_never_judged(tmp_path: Path) -> None:
    run = small(tmp_path)
    turn(run, 1, "r1-it01-p02")
    with pytest.raises(EopError, match=r"EOP723.*'r1-it01-p02', which was never judged"):
        start(run.project, run.state, 2)


def test_nothing_is_built_on_another_run_s_entry(tmp_path: Path) -> None:
    run = small(tmp_path)
    turn(run, 1, "r1-it01-p01")
    turn(run, 2, "r2-it01-p01")
    with pytest.raises(EopError, match=r"EOP723.*'r2-it01-p01', which is no candidate"):
        start(run.project, run.state, 3)


@pytest.mark.parametrize("seed", range(6))
def test_each_turn_begins_with_the_last_promoted_and_with_no_other(
    tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    run = small(tmp_path, plan=plan_of(turns=5))
    champion, patch = "r1-base", None
    for iteration in range(1, 6):
        found = start(run.project, run.state, iteration)
        assert found.entry == champion
        assert (found.patch.read_text() if found.patch else None) == patch
        promoted = random.random() < 0.5
        own = f"{PATCH}# turn {iteration}\n"
        if promoted:
            champion, patch = f"r1-it{iteration:02d}-p01", own
        turn(run, iteration, champion, ndcg=random.uniform(0.1, 0.5), patch=own)
