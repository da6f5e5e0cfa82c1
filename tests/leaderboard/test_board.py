"""What DVC is told of a leaderboard: bounded, made of the entries alone, led by no lucky test."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from entry_samples import FILES, candidate, evidence, failed, project, scores
from hypothesis import given, settings
from hypothesis import strategies as st

from eop.leaderboard import Decision, Entry, read_entries, write_entry
from eop.leaderboard.board import BOARD, SHOWN, board, write_board
from eop.leaderboard.ranking import leader

if TYPE_CHECKING:
    import random

ROOT = Path(__file__).parents[2]
OWN = frozenset({"config.yaml", "curve.tsv"})
NAME = "toy-abababab"


def reference(name: str, ndcg: float) -> Entry:
    return candidate(name, ndcg, kind="base", parent=None, decision=None, iteration=None)


def noisy(name: str, ndcg: float) -> Entry:
    return candidate(name, ndcg, decision=Decision(False, 0.0, (-0.01, 0.01), "noise"))


def made(*entries: Entry) -> dict[str, str]:
    return board(entries, {entry.id: OWN for entry in entries})


def test_who_leads_was_promoted_or_is_a_reference_and_is_best_on_validation() -> None:
    lucky = replace(candidate("d-lucky", 0.11), test=scores(0.4))
    won = replace(candidate("d-won", 0.13), test=scores(0.1))
    entries = [reference("d-base", 0.10), lucky, won, noisy("d-noisy", 0.5), failed("d-failed")]
    assert leader(entries) is won
    assert leader([noisy("d-noisy", 0.5), failed("d-failed")]) is None
    told = json.loads(made(*entries)[f"{NAME}.leader.json"])
    assert (told["entry"], told["standing"]) == ("d-won", "promoted")
    assert told["test"]["ndcg@10"] == won.test.mean["ndcg@10"]
    assert (told["test"]["low"], told["test"]["high"]) == won.test.interval


def test_what_was_not_measured_is_left_out_and_drawn_nowhere() -> None:
    files = made(failed("d-failed"), reference("d-base", 0.1))
    assert json.loads(files[f"{NAME}/d-failed.json"]) == {
        "standing": "failed",
        "test": {},
        "validation": {},
    }
    drawn = json.loads(files[f"{NAME}.scores.json"])
    assert [point["entry"] for point in drawn] == ["d-base"]
    assert "scores-" not in made(failed("d-failed"))["dvc.yaml"]


def test_splits_never_share_a_table_or_a_picture() -> None:
    other = evidence(split={"dataset": "toy", "digest": "cd" * 32, "files": []})
    files = made(reference("a-base", 0.1), replace(reference("b-base", 0.2), evidence=other))
    listed = yaml.safe_load(files["dvc.yaml"])
    leaders = [name for name in listed["metrics"] if "leader" in name]
    assert leaders == [f"{NAME}.leader.json", "toy-cdcdcdcd.leader.json"]
    names = [name for plot in listed["plots"] for name in plot]
    assert sorted(names) == [f"{kind}-toy-{d}" for kind in ("curves", "scores")
                             for d in ("abababab", "cdcdcdcd")]  # fmt: skip


def test_of_a_thousand_rows_the_first_are_shown_and_who_leads() -> None:
    many = [noisy(f"d-{number:04d}", 0.1 + number * 1e-4) for number in range(1000)]
    base = reference("d-base", 0.05)
    files = made(base, *many)
    listed = yaml.safe_load(files["dvc.yaml"])
    assert listed["metrics"][0] == f"{NAME}.leader.json"
    assert listed["metrics"][1] == f"{NAME}/d-0999.json"
    assert len(listed["metrics"]) == SHOWN + 1
    assert len(files) == SHOWN + 5
    assert "(1001 rows in all" in files["dvc.yaml"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=12, unique=True), st.randoms())
def test_the_order_in_which_entries_come_changes_no_byte(
    numbers: list[int], shuffled: random.Random
) -> None:
    entries = [noisy(f"d-{number}", round(number / 7) / 100) for number in numbers]
    mixed = list(entries)
    shuffled.shuffle(mixed)
    assert made(*entries) == made(*mixed)


def test_the_folder_is_what_the_entries_make_it(tmp_path: Path) -> None:
    root = project(tmp_path)
    write_entry(root, candidate("d-it01-p01"), FILES)
    assert f"{BOARD}/dvc.yaml" in write_board(root)
    assert write_board(root) == []
    one = {path: path.read_bytes() for path in (root / BOARD).rglob("*") if path.is_file()}
    stale = [f"{NAME}/d-gone.json", "old-12345678.leader.yaml", "old-12345678.scores.json"]
    for name in stale:
        (root / BOARD / name).write_text("{}")
    write_entry(root, failed("d-it01-p02"), {})
    write_board(root)
    assert not any((root / BOARD / name).exists() for name in stale)
    assert (root / BOARD / NAME / "d-it01-p02.json").is_file()
    # Without that entry, made anew: the same bytes as before.
    (root / "leaderboard" / "d-it01-p02" / "entry.yaml").unlink()
    write_board(root)
    assert {p: p.read_bytes() for p in (root / BOARD).rglob("*") if p.is_file()} == one


def test_the_board_that_ships_is_up_to_date(tmp_path: Path) -> None:
    write_board(project(tmp_path))
    for path in (tmp_path / ".dvc" / "plots").iterdir():
        assert path.read_bytes() == (ROOT / ".dvc" / "plots" / path.name).read_bytes()
    entries = read_entries(ROOT)
    files = {e.id: {path.name for path in (ROOT / "leaderboard" / e.id).iterdir()} for e in entries}
    for name, text in board(entries, files).items():
        assert (ROOT / BOARD / name).read_text() == text, "run: eop store index"
