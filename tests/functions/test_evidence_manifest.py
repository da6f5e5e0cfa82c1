"""Every row keeps what it rests on, whatever its end; what changes afterwards is found."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from entry_samples import REPOSITORY
from test_publish import decided

from eop.agents.jail import Jail, Level
from eop.cli import cli
from eop.core.errors import EopError
from eop.core.files import write_text
from eop.evidence.objects import ObjectStore
from eop.functions import publish
from eop.functions.context import Context
from eop.functions.evidence_archive import archive_path, restore
from eop.functions.evidence_manifest import manifest_path
from eop.functions.evidence_reading import differences, evidence_problems, read_manifest
from eop.project.project import Project
from eop.runtime.node import Instance
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

GOOD, BAD = "r1-it01-p01", "r1-it01-p02"
ROWS = ["r1-base", "r1-popularity", GOOD, BAD]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    run = decided(tmp_path)
    attempt = run.run.folder / "it01/p01/implement/work/0-author/a1"
    write_text(attempt / "prompt.md", "Do it.")
    (attempt / "link").symlink_to(attempt / "prompt.md")
    write_text(run.run.folder / "it01/p01/preflight/work/preflight.stderr", "a warning\n")
    product = {"name": "scripted", "version": "1", "sha256": "ab" * 32}
    write_text(attempt / "result.json", json.dumps({"product": product}))
    shutil.copy(REPOSITORY / "config/schemas/evidence.schema.yaml", tmp_path / "config/schemas")
    publish.publish(run.context("it01_publish"))
    return tmp_path


def call(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--project", str(root), "evidence", *arguments])


def test_every_end_has_its_evidence(root: Path) -> None:
    for name in ROWS:
        assert evidence_problems(root, name) == []
    good, bad = read_manifest(root, GOOD), read_manifest(root, BAD)
    roles = {file["role"] for file in good["files"]}
    assert {"plan", "config", "prompt", "patch", "experiment", "preflight", "output"} <= roles
    assert {"checkpoint", "metrics", "weights", "ranks", "decision", "snapshot", "split"} <= roles
    assert (bad["outcome"], bad["reason"]) == ("failed", "implement: it does not start")
    assert [node["outcome"] for node in bad["nodes"]].count("skipped") == 3
    assert {"plan", "decision"} <= {file["role"] for file in bad["files"]}
    assert bad["decision"] == "not measured"
    implement = next(node for node in good["nodes"] if node["node"].endswith("implement"))
    assert (implement["actions"], implement["usd"]) == (3, None), "unknown is not 0"
    assert not any(file["path"].endswith("link") for file in good["files"])


def test_the_evidence_outlives_the_run(root: Path) -> None:
    shutil.rmtree(root / "runs")
    assert evidence_problems(root, GOOD) == []
    prompt = next(f for f in read_manifest(root, GOOD)["files"] if f["role"] == "prompt")
    assert ObjectStore.of(root).get(prompt["sha256"]) == b"Do it."


def test_a_clone_has_its_evidence_from_the_archive(root: Path) -> None:
    shutil.rmtree(root / "evidence")
    done = call(root, "verify", GOOD)
    assert (done.exit_code, "eop evidence restore" in done.stderr) == (6, True)
    assert call(root, "restore").exit_code == 0
    assert evidence_problems(root, GOOD) == evidence_problems(root, BAD) == []
    assert f"{GOOD}: 0 files" in call(root, "restore", GOOD).stdout


@pytest.mark.parametrize("harm", ["gone", "cut", "forged", "another's"])
def test_an_archive_that_does_not_hold_the_evidence_is_refused(root: Path, harm: str) -> None:
    path = archive_path(root, GOOD)
    content = path.read_bytes()
    shutil.rmtree(root / "evidence")
    path.unlink()
    if harm == "cut":
        path.write_bytes(content[:700])
    elif harm == "forged":
        path.write_bytes(content.replace(b"Do it.", b"Do it!"))
    elif harm == "another's":
        path.write_bytes(archive_path(root, BAD).read_bytes())
    code = "EOP621" if harm == "cut" else "EOP649"
    with pytest.raises(EopError, match=code):
        restore(root, GOOD, read_manifest(root, GOOD))
    assert any(line.endswith("missing") for line in evidence_problems(root, GOOD))


def test_publishing_again_writes_the_same_bytes(root: Path) -> None:
    paths = manifest_path(root, GOOD), archive_path(root, GOOD)
    before = [path.read_bytes() for path in paths]
    shutil.rmtree(root / "evidence")
    project = Project.of_run(root, "r1")
    state = Trace(project.trace_dir, project.plan).state()
    phase, instance = project.plan.phase("publish"), Instance.parse("it01_publish")
    publish.publish(Context(project, phase, instance, state, Jail(Level.NONE)))
    assert [path.read_bytes() for path in paths] == before
    assert evidence_problems(root, GOOD) == []


@pytest.mark.parametrize("lost", ["object", "rotted", "weights", "snapshot", "row"])
def test_what_was_lost_or_changed_is_named(root: Path, lost: str) -> None:
    manifest, store = read_manifest(root, GOOD), ObjectStore.of(root)
    prompt = next(file for file in manifest["files"] if file["role"] == "prompt")
    kept = next((file for file in manifest["files"] if file["role"] == lost), None)
    if lost == "object":
        store.path(prompt["sha256"]).unlink()
    elif lost == "rotted":
        store.path(prompt["sha256"]).write_text("Do something else.")
    elif kept:
        (root / kept["path"]).write_bytes(b"w")
    else:
        path = root / f"leaderboard/{GOOD}/entry.yaml"
        path.write_text(path.read_text() + "# edited\n")
    expected = kept["path"] if kept else "entry.yaml" if lost == "row" else prompt["path"]
    (problem,) = evidence_problems(root, GOOD)
    assert problem.startswith(f"{expected}: ")
    done = call(root, "verify")
    assert (done.exit_code, expected in done.stderr) == (6, True)
    # The other row rests on the same snapshot, and on nothing else of this.
    assert call(root, "verify", BAD).exit_code == (6 if lost == "snapshot" else 0)


def test_two_rows_differ_in_what_was_tried_and_came_of_it(root: Path) -> None:
    assert differences(root, GOOD, GOOD) == []
    found = {what: (one, other) for what, one, other in differences(root, GOOD, BAD)}
    assert found["standing"] == ("not_compared", "failed")
    assert found["patch"][1] is None
    assert found["config.name"] == ("p01", None)
    assert found["node implement: outcome"] == ("completed", "failed")
    assert found["validation ndcg@10, seed 1"] == (0.2, None)
    assert "split" not in found
    assert "plan.digest" not in found
    text = call(root, "diff", GOOD, BAD).stdout
    assert f"node implement: outcome\n  {GOOD}: completed\n  {BAD}: failed\n" in text


def test_a_row_of_an_earlier_version_has_no_manifest(root: Path) -> None:
    manifest_path(root, BAD).unlink()
    with pytest.raises(EopError, match=r"EOP648.*an earlier version"):
        read_manifest(root, BAD)
    done = call(root, "verify")
    assert (done.exit_code, "3 rows: all hold; 1 rows without a manifest" in done.stdout) == (
        0,
        True,
    )
    assert isinstance(call(root, "show", BAD).exception, EopError)
    assert "node it01_p01_implement: completed" in call(root, "show", GOOD).stdout
