"""What the recommender's processes are given, and what their ends mean."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import pytest
from fake_hstu import calls, experiment, recommender

from eop.core.errors import EopError, ExitCode
from eop.functions.recommender import CandidateError

if TYPE_CHECKING:
    from pathlib import Path


def test_the_environment_of_a_candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    monkeypatch.setenv("PYTHONSTARTUP", "/nowhere")
    made = recommender(tmp_path)
    (folder,) = made.train(experiment(tmp_path), [1])
    assert folder == made.scratch / "seed1"
    seen = json.loads((made.scratch / "environment.json").read_text())
    assert "SECRET_TOKEN" not in seen
    assert "PYTHONSTARTUP" not in seen
    assert seen["PYTHONPATH"] == str(made.tree)
    assert seen["OMP_NUM_THREADS"] == seen["MKL_NUM_THREADS"] == "3"
    assert seen["PYTHONSAFEPATH"] == seen["PYTHONDONTWRITEBYTECODE"] == "1"
    assert seen["PYTHONHASHSEED"] == "0"
    assert seen["cwd"] == seen["TMPDIR"] == str(made.scratch)


def test_training_sees_training_data_alone(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    made.train(experiment(tmp_path), [1])
    zone = made.scratch / "zone"
    assert {path.name for path in zone.iterdir()} == {"train.parquet", "items.parquet"}


def test_trained_seeds_and_judged_checkpoints_are_not_done_again(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    made.train(experiment(tmp_path), [2])
    folders = made.train(experiment(tmp_path), [1, 2])
    assert [folder.name for folder in folders] == ["seed1", "seed2"]
    assert calls(made.scratch) == ["train 2", "train 1"]
    first = made.evaluate(folders[:1], "test")
    both = made.evaluate(folders, "test")
    assert [path.name for path in both] == ["seed1-test", "seed2-test"]
    assert first == both[:1]
    assert calls(made.scratch)[2:] == ["evaluate test", "evaluate test"]
    made.evaluate(folders, "test")
    assert len(calls(made.scratch)) == 4, "the test is read once"


@pytest.mark.parametrize("status", [1, 2, 5, 6, 9, 70])
def test_a_candidate_that_ends_badly_fails_itself_alone(tmp_path: Path, status: int) -> None:
    made = recommender(tmp_path)
    with pytest.raises(CandidateError, match=f"status {status}") as caught:
        made.train(experiment(tmp_path, "stderr", f"exit{status}"), [1])
    assert "last words" in str(caught.value)
    assert len(str(caught.value)) < 5000, "a reason is read by people"
    assert not caught.value.timed_out


@pytest.mark.parametrize("status", [ExitCode.USAGE, ExitCode.DATA, ExitCode.ENVIRONMENT])
def test_bad_data_met_by_the_snapshot_is_no_candidate_s_fault(
    tmp_path: Path, status: ExitCode
) -> None:
    made = recommender(tmp_path, patched=False)
    with pytest.raises(EopError, match="EOP640") as caught:
        made.train(experiment(tmp_path, f"exit{status.value}"), [1])
    assert caught.value.exit_code == status


def test_who_is_ended_with_the_whole_job_has_not_failed(tmp_path: Path) -> None:
    made = recommender(tmp_path)

    def preempt() -> None:
        """What a cluster does, as far as the candidate's own processes are concerned."""
        while not (made.scratch / "environment.json").is_file():
            time.sleep(0.02)
        for child in psutil.Process().children():
            if any(word.endswith("supervisor.py") for word in child.cmdline()):
                child.terminate()

    ending = threading.Thread(target=preempt)
    ending.start()
    with pytest.raises(EopError, match="interrupted") as caught:
        made.train(experiment(tmp_path, "sleep"), [1])
    ending.join()
    assert caught.value.code == "EOP640"


def test_an_interruption_is_no_result(tmp_path: Path) -> None:
    made = recommender(tmp_path, patched=False)
    with pytest.raises(EopError, match="was interrupted"):
        made.train(experiment(tmp_path, "exit130"), [1])
    late = replace(made, timeout_s=0.0, started=0.0)
    with pytest.raises(CandidateError):
        late.train(experiment(tmp_path, "sleep"), [1])


def test_settings_that_the_snapshot_refuses_are_the_candidate_s_fault(tmp_path: Path) -> None:
    made = recommender(tmp_path, patched=False)
    with pytest.raises(CandidateError, match="status 5"):
        made.train(experiment(tmp_path, "exit5"), [1])


def test_the_time_limit_is_that_of_all_commands_together(tmp_path: Path) -> None:
    made = recommender(tmp_path, timeout_s=0.5)
    with pytest.raises(CandidateError) as caught:
        made.train(experiment(tmp_path, "sleep"), [1])
    assert caught.value.timed_out
    with pytest.raises(CandidateError) as caught:
        made.preflight(experiment(tmp_path))
    assert caught.value.timed_out, "nothing is left of it"


def test_a_link_in_place_of_stderr_is_not_followed(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    (tmp_path / "secret.txt").write_text("the sealed numbers")
    with pytest.raises(CandidateError) as caught:
        made.train(experiment(tmp_path, "link", "exit1"), [1])
    assert "sealed" not in str(caught.value)


def test_a_curve_that_nobody_can_read_fails_the_training_not_the_publishing(
    tmp_path: Path,
) -> None:
    with pytest.raises(CandidateError, match=r"curve\.tsv"):
        recommender(tmp_path).train(experiment(tmp_path, "nocurve"), [1])


def test_links_among_the_files_of_a_checkpoint_are_refused(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    (folder,) = made.train(experiment(tmp_path), [1])
    aside = folder.rename(folder.with_name("aside"))
    folder.symlink_to(aside)
    with pytest.raises(CandidateError, match="no plain file"):
        made.train(experiment(tmp_path), [1])
    folder.unlink()
    aside.rename(folder)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to(tmp_path / "split" / "test.parquet")
    with pytest.raises(CandidateError, match=r"no plain file model\.safetensors"):
        made.train(experiment(tmp_path), [1])


def test_preflight_reports_what_failed(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    assert made.preflight(experiment(tmp_path))["passed"] is True
    report = made.preflight(experiment(tmp_path, "bad"))
    assert report["passed"] is False
    assert report["invariants"][0]["id"] == "I5"


@pytest.mark.parametrize("words", [("exit9",), ("garbage",), ("late",)])
def test_a_preflight_without_a_report_to_trust_is_the_candidate_s_fault(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    """It died before, wrote garbage, or said `passed` and then ended with a failure."""
    with pytest.raises(CandidateError):
        recommender(tmp_path).preflight(experiment(tmp_path, *words))


def test_what_a_candidate_leaves_running_dies_with_it(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    made.train(experiment(tmp_path, "daemon"), [1])
    pid = int((made.scratch / "daemon.pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_candidate_cannot_fill_the_disk_with_talk(tmp_path: Path) -> None:
    """Even where it takes the name of its stream away."""
    made = recommender(tmp_path)
    with pytest.raises(CandidateError, match="more than 67108864 bytes"):
        made.train(experiment(tmp_path, "flood"), [1])


def test_a_stream_is_never_written_through_a_candidates_link(tmp_path: Path) -> None:
    made = recommender(tmp_path)
    (made.scratch.parent / "secret.txt").write_text("as it was")
    folders = made.train(experiment(tmp_path, "plant"), [1])
    made.evaluate(folders, "test")
    assert (made.scratch.parent / "secret.txt").read_text() == "as it was"
    assert (made.scratch / "evaluate-test.stdout").read_text() == "judged\n"
