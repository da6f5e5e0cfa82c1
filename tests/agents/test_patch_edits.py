"""What an agent may do to a workspace and its history: the patch tells it, byte for byte."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attempts_made import DONE, STARTED, attempt

from eop.agents import inspection, patch, workspace
from eop.agents.contract import Limits, Mode, Request, Status, Turn
from eop.agents.inspection import inspect
from eop.agents.redact import Redactor
from eop.agents.scan import Caps, scan
from eop.core.canonical import file_digest

if TYPE_CHECKING:
    from collections.abc import Callable

BASE = {
    "models/a.py": b"a = 1\nb = 2\n",
    "models/deep/c.py": b"c = 3\n",
    "data.bin": bytes(range(256)),
    "crlf.txt": b"one\r\ntwo\r\n",
    "empty": b"",
    "no_end": b"no newline",
}
WHO = ("-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false")


def git(tree: Path, *arguments: str) -> None:
    subprocess.run(["git", *WHO, *arguments], cwd=tree, check=True, capture_output=True)


@dataclass(frozen=True)
class Edit:
    """``make`` is what the agent does; ``said`` is in the one problem that there is, if any."""

    name: str
    make: Callable[[Path], object]
    said: str = ""


def amend_and_forget(tree: Path) -> None:
    (tree / "models/a.py").write_text("a = 2\n")
    git(tree, "commit", "-qa", "--amend", "-m", "other")
    git(tree, "reflog", "expire", "--expire=now", "--all")
    git(tree, "gc", "-q", "--prune=now")


def go_elsewhere(tree: Path) -> None:
    git(tree, "checkout", "-q", "--orphan", "other")
    git(tree, "rm", "-rqf", "models")
    git(tree, "commit", "-qm", "other")


def hide_by_ignoring(tree: Path) -> None:
    (tree / ".gitignore").write_text("*\n")
    (tree / "models/hidden.py").write_text("h = 1\n")
    git(tree, "update-index", "--assume-unchanged", "models/a.py")
    git(tree, "update-index", "--skip-worktree", "models/deep/c.py")
    (tree / "models/a.py").write_text("a = 9\n")
    (tree / "models/deep/c.py").write_text("c = 9\n")


def set_traps(tree: Path) -> None:
    trap = f"touch {tree.parent}/sprung; cat"
    (tree / ".gitattributes").write_text("* text eol=crlf ident filter=evil diff=evil\n")
    for key in ("core.fsmonitor", "diff.external", "filter.evil.clean", "filter.evil.smudge",
                "filter.evil.process", "diff.evil.textconv", "diff.evil.command"):  # fmt: skip
        git(tree, "config", key, trap)
    (tree / ".git/hooks").mkdir(exist_ok=True)
    for name in ("pre-commit", "post-index-change", "reference-transaction"):
        (tree / ".git/hooks" / name).write_text(f"#!/bin/sh\n{trap}\n")
        (tree / ".git/hooks" / name).chmod(0o755)
    (tree / "models/a.py").write_bytes(b"$Id$\r\na = 2\n")


def nest(tree: Path) -> None:
    (tree / "models/inner").mkdir()
    git(tree / "models/inner", "init", "-q")
    (tree / "models/inner/x.py").write_text("x = 1\n")


def swap(tree: Path) -> None:
    shutil.rmtree(tree / "models/deep")
    (tree / "models/deep").write_text("now a file\n")
    (tree / "empty").unlink()
    (tree / "empty").mkdir()
    (tree / "empty/now").write_text("a folder\n")


def odd_names(tree: Path) -> None:
    for name in ("-n", "--help", "a b", '"q"', "back\\slash", "ü\u0301", "b/..x", "*", "[x]",
                 "dev/null", " ", "x => y", "models/{a => b}.py"):  # fmt: skip
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)


EDITS = [
    Edit("changes a line", lambda t: (t / "models/a.py").write_text("a = 1\nb = 3\n")),
    Edit("adds, deletes and renames", lambda t: [
        (t / "new.py").write_text("n\n"), (t / "no_end").unlink(),
        (t / "models/a.py").rename(t / "models/z.py")]),
    Edit("changes only the mode", lambda t: (t / "models/a.py").chmod(0o755)),
    Edit("changes bytes", lambda t: (t / "data.bin").write_bytes(bytes(range(255, -1, -1)))),
    Edit("changes line ends", lambda t: [
        (t / "crlf.txt").write_bytes(b"one\ntwo\n"),
        (t / "models/a.py").write_bytes(b"a = 1\r\nb = 2\r\n")]),
    Edit("takes the last line end", lambda t: (t / "models/a.py").write_bytes(b"a = 1\nb = 2")),
    Edit("fills what was empty and empties the rest", lambda t: [
        (t / "empty").write_text("x"), (t / "models/a.py").write_text("")]),
    Edit("swaps files and folders", swap),
    Edit("links inside the tree", lambda t: [
        (t / "models/a.py").unlink(), (t / "models/a.py").symlink_to("deep/c.py")]),
    Edit("writes odd names", odd_names),
    Edit("writes a patch into a file", lambda t: (t / "models/a.py").write_text(
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\\ No newline\n")),
    Edit("writes a large file", lambda t: (t / "big").write_bytes(b"\0line\n" * 700_000)),
    Edit("writes attributes and modules", lambda t: [
        (t / ".gitattributes").write_text("* eol=crlf working-tree-encoding=UTF-16 export-subst\n"),
        (t / ".gitmodules").write_text('[submodule "x"]\n\tpath = models\n\turl = ../x\n'),
        (t / "models/a.py").write_text("$Format:%H$\n")]),
    Edit("commits", lambda t: [
        (t / "models/a.py").write_text("a = 2\n"), git(t, "commit", "-qam", "mine")]),
    Edit("amends and collects the garbage", amend_and_forget),
    Edit("goes to another branch", go_elsewhere),
    Edit("deletes the history", lambda t: [
        shutil.rmtree(t / ".git"), (t / "models/a.py").write_text("a = 2\n")]),
    Edit("hides by ignore rules and index flags", hide_by_ignoring),
    Edit("sets traps for whoever runs git", set_traps),
    Edit("puts a file for the history", lambda t: [
        shutil.rmtree(t / ".git"), (t / ".git").write_text("gitdir: /elsewhere\n"),
        (t / "models/a.py").write_text("a = 2\n")], "nested git repository"),
    Edit("nests a repository", nest, "nested git repository"),
    Edit("does nothing", lambda t: None),
]  # fmt: skip


def laid_out(folder: Path) -> tuple[Path, str, workspace.Workspace]:
    for name, content in BASE.items():
        (folder / "base" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "base" / name).write_bytes(content)
    store = patch.init_store(folder / "store.git")
    base = patch.commit_tree(store, folder / "base")
    space, _ = workspace.create(folder / "attempt", store, base, {}, "")
    return store, base, space


def held(root: Path) -> dict[str, tuple[bytes, bool] | str]:
    """Every file below a folder but git's own, with its bytes and mode, or where it leads."""
    found: dict[str, tuple[bytes, bool] | str] = {}
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [name for name in subfolders if name != ".git"]
        for path in (Path(folder, name) for name in files if name != ".git"):
            name = path.relative_to(root).as_posix()
            if path.is_symlink():
                found[name] = str(path.readlink())
            else:
                found[name] = (path.read_bytes(), bool(path.stat().st_mode & 0o100))
    return found


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name.replace(" ", "_"))
def test_an_edit_round_trips(tmp_path: Path, edit: Edit) -> None:
    store, base, space = laid_out(tmp_path)
    edit.make(space.tree)
    wanted = held(space.tree)
    (tmp_path / "attempt/sprung").unlink(missing_ok=True)
    assert [edit.said in problem for problem in scan(space.tree).problems] == [True] * bool(
        edit.said
    )
    tree = patch.commit_tree(store, space.tree)
    content = patch.diff(store, base, tree)
    patch.apply(tmp_path / "base", content, tmp_path / "out")
    assert held(tmp_path / "out") == wanted
    assert not (tmp_path / "attempt/sprung").exists()
    assert (content == b"") == (wanted == held(tmp_path / "base"))


