"""Trees and patches: any edit comes back byte for byte, and a hostile tree gains nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eop.agents import patch
from eop.agents.contract import Change
from eop.agents.scan import Caps, scan
from eop.core.errors import EopError

PART = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp"), blacklist_characters="/\0"),
    min_size=1,
    max_size=6,
).filter(lambda s: s not in (".", "..") and s.lower() != ".git" and not s.endswith(".pyc"))
PATH = st.lists(PART | st.sampled_from(["a", "b", "c d", '"q', "ü"]), min_size=1, max_size=3)
CONTENT = st.binary(max_size=60) | st.sampled_from([b"a\r\nb\n", b"x\n" * 30, b"$Id$\n", b"\0\xff"])
TREE = st.dictionaries(PATH.map("/".join), st.tuples(CONTENT, st.booleans()), max_size=6)


def lay(root: Path, files: dict[str, tuple[bytes, bool]]) -> dict[str, tuple[bytes, bool]]:
    """Write the files that a file system can hold together; returns those."""
    made = {}
    for name, (content, program) in files.items():
        path = root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError:
            continue
        path.chmod(0o755 if program else 0o644)
        made[name] = (content, program)
    return made


def mode_bits(root: Path) -> dict[str, tuple[bytes, bool]]:
    return {
        path.relative_to(root).as_posix(): (path.read_bytes(), bool(path.stat().st_mode & 0o100))
        for path in root.rglob("*")
        if path.is_file()
    }


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=TREE, after=TREE)
def test_any_edit_round_trips(
    before: dict[str, tuple[bytes, bool]], after: dict[str, tuple[bytes, bool]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "old").mkdir()
        (root / "new").mkdir()
        lay(root / "old", before)
        wanted = lay(root / "new", after)
        store = patch.init_store(root / "store.git")
        base = patch.commit_tree(store, root / "old")
        tree = patch.commit_tree(store, root / "new")
        made = patch.diff(store, base, tree)
        patch.apply(root / "old", made, root / "out")
        assert mode_bits(root / "out") == mode_bits(root / "new") == wanted


def store_of(root: Path) -> tuple[Path, Path]:
    tree = root / "tree"
    tree.mkdir()
    return patch.init_store(root / "store.git"), tree


def test_links_inside_the_tree_are_kept(tmp_path: Path) -> None:
    store, tree = store_of(tmp_path)
    (tree / "sub").mkdir()
    (tree / "sub/a").write_text("a")
    (tree / "sub/link").symlink_to("../sub/a")
    assert scan(tree).problems == ()
    patch.export(store, patch.commit_tree(store, tree), tmp_path / "out")
    assert (tmp_path / "out/sub/link").readlink() == Path("../sub/a")


def test_a_file_that_becomes_a_link_or_a_folder(tmp_path: Path) -> None:
    store, tree = store_of(tmp_path)
    (tree / "a").write_text("a")
    (tree / "b").write_text("b")
    base = patch.commit_tree(store, tree)
    (tree / "a").unlink()
    (tree / "a").symlink_to("b")
    (tree / "b").unlink()
    (tree / "b").mkdir()
    (tree / "b/c").write_text("c")
    made = patch.commit_tree(store, tree)
    assert patch.apply_to_tree(store, base, patch.diff(store, base, made)) == made
    kinds = {c.path: c.kind for c in patch.changes(store, base, made)}
    assert kinds == {"a": "T", "b": "D", "b/c": "A"}


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        (lambda t: (t / "l").symlink_to("/etc/passwd"), "link out of the tree"),
        (lambda t: (t / "l").symlink_to("../../x"), "link out of the tree"),
        (lambda t: (t / "l").symlink_to("a/../../x"), "link out of the tree"),
        (lambda t: (t / ".gitmodules").symlink_to("a"), "git would not store"),
        (lambda t: os.mkfifo(t / "f"), "neither a file nor a link"),
        (lambda t: os.link(t / "a", t / "h"), "hard link"),
        (lambda t: (t / "big").write_bytes(b"x" * 2000), "over the cap"),
        (lambda t: (t / "n\nl").write_text("x"), "not clean UTF-8"),
        (lambda t: Path(os.fsdecode(os.fsencode(t) + b"/\xff")).write_text("x"), "clean UTF-8"),
        (lambda t: (t / "sub/.git").mkdir(parents=True), "nested git repository"),
        (lambda t: (t / ".git").write_text("gitdir: /x"), "nested git repository"),
        (lambda t: (t / ".GIT").mkdir(), None),
    ],
)
def test_what_must_not_enter_a_tree(tmp_path: Path, plant: object, said: str | None) -> None:
    store, tree = store_of(tmp_path)
    (tree / "a").write_text("a")
    clean = patch.commit_tree(store, tree)
    plant(tree)  # type: ignore[operator]
    found = scan(tree, Caps(file_bytes=1000))
    assert [said in problem for problem in found.problems] == ([True] * len(found.problems))
    assert bool(found.problems) == (said is not None)
    assert {entry.path for entry in found.entries} <= {"a"}
    if said != "over the cap" and said != "hard link":
        assert patch.commit_tree(store, tree) == clean


def test_too_many_files(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / str(number)).write_text("x")
    found = scan(tmp_path, Caps(files=3))
    assert found.problems == ("more than 3 files",)
    assert len(found.entries) == 3


def test_bytecode_and_the_history_are_passed_over(tmp_path: Path) -> None:
    store, tree = store_of(tmp_path)
    (tree / "a.py").write_text("a")
    clean = patch.commit_tree(store, tree)
    (tree / "__pycache__").mkdir()
    (tree / "__pycache__/a.cpython-311.pyc").write_bytes(b"x")
    (tree / "b.pyc").write_bytes(b"x")
    (tree / ".git").mkdir()
    (tree / ".git/config").write_text("x")
    assert patch.commit_tree(store, tree) == clean
    assert scan(tree).problems == ()


def hostile_repository(tree: Path, sentinel: Path) -> None:
    """A history whose configuration runs a program at every step of the naive way."""
    program = tree.parent / "attack.sh"
    program.write_text(f"#!/bin/sh\necho attacked >> {sentinel}\ncat\n")
    program.chmod(0o755)
    subprocess.run(["git", "init", "-q", "."], cwd=tree, check=True)
    for key, value in {
        "core.fsmonitor": str(program),
        "core.hooksPath": str(tree.parent),
        "diff.external": str(program),
        "filter.evil.clean": str(program),
        "filter.evil.smudge": str(program),
        "diff.evil.textconv": str(program),
        "diff.evil.command": str(program),
    }.items():
        subprocess.run(["git", "config", key, value], cwd=tree, check=True)
    (tree / ".gitattributes").write_text("* text eol=crlf ident filter=evil diff=evil\n")
    (tree / ".gitignore").write_text("*\n")


def test_a_hostile_git_configuration_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, tree = store_of(tmp_path)
    sentinel = tmp_path / "sentinel"
    (tree / "a.txt").write_bytes(b"$Id$\r\nx\n")
    base = patch.commit_tree(store, tree)
    hostile_repository(tree, sentinel)
    subprocess.run(["git", "diff"], cwd=tree, check=False, capture_output=True)
    subprocess.run(["git", "status"], cwd=tree, check=False, capture_output=True)
    assert sentinel.exists(), "the trap does not work, so this test proves nothing"
    sentinel.unlink()
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(tmp_path / "attack.sh"))
    monkeypatch.chdir(tree)
    (tree / "a.txt").write_bytes(b"$Id$\r\ny\n")
    made = patch.commit_tree(store, tree)
    text = patch.diff(store, base, made)
    patch.export(store, made, tmp_path / "out")
    assert not sentinel.exists()
    assert {c.path for c in patch.changes(store, base, made)} == {
        ".gitattributes",
        ".gitignore",
        "a.txt",
    }
    assert (tmp_path / "out/a.txt").read_bytes() == b"$Id$\r\ny\n"
    assert b"+y" in text


def test_a_change_tells_what_the_path_is_afterwards(tmp_path: Path) -> None:
    store, tree = store_of(tmp_path)
    for name in ("gone", "runs", "leads"):
        (tree / name).write_text(name)
    base = patch.commit_tree(store, tree)
    (tree / "gone").unlink()
    (tree / "runs").chmod(0o755)
    (tree / "leads").unlink()
    (tree / "leads").symlink_to("runs")
    (tree / "new name").write_text("new")
    assert patch.changes(store, base, patch.commit_tree(store, tree)) == (
        Change("gone", "D", "000000"),
        Change("leads", "T", "120000"),
        Change("new name", "A", "100644"),
        Change("runs", "M", "100755"),
    )


@pytest.mark.parametrize("ruin", ["amend", "no_git", "git_file"])
def test_the_history_of_the_workspace_does_not_matter(tmp_path: Path, ruin: str) -> None:
    store, tree = store_of(tmp_path)
    (tree / "a").write_text("a")
    subprocess.run(["git", "init", "-q", "."], cwd=tree, check=True)
    base = patch.commit_tree(store, tree)
    (tree / "a").write_text("b")
    if ruin == "amend":
        who = ["-c", "user.name=x", "-c", "user.email=x@x"]
        subprocess.run(["git", "add", "-A"], cwd=tree, check=True)
        subprocess.run(["git", *who, "commit", "-qm", "x"], cwd=tree, check=True)
    else:
        shutil.rmtree(tree / ".git")
    if ruin == "git_file":
        (tree / ".git").write_text("gitdir: /elsewhere")
    assert patch.changes(store, base, patch.commit_tree(store, tree)) == (
        Change("a", "M", "100644"),
    )


def test_a_patch_that_does_not_apply(tmp_path: Path) -> None:
    store, tree = store_of(tmp_path)
    (tree / "a").write_text("one\n")
    base = patch.commit_tree(store, tree)
    (tree / "a").write_text("two\n")
    made = patch.diff(store, base, patch.commit_tree(store, tree))
    (tree / "a").write_text("something else\n")
    with pytest.raises(EopError, match="does not apply") as caught:
        patch.apply(tree, made, tmp_path / "out")
    assert "a" in caught.value.message
    assert sorted(p.name for p in tmp_path.iterdir()) == ["store.git", "tree"]


def test_a_patch_cannot_leave_its_directory(tmp_path: Path) -> None:
    _, tree = store_of(tmp_path)
    evil = (
        b"diff --git a/../evil b/../evil\nnew file mode 100644\n"
        b"--- /dev/null\n+++ b/../evil\n@@ -0,0 +1 @@\n+x\n"
    )
    with pytest.raises(EopError):
        patch.apply(tree, evil, tmp_path / "out")
    assert not (tmp_path / "evil").exists()


def test_an_empty_patch_copies_the_base(tmp_path: Path) -> None:
    _, tree = store_of(tmp_path)
    (tree / "a").write_text("a")
    patch.apply(tree, b"", tmp_path / "out")
    assert mode_bits(tmp_path / "out") == {"a": (b"a", False)}
    with pytest.raises(EopError, match="exists already"):
        patch.apply(tree, b"", tmp_path / "out")


def test_without_and_blob(tmp_path: Path) -> None:
    store, tree = store_of(tmp_path)
    (tree / "a").write_text("a")
    smaller = patch.commit_tree(store, tree)
    (tree / "experiment.yaml").write_text("x: 1\n")
    (tree / "link").symlink_to("a")
    full = patch.commit_tree(store, tree)
    assert patch.blob(store, full, "experiment.yaml") == b"x: 1\n"
    assert patch.blob(store, full, "link") is None
    assert patch.blob(store, smaller, "experiment.yaml") is None
    assert patch.without(store, patch.without(store, full, "link"), "experiment.yaml") == smaller
    assert patch.without(store, smaller, "experiment.yaml") == smaller
