"""Train and judge a leaderboard entry again from what it recorded, and compare."""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import yaml

from eop.agents.jail import choose
from eop.agents.patch import apply
from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import write_bytes, write_json, write_text
from eop.evidence import FileRef, environment_facts
from eop.functions.history import from_history
from eop.functions.measure import (
    METRICS,
    Start,
    judge_popularity,
    judge_seeds,
    open_sealed,
    refit_seeds,
    train_seeds,
)
from eop.functions.recommender import CandidateError, Recommender
from eop.functions.trees import unpack
from eop.leaderboard import Entry, Scores, entry_folder, metrics_agree, read_entries, read_entry
from eop.stats import pooled_half_width

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_TIMEOUT_S = 24 * 3600.0
_MARK = ".reproduction"
# Packages whose versions may change a result.
_NUMERIC = ("torch", "numpy")
_TEAM = "processes"


@dataclass(frozen=True)
class Verdict:
    """The comparison: largest absolute difference of a metric, and the largest that was allowed.

    ``largest`` is ``None`` when a metric came out as no number. ``elsewhere`` tells in what the
    machine and the programs differ from those recorded, as ``(what, recorded, now)``: equal ones
    should give equal bits, others only metrics within the tolerance.
    """

    largest: float | None
    tolerance: float
    differences: list[str]
    identical: bool
    elsewhere: tuple[tuple[str, object, object], ...] = ()

    @property
    def reproduced(self) -> bool:
        """Whether every metric is within the entry's tolerance."""
        return not self.differences

    @property
    def told(self) -> dict[str, dict[str, object]]:
        """``elsewhere`` as JSON data."""
        return {what: {"recorded": old, "now": new} for what, old, new in self.elsewhere}


def reproduce(
    root: Path, entry_id: str, out: Path, *, threads: int | None, isolation: str, gpus: int
) -> Verdict:
    """Make the entry's numbers again below ``out`` and write ``metrics.json``, ``verdict.json``.

    ``threads`` is as recorded when ``None``: another number may change the last digits. A training
    has as many processes as recorded, but no more than there are ``gpus``, unless there are none.
    A snapshot that is not there is packed anew from git's history, if that holds it. Inputs are
    checked against their recorded digests before anything runs (EOP670). Raises
    EOP671 when the entry cannot be reproduced at all, EOP674 when ``out`` is not to be replaced.
    """
    root, out = root.resolve(), out.resolve()
    entry = read_entry(root, entry_id)
    if entry.not_reproducible:
        raise EopError(
            "EOP671",
            f"{entry_id} cannot be reproduced: {entry.not_reproducible}",
            exit_code=ExitCode.DATA,
        )
    _bring_snapshot(root, entry)
    _check_inputs(root, entry)
    _check_numbers(root, entry)
    _make_room(root, out)
    used = threads or entry.evidence["environment"]["threads"]
    processes = _processes(entry, gpus)
    recommender = _recommender(root, entry, out, threads=used, isolation=isolation)
    elsewhere = _elsewhere(entry, threads=used, processes=processes)
    if entry.outcome == "rejected_by_preflight":
        return _again_rejected(entry, recommender, out, elsewhere)
    measured = _measure(root, entry, recommender, out, processes)
    rows = [row for row in read_entries(root) if row.run == entry.run]
    verdict = compare(entry, measured, elsewhere, rows)
    write_json(out / "metrics.json", {name: _numbers(score) for name, score in measured.items()})
    _write_verdict(out, entry, verdict)
    return verdict


def _recorded_processes(entry: Entry) -> dict[str, int]:
    """How many trained each model together, by function; an older row does not say: it was one."""
    return {"train": 1, "refit": 1} | dict(entry.evidence["environment"].get("processes", {}))


def _processes(entry: Entry, gpus: int) -> dict[str, int]:
    """How many are to do so here: on cores any number, on GPUs one for each."""
    recorded = _recorded_processes(entry)
    return {name: min(count, gpus) if gpus else count for name, count in recorded.items()}


def _elsewhere(
    entry: Entry, *, threads: int, processes: Mapping[str, int]
) -> tuple[tuple[str, object, object], ...]:
    """What of the recorded surroundings bears on the last digits, and is other now."""
    recorded, now = entry.evidence["environment"], environment_facts()
    pairs = [
        ("threads", recorded.get("threads"), threads),
        *(
            (f"{_TEAM} of {name}", count, processes[name])
            for name, count in _recorded_processes(entry).items()
        ),
        ("cpu", recorded.get("cpu"), now["cpu"]),
        *((name, recorded["packages"].get(name), now["packages"][name]) for name in _NUMERIC),
    ]
    return tuple(pair for pair in pairs if pair[1] != pair[2])


