"""Comparing a reproduction with its entry, and where a reproduction may go."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from entry_samples import FILES, candidate, evidence, failed, project, scores
from fake_hstu import ONE_PROCESS, calls, experiment, recommender

from eop.core.errors import EopError, ExitCode
from eop.evidence import FileRef, environment_facts
from eop.functions import reproduce
from eop.functions.recommender import Recommender
from eop.functions.reproduce import compare
from eop.leaderboard import Scores, write_entry

if TYPE_CHECKING:
    from pathlib import Path


def again(**changes: float) -> dict[str, Scores]:
    """The numbers of the sample entry, with changes to one seed on validation."""
    found = {"validation": scores(0.12), "test": scores(0.11)}
    found["validation"].seeds["2"].update(changes)
    return found


def test_the_same_numbers(tmp_path: Path) -> None:
    verdict = compare(candidate(), again())
    assert (verdict.reproduced, verdict.identical, verdict.largest) == (True, True, 0.0)


def test_the_edge_of_the_tolerance_is_inside() -> None:
    entry = candidate(tolerance=0.25)
    assert compare(entry, again(mrr=0.06 + 0.25)).reproduced
    verdict = compare(entry, again(mrr=0.06 + 0.2500001))
    assert not verdict.reproduced
    assert verdict.differences == ["validation mrr, seed 2: recorded 0.060000, now 0.310000"]


def test_a_small_difference_is_tolerated_and_not_called_identical() -> None:
    verdict = compare(candidate(tolerance=0.0003), again(mrr=0.0601))
    assert verdict.reproduced
    assert not verdict.identical
    assert verdict.largest == pytest.approx(0.0001)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_a_difference(value: float) -> None:
    verdict = compare(candidate(), again(mrr=value))
    assert not verdict.reproduced
    assert not verdict.identical
    assert verdict.largest is None


def test_a_row_without_seeds_is_compared_by_its_mean() -> None:
    mean = {"ndcg@10": 0.1, "hr@10": 0.2, "mrr": 0.05}
    entry = candidate(kind="popularity", validation=Scores(mean), test=Scores(mean))
    now = {"validation": Scores(mean), "test": Scores({**mean, "mrr": 0.06})}
    assert compare(entry, now).differences == ["test mrr: recorded 0.050000, now 0.060000"]


def test_a_mean_that_its_seeds_do_not_come_to_is_a_difference() -> None:
    entry = candidate()
    entry.validation.mean["mrr"] += 0.1
    [difference] = compare(entry, again()).differences
    assert difference.startswith("validation mrr: recorded")


def test_numbers_that_dvc_shows_and_the_row_does_not_are_refused(tmp_path: Path) -> None:
    entry = candidate()
    folder = write_entry(project(tmp_path), entry, FILES)
    reproduce._check_numbers(tmp_path, entry)
    shown = folder / "metrics.json"
    shown.write_text(shown.read_text().replace("0.1", "0.9", 1))
    with pytest.raises(EopError, match=r"metrics\.json does not say"):
        reproduce._check_numbers(tmp_path, entry)


TORCH = (("torch", "2.13.0", "2.14.0"),)


def test_elsewhere_the_noise_of_its_seeds_is_allowed() -> None:
    entry = candidate(tolerance=0.0003)
    seeds = [seed["ndcg@10"] for seed in again()["validation"].seeds.values()]
    band = 2 * statistics.stdev(seeds)
    assert band > 0.001
    before = again()["validation"].seeds["2"]["ndcg@10"]
    inside, outside = (again(**{"ndcg@10": before + band + far}) for far in (-1e-6, 1e-6))
    assert not compare(entry, inside).reproduced
    verdict = compare(entry, inside, TORCH)
    assert (verdict.reproduced, verdict.identical) == (True, False)
    assert not compare(entry, outside, TORCH).reproduced
    assert verdict.told == {"torch": {"recorded": "2.13.0", "now": "2.14.0"}}


def test_elsewhere_the_noise_of_its_run_is_allowed_to_a_row_with_one_seed() -> None:
    first = scores(0.12).seeds["1"]
    entry = candidate(tolerance=0.0003, validation=Scores.over_seeds({1: first}))
    moved = {**first, "ndcg@10": first["ndcg@10"] + 0.001}
    now = {"validation": Scores.over_seeds({1: moved})}
    run = [entry, candidate(id="base")]
    assert compare(entry, now, TORCH, run).reproduced
    assert not compare(entry, now, TORCH, [entry]).reproduced, "no row has two seeds"
    assert not compare(entry, now, (), run).reproduced, "here the bits should be equal"


def test_what_has_no_seed_has_no_noise() -> None:
    mean = {"ndcg@10": 0.1, "hr@10": 0.2, "mrr": 0.05}
    entry = candidate(kind="popularity", validation=Scores(mean), test=Scores(mean))
    now = {"test": Scores({**mean, "mrr": 0.051})}
    assert not compare(entry, now, TORCH, [candidate(id="base")]).reproduced


def test_a_refusal_says_whether_the_machine_could_be_the_reason(tmp_path: Path) -> None:
    team = (("processes of train", 4, 2),)
    for elsewhere, words in (
        ((), "recorded numbers"),
        (TORCH, r"last digits.*torch was 2\.13\.0, is 2\.14\.0"),
        (team, "another draw of the same training: processes of train was 4, is 2"),
    ):
        verdict = compare(candidate(), again(mrr=0.9), elsewhere)
        with pytest.raises(EopError, match=words) as caught:
            reproduce._write_verdict(tmp_path, candidate(), verdict)
        assert caught.value.code == "EOP673"
        written = json.loads((tmp_path / "verdict.json").read_text())
        assert set(written["elsewhere"]) == {what for what, _, _ in elsewhere}


def test_what_is_other_now(monkeypatch: pytest.MonkeyPatch) -> None:
    here = {**environment_facts(), "threads": 2}
    entry = candidate(evidence={**evidence(), "environment": here})
    assert reproduce._elsewhere(entry, threads=2, processes=ONE_PROCESS) == ()
    assert reproduce._elsewhere(entry, threads=1, processes=ONE_PROCESS) == (("threads", 2, 1),)
    packages = {**here["packages"], "torch": "2.12.0"}
    old = {**here, "packages": packages, "cpu": "another"}
    entry = candidate(evidence={**evidence(), "environment": old})
    assert [
        what for what, _, _ in reproduce._elsewhere(entry, threads=2, processes=ONE_PROCESS)
    ] == [
        "cpu",
        "torch",
    ]


@pytest.mark.parametrize(
    ("recorded", "gpus", "used", "other"),
    [
        ({}, 0, {"train": 1, "refit": 1}, {}),
        ({}, 4, {"train": 1, "refit": 1}, {}),
        ({"train": 4, "refit": 2}, 0, {"train": 4, "refit": 2}, {}),
        ({"train": 4, "refit": 2}, 8, {"train": 4, "refit": 2}, {}),
        ({"train": 4, "refit": 2}, 2, {"train": 2, "refit": 2}, {"processes of train": (4, 2)}),
    ],
)
def test_as_many_processes_as_recorded_or_it_is_said(
    recorded: dict[str, int], gpus: int, used: dict[str, int], other: dict[str, tuple[int, int]]
) -> None:
    """On cores any number can be had; on GPUs there is one process for each."""
    here = {**environment_facts(), "threads": 2, **({"processes": recorded} if recorded else {})}
    entry = candidate(evidence={**evidence(), "environment": here})
    found = reproduce._processes(entry, gpus)
    assert found == used
    told = reproduce._elsewhere(entry, threads=2, processes=found)
    assert {what: (old, new) for what, old, new in told} == other


def test_a_reproduction_trains_with_the_processes_that_it_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[str, int]] = []
    real = Recommender.train

    def train(made: Recommender, *arguments: Any, **more: Any) -> list[Path]:
        begun.append((made.scratch.name, made.processes))
        return real(replace(made, processes=1), *arguments, **more)

    monkeypatch.setattr(Recommender, "train", train)
    file = {"path": "m", "sha256": "ab" * 32, "size": 1, "seed": 1}
    checkpoints = [{**file, "targets": [target]} for target in ("validation", "test")]
    start = {"of": "base", "config": {"model": {"dim": 4}}}
    facts = evidence(config={}, checkpoints=checkpoints, start=start)
    out = tmp_path / "out"
    out.mkdir()
    made, counts = recommender(tmp_path), {"train": 4, "refit": 2}
    reproduce._measure(tmp_path, candidate(evidence=facts), made, out, counts)
    assert begun == [("start", 4), ("work", 4), ("start", 2), ("refit", 2)]


def test_a_verdict_of_no_is_written_and_raised(tmp_path: Path) -> None:
    verdict = compare(candidate(), again(mrr=math.nan))
    with pytest.raises(EopError, match="EOP673"):
        reproduce._write_verdict(tmp_path, candidate(), verdict)
    written = json.loads((tmp_path / "verdict.json").read_text())
    assert (written["reproduced"], written["largest_difference"]) == (False, None)


@pytest.mark.parametrize("where", ["full", ".", ".."])
def test_a_folder_that_holds_something_else_is_never_emptied(tmp_path: Path, where: str) -> None:
    root = tmp_path / "project"
    (root / "full").mkdir(parents=True)
    (root / "full" / "thesis.tex").write_text("years")
    with pytest.raises(EopError, match="EOP674") as caught:
        reproduce._make_room(root, (root / where).resolve())
    assert caught.value.exit_code == ExitCode.USAGE
    assert (root / "full" / "thesis.tex").read_text() == "years"


def test_an_earlier_reproduction_is_replaced(tmp_path: Path) -> None:
    out = tmp_path / "repro" / "x"
    reproduce._make_room(tmp_path, out)
    (out / "metrics.json").write_text("{}")
    reproduce._make_room(tmp_path, out)
    assert not (out / "metrics.json").exists()


def test_what_trains_does_not_write_where_it_is_judged(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    found = reproduce._measure(
        tmp_path, candidate(evidence=evidence(config={})), made, tmp_path, ONE_PROCESS
    )
    assert found["validation"].seeds.keys() == {"1", "2"}
    assert calls(made.scratch) == ["train 1 2"]
    assert len(calls(tmp_path / "judged")) == 2


@pytest.mark.parametrize("what", ["split", "snapshot", "patch"])
def test_lost_and_rotted_inputs_are_refused_before_anything_runs(tmp_path: Path, what: str) -> None:
    """What a pull brings from a remote that has rotted looks whole to DVC, and not to this."""
    names = {
        "split": "data/splits/toy/train.parquet",
        "snapshot": "data/snapshots/abc.tar",
        "patch": "leaderboard/demo-it01-p01/patch.diff",
    }
    for name in names.values():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(b"as recorded")
    file = FileRef.of(tmp_path / names["split"], tmp_path).to_json()
    facts = {
        "split": {"dataset": "toy", "digest": "0" * 64, "files": [file]},
        "snapshot": {"path": names["snapshot"], "sha256": file["sha256"]},
        "patch": {"sha256": file["sha256"], "size": file["size"]},
    }
    entry = candidate(evidence={**evidence(), **facts})
    reproduce._check_inputs(tmp_path, entry)
    victim = tmp_path / names[what]
    victim.write_bytes(b"as rotten!!")
    with pytest.raises(EopError, match=names[what]) as rotted:
        reproduce._check_inputs(tmp_path, entry)
    victim.unlink()
    with pytest.raises(EopError, match=f"{names[what]}: missing") as lost:
        reproduce._check_inputs(tmp_path, entry)
    for caught in (rotted, lost):
        assert (caught.value.code, caught.value.exit_code) == ("EOP670", ExitCode.DATA)


def test_a_snapshot_that_is_there_is_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = tmp_path / "data/snapshots/abc.tar"
    pinned = {"path": "data/snapshots/abc.tar", "sha256": "0" * 64}
    entry = candidate(evidence={**evidence(), "snapshot": pinned})
    monkeypatch.setattr(
        reproduce, "from_history", lambda _, sha256: b"of a commit" if sha256 == "0" * 64 else None
    )
    reproduce._bring_snapshot(tmp_path, entry)
    assert snapshot.read_bytes() == b"of a commit"
    snapshot.write_bytes(b"rotten")
    reproduce._bring_snapshot(tmp_path, entry)
    assert snapshot.read_bytes() == b"rotten", "the check of the inputs is to say so"


def test_a_rejection_is_reproduced_when_the_same_invariants_fail(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    facts = evidence(preflight={"passed": False, "failed": ["I5"]}, config="bad")
    entry = failed(outcome="rejected_by_preflight", evidence=facts)
    assert reproduce._again_rejected(entry, made, tmp_path, ()).identical
    passes = failed(outcome="rejected_by_preflight", evidence={**facts, "config": "good"})
    with pytest.raises(EopError, match="EOP673"):
        reproduce._again_rejected(passes, made, tmp_path, ())
    dies = failed(outcome="rejected_by_preflight", evidence={**facts, "config": "exit9"})
    with pytest.raises(EopError, match="EOP672"):
        reproduce._again_rejected(dies, made, tmp_path, ())
    assert experiment(tmp_path).is_file()
