"""Start ``python -m hstu`` on a tree: the only way that the harness talks to the recommender."""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from eop.agents.contract import Stop
from eop.agents.jail import Level
from eop.agents.supervised import bounded
from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import write_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eop.agents.jail import Jail
    from eop.core.processes import Completed

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
# torchrun with a status to go by: it starts the processes of one training, all on this machine.
_TORCHRUN = Path(__file__).with_name("torchrun.py")
_STANDALONE = ("--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node")
# They talk over the loopback, the one network that is the same in and out of a jail; and the store
# through which they meet warns of it on each connection, for want of a host's name.
_TEAM = {
    "GLOO_SOCKET_IFNAME": "lo",
    "NCCL_SOCKET_IFNAME": "lo",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}
# NCCL's shared memory lies in /dev/shm, where Landlock has nothing that is a command's own.
_TEAM_OF_LANDLOCK = {"NCCL_SHM_DISABLE": "1"}
_OUR_FAULTS = (ExitCode.USAGE, ExitCode.DATA, ExitCode.ENVIRONMENT)
_INTERRUPTED = 130
_TRAIN_FILES = ("train.parquet", "items.parquet")
_REFIT_FILES = (*_TRAIN_FILES, "validation.parquet")
CHECKPOINT_FILES = ("checkpoint.json", "model.safetensors", "curve.tsv")
_MOST_OUTPUT = 64 << 20
_TAIL_BYTES = 4096
_TAIL_LINES = 8


class CandidateError(Exception):
    """The candidate's own code failed: a result about the candidate, not about the machine.

    ``report`` is a file with the details, where there is one.
    """

    def __init__(self, reason: str, *, timed_out: bool = False, report: Path | None = None) -> None:
        super().__init__(reason)
        self.timed_out = timed_out
        self.report = report


