"""The refit: trained on all but the test, after the judgement, apart from what judges it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from entry_samples import REPOSITORY, candidate, evidence
from fake_hstu import ONE_PROCESS, calls, experiment, recommender
from function_runs import checkpoint, metrics, small

from eop.core.schema import problems
from eop.core.yaml_files import read_yaml
from eop.functions import reproduce
from eop.functions.measure import Start, judge_seeds, open_sealed, refit_seeds, train_seeds
from eop.functions.recommender import CandidateError
from eop.functions.results import Result
from eop.leaderboard import Proposal

if TYPE_CHECKING:
    from pathlib import Path

SCHEMAS = REPOSITORY / "config" / "schemas"
ZONE = "on items train validation"


def row(**documents: object) -> Result:
    return Result("r1-x", "candidate", Proposal("x", "X", ""), {}, **documents)  # type: ignore[arg-type]


def test_a_refit_never_sees_the_test_and_is_judged_where_it_cannot_write(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    document = refit_seeds(tmp_path, made, experiment(tmp_path), [2, 1])
    assert problems(document, read_yaml(SCHEMAS / "refit.schema.yaml")) == []
    assert calls(made.scratch / "refit") == [f"train 2 1 {ZONE}"]
    assert calls(made.scratch / "refit-judged") == ["evaluate test"]
    sealed = document["sealed"]["seeds"]
    assert [seed["seed"] for seed in sealed] == [2, 1]
    assert all("/refit-judged/" in seed["metrics"]["path"] for seed in sealed)
    assert [seed["seed"] for seed in open_sealed(tmp_path, document)] == [2, 1]
    # A job that was killed goes on: neither is the training repeated nor the test read again.
    assert refit_seeds(tmp_path, made, experiment(tmp_path), [2, 1]) == document
    assert calls(made.scratch / "refit-judged") == ["evaluate test"]
    assert document["sealed"]["reads"] == 1


def test_an_evaluation_before_a_refit_reads_no_test(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    trained = train_seeds(tmp_path, made, experiment(tmp_path), [1])
    judged = judge_seeds(tmp_path, made, trained, test=False)
    assert problems(judged, read_yaml(SCHEMAS / "metrics.schema.yaml")) == []
    assert judged["sealed"] is None
    assert calls(made.scratch) == ["train 1", "evaluate validation"]


def test_training_and_refit_in_one_folder_do_not_meet(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    (first,) = made.train(experiment(tmp_path), [1])
    (second,) = made.train(experiment(tmp_path), [1], refit=True)
    assert first != second
    assert calls(made.scratch) == ["train 1", f"train 1 {ZONE}"]
    assert not (made.scratch / "zone" / "validation.parquet").exists()


def test_a_fine_tuning_begins_with_the_weights_of_its_seed(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    start = Start(replace(made, scratch=tmp_path / "start"), experiment(tmp_path))
    train_seeds(tmp_path, made, experiment(tmp_path), [1, 2], start=start)
    assert calls(tmp_path / "start") == ["train 1 2"]
    assert calls(made.scratch) == ["train 1 from seed1", "train 2 from seed2"]
    refit_seeds(tmp_path, made, experiment(tmp_path), [2], start=start)
    assert calls(tmp_path / "start")[1:] == [f"train 2 {ZONE}"]
    assert calls(made.scratch / "refit") == [f"train 2 {ZONE} from seed2-refit"]
    # Another fine-tuning from the same weights trains nothing anew.
    other = replace(made, scratch=tmp_path / "other")
    train_seeds(tmp_path, other, experiment(tmp_path), [1], start=start)
    assert len(calls(tmp_path / "start")) == 2


def test_a_row_says_which_weights_gave_which_number(tmp_path: Path) -> None:
    once = row(
        checkpoint=checkpoint(tmp_path, tmp_path / "a"), metrics=metrics(tmp_path, tmp_path, 0.2)
    )
    assert [fit.targets for fit in once.fits] == [("validation", "test")]
    assert once.sealed is once.metrics
    again = {"checkpoint": checkpoint(tmp_path, tmp_path / "b"), "sealed": {"seeds": []}}
    unread = {**metrics(tmp_path, tmp_path, 0.2), "sealed": None}
    twice = row(checkpoint=once.checkpoint, metrics=unread, refit=again)
    assert [(fit.mark, fit.targets) for fit in twice.fits] == [
        ("", ("validation",)),
        ("-refit", ("test",)),
    ]
    assert twice.sealed is again
    assert row(metrics=unread).sealed is None, "the test was not read: it has no number"


@pytest.mark.parametrize("refitted", [False, True])
def test_a_reproduction_makes_both_numbers_as_they_were_made(
    tmp_path: Path, refitted: bool
) -> None:
    made = recommender(tmp_path)
    file = {"path": "m", "sha256": "ab" * 32, "size": 1, "seed": 1}
    second = {**file, "targets": ["test"]}
    first = {**file, "targets": ["validation"] if refitted else ["validation", "test"]}
    facts = evidence(config={}, checkpoints=[first, second] if refitted else [first])
    out = tmp_path / "out"
    out.mkdir()
    reproduce._measure(tmp_path, candidate(evidence=facts), made, out, ONE_PROCESS)
    assert calls(made.scratch) == ["train 1 2"]
    judged = ["evaluate validation"] + ([] if refitted else ["evaluate test"])
    assert calls(out / "judged") == judged
    assert calls(out / "refit") == ([f"train 1 2 {ZONE}"] if refitted else [])
    assert calls(out / "refit-judged") == (["evaluate test"] if refitted else [])


def test_a_fine_tuning_is_reproduced_from_its_start(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    facts = evidence(config={}, start={"of": "base", "config": {"model": {"dim": 4}}})
    out = tmp_path / "out"
    out.mkdir()
    reproduce._measure(tmp_path, candidate(evidence=facts), made, out, ONE_PROCESS)
    assert calls(out / "start") == ["train 1 2"]
    assert (out / "start.yaml").read_text() == "model:\n  dim: 4\n"
    assert calls(made.scratch) == ["train 1 from seed1", "train 2 from seed2"]


def test_what_the_data_cannot_give_is_the_fault_of_a_candidate_s_own_settings(
    tmp_path: Path,
) -> None:
    made = replace(recommender(tmp_path, patched=False), own_settings=True)
    with pytest.raises(CandidateError, match="status 6"):
        made.train(experiment(tmp_path, "exit6"), [1])


def test_a_run_without_a_refit_judges_both_targets(tmp_path: Path) -> None:
    assert not small(tmp_path).project.plan.runs("refit")
