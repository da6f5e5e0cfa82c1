"""A phase with two GPUs: real trainings in two processes, in a jail, through the node's own path.

There is no GPU here: CUDA is told of two, and PyTorch, which sees none, computes on the cores.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psutil
import pytest
import yaml
from entry_samples import REPOSITORY
from fake_hstu import experiment, recommender

from eop.agents.contract import Limits
from eop.agents.jail import Jail, Level, available, landlock_has_networks
from eop.core.errors import EopError, ExitCode
from eop.core.files import read_json, write_text
from eop.driver.gpus import VISIBLE
from eop.driver.node import run_node
from eop.driver.workflow import advance_and_compile, load_project
from eop.functions import baseline
from eop.functions.recommender import CandidateError, Recommender
from eop.project.config import read_raw
from hstu.data.readers import read_source
from hstu.data.split import SplitOptions, write_split
from hstu.data.synthetic import Shape, synthesize

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("several-gpus")
RUN, NODE = "several-synthetic", "it01_baseline"
PROTOCOL = """---
{eop: 1, name: several, version: 0.1.0, target: hstu, budget: {actions: 10, wall: 1h}}
---
```eop
phase: baseline
function: baseline
with: {seeds: [1]}
resources: {gpus: 2}
outputs: {baseline: {file: baseline.json}}
budget: {wall: 5m}
```
"""
EPOCHS = 30
SETTINGS = f"""
model: {{dim: 8, blocks: 1, heads: 1, dqk: 8, dv: 8, history_length: 10, out_len: 11,
  input_dropout: 0.1, linear_dropout: 0.0, temperature: 0.05}}
train: {{epochs: {EPOCHS}, batch_users: 13, learning_rate: 0.001, betas: [0.9, 0.98],
  weight_decay: 0.0, negatives: 8}}
"""
_PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VISIBLE, "0,1")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


def split(folder: Path) -> None:
    synthesize(1, folder / "raw", Shape(users=27, items=30, genres=4, shortest=4, longest=20))
    write_split(read_source(folder / "raw"), "synthetic", folder / "split", SplitOptions())


def project(root: Path) -> Path:
    """A project whose protocol is the baseline alone, on 27 users."""
    raw = yaml.safe_load((REPOSITORY / "config/config.yaml").read_text())
    own = {"protocol": "config/protocols/several.eop.md", "dataset": "synthetic"}
    write_text(root / "config/config.yaml", yaml.safe_dump({**raw, **own}))
    for name in ("schemas", "prompts", "targets"):
        shutil.copytree(REPOSITORY / "config" / name, root / "config" / name)
    write_text(root / own["protocol"], PROTOCOL)
    write_text(root / "config/experiments/synthetic.yaml", SETTINGS)
    ignored = shutil.ignore_patterns("__pycache__")
    for name in yaml.safe_load((root / "config/targets/hstu.yaml").read_text())["snapshot"]:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=ignored, dirs_exist_ok=True)
        else:
            write_text(root / name, source.read_text())
    split(root / "made")
    shutil.copytree(root / "made/split", root / "data/splits/synthetic")
    return root


def alive(folder: Path) -> list[str]:
    """The command lines of processes that have to do with a folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or [])
        if str(folder) in words:
            found.append(words)
    return found


def ranks(work: Path) -> list[str]:
    """Of those the processes of a training."""
    trains = [words for words in alive(work) if " -m hstu train " in words]
    return [words for words in trains if "torchrun" not in words]


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def test_a_killed_training_of_two_processes_leaves_none_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(tmp_path)
    advance_and_compile(load_project(root, read_raw(root)))
    work = root / "runs" / RUN / "it01/baseline/work"
    child = os.fork()
    if child == 0:
        try:
            run_node(root, RUN, NODE)
        finally:
            os._exit(1)
    until(lambda: len(ranks(work)) == 2, "there are not two processes")
    until((work / "seed1/snapshot.pt").is_file, "it has not trained")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    until(lambda: not alive(work), "a process has outlived its job")

    judged: dict[str, Any] = {"seeds": [{"seed": 1, "metrics": {"ndcg@10": 0.5}}]}
    monkeypatch.setattr(baseline, "judge_seeds", lambda *_, **__: judged)
    monkeypatch.setattr(baseline, "judge_popularity", lambda *_: {})
    run_node(root, RUN, NODE)
    said = (work / "train.stderr").read_text()
    assert "going on after epoch" in said
    assert said.count(f"epoch {EPOCHS}/{EPOCHS}") == 1, "one process shows the run"
    facts = read_json(work / "seed1/checkpoint.json")
    assert facts["runtime"]["processes"] == 2
    assert facts["runtime"]["device"] == "cpu"
    report = read_json(work.parent / "artifacts/baseline.json")
    assert report["checkpoint"]["processes"] == 2
    assert not alive(work)
    assert os.environ[VISIBLE] == "0,1"
    assert not list(work.glob("torchrun-*"))


