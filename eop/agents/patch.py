"""Trees and patches in the runtime's own bare git store; git never runs inside a workspace.

A workspace is hostile: its ``.git`` may name programs to run. So files are walked with ``lstat``,
hashed into a store outside every mount that an agent has, and compared there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from eop.agents.contract import Change
from eop.agents.scan import LINK, PLAIN, PROGRAM, Caps, scan
from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import writing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Attributes of a tree must not change bytes on the way in or out.
_ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding !diff\n"
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.autocrlf=false",
    "core.symlinks=true",
    "core.protectNTFS=false",
    "core.protectHFS=false",
    "gc.auto=0",
)


def init_store(store: Path) -> Path:
    """Make the bare store when it is absent; returns it."""
    if not (store / "HEAD").is_file():
        store.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=".store.", dir=store.parent))
        git(fresh, "init", "-q", "--bare", "--template=", str(fresh))
        (fresh / "info").mkdir(exist_ok=True)
        (fresh / "info" / "attributes").write_text(_ATTRIBUTES)
        with writing(store):
            fresh.rename(store)
    return store


def commit_tree(store: Path, directory: Path, caps: Caps | None = None) -> str:
    """Store the files below ``directory`` and return the id of their tree.

    What ``scan`` objects to (fifos, links out of the tree, files over the cap, ...) is left out;
    whoever judges a workspace asks ``scan`` for its problems too.
    """
    entries = scan(directory, caps).entries
    blobs = _hash_files(store, [directory / e.path for e in entries if e.mode != LINK])
    lines = []
    for entry in entries:
        path = directory / entry.path
        blob = blobs.get(path) or _hash_bytes(store, os.fsencode(path.readlink()))
        lines.append(f"{entry.mode} {blob}\t{entry.path}".encode())
    with _index(store) as env:
        git(store, "update-index", "-z", "--index-info", stdin=b"\0".join(lines), env=env)
        return git(store, "write-tree", env=env).decode().strip()


def unchanged(store: Path, base: str, directory: Path) -> frozenset[Path]:
    """The files below ``directory`` that are as ``base`` has them; nothing is stored."""
    known = {}
    for line in git(store, "ls-tree", "-r", "-z", base).split(b"\0")[:-1]:
        facts, _, path = line.partition(b"\t")
        known[directory / os.fsdecode(path)] = facts.split()[2].decode()
    files = [directory / e.path for e in scan(directory).entries if e.mode != LINK]
    hashed = _hash_files(store, [path for path in files if path in known], keep=False)
    return frozenset(path for path, blob in hashed.items() if known[path] == blob)


def diff(store: Path, base: str, tree: str) -> bytes:
    """The patch from ``base`` to ``tree``; proven to lead from one to the other before return."""
    patch = git(
        store, "diff-tree", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff",
        "--no-textconv", "--no-color", base, tree,
    )  # fmt: skip
    if apply_to_tree(store, base, patch) != tree:
        raise EopError(
            "EOP852", f"the patch of {base[:12]}..{tree[:12]} does not lead back to its tree"
        )
    return patch


def changes(store: Path, base: str, tree: str) -> tuple[Change, ...]:
    """Paths that differ between two trees, in path order; renames count as delete and add."""
    output = git(store, "diff-tree", "-r", "-z", "--no-renames", "--raw", base, tree)
    told = output.decode().split("\0")[:-1]
    found = []
    for facts, path in zip(told[::2], told[1::2], strict=True):
        _, mode, _, _, kind = facts.split(" ")
        found.append(Change(path, kind, mode))
    return tuple(found)


def apply_to_tree(store: Path, base: str, patch: bytes) -> str:
    """The tree that ``patch`` makes of ``base``; ``EopError`` when it does not apply."""
    if not patch:
        return base
    with _index(store) as env:
        git(store, "read-tree", base, env=env)
        try:
            git(store, "apply", "--cached", "--whitespace=nowarn", "-", stdin=patch, env=env)
        except EopError as error:
            raise EopError(
                "EOP853",
                f"the patch does not apply: {error.message}",
                hint="it was made against another snapshot of the target, or was edited",
                exit_code=ExitCode.DATA,
            ) from error
        return git(store, "write-tree", env=env).decode().strip()


def without(store: Path, tree: str, path: str) -> str:
    """``tree`` less one file; the same tree when it has no such file."""
    with _index(store) as env:
        git(store, "read-tree", tree, env=env)
        gone = f"0 {'0' * 40}\t{path}".encode()
        git(store, "update-index", "-z", "--index-info", stdin=gone, env=env)
        return git(store, "write-tree", env=env).decode().strip()


def blob(store: Path, tree: str, path: str) -> bytes | None:
    """The bytes of a regular file of ``tree``; ``None`` when there is no such file."""
    mode, _, rest = git(store, "ls-tree", tree, "--", path).decode().partition(" ")
    if mode not in (PLAIN, PROGRAM):
        return None
    return git(store, "cat-file", "blob", rest.split()[1])


def export(store: Path, tree: str, to: Path) -> None:
    """Write the files of ``tree`` to the new directory ``to``."""
    to.mkdir(parents=True)
    with _index(store) as env:
        git(store, "read-tree", tree, env=env)
        git(store, "checkout-index", "-a", env={**env, "GIT_WORK_TREE": str(to.resolve())}, cwd=to)


def apply(base: Path, patch: bytes, to: Path) -> None:
    """Write ``base`` with ``patch`` applied to the new directory ``to``; all of it or nothing.

    Raises ``EopError`` (exit DATA) when the patch does not apply or ``to`` exists.
    """
    if to.exists():
        raise EopError(
            "EOP854", "the directory exists already", where=Where(str(to)), exit_code=ExitCode.STATE
        )
    to.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{to.name}.", dir=to.parent))
    try:
        store = init_store(scratch / "store.git")
        tree = apply_to_tree(store, commit_tree(store, base), patch)
        export(store, tree, scratch / "tree")
        with writing(to):
            (scratch / "tree").rename(to)
    finally:
        shutil.rmtree(scratch)


def git(
    store: Path,
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> bytes:
    """Run git on the store, deaf to every configuration but ours; returns its output.

    ``EopError`` carries what git said.
    """
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    done = subprocess.run(
        ["git", *settings, *arguments],
        input=stdin,
        capture_output=True,
        cwd=cwd or store,
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "HOME": "/nonexistent",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_DIR": str(store.resolve()),
            **(env or {}),
        },
        check=False,
    )
    if done.returncode:
        said = re.sub(r"\s+", " ", done.stderr.decode(errors="replace")).strip()
        raise EopError("EOP851", f"git {arguments[0]}: {said}", where=Where(str(store)))
    return done.stdout


@contextmanager
def _index(store: Path) -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="index.", dir=store) as folder:
        yield {"GIT_INDEX_FILE": str(Path(folder).resolve() / "index")}


def _hash_files(store: Path, paths: list[Path], *, keep: bool = True) -> dict[Path, str]:
    if not paths:
        return {}
    names = b"\n".join(os.fsencode(path.absolute()) for path in paths) + b"\n"
    how = [*(["-w"] if keep else []), "--no-filters", "--stdin-paths"]
    output = git(store, "hash-object", *how, stdin=names)
    return dict(zip(paths, output.decode().split(), strict=True))


def _hash_bytes(store: Path, content: bytes) -> str:
    output = git(store, "hash-object", "-w", "--no-filters", "--stdin", stdin=content)
    return output.decode().strip()
