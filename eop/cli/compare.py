"""`eop compare-runs`: two runs side by side, such as one with memory and one without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from eop.cli.common import json_option, print_json
from eop.knowledge.ablation import champion, difference, run_facts, to_json
from eop.leaderboard import read_entries
from eop.project.project import Project
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from eop.knowledge.ablation import Difference

_UNKNOWN = "unknown"


@click.command("compare-runs", epilog="Example: eop compare-runs with-memory without-memory")
@click.argument("first")
@click.argument("second")
@json_option
@click.pass_obj
def compare_runs(root: Path, first: str, second: str, as_json: bool) -> None:
    """What two runs came to, what they spent, and which champion is better.

    Champions are compared in pairs, user by user and seed by seed on validation, when both runs
    have the same split. Switch memory off for one of the two with --config memory=0.
    """
    entries = read_entries(root)
    facts = [run_facts(root, run, entries) for run in (first, second)]
    best = [champion([e for e in entries if e.run == run]) for run in (first, second)]
    found = difference(root, best[0], best[1])
    spent = [_spent(root, run) for run in (first, second)]
    if as_json:
        print_json({**to_json(facts, found), "spent": spent})
        return
    table = Table("", first, second, box=None)
    for name in (
        "entries",
        "candidates",
        "promoted",
        "not_better",
        "failed",
        "repeats",
        "champion",
    ):
        values = (getattr(one, name) for one in facts)
        table.add_row(
            name.replace("_", " "), *(_UNKNOWN if value is None else str(value) for value in values)
        )
    for name in ("memory", "actions", "wall_s", "tokens", "usd", "unmetered"):
        table.add_row(name, *(_shown(one, name) for one in spent))
    Console().print(table)
    click.echo(_verdict(found, first, second))


def _spent(root: Path, run: str) -> dict[str, Any] | None:
    """What a run's trace says it has spent, and its memory; ``None`` when the run is not here.

    ``unmetered`` attempts have spent something besides that nobody measured.
    """
    if not (root / "runs" / run / "plan.json").is_file():
        return None
    project = Project.of_run(root, run)
    state = Trace(project.trace_dir, project.plan).state()
    spent = state.spent
    return {
        "memory": project.config.memory,
        "actions": spent.actions,
        "wall_s": round(spent.wall_s, 1),
        "tokens": spent.tokens,
        "usd": spent.micro_usd / 1e6,
        "unmetered": state.unmetered,
    }


def _shown(spent: dict[str, Any] | None, name: str) -> str:
    return _UNKNOWN if spent is None else str(spent[name])


def _verdict(found: Difference, first: str, second: str) -> str:
    if found.delta is None or found.interval is None:
        return f"the champions are not compared: {found.reason}"
    low, high = found.interval
    seeds = ", ".join(map(str, found.seeds))
    return (
        f"champion of {second} over that of {first}: {found.delta:+.4f} NDCG@10, "
        f"95 % interval [{low:+.4f}, {high:+.4f}], seeds {seeds}"
    )
