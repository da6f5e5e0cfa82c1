"""Two gloo processes on the CPU against one process: the same weights, ranks and files."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from hstu.config import parse_config, read_config
from hstu.data.batches import Batch, TrainingBatch
from hstu.data.errors import HstuError
from hstu.data.items import Items
from hstu.data.readers import read_source
from hstu.data.split import SplitOptions, write_split
from hstu.data.synthetic import Shape, synthesize
from hstu.evaluation.sharded import shared_ranks
from hstu.evaluation.task import read_task
from hstu.models import build
from hstu.models.team import ALONE, Team, joined
from hstu.training import train
from hstu.training.distributed import share
from hstu.training.loop import choose_objective
from hstu.training.progress import Lines, Silent
from hstu.training.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
CONFIG = HERE / "team.yaml"
USERS = 27
pytestmark = pytest.mark.xdist_group("team")


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("team")
    shape = Shape(users=USERS, items=30, genres=4, shortest=4, longest=20)
    synthesize(1, folder / "raw", shape)
    write_split(read_source(folder / "raw"), "synthetic", folder / "split", SplitOptions())
    return folder / "split"


@pytest.fixture(scope="module")
def single(split: Path) -> Path:
    out = split.parent / "single"
    model = train(read_config(CONFIG), split, out, progress=Silent())
    rank = shared_ranks(ALONE, model, read_task(split, "validation").questions)
    np.save(out / "ranks.npy", rank)
    return out


def fork(work: Callable[[Team], None]) -> None:
    """Have two processes ``work``, with the environment that torchrun would give them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])

    def start(member: int) -> None:
        place = {"RANK": str(member), "LOCAL_RANK": str(member), "WORLD_SIZE": "2"}
        os.environ.update(place, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        with joined(torch.device("cpu")) as team:
            work(team)

    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=start, args=(member,)) for member in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]


class Noting(Lines):
    """Writes to a file, which outlives the process."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text + "\n")


def assert_close_weights(found: Path, wanted: Path) -> None:
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (found, wanted))
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name], value, rtol=0, atol=1e-5, msg=name)


def curve(folder: Path) -> np.ndarray[Any, Any]:
    return np.genfromtxt(folder / "curve.tsv", names=True)


def test_two_processes_train_and_rank_as_one(split: Path, single: Path) -> None:
    out = split.parent / "double"

    def work(team: Team) -> None:
        model = train(read_config(CONFIG), split, out, team=team, progress=Silent())
        sums = team.gather([float(p.detach().double().sum()) for p in model.parameters()])
        rank = shared_ranks(team, model, read_task(split, "validation").questions)
        ranks, spans = team.gather(rank.tolist()), team.gather(list(team.span(3)))
        if team.leads:
            (out / "report.json").write_text(json.dumps([sums, ranks, spans]))

    fork(work)
    assert_close_weights(out, single)
    ours, theirs = curve(out), curve(single)
    assert ours["tokens"].tolist() == theirs["tokens"].tolist()
    np.testing.assert_allclose(ours["loss"], theirs["loss"], atol=2e-6)
    sums, ranks, spans = json.loads((out / "report.json").read_text())
    assert sums[0] == sums[1], "the members' weights have parted"
    wanted = np.load(single / "ranks.npy").tolist()
    assert len(wanted) == USERS
    assert ranks == [wanted, wanted]
    assert spans == [[0], [1, 2]]
    assert json.loads((out / "checkpoint.json").read_text())["runtime"]["processes"] == 2


def test_a_team_of_torchrun_is_interrupted_and_goes_on(split: Path, single: Path) -> None:
    out = split.parent / "interrupted"
    arguments = ["--config", CONFIG, "--data", split, "--device", "cpu", "--out", out]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    process = subprocess.Popen(
        [sys.executable, *launcher, "-m", "hstu", "train", *map(str, arguments)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (out / "snapshot.pt").is_file():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    told = process.communicate()[1]
    assert process.returncode != 0
    assert not (out / "model.safetensors").exists(), "the run was over before the signal"
    assert told.count("epoch 1/12") == 1, "one process shows the run"

    notes = out / "notes.txt"

    def work(team: Team) -> None:
        shown = Noting(notes) if team.leads else Silent()
        train(read_config(CONFIG), split, out, runtime=Runtime("cpu"), team=team, progress=shown)

    fork(work)
    assert "going on after epoch" in notes.read_text()
    assert_close_weights(out, single)


def batch_of(lengths: list[int]) -> TrainingBatch:
    users, width = len(lengths), max(lengths)
    numbers = torch.arange(users * width).view(users, width)
    inputs = Batch(numbers, numbers, numbers, torch.tensor(lengths))
    return TrainingBatch(inputs, numbers + 1, torch.arange(users))


def test_members_share_users_and_the_rows_of_their_tokens() -> None:
    lengths = [2, 3, 1, 4]
    batch = batch_of(lengths)
    negatives = torch.arange(sum(lengths))[:, None].expand(-1, 5)
    found = [share(Team(member, 3), batch, negatives) for member in range(3)]
    rows = [drawn[:, 0].tolist() for _, drawn in found if drawn is not None]
    assert rows == [[0, 1, 6, 7, 8, 9], [2, 3, 4], [5]]
    assert [mine.inputs.lengths.tolist() for mine, _ in found] == [[2, 4], [3], [1]]
    assert [mine.targets[:, 0].tolist() for mine, _ in found] == [[1, 13], [5], [9]]
    assert [mine.tails.tolist() for mine, _ in found if mine.tails is not None] == [
        [0, 3],
        [1],
        [2],
    ]


def test_shared_negatives_are_everybodys() -> None:
    negatives = torch.tensor([3, 4])
    _, kept = share(Team(1, 2), batch_of([2, 2]), negatives)
    assert kept is negatives


@pytest.mark.parametrize(("count", "members"), [(0, 2), (1, 3), (10, 3), (7, 7)])
def test_spans_cover_everything_once(count: int, members: int) -> None:
    covered = [place for member in range(members) for place in Team(member, members).span(count)]
    assert covered == list(range(count))


def test_preferences_are_for_one_process(split: Path) -> None:
    settings = read_config(CONFIG).to_json()
    settings["train"]["preference"] = {"loss": "dpo", "beta": 1.0}
    model = build(parse_config(settings, source="test"), Items.read(split / "items.parquet"))
    with pytest.raises(HstuError, match="in one process"):
        choose_objective(model, 30, Team(0, 2), fresh=False)
