"""The evidence record of an entry: digests of everything that the result rests on."""

from __future__ import annotations

import csv
import io
import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from eop.core.canonical import file_digest
from eop.core.files import read_json, write_json, writing
from eop.core.yaml_files import read_yaml
from eop.evidence import FileRef, environment_facts, repository_facts
from eop.functions.measure import measured_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eop.functions.context import Context
    from eop.functions.results import Fit, Result


def collect(context: Context, result: Result) -> dict[str, Any]:
    """The ``evidence`` of the schema ``entry/1``; ``None`` for what the row never came to."""
    plan = context.project.plan
    return {
        **_surroundings(context, result),
        "plan": {"name": plan.name, "version": plan.version, "digest": plan.digest},
        **_agents(context, result),
        "patch": _patch(result.patch),
        "config": read_yaml(result.experiment) if result.experiment else None,
        **({"start": result.start} if result.start else {}),
        "split": _split(context),
        "snapshot": read_json(context.project.run_dir / "base" / "snapshot.json"),
        "checkpoints": _checkpoints(result),
        "ranks": [
            {
                **seed["ranks"],
                "path": ranks_path(result.id, seed["seed"], target),
                "seed": seed["seed"],
                "target": target,
            }
            for target, seed in _judged(result)
        ],
        "preflight": _preflight(result.preflight),
    }


def _surroundings(context: Context, result: Result) -> dict[str, Any]:
    """The time, the repository and the machine, looked at once per node.

    Publishing itself makes the work tree dirty; entries written after a restart must still equal
    those written before it.
    """
    path = context.work / "surroundings.json"
    if not path.is_file():
        environment = {
            **environment_facts(),
            "threads": context.project.config.threads,
            "isolation": str(context.jail.level()),
        }
        facts = {
            "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
            "repository": repository_facts(context.root),
            "environment": environment,
        }
        write_json(path, facts)
    found: dict[str, Any] = read_json(path)
    # An older run's documents do not say: there was one.
    processes = {fit.name: fit.checkpoint.get("processes", 1) for fit in result.fits}
    if processes:
        found["environment"]["processes"] = processes
    return found


def keep_files(root: Path, result: Result) -> None:
    """Copy the row's weights and ranks beside its entry, where DVC can name them."""
    for fit in result.fits:
        for seed in fit.checkpoint["seeds"]:
            _keep(root, seed["model"], checkpoint_path(result.id, seed["seed"], fit.mark))
    for target, seed in _judged(result):
        _keep(root, seed["ranks"], ranks_path(result.id, seed["seed"], target))


def _keep(root: Path, ref: dict[str, Any], path: str) -> None:
    target = root / path
    if target.is_file() and file_digest(target) == ref["sha256"]:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.tmp")
    with writing(target):
        shutil.copyfile(measured_file(root, ref), draft)
        draft.replace(target)


def checkpoint_path(entry: str, seed: int, mark: str = "") -> str:
    """Where an entry's weights lie, relative to the root; ``mark`` is that of a ``Fit``."""
    return f"leaderboard/{entry}/model-seed{seed}{mark}.safetensors"


def ranks_path(entry: str, seed: int, target: str) -> str:
    """Where the ranks of an entry's users lie, relative to the root."""
    return f"leaderboard/{entry}/ranks-seed{seed}-{target}.parquet"


def _judged(result: Result) -> list[tuple[str, dict[str, Any]]]:
    """Target and seed of every judgement of the row."""
    shown = result.metrics["seeds"] if result.metrics else []
    sealed = result.sealed["sealed"]["seeds"] if result.sealed else []
    return [*(("validation", seed) for seed in shown), *(("test", seed) for seed in sealed)]


def curve(root: Path, checkpoint: dict[str, Any]) -> bytes:
    """The loss curves of all seeds in one table, with the seed as the first column."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    for index, seed in enumerate(checkpoint["seeds"]):
        with measured_file(root, seed["curve"]).open() as stream:
            header, *lines = csv.reader(stream, delimiter="\t")
        if index == 0:
            writer.writerow(["seed", *header])
        writer.writerows([[seed["seed"], *line] for line in lines])
    return out.getvalue().encode()


def training_seconds(root: Path, fits: Sequence[Fit]) -> float | None:
    """Seconds that the epochs of all seeds and refits took; ``None`` without a training."""
    if not fits:
        return None
    total = 0.0
    for seed in (seed for fit in fits for seed in fit.checkpoint["seeds"]):
        with measured_file(root, seed["curve"]).open() as stream:
            total += sum(float(row["seconds"]) for row in csv.DictReader(stream, delimiter="\t"))
    return total


def _agents(context: Context, result: Result) -> dict[str, Any]:
    """Who played which role and the digests of what they were told."""
    products, prompts = {}, {}
    for instance in result.nodes:
        work = context.project.run_dir / instance.directory / "work"
        for record in sorted(work.glob("*/a*/result.json")):
            role = record.parent.parent.name.partition("-")[2]
            facts = read_json(record)["product"]
            if facts:
                products[f"{instance.step}.{role}"] = facts
            name = f"{instance.key}/{record.parent.parent.name}/{record.parent.name}"
            prompts[name] = file_digest(record.parent / "prompt.md")
    return {"products": products, "prompts": prompts}


def _patch(path: Path | None) -> dict[str, Any] | None:
    return {"sha256": file_digest(path), "size": path.stat().st_size} if path else None


def _split(context: Context) -> dict[str, Any]:
    folder = context.project.split_dir
    manifest = read_json(folder / "manifest.json")
    files = [
        FileRef.of(folder / name, context.root).to_json() for name in sorted(manifest["files"])
    ]
    return {"dataset": manifest["dataset"], "digest": manifest["digest"], "files": files}


def _checkpoints(result: Result) -> list[dict[str, Any]]:
    return [
        {
            **seed["model"],
            "path": checkpoint_path(result.id, seed["seed"], fit.mark),
            "seed": seed["seed"],
            "targets": list(fit.targets),
        }
        for fit in result.fits
        for seed in fit.checkpoint["seeds"]
    ]


def _preflight(report: dict[str, Any] | None) -> dict[str, Any] | None:
    if report is None:
        return None
    failed = [item["id"] for item in report["invariants"] if item["status"] != "passed"]
    return {"passed": report["passed"], "failed": failed}
