"""The documents of training and judging: per seed, by digest, the test sealed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fake_hstu import calls, experiment, recommender
from function_runs import checkpoint, small

from eop.core.errors import EopError
from eop.core.files import read_json, write_json
from eop.core.schema import problems
from eop.core.yaml_files import read_yaml
from eop.evidence import FileRef
from eop.functions import evidence
from eop.functions.measure import (
    judge_popularity,
    judge_seeds,
    mean,
    open_sealed,
    train_seeds,
)
from eop.functions.results import Fit, Result
from eop.leaderboard import Proposal

if TYPE_CHECKING:
    from pathlib import Path

from entry_samples import REPOSITORY

SCHEMAS = REPOSITORY / "config" / "schemas"
VALUES = {"ndcg@10": 0.25, "hr@10": 0.5, "mrr": 0.125}


def test_the_documents_keep_their_schemas_and_seal_the_test(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    trained = train_seeds(tmp_path, made, experiment(tmp_path), [3, 0])
    assert problems(trained, read_yaml(SCHEMAS / "checkpoint.schema.yaml")) == []
    assert [seed["seed"] for seed in trained["seeds"]] == [3, 0]
    judged = judge_seeds(tmp_path, made, trained)
    assert problems(judged, read_yaml(SCHEMAS / "metrics.schema.yaml")) == []
    assert judged["metrics"] == VALUES
    assert [seed["seed"] for seed in judged["seeds"]] == [3, 0]
    sealed = judged["sealed"]["seeds"]
    assert all(set(seed) == {"seed", "metrics", "ranks"} for seed in sealed)
    assert all(set(seed["metrics"]) == {"path", "sha256", "size"} for seed in sealed)
    # The test's histories hold the validation target: validation must be over by then.
    assert calls(made.scratch)[1:] == ["evaluate validation", "evaluate test"]
    assert judged["sealed"]["reads"] == 1
    assert open_sealed(tmp_path, judged) == [
        {"seed": 3, "metrics": VALUES},
        {"seed": 0, "metrics": VALUES},
    ]


def test_a_read_that_was_cut_short_counts(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    trained = train_seeds(tmp_path, made, experiment(tmp_path), [3])
    judge_seeds(tmp_path, made, trained)
    (made.scratch / "seed3-test" / "metrics.json").unlink()
    assert judge_seeds(tmp_path, made, trained)["sealed"]["reads"] == 2
    assert judge_seeds(tmp_path, made, trained)["sealed"]["reads"] == 2


def test_sealed_numbers_that_changed_are_not_opened(tmp_path: Path) -> None:
    judged = judge_popularity(tmp_path, recommender(tmp_path))
    path = tmp_path / judged["sealed"]["seeds"][0]["metrics"]["path"]
    path.write_text(path.read_text().replace("0.25", "0.95"))
    with pytest.raises(EopError, match="EOP650"):
        open_sealed(tmp_path, judged)


def test_a_subset_evaluation_is_never_an_entrys_result(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    trained = train_seeds(tmp_path, made, experiment(tmp_path), [1])
    judged = judge_seeds(tmp_path, made, trained)
    place = made.scratch / "seed1-validation" / "metrics.json"
    facts = {**read_json(place), "schema": "hstu.subset-metrics/1"}
    facts["metrics"] = {f"subset/{name}": value for name, value in VALUES.items()}
    write_json(place, facts)
    with pytest.raises(EopError, match="EOP653"):
        judge_seeds(tmp_path, made, trained)
    sealed = judged["sealed"]["seeds"][0]["metrics"]
    write_json(tmp_path / sealed["path"], facts)
    posing = FileRef.of(tmp_path / sealed["path"], tmp_path).to_json()
    seeds = [{"seed": 1, "metrics": posing}]
    with pytest.raises(EopError, match="EOP653"):
        open_sealed(tmp_path, {"sealed": {"seeds": seeds}})
    # The schemas of an iteration's documents and of the leaderboard know no such metric either.
    for document in ({**judged, "metrics": facts["metrics"]}, facts):
        assert problems(document, read_yaml(SCHEMAS / "metrics.schema.yaml"))
    entry = {"$ref": "#/$defs/metrics"} | {
        "$defs": read_yaml(SCHEMAS / "entry.schema.yaml")["$defs"]
    }
    assert problems(VALUES, entry) == []
    assert problems(facts["metrics"], entry)


def test_weights_that_changed_since_training_are_not_judged(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    trained = train_seeds(tmp_path, made, experiment(tmp_path), [1])
    (made.scratch / "seed1" / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(EopError, match=r"model\.safetensors"):
        judge_seeds(tmp_path, made, trained)
    assert calls(made.scratch) == ["train 1"]


def test_mean_over_seeds() -> None:
    rows = [{"ndcg@10": 0.1, "hr@10": 0.2, "mrr": 0.0}, {"ndcg@10": 0.3, "hr@10": 0.4, "mrr": 0.5}]
    assert mean(rows) == pytest.approx({"ndcg@10": 0.2, "hr@10": 0.3, "mrr": 0.25})


def test_the_curves_of_all_seeds_are_one_table(tmp_path: Path) -> None:
    trained = checkpoint(tmp_path, tmp_path / "train")
    assert evidence.curve(tmp_path, trained).decode() == (
        "seed\tepoch\tloss\tseconds\n"
        "1\t1\t1.5\t0.25\n1\t2\t1.5\t0.5\n2\t1\t2.5\t0.25\n2\t2\t1.5\t0.5\n"
    )
    fit = Fit("", trained, ("validation", "test"))
    assert evidence.training_seconds(tmp_path, [fit]) == pytest.approx(1.5)
    assert evidence.training_seconds(tmp_path, []) is None, "missing is never 0"
    (tmp_path / "train/seed2/curve.tsv").write_text("epoch\tloss\tseconds\n1\t0.1\t9.0\n")
    with pytest.raises(EopError, match="EOP650"):
        evidence.curve(tmp_path, trained)


def test_kept_weights_are_those_of_the_document(tmp_path: Path) -> None:
    run = small(tmp_path)
    trained = checkpoint(tmp_path, run.run.folder / "train")
    row = Result("r1-x", "candidate", Proposal("x", "X", ""), {}, checkpoint=trained)
    evidence.keep_files(tmp_path, row)
    kept = tmp_path / evidence.checkpoint_path("r1-x", 2)
    assert kept.read_bytes() == b"weights 2"
    kept.write_bytes(b"half of it")
    evidence.keep_files(tmp_path, row)
    assert kept.read_bytes() == b"weights 2", "what is not whole is copied again"
    kept.unlink()
    (run.run.folder / "train/seed2/model.safetensors").write_bytes(b"weights 3")
    with pytest.raises(EopError, match="EOP650"):
        evidence.keep_files(tmp_path, row)
    assert not kept.exists()
