"""The decision of a turn, from committed files; the base's null controls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from entry_samples import REPOSITORY
from fake_hstu import calls, recommender
from function_runs import small

from eop.core.errors import EopError
from eop.core.files import read_json
from eop.core.schema import problems
from eop.core.yaml_files import read_yaml
from eop.functions.baseline import baseline
from eop.functions.context import Context
from eop.functions.promote import promote

if TYPE_CHECKING:
    from pathlib import Path

    from function_runs import Small

SCHEMA = read_yaml(REPOSITORY / "config" / "schemas" / "decision.schema.yaml")


def decided(run: Small, iteration: int, **branch: Any) -> dict[str, Any]:
    """The decision on a turn with one branch that is judged and one that is lost."""
    run.to_branches(iteration)
    run.branch("p01", iteration, **branch)
    run.lose("p02", iteration)
    key = f"it{iteration:02d}_promote"
    decision: dict[str, Any] = read_json(promote(run.context(key)))
    assert problems(decision, SCHEMA) == []
    run.play(key, {"decision": decision})
    run.play(f"it{iteration:02d}_publish")
    return decision


def test_the_champion_of_a_turn_is_the_parent_of_the_next(tmp_path: Path) -> None:
    run = small(tmp_path)
    first = decided(run, 1, ndcg=0.2)
    assert (first["champion"], first["parent"]) == ("r1-it01-p01", "r1-base")
    assert first["rule"] == {"alpha": 0.05, "seeds": 2, "family": "holm", "tests": 1, "power": 0.8}
    judged, lost = first["candidates"]
    assert judged["band"] == pytest.approx(0.002), "of the base's seeds"
    assert (lost["outcome"], lost["delta"], lost["p"]) == ("failed", None, None)
    assert first["noise"]["freedom"] == 2, "of the base and of the candidate"
    second = decided(run, 2, ndcg=0.1)
    assert (second["champion"], second["parent"]) == ("r1-it01-p01", "r1-it01-p01")
    assert second["candidates"][0]["delta"] < 0
    assert second["noise"]["freedom"] == 3, "the base's seeds still count"


def test_the_rule_is_the_protocol_s(tmp_path: Path) -> None:
    run = small(tmp_path)
    run.to_branches()
    run.branch("p01")
    run.lose("p02")
    context = run.context("it01_promote")
    strict = replace(context.phase, arguments={"seeds": 3, "alpha": 0.01})
    decision = read_json(promote(replace(context, phase=strict)))
    assert (decision["champion"], decision["rule"]["alpha"]) == ("r1-base", 0.01)
    assert "3 are needed" in decision["candidates"][0]["reason"]


def test_ranks_that_have_changed_decide_nothing(tmp_path: Path) -> None:
    run = small(tmp_path)
    run.to_branches()
    run.branch("p01")
    run.lose("p02")
    path = next((run.run.folder / "it01/p01/evaluate").rglob("seed1-validation/ranks.parquet"))
    frame = pd.DataFrame({"user_id": np.arange(1, 21), "rank": [1] * 20})
    frame.to_parquet(path, index=False)
    with pytest.raises(EopError, match=r"EOP650"):
        promote(run.context("it01_promote"))


@pytest.mark.parametrize("twins", [[], [2]])
def test_twins_are_trained_and_judged_a_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, twins: list[int]
) -> None:
    run = small(tmp_path)
    run.run.advance()
    context = run.context("it01_baseline")
    (tmp_path / "fake").mkdir()
    made = replace(recommender(tmp_path / "fake", patched=False), scratch=context.work)
    monkeypatch.setattr(Context, "recommender", lambda _: made)
    arguments = {"seeds": [1, 2], **({"twins": twins} if twins else {})}
    found = read_json(baseline(replace(context, phase=replace(context.phase, arguments=arguments))))
    assert calls(context.work / "twins") == (["train 2", "evaluate validation"] if twins else [])
    noise = found["noise"]
    assert (noise["twins"], noise["twin"]) == (twins, 0.0 if twins else None)
    assert (noise["seeds"], noise["deviation"]) == (2, 0.0)
