"""A small project with entries that were really measured, its bytes in a DVC remote alone."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from entry_samples import REPOSITORY, candidate, evidence
from entry_samples import project as with_schema

from eop.core.archives import pack
from eop.core.canonical import file_digest
from eop.core.files import read_json, write_bytes
from eop.evidence import Dvc, FileRef, environment_facts
from eop.functions.reproduce import reproduce
from eop.functions.split import make_split
from eop.leaderboard import Scores, write_entry

if TYPE_CHECKING:
    from eop.leaderboard import Entry

POPULARITY, BASE, LONG = "r-popularity", "r-base", "r-long"
_SNAPSHOT = "data/snapshots/abc.tar"


def command(root: Path, *argv: str) -> list[str]:
    """What a user types in the project, with this working tree's `eop`."""
    return [sys.executable, "-m", *argv]


def environment(root: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "DVC_SITE_CACHE_DIR": str(root / ".dvc" / "tmp" / "site"),
    }


def call(root: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(root, *argv),
        cwd=root,
        env=environment(root),
        capture_output=True,
        text=True,
        check=False,
    )


def repro(entry: str) -> tuple[str, ...]:
    stage = f"leaderboard/{entry}/dvc.yaml:reproduce"
    return ("dvc", "repro", "-f", "-s", "--no-run-cache", stage)


def make(root: Path, remote: Path) -> None:
    """Fill ``root``: a split, a snapshot, a row without a training and two with one."""
    with_schema(root)
    (root / "hstu").symlink_to(REPOSITORY / "hstu")
    make_split(root, "synthetic", "data/raw/synthetic")
    (root / "hstu").unlink()
    sources = sorted(p for p in (REPOSITORY / "hstu").rglob("*") if p.is_file())
    kept = [p for p in sources if "__pycache__" not in p.parts]
    tree = [(p.relative_to(REPOSITORY).as_posix(), p.read_bytes()) for p in kept]
    write_bytes(root / _SNAPSHOT, pack(tree))
    experiment = yaml.safe_load((REPOSITORY / "config/experiments/synthetic.yaml").read_text())
    long = {**experiment, "train": {**experiment["train"], "epochs": 5000}}
    _measured(root, _entry(root, POPULARITY, "popularity", None))
    _measured(root, _entry(root, BASE, "base", {**experiment, "train": experiment["train"]}))
    write_entry(root, _entry(root, LONG, "base", long), _files(long))
    store = Dvc(root)
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=root, check=True)
    store.init()
    remote.mkdir()
    call(root, "dvc", "remote", "add", "-q", "-d", "storage", str(remote))
    store.push([file.pointer for file in Dvc(root).add(_stored(root))])
    write_bytes(root / ".gitignore", b"repro/\ndata/raw/\n*.parquet\n*.tar\n")
    settings = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    for words in (["add", "."], [*settings, "commit", "-q", "-m", "entries"]):
        subprocess.run(["git", *words], cwd=root, check=True)


def _stored(root: Path) -> list[str]:
    split = sorted((root / "data/splits/synthetic").glob("*.parquet"))
    return [*(path.relative_to(root).as_posix() for path in split), _SNAPSHOT]


def _files(config: dict[str, Any] | None) -> dict[str, bytes]:
    return {"config.yaml": yaml.safe_dump(config).encode()} if config else {}


def _entry(root: Path, name: str, kind: str, config: dict[str, Any] | None) -> Entry:
    folder = root / "data/splits/synthetic"
    manifest = read_json(folder / "manifest.json")
    files = [FileRef.of(folder / part, root).to_json() for part in sorted(manifest["files"])]
    found = evidence(
        patch=None,
        config=config,
        split={"dataset": "synthetic", "digest": manifest["digest"], "files": files},
        snapshot={"path": _SNAPSHOT, "sha256": file_digest(root / _SNAPSHOT)},
        environment={**environment_facts(), "threads": 1},
    )
    nothing = dict.fromkeys(("ndcg@10", "hr@10", "mrr"), 0.5)
    seeds = {"1": nothing} if config else {}
    changes = {"parent": None, "decision": None, "iteration": None, "evidence": found}
    scores = {"validation": Scores(nothing, seeds), "test": Scores(nothing, seeds)}
    return candidate(name, kind=kind, tolerance=1.0, **changes, **scores)


def _measured(root: Path, entry: Entry) -> None:
    """Measure an entry as its reproduction does, and write it with those numbers."""
    draft = write_entry(root, entry, _files(entry.evidence["config"]))
    reproduce(root, entry.id, root / "repro" / entry.id, threads=1, isolation="off", gpus=0)
    numbers = read_json(root / "repro" / entry.id / "metrics.json")
    for path in draft.iterdir():
        path.unlink()
    draft.rmdir()
    scores = {
        target: Scores(next(iter(by_seed.values())), by_seed if entry.kind == "base" else {})
        for target, by_seed in numbers.items()
    }
    entry = replace(entry, tolerance=0.0003, **scores)
    write_entry(root, entry, _files(entry.evidence["config"]))
