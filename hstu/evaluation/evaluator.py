"""Sealed evaluation: a worker scores histories, the judge alone holds the targets.

The worker is given one folder with the checkpoint, the items and the histories; its command line
and environment name no other place of the project. Nothing that it does can change a rank but the
scores that it writes. What the process could otherwise reach on the machine is up to the jail in
``command``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Generic, NamedTuple, TypeVar

from hstu.data.errors import ExitCode, HstuError
from hstu.evaluation.rank_files import CANONICAL_RANKS, SUBSET_RANKS
from hstu.evaluation.reads import LEDGER, count_read
from hstu.evaluation.record import record, record_subset
from hstu.evaluation.results import CANONICAL_FILE, SUBSET_FILE
from hstu.evaluation.stream import Pipe, WorkerError, read_end, read_scores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from hstu.evaluation.results import CanonicalResult, SubsetResult
    from hstu.evaluation.task import CanonicalTask, Questions, SubsetTask

_Made = TypeVar("_Made")

CHUNK_BYTES = 1 << 26
LOG = "worker.log"
_GRACE_S = 5.0
_INHERITED = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)


@dataclass(frozen=True)
class Worker:
    """How to start the scorer: ``command`` ends with a Python; ``pythonpath`` is its tree.

    ``timeout_s`` bounds its whole life. ``options`` are further words of ``hstu worker``: how it
    computes, such as ``--threads 2``.
    """

    command: tuple[str, ...]
    pythonpath: str | None
    timeout_s: float
    options: tuple[str, ...] = ()


class Scored(NamedTuple, Generic[_Made]):
    """What was made of one checkpoint's scores, and how often its test target has been read."""

    made: _Made
    test_reads: int | None


def evaluate(
    task: CanonicalTask, checkpoints: Mapping[Path, Path], worker: Worker
) -> list[CanonicalResult]:
    """Rank the targets of all users by each checkpoint's scores and return the results.

    ``checkpoints`` maps a checkpoint to the folder that gets its ``ranks.parquet``,
    ``metrics.json`` and ``worker.log``. One worker scores them all: they are of one tree. On any
    fault there are no results at all: ``WorkerError`` for the worker's. A read of the test target
    is recorded beside the weights.
    """
    outs = list(checkpoints.values())
    _clear(outs, CANONICAL_FILE, CANONICAL_RANKS)
    questions = task.questions
    scored = score(
        questions, list(checkpoints), worker, outs[0] / LOG, questions.ranks, "canonical"
    )
    return [record(task, rank, out, reads) for (rank, reads), out in zip(scored, outs, strict=True)]


def evaluate_subset(
    task: SubsetTask, checkpoints: Mapping[Path, Path], worker: Worker
) -> list[SubsetResult]:
    """The same for a subset: ``subset-ranks.parquet`` and ``subset-metrics.json``."""
    outs = list(checkpoints.values())
    _clear(outs, SUBSET_FILE, SUBSET_RANKS)
    questions = task.questions
    scored = score(questions, list(checkpoints), worker, outs[0] / LOG, questions.ranks, "subset")
    return [
        record_subset(task, rank, out, reads)
        for (rank, reads), out in zip(scored, outs, strict=True)
    ]


def score(
    questions: Questions,
    checkpoints: Sequence[Path],
    worker: Worker,
    log: Path | None,
    make: Callable[[Iterator[NDArray[np.float32]]], _Made],
    purpose: str,
) -> list[Scored[_Made]]:
    """``make`` something of each checkpoint's scores, which come in chunks [b, X] of all users.

    A chunk is overwritten by the next one. ``log`` is where the worker's standard error is kept,
    ``None`` for nowhere: a fault quotes its end. When the targets are the test's, the read is
    recorded with its ``purpose`` before it begins.
    """
    with tempfile.TemporaryDirectory(prefix="hstu-evaluate-") as scratch:
        inputs = _prepare(questions, checkpoints, Path(scratch) / "inputs")
        reads = [_count(questions, checkpoint, purpose) for checkpoint in checkpoints]
        written = log or Path(scratch) / LOG
        with written.open("wb") as stderr, _started(worker, inputs, stderr) as (process, deadline):
            try:
                made = _judge(questions, make, len(checkpoints), process, deadline)
            except WorkerError as error:
                where = str(log or checkpoints[0])
                raise _with_log(error, process, written, where) from error
    return [Scored(*pair) for pair in zip(made, reads, strict=True)]


