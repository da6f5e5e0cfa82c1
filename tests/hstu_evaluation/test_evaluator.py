from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest
from fake_trees import fake_tree

from hstu.data.errors import HstuError
from hstu.data.items import Items
from hstu.data.readers import Interactions, RawData
from hstu.data.split import SplitOptions, write_split
from hstu.evaluation import evaluator
from hstu.evaluation.evaluator import Worker, evaluate
from hstu.evaluation.stream import WorkerError
from hstu.evaluation.task import CanonicalTask, read_task

if TYPE_CHECKING:
    from hstu.evaluation.results import CanonicalResult

USERS, CORPUS = 5, 30
# The held-out items are 1001 ... for validation and 2001 ... for test; nobody else has them.
VALIDATION = [1001 + user for user in range(USERS)]
TEST = [2001 + user for user in range(USERS)]
COMMON = list(range(1, CORPUS - 2 * USERS + 1))


@pytest.fixture
def split(tmp_path: Path) -> Path:
    events = []
    for user in range(USERS):
        events += [(user, item, 1_000 + item) for item in COMMON[user : user + 4]]
        events += [(user, VALIDATION[user], 5_000), (user, TEST[user], 6_000)]
    ids = np.array([*COMMON, *VALIDATION, *TEST])
    nothing = [""] * len(ids)
    items = Items.of_columns(ids, nothing, nothing, np.zeros(len(ids), np.int64))
    raw = RawData(Interactions(*np.array(events).T), items, str)
    write_split(raw, "tiny", tmp_path / "project" / "split", SplitOptions())
    return tmp_path / "project" / "split"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "checkpoint"
    folder.mkdir(parents=True)
    (folder / "checkpoint.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def worker(tmp_path: Path, body: str, timeout_s: float = 20.0) -> Worker:
    tree = fake_tree(tmp_path / "tree", body, users=USERS, corpus=CORPUS)
    return Worker((sys.executable,), tree, timeout_s)


def judge(
    tmp_path: Path, task: CanonicalTask, checkpoint: Path, body: str, timeout_s: float = 20.0
) -> CanonicalResult:
    (metrics,) = evaluate(task, {checkpoint: tmp_path / "out"}, worker(tmp_path, body, timeout_s))
    return metrics


def test_good_scores_become_ranks_and_metrics(
    tmp_path: Path, split: Path, checkpoint: Path
) -> None:
    task = read_task(split, "test")
    result = judge(tmp_path, task, checkpoint, "header(); rows()")
    # The last columns score highest, and the test items are the last columns.
    table = pq.read_table(tmp_path / "out" / "ranks.parquet")
    assert table.column("user_id").to_pylist() == list(range(USERS))
    assert table.column("rank").to_pylist() == [5, 4, 3, 2, 1]
    assert json.loads((tmp_path / "out" / "metrics.json").read_text()) == result.to_json()
    assert result.to_json() == {
        "schema": "hstu.metrics/1",
        "target": "test",
        "users": USERS,
        "corpus": CORPUS,
        "split": task.questions.split,
        "test_reads": 1,
        "metrics": pytest.approx(
            {
                "ndcg@1": 1 / 5,
                "ndcg@10": np.mean([1 / np.log2(rank + 1) for rank in range(1, 6)]),
                "hr@1": 1 / 5,
                "hr@10": 1.0,
                "mrr": np.mean([1 / rank for rank in range(1, 6)]),
            }
        ),
    }


def test_small_chunks_give_the_same_ranks(
    tmp_path: Path, split: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluator, "CHUNK_BYTES", 2 * 4 * CORPUS)
    judge(tmp_path, read_task(split, "test"), checkpoint, "header(); rows()")
    ranks = pq.read_table(tmp_path / "out" / "ranks.parquet").column("rank")
    assert ranks.to_pylist() == [5, 4, 3, 2, 1]


SPY = """
import shutil
shutil.copytree(os.getcwd(), DUMP + "/inputs")
with open(DUMP + "/seen.json", "w") as stream:
    json.dump({"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd(), "path": sys.path,
               "stdin": sys.stdin.read(), "open": os.listdir("/proc/self/fd"),
               "links": [os.readlink("/proc/self/fd/" + fd) for fd in os.listdir("/proc/self/fd")
                         if os.path.exists("/proc/self/fd/" + fd)]}, stream)
header(); rows()
"""


@pytest.mark.parametrize("target", ["validation", "test"])
def test_the_worker_is_handed_no_target(
    tmp_path: Path,
    split: Path,
    checkpoint: Path,
    target: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPLIT_FOLDER", str(split))
    monkeypatch.chdir(split)
    task = read_task(split, "validation" if target == "validation" else "test")
    judge(tmp_path, task, checkpoint, f"DUMP = {str(tmp_path)!r}\n{SPY}")
    text = (tmp_path / "seen.json").read_text()
    seen = json.loads(text)
    assert str(split) not in text
    assert str(tmp_path / "project") not in text
    assert "SPLIT_FOLDER" not in seen["env"]
    assert seen["stdin"] == ""
    assert [Path(word).name for word in seen["argv"][1:]] == [
        "worker",
        "--checkpoint",
        "checkpoint0000",
        "--items",
        "items.parquet",
        "--histories",
        "histories.parquet",
    ]
    inputs = tmp_path / "inputs"
    files = sorted(str(path.relative_to(inputs)) for path in inputs.rglob("*") if path.is_file())
    weights = ["checkpoint0000/checkpoint.json", "checkpoint0000/model.safetensors"]
    assert files == [*weights, "histories.parquet", "items.parquet"]
    histories = pq.read_table(inputs / "histories.parquet")
    handed = {item for items in histories.column("item_ids").to_pylist() for item in items}
    assert not handed & set(TEST)
    assert handed & set(VALIDATION) == (set(VALIDATION) if target == "test" else set())
    known = Items.read(inputs / "items.parquet")
    assert sorted(known.ids.tolist()) == sorted([*COMMON, *VALIDATION, *TEST])
    assert not Path(seen["cwd"]).exists()  # nothing is left behind


MISDEEDS = {
    "silent": ("", "ended within the header"),
    "prints": ("print('epoch 1 done', flush=True); header(); rows()", "header is not JSON"),
    "no_header": ("out.write(b'x' * 10000)", "no header line"),
    "other_schema": ("header(schema='hstu.scores/2'); rows()", "the header is"),
    "fewer_users": ("header(users=USERS - 1); rows(USERS - 1)", "the header is"),
    "other_corpus": ("header(corpus=1); out.write(b'0000' * USERS)", "the header is"),
    "short": ("header(); rows(USERS - 1)", "scores ended after 480 of 600 bytes"),
    "cut_row": ("header(); rows(USERS - 1); out.write(b'123')", "scores ended after 483 of 600"),
    "long": ("header(); rows(USERS + 1)", "more scores than it was asked for"),
    "byte_more": ("header(); rows(); out.write(b'1')", "more scores than it was asked for"),
    "nan": ("header(); rows(USERS - 1); out.write(struct.pack('f', float('nan')) * CORPUS)", "NaN"),
    "infinite": ("header(); out.write(struct.pack('f', float('inf')) * CORPUS * USERS)", "NaN"),
    "crash": ("header(); rows(2); out.flush(); raise SystemExit('out of memory')", "status 1"),
    "late_crash": ("header(); rows(); out.flush(); os._exit(3)", "status 3"),
    "killed": ("header(); out.flush(); os.kill(os.getpid(), 9)", "status -9"),
}


@pytest.mark.parametrize("name", MISDEEDS)
def test_a_worker_that_breaks_the_contract_gets_no_metrics(
    tmp_path: Path, split: Path, checkpoint: Path, name: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for stale in ("metrics.json", "ranks.parquet"):
        (out / stale).write_text("of an earlier evaluation")
    body, message = MISDEEDS[name]
    with pytest.raises(HstuError) as error:
        judge(tmp_path, read_task(split, "test"), checkpoint, body)
    assert message in error.value.message
    assert error.value.exit_code == 1
    assert [path.name for path in out.iterdir()] == ["worker.log"]


def test_the_end_of_the_log_is_in_the_error(tmp_path: Path, split: Path, checkpoint: Path) -> None:
    body = "header(); rows(1); raise ValueError('dimension 3 is 7')"
    with pytest.raises(WorkerError, match="ValueError: dimension 3 is 7") as error:
        judge(tmp_path, read_task(split, "test"), checkpoint, body)
    assert error.value.where == str(tmp_path / "out" / "worker.log")


@pytest.mark.parametrize(
    "body",
    [
        "time.sleep(60)",
        "header(); rows(2); out.flush(); time.sleep(60)",
        "header(); rows(); out.flush(); time.sleep(60)",
        "header(); rows(); out.flush()\nif os.fork() == 0: note(); time.sleep(60)",
    ],
    ids=["nothing", "half", "all", "child"],
)
def test_a_worker_that_hangs_is_ended_with_its_children(
    tmp_path: Path, split: Path, checkpoint: Path, body: str
) -> None:
    note = f"open({str(tmp_path / 'pids')!r}, 'a').write(f'{{os.getpid()}} ')"
    body = f"def note(): {note}\nnote()\n{body}"
    started = time.monotonic()
    with pytest.raises(WorkerError, match="did not finish in time"):
        judge(tmp_path, read_task(split, "test"), checkpoint, body, timeout_s=1.0)
    assert time.monotonic() - started < 15
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert pids
    # SIGKILL was sent to the whole group; a grandchild may need a moment to be gone.
    limit = time.monotonic() + 10
    while any(runs(pid) for pid in pids) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not any(runs(pid) for pid in pids)


def runs(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_link_in_the_checkpoint_is_refused(tmp_path: Path, split: Path, checkpoint: Path) -> None:
    (checkpoint / "more.safetensors").symlink_to(split / "test.parquet")
    with pytest.raises(WorkerError, match="plain files only"):
        judge(tmp_path, read_task(split, "test"), checkpoint, "header(); rows()")


def test_modules_beside_the_worker_are_not_imported(
    tmp_path: Path, split: Path, checkpoint: Path
) -> None:
    body = "assert os.getcwd() not in sys.path and '' not in sys.path; header(); rows()"
    judge(tmp_path, read_task(split, "test"), checkpoint, body)


def test_a_missing_checkpoint_and_program_are_faults_of_the_caller(
    tmp_path: Path, split: Path, checkpoint: Path
) -> None:
    task = read_task(split, "test")
    with pytest.raises(HstuError, match="checkpoint is missing") as absent:
        evaluate(task, {tmp_path / "none": tmp_path / "out"}, Worker((sys.executable,), None, 5))
    assert absent.value.exit_code == 6
    with pytest.raises(HstuError, match="cannot be started") as program:
        evaluate(task, {checkpoint: tmp_path / "out"}, Worker(("no-such-python",), None, 5))
    assert program.value.exit_code == 9


def test_the_judge_does_not_import_torch() -> None:
    code = "import sys, hstu.evaluation.commands; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("worker_json", ["python", "[]", '["python", 3]', '{"a": 1}'])
def test_a_worker_that_is_no_list_of_words_is_a_usage_error(
    tmp_path: Path, split: Path, checkpoint: Path, worker_json: str
) -> None:
    argv = [sys.executable, "-m", "hstu", "evaluate", "--split", str(split), "--target", "test"]
    argv += ["--checkpoint", str(checkpoint), "--worker", worker_json, "--out", str(tmp_path / "o")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("--worker: error:")
