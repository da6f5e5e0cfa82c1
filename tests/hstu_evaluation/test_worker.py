"""The whole path: a real checkpoint, the real worker, a tree that is not the judge's."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch

import hstu
from hstu.data.batches import History
from hstu.data.readers import read_source
from hstu.data.split import SplitOptions, write_split
from hstu.data.synthetic import Shape, synthesize
from hstu.evaluation.task import read_task
from hstu.models import build, read_config, save, score_histories

CONFIG = """\
model: {dim: 8, blocks: 1, heads: 1, dqk: 8, dv: 8, history_length: 10, out_len: 11,
        input_dropout: 0.1, linear_dropout: 0.1, temperature: 0.05}
train: {epochs: 1, batch_users: 8, learning_rate: 1.0e-3, betas: [0.9, 0.98], weight_decay: 0.0,
        negatives: 4}
"""


def patched_tree(folder: Path) -> Path:
    """A copy of the package whose model talks on standard output."""
    shutil.copytree(Path(hstu.__file__).parent, folder / "hstu")
    scoring = folder / "hstu" / "models" / "scoring.py"
    talk = "\nimport os\nprint('patched model', flush=True)\nos.write(1, b'raw bytes\\n')\n"
    scoring.write_text(scoring.read_text() + talk)
    return folder


def test_a_checkpoint_is_scored_by_the_patched_tree_and_ranked_here(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    synthesize(1, tmp_path / "raw", Shape(users=40, items=40, genres=4, shortest=4, longest=20))
    split = tmp_path / "split"
    write_split(read_source(tmp_path / "raw"), "synthetic", split, SplitOptions())
    task = read_task(split, "test").questions
    (tmp_path / "config.yaml").write_text(CONFIG)
    torch.manual_seed(0)
    model = build(read_config(tmp_path / "config.yaml"), task.items)
    save(tmp_path / "checkpoint", model, task.items, seed=0, threads=1, data={})

    argv = [sys.executable, "-m", "hstu", "evaluate", "--split", str(split), "--target", "test"]
    argv += ["--checkpoint", str(tmp_path / "checkpoint"), "--out", str(tmp_path / "out")]
    argv += ["--worker", json.dumps([sys.executable])]
    argv += ["--worker-pythonpath", str(patched_tree(tmp_path / "tree"))]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    log = (tmp_path / "out" / "worker.log").read_text()
    assert "patched model" in log
    assert "raw bytes" in log
    metrics = json.loads(done.stdout)
    assert metrics == json.loads((tmp_path / "out" / "metrics.json").read_text())

    table = task.histories
    histories = [
        History(task.items.index(table.item_ids[a:b]), table.timestamps[a:b], int(request))
        for a, b, request in zip(
            table.offsets, table.offsets[1:], table.request_timestamps, strict=False
        )
    ]
    scores = torch.cat(list(score_histories(model.eval(), histories, 7))).numpy()
    expected = []
    for user, target in enumerate(task.targets):
        unseen = np.setdiff1d(np.arange(len(task.items)), histories[user].item_index - 1)
        rivals = unseen[unseen != target]
        expected.append(1 + int((scores[user, rivals] >= scores[user, target]).sum()))
    ranks = pq.read_table(tmp_path / "out" / "ranks.parquet").column("rank").to_pylist()
    # Batches of another size may turn a near tie.
    assert np.mean(np.array(ranks) == expected) > 0.95
    assert metrics["metrics"]["mrr"] == float(np.mean(1.0 / np.array(ranks)))
