"""How far a training is: from its curves alone, whoever wrote them."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

import pytest
from function_runs import Small, small
from hypothesis import given
from hypothesis import strategies as st

from eop.core.files import write_bytes, write_text
from eop.functions.training_progress import Epoch, TrainingProgress, read_curve, training_so_far
from eop.runtime.node import Instance

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "epoch\tloss\ttokens\tseconds\n"
NOW = 1_800_000_000.0


def curve(folder: Path, *rows: str, head: str = HEAD, at: float = NOW) -> None:
    write_text(folder / "curve.tsv", head + "".join(f"{row}\n" for row in rows))
    os.utime(folder / "curve.tsv", (at, at))


@pytest.fixture
def at_work(tmp_path: Path) -> Small:
    """A branch whose training has been entered; its own config asks for four epochs."""
    run = small(tmp_path)
    run.to_branches()
    own = "train: {epochs: 4}\n"
    run.play("it01_p01_implement", {"patch": "", "experiment": own})
    run.play("it01_p01_preflight", {"preflight": {"passed": True, "invariants": []}})
    run.run.enter("it01_p01_train")
    return run


def seen(run: Small, key: str = "it01_p01_train", now: float = NOW) -> TrainingProgress | None:
    return training_so_far(run.project, run.state, Instance.parse(key), now)


def work(run: Small, key: str = "it01/p01/train") -> Path:
    return run.project.run_dir / key / "work"


def test_nothing_is_estimated_before_an_epoch_is_complete(at_work: Small) -> None:
    assert seen(at_work) == TrainingProgress(1, 1, 2, 0, 4, None, 0.0, None)


def test_the_time_that_is_left_is_that_of_the_epochs_of_all_seeds(at_work: Small) -> None:
    curve(work(at_work) / "seed1", "1\t3.5\t10\t2.0", "2\t2.5\t10\t4.0")
    assert seen(at_work) == TrainingProgress(
        1, 1, 2, 2, 4, Epoch(2.5, 4.0, {}), share=2 / 8, left_s=6 * 3.0
    )
    assert seen(at_work, now=NOW + 1).left_s == 17.0
    assert seen(at_work, now=NOW + 1000).left_s == 15.0, "no more than a whole epoch has passed"
    assert seen(at_work, now=NOW - 1000).left_s == 18.0, "a clock that is behind"


def test_the_second_seed_comes_after_the_first(at_work: Small) -> None:
    curve(work(at_work) / "seed1", *["1\t3.5\t10\t2.0"] * 4)
    write_text(work(at_work) / "seed1" / "checkpoint.json", "{}")
    found = seen(at_work)
    assert (found.seed, found.place, found.epoch, found.last) == (2, 2, 0, None)
    assert (found.share, found.left_s) == (0.5, 8.0), "estimated from the first"
    write_text(work(at_work) / "seed2" / "checkpoint.json", "{}")
    assert seen(at_work) is None, "trained, and judged or written down now"


def test_what_the_objective_watches_stands_beside_the_loss(at_work: Small) -> None:
    head = HEAD.replace("seconds\n", "seconds\tmargin\n")
    curve(work(at_work) / "seed1", "1\t3.5\t10\t2.0\t0.25", head=head)
    assert seen(at_work).last == Epoch(3.5, 2.0, {"margin": 0.25})


def test_a_config_that_says_no_epochs_leaves_them_unknown(tmp_path: Path) -> None:
    run = small(tmp_path)
    run.run.advance()
    run.run.enter("it01_baseline")
    curve(work(run, "it01/baseline") / "seed1", "1\t3.5\t10\t2.0")
    found = seen(run, "it01_baseline")
    assert (found.epoch, found.epochs, found.share, found.left_s) == (1, None, None, None)
    write_text(run.project.base_experiment, "train: {epochs: 4}\n")
    assert seen(run, "it01_baseline").epochs == 4


def test_other_functions_train_nothing(at_work: Small) -> None:
    assert seen(at_work, "it01_p01_preflight") is None
    assert seen(at_work, "it01_promote") is None


@pytest.mark.parametrize("seconds", ["-5", "1e308", "inf", "nan", ""])
def test_no_time_is_estimated_from_seconds_that_are_none(at_work: Small, seconds: str) -> None:
    curve(work(at_work) / "seed1", f"1\t3.5\t10\t{seconds}", f"2\t3.5\t10\t{seconds}")
    assert seen(at_work).left_s is None


def test_a_link_is_not_followed(at_work: Small, tmp_path: Path) -> None:
    curve(tmp_path / "elsewhere", "1\t3.5\t10\t2.0")
    work(at_work).mkdir(parents=True)
    (work(at_work) / "seed1").symlink_to(tmp_path / "elsewhere")
    (work(at_work) / "seed2").mkdir()
    (work(at_work) / "seed2" / "curve.tsv").symlink_to(tmp_path / "elsewhere" / "curve.tsv")
    assert seen(at_work).last is None
    assert read_curve(work(at_work) / "seed2") == []


@given(
    st.one_of(
        st.binary(max_size=200),
        st.text("0123456789.\t\nnainfe-losecdpth\x1b", max_size=200).map(
            lambda text: (HEAD + text).encode()
        ),
    )
)
def test_whatever_a_candidate_writes_is_numbers_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp() / "any"
    write_bytes(folder / "curve.tsv", content)
    for epoch in read_curve(folder):
        assert math.isfinite(epoch.loss)
        assert 0 <= epoch.seconds <= 1e9


def test_a_curve_that_is_cut_in_the_middle_gives_what_is_whole(tmp_path: Path) -> None:
    curve(tmp_path, "1\t3.5\t10\t2.0")
    whole = (tmp_path / "curve.tsv").read_bytes()
    for cut in range(len(whole)):
        write_bytes(tmp_path / "curve.tsv", whole[:cut])
        assert len(read_curve(tmp_path)) <= 1
