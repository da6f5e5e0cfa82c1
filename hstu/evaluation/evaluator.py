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
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from hstu.data.errors import ExitCode, HstuError
from hstu.data.files import write_json, write_table
from hstu.evaluation.stream import Pipe, WorkerError, read_end, read_scores
from hstu.evaluation.task import result

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from hstu.evaluation.task import Task

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

    ``timeout_s`` bounds its whole life.
    """

    command: tuple[str, ...]
    pythonpath: str | None
    timeout_s: float


def evaluate(
    task: Task, checkpoints: Mapping[Path, Path], worker: Worker
) -> list[dict[str, object]]:
    """Rank the targets of ``task`` by each checkpoint's scores and return the metrics.

    ``checkpoints`` maps a checkpoint to the folder that gets its ``ranks.parquet`` (user_id,
    rank), ``metrics.json`` and ``worker.log``. One worker scores them all: they are of one tree.
    On any fault there are no metrics at all: ``WorkerError`` for the worker's.
    """
    outs = list(checkpoints.values())
    for out in outs:
        out.mkdir(parents=True, exist_ok=True)
        for name in ("metrics.json", "ranks.parquet"):
            (out / name).unlink(missing_ok=True)
    log = outs[0] / LOG
    with tempfile.TemporaryDirectory(prefix="hstu-evaluate-") as scratch:
        inputs = _prepare(task, list(checkpoints), Path(scratch) / "inputs")
        with log.open("wb") as stderr, _started(worker, inputs, stderr) as (process, deadline):
            try:
                ranks = _judge(task, len(outs), process, deadline)
            except WorkerError as error:
                raise _with_log(error, process, log) from error
    return [record(task, rank, out) for rank, out in zip(ranks, outs, strict=True)]


def record(task: Task, rank: NDArray[np.int64], out: Path) -> dict[str, object]:
    """Write the ranks [U], then the metrics, and return the metrics."""
    metrics = result(task, rank)
    columns = [task.histories.user_ids, rank]
    write_table(out / "ranks.parquet", pa.table(columns, names=["user_id", "rank"]))
    write_json(out / "metrics.json", metrics)
    return metrics


def _prepare(task: Task, checkpoints: Sequence[Path], inputs: Path) -> Path:
    """Put all that the worker may see into one folder."""
    inputs.mkdir()
    for number, checkpoint in enumerate(checkpoints):
        if not checkpoint.is_dir():
            raise HstuError("the checkpoint is missing", where=str(checkpoint))
        for path in checkpoint.rglob("*"):
            # Followed by the judge, a link would hand over what only the judge may read.
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise WorkerError("a checkpoint holds plain files only", where=str(path))
        shutil.copytree(checkpoint, inputs / f"checkpoint{number:04d}", symlinks=True)
    task.items.write(inputs / "items.parquet")
    task.histories.write(inputs / "histories.parquet")
    return inputs


@contextlib.contextmanager
def _started(
    worker: Worker, inputs: Path, stderr: BinaryIO
) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
    """The running worker and its deadline; nothing of its process group outlives the block."""
    argv = [*worker.command, "-m", "hstu", "worker"]
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
    task: Task, checkpoints: int, process: subprocess.Popen[bytes], deadline: float
) -> list[NDArray[np.int64]]:
    """Ranks [U] per checkpoint of a worker that wrote what it should and ended well."""
    if process.stdout is None:
        raise ValueError("the worker's output is not a pipe")
    pipe = Pipe(process.stdout.fileno(), deadline)
    ranks = [
        task.ranks(read_scores(pipe, len(task), len(task.items), CHUNK_BYTES))
        for _ in range(checkpoints)
    ]
    read_end(pipe)
    try:
        status = process.wait(max(deadline - time.monotonic(), _GRACE_S))
    except subprocess.TimeoutExpired as error:
        raise WorkerError("the worker wrote its scores but did not end") from error
    if status:
        raise WorkerError(f"the worker ended with status {status}")
    return ranks


def _with_log(error: WorkerError, process: subprocess.Popen[bytes], log: Path) -> WorkerError:
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
        where=error.where or str(log),
        hint=error.hint,
    )
