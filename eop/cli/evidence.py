"""`eop evidence`: what rows rest on, whether it holds, and in what two of them differ."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from eop.cli.completions import entries as complete_entries
from eop.cli.output import json_option, print_json
from eop.core.errors import ExitCode
from eop.functions.evidence_archive import restore as restore_objects
from eop.functions.evidence_manifest import manifest_path
from eop.functions.evidence_reading import differences, evidence_problems, read_manifest
from eop.leaderboard import read_entries
from eop.project.config import require_project

if TYPE_CHECKING:
    from pathlib import Path

_WIDTH = 60


@click.group(
    short_help="Every file that a row rests on, by content.", epilog="Example: eop evidence verify"
)
def evidence() -> None:
    """Every file that a row rests on, by content, whatever the row's end."""


@evidence.command(
    short_help="The files of ENTRY, the cost of each node, the decision.",
    epilog="Example: eop evidence show demo-synthetic-it01-p01",
)
@click.argument("entry", shell_complete=complete_entries)
@json_option
@click.pass_obj
def show(root: Path, entry: str, as_json: bool) -> None:
    """The files of ENTRY by role, the cost of each node, the decision and its reason."""
    require_project(root)
    manifest = read_manifest(root, entry)
    if as_json:
        print_json(manifest)
        return
    reason = f": {manifest['reason']}" if manifest["reason"] else ""
    click.echo(f"{entry}: {manifest['outcome']}{reason}")
    if manifest["decision"]:
        click.echo(f"decision: {manifest['decision']}")
    for node in manifest["nodes"]:
        cost = ", ".join(_cost(node, name) for name in ("actions", "wall_s", "tokens", "usd"))
        click.echo(f"node {node['node']}: {node['outcome']}, {node['attempts']} attempts, {cost}")
    for file in manifest["files"]:
        where = "store" if file["stored"] else "DVC"
        size, name = file["size"], file["sha256"][:16]
        click.echo(f"{file['role']:<11}{name}  {size:>9}  {where:<5}  {file['path']}")


def _cost(node: dict[str, Any], name: str) -> str:
    value = node[name]
    return f"{name} {'unknown' if value is None else f'{value:g}'}"


@evidence.command(
    short_help="Read every file again and compare it with its digest.",
    epilog="Example: eop evidence verify demo-synthetic-it01-p01",
)
@click.argument("entries", nargs=-1, metavar="[ENTRY]...", shell_complete=complete_entries)
@json_option
@click.pass_obj
def verify(root: Path, entries: tuple[str, ...], as_json: bool) -> None:
    """Read every file again and compare it with its digest; status 6 when one does not hold.

    Without ENTRY, all rows. Rows of versions that kept no manifest are counted.
    """
    require_project(root)
    names = list(entries) or [entry.id for entry in read_entries(root)]
    without = [] if entries else [n for n in names if not manifest_path(root, n).is_file()]
    found = {name: evidence_problems(root, name) for name in names if name not in without}
    lost = sum(map(len, found.values()))
    if as_json:
        print_json({"schema": "evidence-check/1", "problems": found, "without_manifest": without})
    else:
        for name, problems in found.items():
            for problem in problems:
                click.echo(f"{name}: {problem}", err=True)
        if lost:
            click.echo("hint: in a clone, dvc pull and eop evidence restore bring files", err=True)
        verdict = f"{lost} problems" if lost else "all hold"
        click.echo(f"{len(found)} rows: {verdict}; {len(without)} rows without a manifest")
    if lost:
        sys.exit(int(ExitCode.DATA))


@evidence.command(
    short_help="Bring the files of rows back into the store.",
    epilog="Example: eop evidence restore demo-synthetic-it01-p01",
)
@click.argument("entries", nargs=-1, metavar="[ENTRY]...", shell_complete=complete_entries)
@json_option
@click.pass_obj
def restore(root: Path, entries: tuple[str, ...], as_json: bool) -> None:
    """Bring the files of rows back into the store, from the archives that DVC keeps.

    For a clone, after `dvc pull`. Without ENTRY, all rows that have a manifest.
    """
    require_project(root)
    names = entries or [
        entry.id for entry in read_entries(root) if manifest_path(root, entry.id).is_file()
    ]
    brought = {}
    for name in names:
        brought[name] = restore_objects(root, name, read_manifest(root, name))
        if not as_json:
            click.echo(f"{name}: {brought[name]} files brought back")
    if as_json:
        print_json({"schema": "evidence-restored/1", "files": brought})


@evidence.command(
    short_help="In what two rows differ.",
    epilog="Example: eop evidence diff demo-synthetic-base demo-synthetic-it01-p01",
)
@click.argument("one", shell_complete=complete_entries)
@click.argument("other", shell_complete=complete_entries)
@json_option
@click.pass_obj
def diff(root: Path, one: str, other: str, as_json: bool) -> None:
    """In what two rows differ: settings, code, prompts, products, outcome, numbers, cost."""
    require_project(root)
    found = differences(root, one, other)
    if as_json:
        rows = [{"what": what, "one": left, "other": right} for what, left, right in found]
        facts = {"one": one, "other": other, "differences": rows}
        print_json({"schema": "evidence-difference/1", **facts})
        return
    for what, left, right in found:
        click.echo(f"{what}\n  {one}: {_shown(left)}\n  {other}: {_shown(right)}")
    kinds = Counter(what.split(".", 1)[0].split(" ", 1)[0] for what, _, _ in found)
    click.echo(f"{len(found)} differences: {', '.join(kinds) or 'none'}")


def _shown(value: Any) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "\N{HORIZONTAL ELLIPSIS}"