@dataclass(frozen=True)
class Recommender:
    """Commands of one source tree. ``pristine`` is the snapshot whose evaluator judges.

    ``scratch`` is the folder that the commands may write to. ``timeout_s`` bounds all of them
    together, from the moment that the object is made. ``own_settings`` says that the experiment
    config is a candidate's: what the data cannot give it is then its own fault. ``processes`` train
    one model together, each with ``threads``.
    """

    tree: Path
    pristine: Path
    split: Path
    scratch: Path
    jail: Jail
    threads: int
    timeout_s: float
    own_settings: bool = False
    processes: int = 1
    started: float = field(default_factory=time.monotonic)

    def train(
        self,
        experiment: Path,
        seeds: Sequence[int],
        *,
        refit: bool = False,
        start: Mapping[int, Path] | None = None,
    ) -> list[Path]:
        """Train once per seed; return the folders of the checkpoints. Sees training data only.

        ``refit`` trains on the validation events too; the test's are never there. ``start`` names
        each seed's checkpoint to begin with. A seed that is trained already is left alone:
        training is the dear part. Raises ``EopError`` (EOP656) when the seeds would not all be
        trained by as many processes.
        """
        mark = "-refit" if refit else ""
        self._same_team(mark)
        outs = {seed: self.scratch / f"seed{seed}{mark}" for seed in seeds}
        due = [seed for seed in seeds if not (outs[seed] / "checkpoint.json").is_file()]
        # One command takes one checkpoint to begin with, but any number of seeds.
        for group in ([due] if start is None else [[seed] for seed in due]) if due else ():
            zone = self._zone(f"zone{mark}", _REFIT_FILES if refit else _TRAIN_FILES)
            begin = [start[seed] for seed in group] if start else []
            arguments = ["train", "--config", str(experiment), "--data", str(zone)]
            arguments += ["--include-validation"] if refit else []
            arguments += [word for path in begin for word in ("--from", str(path))]
            arguments += ["--threads", str(self.threads)]
            for seed in group:
                arguments += ["--seed", str(seed), "--out", str(outs[seed])]
            reads = [experiment, zone, *begin]
            self._candidate(arguments, read=reads, log=f"train{mark}", processes=self.processes)
        for out in outs.values():
            _require_files(out)
        return list(outs.values())

    def preflight(self, experiment: Path) -> dict[str, Any]:
        """Run the scientific-safety checks; the report says what passed and what did not."""
        report = self.scratch / "preflight.json"
        report.unlink(missing_ok=True)
        zone = self._zone("zone", _TRAIN_FILES)
        arguments = ["preflight", "--config", str(experiment), "--data", str(zone)]
        arguments += ["--out", str(report)]
        try:
            self._candidate(arguments, read=[experiment, zone], log="preflight")
        except CandidateError:
            # Status 1 means that a check failed; with any other end the report is not to be had.
            result = _report(report)
            if result is None or result["passed"]:
                raise
            return result
        result = _report(report)
        if result is None:
            raise CandidateError("the checks left no report that can be read")
        return result

    def evaluate(self, checkpoints: Sequence[Path], target: str) -> list[Path]:
        """Judge checkpoints on ``validation`` or ``test``; return the folders of their metrics.

        The pristine evaluator holds the targets; the candidate's worker gets histories alone. A
        checkpoint that is judged already is not judged again: the test is read once.
        """
        outs = {path: self.scratch / f"{path.name}-{target}" for path in checkpoints}
        due = [path for path in checkpoints if not (outs[path] / "metrics.json").is_file()]
        if due:
            spool = self.scratch / "spool" / target
            spool.mkdir(parents=True, exist_ok=True)
            worker = self.jail.wrap([sys.executable], read=[self.tree, spool], write=[])
            arguments = ["evaluate", "--split", str(self.split), "--target", target]
            arguments += ["--worker", json.dumps(list(worker))]
            arguments += ["--worker-pythonpath", str(self.tree)]
            for path in due:
                arguments += ["--checkpoint", str(path), "--out", str(outs[path])]
            self._count_read(target)
            self._pristine(arguments, log=f"evaluate-{target}", spool=spool)
        return list(outs.values())

    def popularity(self, target: str) -> Path:
        """Judge the popularity baseline; return the folder of its metrics."""
        out = self.scratch / f"popularity-{target}"
        arguments = ["popularity", "--split", str(self.split), "--target", target]
        arguments += ["--out", str(out)]
        self._count_read(target)
        self._pristine(arguments, log=f"popularity-{target}", spool=self.scratch)
        return out

    def reads(self, target: str) -> int:
        """How often ``target`` has been read in this scratch folder, the cut-short reads too."""
        path = self._reads_file(target)
        return len(path.read_text().splitlines()) if path.is_file() else 0

    def _count_read(self, target: str) -> None:
        """Note a read before it begins: one that is killed half way was a read all the same."""
        self.scratch.mkdir(parents=True, exist_ok=True)
        with self._reads_file(target).open("a") as stream:
            stream.write("read\n")

    def _reads_file(self, target: str) -> Path:
        return self.scratch / f"{target}.reads"

    def _same_team(self, mark: str) -> None:
        """Refuse to train some seeds of one result by more processes than others.

        How many there were when the first began is kept where no candidate can write.
        """
        kept = self.scratch.with_name(f"{self.scratch.name}{mark}.processes")
        if not kept.is_file():
            write_text(kept, f"{self.processes}\n")
        elif (begun := int(kept.read_text())) != self.processes:
            raise EopError(
                "EOP656",
                f"this was begun with {begun} processes to a training, and now there are "
                f"{self.processes}",
                where=Where(str(kept)),
                hint=f"give the job as many GPUs as it had, or remove {self.scratch} and {kept} to "
                "train anew",
                exit_code=ExitCode.STATE,
            )

    def _zone(self, folder: str, names: Sequence[str]) -> Path:
        """A training zone: a folder of its own with these files of the split and nothing else."""
        zone = self.scratch / folder
        for name in names:
            if not (zone / name).is_file():
                zone.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.split / name, zone / f".{name}")
                (zone / f".{name}").rename(zone / name)
        return zone

    def _candidate(
        self, arguments: Sequence[str], *, read: list[Path], log: str, processes: int = 1
    ) -> None:
        """Run a command of the candidate's tree inside the jail, in so many processes."""
        self.scratch.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "hstu", *arguments]
        several: dict[str, str] = {}
        if processes > 1:
            launcher = [sys.executable, str(_TORCHRUN), *_STANDALONE, str(processes)]
            command = [*launcher, *command[1:]]
            read = [*read, _TORCHRUN]
            several = _TEAM | (_TEAM_OF_LANDLOCK if self.jail.kind is Level.LANDLOCK else {})
        argv = self.jail.wrap(
            command, read=[self.tree, *read], write=[self.scratch], loopback=processes > 1
        )
        done, stderr = self._run(
            argv,
            tree=self.tree,
            log=log,
            spool=self.scratch,
            layers=self.jail.layers,
            several=several,
        )
        if self.tree == self.pristine and not (self.own_settings and done.rc == ExitCode.DATA):
            _refuse_our_fault(done, arguments[0], stderr)
        if done.timed_out or done.rc:
            raise _verdict(done, stderr)

    def _pristine(self, arguments: Sequence[str], *, log: str, spool: Path) -> None:
        """Run a command of the snapshot. Bad data or set-up is a fault of ours, not a result."""
        argv = [sys.executable, "-m", "hstu", *arguments]
        done, stderr = self._run(argv, tree=self.pristine, log=log, spool=spool)
        _refuse_our_fault(done, arguments[0], stderr)
        if done.timed_out or done.rc:
            raise _verdict(done, stderr)

    def _run(
        self,
        argv: Sequence[str],
        *,
        tree: Path,
        log: str,
        spool: Path,
        layers: int = 0,
        several: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[Completed, Path]:
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        env = {
            **kept,
            **dict.fromkeys(_THREAD_VARIABLES, str(self.threads)),
            "PYTHONPATH": str(tree),
            # The current folder is writable for candidates: nothing may be imported from it.
            "PYTHONSAFEPATH": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "TMPDIR": str(spool),
            **several,
        }
        self.scratch.mkdir(parents=True, exist_ok=True)
        stderr = self.scratch / f"{log}.stderr"
        done, stop = bounded(
            argv,
            layers=layers,
            cwd=self.scratch,
            env=env,
            stdout=self.scratch / f"{log}.stdout",
            stderr=stderr,
            wall_s=max(0.0, self.started + self.timeout_s - time.monotonic()),
            most_bytes=_MOST_OUTPUT,
        )
        if stop is Stop.CANCELLED:
            # Nothing here cancels: whoever ends a whole job, as a cluster does, has begun with the
            # command. That says nothing about the candidate.
            raise _interrupted(log)
        if stop is Stop.OUTPUT_CAP:
            raise CandidateError(f"stopped: more than {_MOST_OUTPUT} bytes on its streams")
        return done, stderr


def _require_files(checkpoint: Path) -> None:
    """A checkpoint is plain files: a link could make the harness read what the candidate cannot."""
    for name in CHECKPOINT_FILES:
        path = checkpoint / name
        if checkpoint.is_symlink() or path.is_symlink() or not path.is_file():
            raise CandidateError(f"training left no plain file {name}")
    problem = _curve_problem(checkpoint / "curve.tsv")
    if problem:
        raise CandidateError(f"training left a curve.tsv that nobody can read: {problem}")


def _curve_problem(path: Path) -> str | None:
    """What is wrong with a loss curve; the candidate's own code writes it."""
    try:
        with path.open(newline="") as stream:
            rows = list(csv.DictReader(stream, delimiter="\t"))
        seconds = [float(row["seconds"]) for row in rows]
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        return f"{type(error).__name__} {error}"
    if not rows:
        return "it has no epoch"
    return None if all(math.isfinite(value) for value in seconds) else "seconds are no number"


def _report(path: Path) -> dict[str, Any] | None:
    """A preflight report as the candidate's process left it; ``None`` when it is not one."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        report: dict[str, Any] = json.loads(path.read_bytes())
        known = isinstance(report["passed"], bool) and all(
            isinstance(item["status"], str) for item in report["invariants"]
        )
    except (ValueError, KeyError, TypeError):
        return None
    return report if known else None


def _refuse_our_fault(done: Completed, command: str, stderr: Path) -> None:
    """Bad data or set-up, or an interruption, of the snapshot's own code is no result."""
    if done.rc in _OUR_FAULTS:
        raise EopError(
            "EOP640",
            f"`hstu {command}` ended with status {done.rc}:\n{_tail(stderr)}",
            hint=f"the whole output is in {stderr}",
            exit_code=ExitCode(done.rc),
        )
    if done.rc == _INTERRUPTED and not done.timed_out:
        raise _interrupted(command)


def _interrupted(command: str) -> EopError:
    return EopError(
        "EOP640",
        f"`hstu {command}` was interrupted",
        hint="run the same command again: a training goes on from its last snapshot",
    )


def _verdict(done: Completed, stderr: Path) -> CandidateError:
    if done.timed_out:
        return CandidateError(f"no result after {done.wall_s:.0f} s", timed_out=True)
    return CandidateError(f"status {done.rc}: {_tail(stderr)}")


def _tail(stderr: Path) -> str:
    """The end of what a command said. Candidates can write here: a link is not followed."""
    if stderr.is_symlink() or not stderr.is_file():
        return "(its stderr is no plain file any more)"
    with stderr.open("rb") as stream:
        stream.seek(max(0, stderr.stat().st_size - _TAIL_BYTES))
        lines = stream.read().decode(errors="replace").strip().splitlines()
    return "\n".join(lines[-_TAIL_LINES:]) or "(nothing on stderr)"
