"""Start ``python -m hstu`` on a tree: the only way that the harness talks to the recommender."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.core.errors import EopError, ExitCode
from eop.core.files import read_json
from eop.core.processes import run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eop.agents.jail import Jail
    from eop.core.processes import Completed

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
_OUR_FAULTS = (ExitCode.USAGE, ExitCode.DATA, ExitCode.ENVIRONMENT)
_TRAIN_FILES = ("train.parquet", "items.parquet")
CHECKPOINT_FILES = ("checkpoint.json", "model.safetensors", "curve.tsv")


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

    ``scratch`` is the folder that the commands may write to; ``timeout_s`` bounds each of them.
    """

    tree: Path
    pristine: Path
    split: Path
    scratch: Path
    jail: Jail
    threads: int
    timeout_s: float

    def train(self, experiment: Path, seeds: Sequence[int]) -> list[Path]:
        """Train once per seed; return the folders of the checkpoints. Sees training data only.

        A seed that is trained already is left alone: training is the dear part.
        """
        outs = {seed: self.scratch / f"seed{seed}" for seed in seeds}
        due = [seed for seed in seeds if not (outs[seed] / "checkpoint.json").is_file()]
        if due:
            arguments = ["train", "--config", str(experiment), "--data", str(self._zone())]
            arguments += ["--threads", str(self.threads)]
            for seed in due:
                arguments += ["--seed", str(seed), "--out", str(outs[seed])]
            self._candidate(arguments, read=[experiment, self._zone()], log="train")
        for out in outs.values():
            _require_files(out)
        return list(outs.values())

    def preflight(self, experiment: Path) -> dict[str, Any]:
        """Run the scientific-safety checks; the report says what passed and what did not."""
        report = self.scratch / "preflight.json"
        report.unlink(missing_ok=True)
        arguments = ["preflight", "--config", str(experiment), "--data", str(self._zone())]
        arguments += ["--out", str(report)]
        try:
            self._candidate(arguments, read=[experiment, self._zone()], log="preflight")
        except CandidateError:
            if not report.is_file():
                raise
        result: dict[str, Any] = read_json(report)
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
            worker = self.jail.wrap(
                [sys.executable], read=[self.tree, spool], write=[], network=False
            )
            arguments = ["evaluate", "--split", str(self.split), "--target", target]
            arguments += ["--worker", json.dumps(list(worker))]
            arguments += ["--worker-pythonpath", str(self.tree)]
            for path in due:
                arguments += ["--checkpoint", str(path), "--out", str(outs[path])]
            self._pristine(arguments, log=f"evaluate-{target}", spool=spool)
        return list(outs.values())

    def popularity(self, target: str) -> Path:
        """Judge the popularity baseline; return the folder of its metrics."""
        out = self.scratch / f"popularity-{target}"
        arguments = ["popularity", "--split", str(self.split), "--target", target]
        arguments += ["--out", str(out)]
        self._pristine(arguments, log=f"popularity-{target}", spool=self.scratch)
        return out

    def _zone(self) -> Path:
        """The training zone: a folder with the training data and nothing else."""
        zone = self.scratch / "zone"
        for name in _TRAIN_FILES:
            if not (zone / name).is_file():
                zone.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.split / name, zone / f".{name}")
                (zone / f".{name}").rename(zone / name)
        return zone

    def _candidate(self, arguments: Sequence[str], *, read: list[Path], log: str) -> None:
        """Run a command of the candidate's tree inside the jail."""
        self.scratch.mkdir(parents=True, exist_ok=True)
        argv = self.jail.wrap(
            [sys.executable, "-m", "hstu", *arguments],
            read=[self.tree, *read],
            write=[self.scratch],
            network=False,
        )
        done, stderr = self._run(argv, tree=self.tree, log=log, spool=self.scratch)
        if done.timed_out or done.rc:
            raise _verdict(done, stderr)

    def _pristine(self, arguments: Sequence[str], *, log: str, spool: Path) -> None:
        """Run a command of the snapshot. Bad data or set-up is a fault of ours, not a result."""
        argv = [sys.executable, "-m", "hstu", *arguments]
        done, stderr = self._run(argv, tree=self.pristine, log=log, spool=spool)
        if done.rc in _OUR_FAULTS:
            raise EopError(
                "EOP640",
                f"`hstu {arguments[0]}` ended with status {done.rc}:\n{_tail(stderr)}",
                hint=f"the whole output is in {stderr}",
                exit_code=ExitCode(done.rc),
            )
        if done.timed_out or done.rc:
            raise _verdict(done, stderr)

    def _run(
        self, argv: Sequence[str], *, tree: Path, log: str, spool: Path
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
        }
        self.scratch.mkdir(parents=True, exist_ok=True)
        stderr = self.scratch / f"{log}.stderr"
        stderr.unlink(missing_ok=True)
        done = run(
            argv,
            cwd=self.scratch,
            env=env,
            stdout=self.scratch / f"{log}.stdout",
            stderr=stderr,
            timeout_s=self.timeout_s,
        )
        return done, stderr


def _require_files(checkpoint: Path) -> None:
    """A checkpoint is plain files: a link could make the harness read what the candidate cannot."""
    for name in CHECKPOINT_FILES:
        path = checkpoint / name
        if path.is_symlink() or not path.is_file():
            raise CandidateError(f"training left no plain file {name}")


def _verdict(done: Completed, stderr: Path) -> CandidateError:
    if done.timed_out:
        return CandidateError(f"no result after {done.wall_s:.0f} s", timed_out=True)
    return CandidateError(f"status {done.rc}: {_tail(stderr)}")


def _tail(stderr: Path) -> str:
    lines = stderr.read_text(errors="replace").strip().splitlines()
    return "\n".join(lines[-8:]) or "(nothing on stderr)"
