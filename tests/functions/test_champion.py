"""The champion leaves its run as patches and as a recipe that fits another run as it is."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner
from entry_samples import candidate, evidence, failed, project
from test_recipes_function import opened, run_of
from test_trees import sources

from eop.cli import cli
from eop.core.errors import EopError
from eop.core.files import write_json, write_text
from eop.functions.champion import champion_of, export
from eop.functions.recipes import compose, read_recipe, recipes
from eop.functions.trees import candidate_tree, pin_snapshot, snapshot_tree
from eop.leaderboard import Decision, write_entry

if TYPE_CHECKING:
    from pathlib import Path

    from eop.leaderboard import Entry

BASE = {"model": {"dim": 4, "heads": 1}, "train": {"epochs": 2}}


def patch(*lines: str) -> bytes:
    """From ``width = 1`` to these lines in the one editable file, against the snapshot."""
    added = "".join(f"+{line}\n" for line in lines)
    head = "diff --git a/hstu/models/net.py b/hstu/models/net.py\n"
    names = "--- a/hstu/models/net.py\n+++ b/hstu/models/net.py\n"
    return f"{head}{names}@@ -1 +1,{len(lines)} @@\n-width = 1\n{added}".encode()


WIDER, DEEPER = patch("width = 2"), patch("width = 2", "depth = 3")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    sources(project(tmp_path))
    pinned = pin_snapshot(tmp_path, "toy")
    digest = hashlib.sha256(pinned.read_bytes()).hexdigest()
    snapshot = {"path": str(pinned.relative_to(tmp_path)), "sha256": digest}
    publish(tmp_path, "demo-base", None, BASE, b"", snapshot, kind="base", decision=None)
    return tmp_path


def publish(
    root: Path,
    name: str,
    parent: str | None,
    config: dict[str, Any],
    change: bytes,
    snapshot: dict[str, str] | None = None,
    **changes: Any,
) -> Entry:
    if snapshot is None:
        snapshot = champion_of(root, "demo").base.evidence["snapshot"]
    told = {"sha256": hashlib.sha256(change).hexdigest(), "size": len(change)} if change else None
    facts = evidence(patch=told, config=config, snapshot=snapshot, checkpoints=[])
    entry = candidate(name, parent=parent, evidence=facts, **changes)
    files = {"config.yaml": yaml.safe_dump(config).encode()}
    write_entry(root, entry, {**files, **({"patch.diff": change} if change else {})})
    return entry


def evolved(root: Path) -> None:
    """Three promotions, of which the second is a setting, beside rows that were not promoted."""
    no = Decision(False, -0.01, (-0.02, -0.005), "worse")
    two = {**BASE, "train": {"epochs": 3}}
    publish(root, "demo-it01-p01", "demo-base", BASE, WIDER, iteration=1)
    publish(root, "demo-it01-p02", "demo-base", BASE, DEEPER, iteration=1, decision=no)
    publish(root, "demo-it02-p01", "demo-it01-p01", two, WIDER, iteration=2)
    lost = failed("demo-it03-p01", iteration=3, parent="demo-it02-p01")
    write_entry(root, lost, {})
    publish(root, "demo-it04-p01", "demo-it02-p01", two, DEEPER, iteration=4)


def test_without_a_promotion_the_base_leads_and_is_no_recipe(root: Path) -> None:
    no = Decision(False, 0.01, (-0.02, 0.04), "within the noise")
    publish(root, "demo-it01-p01", "demo-base", BASE, WIDER, decision=no)
    standing = champion_of(root, "demo")
    assert [entry.id for entry in standing.chain] == ["demo-base"]
    with pytest.raises(EopError, match=r"EOP694.*nothing was promoted"):
        export(root, standing, root / "out", "x")
    with pytest.raises(EopError, match=r"EOP694.*has published no base"):
        champion_of(root, "dem")


def test_the_champion_stands_on_promoted_rows_alone(root: Path) -> None:
    evolved(root)
    standing = champion_of(root, "demo")
    names = ["demo-base", "demo-it01-p01", "demo-it02-p01", "demo-it04-p01"]
    assert [entry.id for entry in standing.chain] == names
    publish(root, "demo-it05-p01", "demo-it01-p02", BASE, DEEPER, iteration=5)
    with pytest.raises(EopError, match=r"EOP694.*'demo-it01-p02', which was not promoted"):
        champion_of(root, "demo")


def test_the_series_leads_step_by_step_to_the_champion_s_tree(root: Path, tmp_path: Path) -> None:
    evolved(root)
    files = export(root, champion_of(root, "demo"), root / "out", "wide")
    series = [path for path in files if path.parent.name == "wide.series"]
    assert [path.name for path in series] == ["0001-p01.patch", "0003-p01.patch"]
    tree = tmp_path / "elsewhere"
    write_text(tree / "hstu/models/net.py", "width = 1\n")
    for path, text in zip(series, ("width = 2\n", "width = 2\ndepth = 3\n"), strict=True):
        subprocess.run(["git", "apply", "--unsafe-paths", str(path)], cwd=tree, check=True)
        assert (tree / "hstu/models/net.py").read_text() == text
    assert (root / "out/wide.patch").read_bytes() == DEEPER
    recipe = read_recipe(root / "out/wide.yaml", "wide.yaml")
    assert recipe["recipe"] == {"train": {"epochs": 3}}
    assert "demo-it04-p01" in recipe["hypothesis"]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model": {"dim": 4}, "train": {"epochs": 2}}, "model.heads is gone"),
        ({**BASE, "data": {"path": "x"}}, "section data"),
    ],
)
def test_what_no_recipe_can_say_is_not_exported(root: Path, config: Any, words: str) -> None:
    publish(root, "demo-it01-p01", "demo-base", config, WIDER)
    with pytest.raises(EopError, match=rf"EOP694.*{words}"):
        export(root, champion_of(root, "demo"), root / "out", "x")
    assert not (root / "out").exists()


@pytest.mark.parametrize("lost", ["leaderboard/demo-it02-p01/patch.diff", "data/snapshots"])
def test_changed_files_are_not_exported(root: Path, lost: str) -> None:
    evolved(root)
    path = root / lost
    path = path if path.is_file() else next(path.iterdir())
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(EopError, match="EOP695"):
        export(root, champion_of(root, "demo"), root / "out", "x")
    assert not (root / "out").exists()


def test_the_recipe_replays_in_another_run_without_edits(root: Path, tmp_path: Path) -> None:
    evolved(root)
    other = tmp_path / "other"
    run = run_of(sources(project(other)), names=["wide"])
    for name in ("wide.yaml", "wide.patch"):
        (other / "config/recipes" / name).unlink(missing_ok=True)
    export(root, champion_of(root, "demo"), other / "config/recipes", "wide")
    pinned = pin_snapshot(other, "toy")
    facts = {"path": run.project.relative(pinned), "sha256": _sha(pinned)}
    write_json(run.project.run_dir / "base" / "snapshot.json", facts)
    (item,) = opened(run)
    assert item["patch"].encode() == DEEPER
    context = run.context("it01_p01_implement")
    composed = yaml.safe_load(compose(context).read_text())
    assert composed == {"model": {"dim": 4, "heads": 1}, "train": {"epochs": 3}}
    tree = candidate_tree(run.project, context.patch())
    assert (tree / "hstu/models/net.py").read_text() == "width = 2\ndepth = 3\n"
    assert (snapshot_tree(run.project) / "hstu/models/net.py").read_text() == "width = 1\n"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (DEEPER.replace(b"width = 1", b"width = 7"), "EOP853"),
        (
            DEEPER.replace(b"hstu/models/net.py", b"README.md").replace(b"width = 1", b"read"),
            "EOP693",
        ),
    ],
)
def test_a_patch_that_does_not_fit_or_touches_the_judge_is_refused(
    tmp_path: Path, change: bytes, words: str
) -> None:
    run = run_of(sources(tmp_path), names=["wide"])
    pinned = pin_snapshot(tmp_path, "toy")
    facts = {"path": run.project.relative(pinned), "sha256": _sha(pinned)}
    write_json(run.project.run_dir / "base" / "snapshot.json", facts)
    (tmp_path / "config/recipes/wide.patch").write_bytes(change)
    phase = replace(run.project.plan.phase("propose"), arguments={"folder": "config/recipes"})
    context = replace(run.context("it01_propose"), phase=phase)
    target = replace(run.project.plan, target="toy")
    context = replace(context, project=replace(run.project, plan=target))
    with pytest.raises(EopError, match=words):
        recipes(context)


def test_the_command_shows_and_exports(root: Path) -> None:
    evolved(root)
    runner = CliRunner()
    shown = runner.invoke(cli, ["--project", str(root), "champion", "show", "demo", "--json"])
    assert json.loads(shown.stdout)["champion"] == "demo-it04-p01"
    text = runner.invoke(cli, ["--project", str(root), "champion", "show", "demo"]).stdout
    assert "demo-it01-p01  +0.0200 [+0.0100, +0.0300] on validation, 2 seeds" in text
    done = runner.invoke(cli, ["--project", str(root), "champion", "export", "demo"])
    assert done.stdout.split() == [
        f"config/recipes/champions/p01{name}"
        for name in (".yaml", ".patch", ".series/0001-p01.patch", ".series/0003-p01.patch")
    ]
    bad = runner.invoke(
        cli, ["--project", str(root), "champion", "export", "demo", "--name", "../x"]
    )
    assert isinstance(bad.exception, EopError)


def _sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
