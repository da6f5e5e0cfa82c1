"""`make bench`: CPU seconds of the parts that a user waits for, best of three."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from eop.protocol.compiler import load
from eop.runtime.trace import Trace
from hstu.data.batches import TrainingRows
from hstu.data.items import Items
from hstu.models import build, read_config
from hstu.training import draw_negatives, make_optimizer, training_loss

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]
PROTOCOL = ROOT / "config" / "protocols" / "hstu-evolve.eop.md"
EVENTS = 400
USERS = 128


def main() -> None:
    """Print every figure."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        report(
            "protocol hstu-evolve: parse and check", "s", best(lambda: load(PROTOCOL, root=ROOT))
        )
        report(*trace_fold(scratch))
        report("`eop --help`: start of the command line", "s", best(start_of_eop))
        report(*training_step(scratch))


def best(work: Callable[[], object]) -> float:
    """CPU seconds of ``work``, its children's included: the least of three."""
    return min(cpu_seconds(work) for _ in range(3))


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    before = time.process_time() + children()
    work()
    return time.process_time() + children() - before


def children() -> float:
    """CPU seconds of finished child processes so far."""
    times = os.times()
    return times.children_user + times.children_system


def report(what: str, unit: str, value: float) -> None:
    """One line of the table."""
    print(f"{what:<56}{value:>12,.3f} {unit}")


def start_of_eop() -> None:
    """The command line, started and ended."""
    subprocess.run([sys.executable, "-m", "eop.cli", "--help"], capture_output=True, check=True)


def trace_fold(scratch: Path) -> tuple[str, str, float]:
    """Folding a trace of attempts that were abandoned, read anew from its files."""
    plan = load(PROTOCOL, root=ROOT)
    folder = scratch / "runs" / "bench" / "trace"
    trace = Trace(folder, plan)
    digests = {"plan": plan.digest, "config": "0" * 64, "snapshot": "0" * 64}
    trace.append("run_started", {"run": "bench", **digests})
    phase = plan.phase("investigate_code")
    reserve = {"actions": phase.budget.actions, "wall_s": float(phase.budget.wall_s or 0)}
    for attempt in range(1, EVENTS // 2 + 1):
        if reserve["actions"] * attempt >= plan.budget.actions:
            break
        node = {"node": "it01_investigate_code", "attempt": attempt}
        trace.append("node_entered", {**node, "reserve": reserve})
        trace.append("node_abandoned", {**node, "reason": "bench"})
    events = len(trace.events())
    seconds = best(lambda: Trace(folder, plan).state())
    return f"trace: fold of {events} events", "events/s", events / seconds


def training_step(scratch: Path) -> tuple[str, str, float]:
    """One optimiser step of BASE on synthetic histories."""
    raw, split = scratch / "raw", scratch / "split"
    hstu = [sys.executable, "-m", "hstu", "data"]
    subprocess.run(
        [*hstu, "synthesize", "--seed", "7", "--out", raw], capture_output=True, check=True
    )
    subprocess.run(
        [*hstu, "split", "--source", raw, "--out", split], capture_output=True, check=True
    )
    config = read_config(ROOT / "config" / "experiments" / "base.yaml")
    items = Items.read(split / "items.parquet")
    rows = TrainingRows.read(split, items, history_length=config.model.history_length)
    model = build(config, items)
    optimizer = make_optimizer(model, config.train)
    generator = torch.Generator().manual_seed(1)
    batches = rows.groups(list(range(USERS)), 4)
    tokens = sum(int(batch.inputs.lengths.sum()) for batch in batches)

    def step() -> None:
        optimizer.zero_grad()
        for batch in batches:
            negatives = draw_negatives(batch, len(items), config.train.negatives, generator)
            (training_loss(model, batch, negatives).sum() / tokens).backward()
        optimizer.step()

    return (
        f"training step, BASE, {USERS} users, {tokens} tokens",
        "tokens/CPU s",
        tokens / best(step),
    )


if __name__ == "__main__":
    main()