def _clear(outs: Sequence[Path], *names: str) -> None:
    """Make the folders, without results of an earlier evaluation."""
    for out in outs:
        out.mkdir(parents=True, exist_ok=True)
        for name in names:
            (out / name).unlink(missing_ok=True)


def _count(questions: Questions, checkpoint: Path, purpose: str) -> int | None:
    if questions.target != "test":
        return None
    return count_read(checkpoint, split=questions.split, users=len(questions), purpose=purpose)


def _prepare(questions: Questions, checkpoints: Sequence[Path], inputs: Path) -> Path:
    """Put all that the worker may see into one folder."""
    inputs.mkdir()
    for number, checkpoint in enumerate(checkpoints):
        if not checkpoint.is_dir():
            raise HstuError("the checkpoint is missing", where=str(checkpoint))
        for path in checkpoint.rglob("*"):
            # Followed by the judge, a link would hand over what only the judge may read.
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise WorkerError("a checkpoint holds plain files only", where=str(path))
        ignore = shutil.ignore_patterns(LEDGER)  # none of the model's business
        shutil.copytree(
            checkpoint, inputs / f"checkpoint{number:04d}", symlinks=True, ignore=ignore
        )
    questions.items.write(inputs / "items.parquet")
    questions.histories.write(inputs / "histories.parquet")
    return inputs


@contextlib.contextmanager
def _started(
    worker: Worker, inputs: Path, stderr: BinaryIO
) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
    """The running worker and its deadline; nothing of its process group outlives the block."""
    argv = [*worker.command, "-m", "hstu", "worker", *worker.options]
    for checkpoint in sorted(inputs.glob("checkpoint*")):
        argv += ["--checkpoint", str(checkpoint)]
    argv += ["--items", str(inputs / "items.parquet")]
    argv += ["--histories", str(inputs / "histories.parquet")]
    try:
        process = subprocess.Popen(
            argv,
            cwd=inputs,
            env=_environment(worker.pythonpath),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )
    except OSError as error:
        raise HstuError(
            f"the worker cannot be started: {error}",
            where=worker.command[0],
            exit_code=ExitCode.ENVIRONMENT,
        ) from error
    try:
        yield process, time.monotonic() + worker.timeout_s
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout:
            process.stdout.close()


def _environment(pythonpath: str | None) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    tree = pythonpath if pythonpath is not None else os.environ.get("PYTHONPATH")
    return {
        **kept,
        **({"PYTHONPATH": tree} if tree else {}),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        # Without it `-m` would look for modules in the working directory first.
        "PYTHONSAFEPATH": "1",
    }


def _judge(
    questions: Questions,
    make: Callable[[Iterator[NDArray[np.float32]]], _Made],
    checkpoints: int,
    process: subprocess.Popen[bytes],
    deadline: float,
) -> list[_Made]:
    """What is made of each checkpoint's scores, if the worker wrote what it should and ended."""
    if process.stdout is None:
        raise ValueError("the worker's output is not a pipe")
    pipe = Pipe(process.stdout.fileno(), deadline)
    users, corpus = len(questions), len(questions.items)
    made = [make(read_scores(pipe, users, corpus, CHUNK_BYTES)) for _ in range(checkpoints)]
    read_end(pipe)
    try:
        status = process.wait(max(deadline - time.monotonic(), _GRACE_S))
    except subprocess.TimeoutExpired as error:
        raise WorkerError("the worker wrote its scores but did not end") from error
    if status:
        raise WorkerError(f"the worker ended with status {status}")
    return made


def _with_log(
    error: WorkerError, process: subprocess.Popen[bytes], log: Path, where: str
) -> WorkerError:
    """The error, with the worker's status when it has ended and the end of its log."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.5)
    message = error.message
    if process.returncode and "status" not in message:
        message += f"; the worker ended with status {process.returncode}"
    lines = log.read_text(errors="replace").strip().splitlines()[-8:]
    tail = "\n".join(f"    | {line}" for line in lines)
    return WorkerError(
        f"{message}\n{tail}" if tail else message,
        where=error.where or where,
        hint=error.hint,
    )