def compare(
    entry: Entry,
    measured: dict[str, Scores],
    elsewhere: tuple[tuple[str, object, object], ...] = (),
    rows: Sequence[Entry] = (),
) -> Verdict:
    """Compare every seed's metrics, and their means, on both targets with the recorded ones.

    Where it was made, a metric may differ by the entry's tolerance. ``elsewhere`` rounding differs
    from the first step on, which comes to another draw of the same training; so there two standard
    deviations over seeds are allowed where they are more: over the entry's own, or pooled over
    those of its run's ``rows``, whichever are more.
    """
    recorded = {"validation": entry.validation, "test": entry.test}
    apart, differences, widest = [0.0], [], entry.tolerance
    for target, scores in measured.items():
        old = recorded[target]
        assert old is not None, "a completed entry has both targets"
        for name in METRICS:
            noise = _noise(entry, rows, target, name) if elsewhere else 0.0
            allowed = max(entry.tolerance, noise)
            widest = max(widest, allowed)
            for seed, metrics in {**scores.seeds, "": scores.mean}.items():
                before = old.seeds[seed][name] if seed else old.mean[name]
                difference = abs(metrics[name] - before)
                apart.append(difference)
                if not difference <= allowed:
                    place = f"{target} {name}" + (f", seed {seed}" if seed else "")
                    differences.append(f"{place}: recorded {before:.6f}, now {metrics[name]:.6f}")
    largest = max(apart) if all(map(math.isfinite, apart)) else None
    return Verdict(largest, widest, differences, largest == 0.0, elsewhere)


def _noise(entry: Entry, rows: Sequence[Entry], target: str, metric: str) -> float:
    """Two standard deviations over seeds; 0 for what has no seed, and where none is known."""
    own = _over_seeds(entry, target, metric)
    if not own:
        return 0.0
    run = pooled_half_width([_over_seeds(row, target, metric) for row in rows])
    return max(pooled_half_width([own]) or 0.0, run or 0.0)


def _over_seeds(entry: Entry, target: str, metric: str) -> list[float]:
    scores: Scores | None = getattr(entry, target)
    return [seed[metric] for seed in scores.seeds.values()] if scores else []


def _numbers(scores: Scores) -> dict[str, dict[str, float | None]]:
    """Each seed's metrics (the mean's, without seeds); JSON has no word for what is no number."""
    return {
        seed: {name: value if math.isfinite(value) else None for name, value in metrics.items()}
        for seed, metrics in (scores.seeds or {"mean": scores.mean}).items()
    }


def _make_room(root: Path, out: Path) -> None:
    """An empty folder ``out`` below the project; only an earlier reproduction is replaced."""
    if not out.is_relative_to(root) or out == root:
        problem = f"it must lie below the project {root}"
    elif out.exists() and not (out / _MARK).is_file() and (not out.is_dir() or any(out.iterdir())):
        problem = "it holds something else than an earlier reproduction, which would be lost"
    else:
        problem = None
    if problem:
        raise EopError(
            "EOP674",
            f"a reproduction cannot go there: {problem}",
            where=Where(str(out)),
            hint="name a new folder such as repro/<entry>",
            exit_code=ExitCode.USAGE,
        )
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)
    (out / _MARK).touch()


def _bring_snapshot(root: Path, entry: Entry) -> None:
    snapshot = entry.evidence["snapshot"]
    if snapshot is None or (root / snapshot["path"]).exists():
        return
    content = from_history(root, snapshot["sha256"])
    if content is not None:
        write_bytes(root / snapshot["path"], content)


def _check_inputs(root: Path, entry: Entry) -> None:
    evidence = entry.evidence
    refs = [FileRef.from_json(file) for file in evidence["split"]["files"]]
    found = [problem for ref in refs for problem in ref.check(root)]
    for name, recorded in (("patch.diff", evidence["patch"]), (None, evidence["snapshot"])):
        if recorded:
            path = entry_folder(root, entry.id) / name if name else root / recorded["path"]
            found += _changed(path, root, recorded["sha256"])
    if found:
        raise EopError(
            "EOP670",
            "the inputs are not those of the entry:\n  " + "\n  ".join(found),
            hint="bring them with: dvc pull data/splits/*/*.dvc data/snapshots/*.dvc; or, without "
            f"the remote, split the data set again: {_split_again(entry)}",
            exit_code=ExitCode.DATA,
        )


def _split_again(entry: Entry) -> str:
    folder = PurePosixPath(entry.evidence["split"]["files"][0]["path"]).parent
    return f"hstu data split --source <folder of {folder.name}> --out {folder}"


def _check_numbers(root: Path, entry: Entry) -> None:
    if not metrics_agree(root, entry):
        folder = entry_folder(root, entry.id).relative_to(root)
        raise EopError(
            "EOP670",
            f"{folder}/metrics.json does not say what {folder}/entry.yaml says",
            hint=f"one of them has been changed: git log -p {folder}",
            exit_code=ExitCode.DATA,
        )


def _changed(path: Path, root: Path, sha256: str) -> list[str]:
    if not path.is_file():
        return [f"{path.relative_to(root)}: missing"]
    found = FileRef.of(path, root).sha256
    return [] if found == sha256 else [f"{path.relative_to(root)}: its bytes have changed"]


