"""`eop compare-runs`: two runs side by side, such as one with memory and one without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from eop.cli.common import started_runs
from eop.cli.completions import runs
from eop.cli.output import json_option, print_json
from eop.knowledge.ablation import champion, difference, run_facts, to_json
from eop.leaderboard import read_entries
from eop.project.project import Project
from eop.report import console
from eop.report.spending import spending
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from eop.knowledge.ablation import Difference

_UNKNOWN = "unknown"
# The units that are compared, and the decimals they are told with; of what is counted, none.
_DECIMALS = {"actions": None, "wall_s": 1, "tokens": None, "usd": 6}


@click.command(
    "compare-runs",
    short_help="What two runs came to, what they spent, which is better.",
    epilog="Example: eop compare-runs with-memory without-memory",
)
@click.argument("first", shell_complete=runs)
@click.argument("second", shell_complete=runs)
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
        print_json({"schema": "run-comparison/1", **to_json(facts, found), "spent": spent})
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
    for name in ("memory", *_DECIMALS):
        table.add_row(name, *(_shown(one, name) for one in spent))
    console().print(table)
    click.echo(_verdict(found, first, second))


def _spent(root: Path, run: str) -> dict[str, Any] | None:
    """What a run's trace says it has spent, and its memory; ``None`` when the run is not here.

    A unit is ``None`` where nobody could count any of it; where ``unmetered`` says that attempts
    could not be metered in it, its sum is a lower bound.
    """
    if run not in started_runs(root):
        return None
    project = Project.of_run(root, run)
    trace = Trace(project.trace_dir, project.plan)
    found = {one.unit: one for one in spending(project.plan, trace.state(), trace.events())}
    # What is not listed was not spent: all attempts could be metered, and came to 0.
    spent = {unit: found[unit].spent if unit in found else 0 for unit in _DECIMALS}
    return {
        "memory": project.config.memory,
        **{unit: n if n is None else round(n, _DECIMALS[unit]) for unit, n in spent.items()},
        "unmetered": {unit: found[unit].unknown if unit in found else 0 for unit in _DECIMALS},
    }


def _shown(spent: dict[str, Any] | None, name: str) -> str:
    if spent is None:
        return _UNKNOWN
    amount, unmetered = spent[name], spent["unmetered"].get(name)
    if not unmetered:
        return str(amount)
    least = _UNKNOWN if amount is None else f"at least {amount}"
    return f"{least} ({unmetered} not metered)"


def _verdict(found: Difference, first: str, second: str) -> str:
    if found.delta is None or found.interval is None:
        return f"the champions are not compared: {found.reason}"
    low, high = found.interval
    seeds = ", ".join(map(str, found.seeds))
    return (
        f"champion of {second} over that of {first}: {found.delta:+.4f} NDCG@10, "
        f"95 % interval [{low:+.4f}, {high:+.4f}], seeds {seeds}"
    )