def inspected(folder: Path, edit: Callable[[Path], object], caps: Caps) -> tuple[str, ...]:
    store, base, space = laid_out(folder)
    edit(space.tree)
    request = Request(
        Turn("run", "node", "implement", "implementer", 1), "p", "", space.directory, store, base,
        Mode.WRITE, ("**",), ("read", "edit"), Limits(),
    )  # fmt: skip
    made, violations = inspect(request, space, Redactor(), caps)
    written = space.directory / inspection.PATCH_FILE
    assert written.exists() == (made.bytes <= caps.patch_bytes)
    if written.exists():
        assert (written.stat().st_size, file_digest(written)) == (made.bytes, made.sha256)
    return violations


@pytest.mark.parametrize(
    ("caps", "said"),
    [
        (Caps(), []),
        (Caps(patch_bytes=200), ["patch: ", "over the cap of 200"]),
        (Caps(patch_files=2), ["patch: 3 files, over the cap of 2"]),
        (Caps(file_bytes=400), ["models/2.py: 500 bytes, over the cap of 400"]),
        (Caps(files=8), ["more than 8 files"]),
        (Caps(tree_bytes=1000), ["more than 1000 bytes"]),
    ],
)
def test_a_patch_has_its_bounds(tmp_path: Path, caps: Caps, said: list[str]) -> None:
    def edit(tree: Path) -> None:
        for number in range(3):
            (tree / f"models/{number}.py").write_text("x" * (300 + 100 * number))

    violations = "; ".join(inspected(tmp_path, edit, caps))
    assert bool(violations) == bool(said)
    assert [part for part in said if part not in violations] == []


def test_files_as_the_base_has_them(tmp_path: Path) -> None:
    store, base, space = laid_out(tmp_path)
    (space.tree / "models/a.py").write_text("a = 2\n")
    (space.tree / "new").write_text("n")
    same = {path.relative_to(space.tree).as_posix()
            for path in patch.unchanged(store, base, space.tree)}  # fmt: skip
    assert same == BASE.keys() - {"models/a.py"}


def test_what_looks_like_a_key_in_the_base_is_the_bases(tmp_path: Path) -> None:
    """A file that the agent did not touch is neither an offence of its nor changed."""
    files = {"models/a.py": "a = 1\n", "models/doc.py": "# sk-proj-aB3dE5fG7hJ9kL1mN3pQ\n"}
    edit = '\nPath("models/a.py").write_text("a = 2\\n")\n'
    result = attempt(tmp_path, STARTED + edit + DONE, files=files)
    assert (result.status, result.violations) == (Status.OK, ())
    assert (tmp_path / "attempt/workspace/models/doc.py").read_text() == files["models/doc.py"]