def of_two(root: Path, jail: Level) -> Recommender:
    """The working tree's own trainings, in two processes."""
    split(root)
    write_text(root / "experiment.yaml", SETTINGS)
    return Recommender(
        tree=REPOSITORY,
        pristine=REPOSITORY,
        split=root / "split",
        scratch=root / "work",
        jail=Jail(jail),
        threads=1,
        timeout_s=300.0,
        processes=2,
    )


@pytest.mark.skipif(
    Level.LANDLOCK not in available() or not landlock_has_networks(), reason="no Landlock here"
)
def test_two_processes_meet_in_landlock_too_and_end_with_their_job(
    tmp_path: Path,
) -> None:
    made = of_two(tmp_path, Level.LANDLOCK)
    snapshot = made.scratch / "seed1/snapshot.pt"

    def preempt() -> None:
        """What a cluster does to all of a job, as far as the supervisor is concerned."""
        until(snapshot.is_file, "it has not trained")
        for process in psutil.Process().children():
            if any(word.endswith("supervisor.py") for word in process.cmdline()):
                process.terminate()

    ending = threading.Thread(target=preempt)
    ending.start()
    with pytest.raises(EopError, match=r"EOP640.*interrupted"):
        made.train(tmp_path / "experiment.yaml", [1])
    ending.join()
    assert not alive(made.scratch)

    with pytest.raises(EopError, match=r"EOP656.*2 processes.*there are 1") as caught:
        replace(made, processes=1).train(tmp_path / "experiment.yaml", [1])
    assert caught.value.exit_code == ExitCode.STATE


RANKS = """
import os, signal, sys, time
from pathlib import Path

rank = os.environ["RANK"]
Path(f"rank{rank}").write_text(os.environ["WORLD_SIZE"])
words = Path(sys.argv[sys.argv.index("--config") + 1]).read_text().split()
if rank == "1" and words:
    sys.stderr.write("last words\\n")
    sys.exit(int(words[0]))
if not words:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
time.sleep(600)
"""


def test_the_time_limit_leaves_no_process_of_a_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were they deaf to signals: torchrun gives each a session of its own."""
    monkeypatch.setattr(Limits, "grace_s", 0.5)
    made = replace(recommender(tmp_path), processes=2)
    (made.tree / "hstu/__main__.py").write_text(RANKS)
    # Longer where the machine is so busy that the processes had not begun.
    for limit_s in (6.0, 20.0, 120.0):
        with pytest.raises(CandidateError) as caught:
            replace(made, timeout_s=limit_s, started=time.monotonic()).train(
                experiment(tmp_path), [1]
            )
        assert caught.value.timed_out
        assert not alive(tmp_path)
        begun = sorted(path.name for path in made.scratch.glob("rank*"))
        if len(begun) == 2:
            break
    assert begun == ["rank0", "rank1"]


def test_the_status_of_the_process_that_failed_is_the_training_s(tmp_path: Path) -> None:
    """And the others, which would wait for it for ever, are ended."""
    made = replace(recommender(tmp_path, timeout_s=300.0), processes=2)
    (made.tree / "hstu/__main__.py").write_text(RANKS)
    with pytest.raises(CandidateError, match=r"status 6: .*last words"):
        made.train(experiment(tmp_path, "6"), [1])
    assert not alive(tmp_path)
