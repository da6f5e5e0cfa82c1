"""A tree with a tiny package ``hstu`` that does as its experiment config says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.agents.jail import Jail, Level
from eop.functions.recommender import Recommender

if TYPE_CHECKING:
    from pathlib import Path

ONE_PROCESS = {"train": 1, "refit": 1}
_MAIN = r"""
import json, os, sys, time
from pathlib import Path

command, *rest = sys.argv[1:]
refit = "--include-validation" in rest
rest = [word for word in rest if word != "--include-validation"]
pairs = list(zip(rest[::2], rest[1::2]))
options = dict(pairs)
outs = [Path(value) for key, value in pairs if key == "--out"]
plan = Path(options["--config"]).read_text().split() if "--config" in options else []
with (Path.cwd() / "calls.txt").open("a") as calls:
    told = [v for k, v in pairs if k in ("--seed", "--target")]
    told += ["on", *sorted(p.stem for p in Path(options["--data"]).iterdir())] if refit else []
    told += ["from", Path(options["--from"]).name] if "--from" in options else []
    print(command, *told, file=calls)
Path("environment.json").write_text(json.dumps({**os.environ, "cwd": os.getcwd()}))
if "sleep" in plan:
    time.sleep(60)
if "stderr" in plan:
    sys.stderr.write("first line\n" + "x" * 9000 + "\nlast words\n")
if "daemon" in plan and os.fork() == 0:
    os.setsid()
    Path("daemon.pid").write_text(str(os.getpid()))
    time.sleep(60)
if "daemon" in plan:
    while not (Path("daemon.pid").exists() and Path("daemon.pid").read_text()):
        time.sleep(0.01)
if "flood" in plan:
    Path(f"{command}.stdout").unlink()
    while True:
        sys.stdout.write("x" * (1 << 20))
if "plant" in plan:
    Path("evaluate-test.stdout").symlink_to(Path.cwd().parent / "secret.txt")
    Path("evaluate-test.stderr/in/the/way").mkdir(parents=True)
if "link" in plan:
    Path(f"{command}.stderr").unlink()
    Path(f"{command}.stderr").symlink_to(Path.cwd().parent / "secret.txt")
for word in plan:
    if word.startswith("exit"):
        sys.exit(int(word[4:]))
for out in outs:
    if command == "preflight":
        item = {"id": "I5", "title": "one score", "detail": "two", "measured": {}}
        bad = "bad" in plan
        invariants = [{**item, "status": "failed" if bad else "passed"}]
        report = {"schema": "preflight/1", "passed": not bad, "invariants": invariants}
        out.write_text("{" if "garbage" in plan else json.dumps(report))
        sys.exit(1 if bad or "garbage" in plan else 7 if "late" in plan else 0)
    out.mkdir(parents=True, exist_ok=True)
    if command == "train":
        (out / "model.safetensors").write_bytes(b"w" + options["--config"].encode())
        (out / "curve.tsv").write_text(
            "" if "nocurve" in plan else "epoch\tloss\tseconds\n1\t2.5\t0.25\n"
        )
        (out / "checkpoint.json").write_text(json.dumps({"plan": plan}))
    else:
        print("judged")
        metrics = {"ndcg@10": 0.25, "hr@10": 0.5, "mrr": 0.125}
        facts = {"schema": "hstu.metrics/1", "users": 3, "corpus": 9, "split": "s"}
        facts["metrics"] = metrics
        (out / "metrics.json").write_text(json.dumps({**facts, "target": options["--target"]}))
        (out / "ranks.parquet").write_bytes(b"ranks")
"""


def tree(folder: Path) -> Path:
    """The fake package in ``folder``."""
    (folder / "hstu").mkdir(parents=True)
    (folder / "hstu" / "__init__.py").touch()
    (folder / "hstu" / "__main__.py").write_text(_MAIN)
    return folder


def split(folder: Path) -> Path:
    """A split folder whose held-out files are there, to be kept out of the training zone."""
    folder.mkdir(parents=True)
    for name in ("train.parquet", "items.parquet", "validation.parquet", "test.parquet"):
        (folder / name).write_text(name)
    return folder


def recommender(root: Path, *, patched: bool = True, timeout_s: float = 30.0) -> Recommender:
    """A recommender below ``root``: a snapshot, a candidate's tree, a split, a scratch folder."""
    pristine = tree(root / "base")
    return Recommender(
        tree=tree(root / "patched") if patched else pristine,
        pristine=pristine,
        split=split(root / "split"),
        scratch=root / "work",
        jail=Jail(Level.NONE),
        threads=3,
        timeout_s=timeout_s,
    )


def experiment(root: Path, *words: str) -> Path:
    """An experiment config that tells the fake package what to do."""
    path = root / "experiment.yaml"
    path.write_text(" ".join(words))
    return path


def calls(scratch: Path) -> list[str]:
    """The commands that were started with ``scratch`` as their folder, in order."""
    path = scratch / "calls.txt"
    return path.read_text().splitlines() if path.is_file() else []