def _recommender(
    root: Path, entry: Entry, out: Path, *, threads: int, isolation: str
) -> Recommender:
    pristine = out / "tree" / "base"
    pristine.parent.mkdir()
    unpack(root / entry.evidence["snapshot"]["path"], pristine)
    tree = pristine
    if entry.evidence["patch"]:
        tree = out / "tree" / "patched"
        apply(pristine, (entry_folder(root, entry.id) / "patch.diff").read_bytes(), tree)
    split = (root / entry.evidence["split"]["files"][0]["path"]).parent
    return Recommender(
        tree=tree,
        pristine=pristine,
        split=split,
        scratch=out / "work",
        jail=choose(isolation, trusted=True),
        threads=threads,
        timeout_s=_TIMEOUT_S,
    )


def _measure(
    root: Path, entry: Entry, recommender: Recommender, out: Path, processes: Mapping[str, int]
) -> dict[str, Scores]:
    if entry.kind == "popularity":
        document = judge_popularity(root, recommender)
        sealed = open_sealed(root, document)
        return {
            "validation": Scores(document["metrics"]),
            "test": Scores(sealed[0]["metrics"]),
        }
    experiment = out / "experiment.yaml"
    write_text(experiment, yaml.safe_dump(entry.evidence["config"], sort_keys=False))
    assert entry.validation is not None
    seeds = [int(seed) for seed in entry.validation.seeds]
    try:
        trains = replace(recommender, processes=processes["train"])
        start = _start(entry, trains, out)
        checkpoint = train_seeds(root, trains, experiment, seeds, start=start)
        # What judges writes where the candidate's training could not.
        judge = replace(recommender, scratch=out / "judged")
        document = judge_seeds(root, judge, checkpoint, test=not entry.refitted)
        again = document
        if entry.refitted:
            beside = replace(recommender, scratch=out, processes=processes["refit"])
            start = _start(entry, beside, out)
            again = refit_seeds(root, beside, experiment, seeds, start=start)
    except CandidateError as error:
        raise EopError("EOP672", f"{entry.id} could not be run again: {error}") from error
    return {
        "validation": _scores(document["seeds"]),
        "test": _scores(open_sealed(root, again)),
    }


def _start(entry: Entry, recommender: Recommender, out: Path) -> Start | None:
    """What a fine-tuning began with, to be trained again as well."""
    begin = entry.evidence.get("start")
    if begin is None:
        return None
    experiment = out / "start.yaml"
    write_text(experiment, yaml.safe_dump(begin["config"], sort_keys=False))
    trains = replace(recommender, tree=recommender.pristine, scratch=out / "start")
    return Start(trains, experiment)


def _scores(seeds: list[dict[str, Any]]) -> Scores:
    return Scores.over_seeds({seed["seed"]: seed["metrics"] for seed in seeds})


def _again_rejected(
    entry: Entry,
    recommender: Recommender,
    out: Path,
    elsewhere: tuple[tuple[str, object, object], ...],
) -> Verdict:
    """A candidate that preflight rejected is reproduced when the same invariants fail again."""
    experiment = out / "experiment.yaml"
    write_text(experiment, yaml.safe_dump(entry.evidence["config"], sort_keys=False))
    try:
        report = recommender.preflight(experiment)
    except CandidateError as error:
        raise EopError("EOP672", f"{entry.id} could not be run again: {error}") from error
    now = sorted(i["id"] for i in report["invariants"] if i["status"] != "passed")
    before = sorted(entry.evidence["preflight"]["failed"])
    differences = [] if now == before else [f"failed invariants: recorded {before}, now {now}"]
    verdict = Verdict(0.0, entry.tolerance, differences, now == before, elsewhere)
    write_json(out / "metrics.json", {"failed": now})
    _write_verdict(out, entry, verdict)
    return verdict


def _why(verdict: Verdict) -> str:
    if not verdict.elsewhere:
        return (
            "machine, threads and versions are those recorded, so the bits should be equal: the "
            "recorded numbers or what they rest on have been changed"
        )
    apart = "; ".join(f"{what} was {old}, is {new}" for what, old, new in verdict.elsewhere)
    if any(what.startswith(_TEAM) for what, _, _ in verdict.elsewhere):
        return (
            "another number of processes draws other dropout masks, which is another draw of the "
            f"same training: {apart}"
        )
    return f"this is not where it was made, and that changes last digits, not results: {apart}"


def _write_verdict(out: Path, entry: Entry, verdict: Verdict) -> None:
    write_json(
        out / "verdict.json",
        {
            "entry": entry.id,
            "reproduced": verdict.reproduced,
            "identical": verdict.identical,
            "largest_difference": verdict.largest,
            "tolerance": verdict.tolerance,
            "differences": verdict.differences,
            "elsewhere": verdict.told,
        },
    )
    if not verdict.reproduced:
        raise EopError(
            "EOP673",
            f"{entry.id} was not reproduced:\n  " + "\n  ".join(verdict.differences),
            where=Where(str(out / "verdict.json")),
            hint=_why(verdict),
            exit_code=ExitCode.FAILURE,
        )
