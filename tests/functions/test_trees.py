"""Pinned snapshots and candidates' trees: equal bytes for equal trees, whole or not at all."""

from __future__ import annotations

import os
import tarfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from function_runs import small

from eop.core.errors import EopError
from eop.core.files import write_json, write_text
from eop.functions.trees import candidate_tree, pin_snapshot, snapshot_tree, unpack

if TYPE_CHECKING:
    from pathlib import Path

    from eop.project.project import Project

PATCH = """\
diff --git a/hstu/models/net.py b/hstu/models/net.py
--- a/hstu/models/net.py
+++ b/hstu/models/net.py
@@ -1 +1 @@
-width = 1
+width = 2
"""


def sources(root: Path) -> Path:
    write_text(
        root / "config/targets/toy.yaml",
        "name: toy\nsnapshot: [hstu, hstu/models, README.md]\neditable: [hstu/models/**]\n",
    )
    write_text(root / "hstu/models/net.py", "width = 1\n")
    write_text(root / "hstu/a.py", "")
    write_text(root / "README.md", "read\n")
    write_text(root / "hstu/__pycache__/a.pyc", "junk")
    return root


def pinned(root: Path) -> Project:
    project = small(sources(root)).project
    path = pin_snapshot(root, "toy")
    facts = {"path": project.relative(path), "sha256": _sha(path)}
    write_json(project.run_dir / "base" / "snapshot.json", facts)
    return project


def _sha(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_equal_trees_give_equal_bytes(tmp_path: Path) -> None:
    first = pin_snapshot(sources(tmp_path / "one"), "toy")
    other = sources(tmp_path / "__pycache__" / "two")
    os.utime(other / "hstu/a.py", (1, 1))
    (other / "hstu/a.py").chmod(0o755)
    second = pin_snapshot(other, "toy")
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        assert archive.getnames() == ["README.md", "hstu/a.py", "hstu/models/net.py"]
    (other / "hstu/a.py").write_text("b = 1\n")
    assert pin_snapshot(other, "toy").name != first.name


def test_a_broken_archive_of_the_same_name_is_replaced(tmp_path: Path) -> None:
    path = pin_snapshot(sources(tmp_path), "toy")
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    assert pin_snapshot(tmp_path, "toy").read_bytes() == whole


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    sources(tmp_path)
    (tmp_path / "README.md").unlink()
    with pytest.raises(EopError, match=r"EOP620.*'README\.md'"):
        pin_snapshot(tmp_path, "toy")


def test_unpacking_leaves_all_or_nothing(tmp_path: Path) -> None:
    path = pin_snapshot(sources(tmp_path), "toy")
    unpack(path, tmp_path / "whole")
    assert (tmp_path / "whole/hstu/models/net.py").read_text() == "width = 1\n"
    broken = tmp_path / "broken.tar"
    broken.write_bytes(path.read_bytes()[:700])
    with pytest.raises(EopError, match=r"EOP621.*cannot be read"):
        unpack(broken, tmp_path / "half")
    assert not (tmp_path / "half").exists()


def test_members_that_lead_out_are_refused(tmp_path: Path) -> None:
    evil = tmp_path / "evil.tar"
    with tarfile.open(evil, "w") as archive:
        archive.add(sources(tmp_path) / "README.md", arcname="../escaped")
    with pytest.raises(EopError, match="EOP621"):
        unpack(evil, tmp_path / "inside")
    assert not (tmp_path / "escaped").exists()


def test_the_tree_of_a_patch(tmp_path: Path) -> None:
    project = pinned(tmp_path)
    patch = tmp_path / "patch.diff"
    patch.write_text(PATCH)
    tree = candidate_tree(project, patch)
    assert (tree / "hstu/models/net.py").read_text() == "width = 2\n"
    base = candidate_tree(project, None)
    assert (base / "hstu/models/net.py").read_text() == "width = 1\n"
    patch.write_text("")
    assert candidate_tree(project, patch) == base == snapshot_tree(project)


def test_a_patch_that_does_not_apply_leaves_no_tree(tmp_path: Path) -> None:
    project = pinned(tmp_path)
    patch = tmp_path / "patch.diff"
    patch.write_text(PATCH.replace("-width = 1", "-width = 7"))
    with pytest.raises(EopError, match="does not apply"):
        candidate_tree(project, patch)
    left = {path.name for path in (project.run_dir / "trees").iterdir() if path.is_dir()}
    assert left == {"base"}


def test_jobs_that_need_the_same_tree_at_once(tmp_path: Path) -> None:
    project = pinned(tmp_path)
    patch = tmp_path / "patch.diff"
    patch.write_text(PATCH)
    with ThreadPoolExecutor(4) as pool:
        trees = list(pool.map(lambda _: candidate_tree(project, patch), range(4)))
    assert len(set(trees)) == 1
    assert (trees[0] / "hstu/models/net.py").read_text() == "width = 2\n"


def test_an_archive_that_is_not_the_pinned_one_is_refused(tmp_path: Path) -> None:
    project = pinned(tmp_path)
    (tmp_path / "hstu/a.py").write_text("b = 1\n")
    project.snapshot.write_bytes(pin_snapshot(tmp_path, "toy").read_bytes())
    with pytest.raises(EopError, match="EOP622"):
        snapshot_tree(project)
    assert not (project.run_dir / "trees" / "base").exists()
