"""What bad input gets: an error that names the place, a status by kind, nothing written half."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pandas as pd
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Project


def test_unknown_config_key(fresh: Project) -> None:
    done = fresh.snakemake("-n", "--config", "datset=ml-100k")
    assert done.returncode == 5
    assert "unknown key 'datset' (did you mean 'dataset'?)" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (fresh.root / "runs" / "minimal-synthetic").exists()
    assert fresh.eop("run", "--config", "datset=x").returncode == 5


def test_malformed_protocol(fresh: Project) -> None:
    path = fresh.root / "config/protocols/minimal.eop.md"
    path.write_text(path.read_text().replace("needs: [agree]", "needs: [agreee]"))
    done = fresh.snakemake("-n")
    assert done.returncode == 4
    assert "config/protocols/minimal.eop.md:" in done.stderr
    assert "did you mean 'agree'?" in done.stderr
    assert "^^^^^^" in done.stderr
    assert not (fresh.root / "runs" / "minimal-synthetic").exists()
    checked = fresh.eop("check", "config/protocols/minimal.eop.md")
    assert checked.returncode == 4
    assert "EOP" in checked.stderr


def test_a_protocol_that_changes_in_mid_run_is_refused(project: Project) -> None:
    path = project.root / "config/protocols/minimal.eop.md"
    path.write_text(path.read_text().replace("Is the report right?", "Is it?"))
    done = project.snakemake()
    assert done.returncode == 7
    assert "the protocol has changed since run 'minimal-synthetic' began" in done.stderr
    assert "--config run=minimal-synthetic-2" in done.stderr


def test_a_config_that_changes_in_mid_run_is_refused(project: Project) -> None:
    done = project.snakemake("--config", "threads=2")
    assert done.returncode != 0
    assert "threads: 1 -> 2" in done.stderr


def test_an_edited_trace_is_refused(project: Project) -> None:
    event = project.events()[2]
    content = json.loads(event.read_text())
    content["data"]["attempt"] = 7
    event.write_text(json.dumps(content))
    done = project.snakemake()
    assert done.returncode != 0
    assert event.name in done.stderr
    verified = project.eop("verify")
    assert verified.returncode == 7
    assert event.name in verified.stderr


@pytest.mark.parametrize("kept", [0, 2])
def test_a_trace_without_its_end_is_refused(project: Project, kept: int) -> None:
    for event in project.events()[kept:]:
        event.unlink()
    done = project.snakemake()
    assert done.returncode == 7
    assert "it01_look has left, and the trace does not know" in done.stderr
    assert len(project.events()) == kept


def test_a_missing_data_set_says_where_to_get_it(fresh: Project) -> None:
    done = fresh.snakemake("--config", "dataset=ml-100k")
    assert done.returncode == 6
    assert "make data DATASET=ml-100k" in done.stderr
    assert "data/raw/ml-100k" in done.stderr
    assert not (fresh.root / "runs" / "minimal-ml-100k").exists(), "nothing is pinned yet"


def test_a_folder_of_one_s_own_is_not_made_up(fresh: Project, tmp_path: Path) -> None:
    """`data_dir` without `dataset`, or with a typo: nothing synthetic is written there."""
    done = fresh.snakemake("--config", f"data_dir={tmp_path / 'mine'}")
    assert done.returncode == 6
    assert not (tmp_path / "mine").exists()


def test_a_broken_playbook_stops_before_any_job(fresh: Project) -> None:
    path = fresh.root / "config/playbooks/minimal.yaml"
    path.write_text(path.read_text().replace("write:", "wrote:", 1))
    done = fresh.snakemake()
    assert done.returncode != 0
    assert "unknown key 'wrote'" in done.stderr
    assert len(fresh.events()) <= 1, "no node was entered"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("column", "timestamp"),
        ("text", "not a whole number"),
        ("twice", "duplicate"),
        ("short", "fewer than 3 events"),
    ],
)
def test_bad_data_files(fresh: Project, fault: str, message: str) -> None:
    rows = [(user, item, 100 * user + item) for user in range(1, 9) for item in range(1, 7)]
    frame = pd.DataFrame(rows, columns=["user_id", "item_id", "timestamp"]).astype(object)
    if fault == "column":
        frame = frame.drop(columns="timestamp")
    elif fault == "text":
        frame.loc[3, "item_id"] = "seven"
    elif fault == "twice":
        frame = pd.concat([frame, frame.iloc[[5]]])
    else:
        frame = frame[(frame["user_id"] != 4) | (frame["item_id"] < 3)]
    folder = fresh.root / "data" / "raw" / "own"
    folder.mkdir(parents=True)
    frame.to_csv(folder / "interactions.csv", index=False)
    done = fresh.snakemake("--config", "dataset=own")
    assert done.returncode != 0
    assert "interactions.csv" in done.stdout + done.stderr
    assert message in (done.stdout + done.stderr).lower()
    assert not (fresh.root / "data" / "splits" / "own").exists()
