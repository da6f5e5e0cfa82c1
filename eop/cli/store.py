"""`eop store`: the bytes that DVC keeps, in its cache and at the remote."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from eop.cli.output import json_option, print_json, say_files
from eop.core.errors import ExitCode
from eop.evidence import Dvc
from eop.leaderboard.board import write_board
from eop.project.config import require_project
from eop.report.dvc_page import dvc_page

if TYPE_CHECKING:
    from pathlib import Path


@click.group(
    short_help="The bytes behind splits, snapshots and entries.",
    epilog="Example: eop store check --remote",
)
def store() -> None:
    """The bytes behind splits, snapshots and entries, where DVC keeps them."""


@store.command(short_help="Read every object again.", epilog="Example: eop store check --remote")
@click.option("--remote", is_flag=True, help="Read the default remote instead of the cache.")
@json_option
@click.pass_obj
def check(root: Path, remote: bool, as_json: bool) -> None:
    """Read every object again; status 6 when one has rotted or is missing.

    DVC believes the name of an object that it has once stored. This reads the bytes. A remote that
    is no folder is fetched to be read, which costs its traffic.
    """
    dvc = Dvc(root)
    files = {pointer: dvc.pointed(pointer) for pointer in dvc.pointers()}
    report = dvc.verify(list(files), remote=remote)
    paths: dict[str, list[str]] = {}
    for file in files.values():
        paths.setdefault(file.md5, []).append(file.path)
    faults = {"rotted": report.rotted, "missing": report.missing}
    if as_json:
        named = {kind: {oid: paths.get(oid, []) for oid in oids} for kind, oids in faults.items()}
        facts = {"store": report.store, "objects": report.objects}
        print_json({"schema": "store-check/1", **facts, **named})
    else:
        for kind, oids in faults.items():
            for oid in oids:
                held = ", ".join(paths.get(oid, ["no file of this commit"]))
                click.echo(f"{kind}: object {oid} ({held})", err=True)
        if not report.sound:
            click.echo(f"hint: {_remedy(remote)}", err=True)
        verdict = "all hold" if report.sound else f"{sum(map(len, faults.values()))} faults"
        click.echo(f"{report.store}: {report.objects} objects, {len(files)} pointers: {verdict}")
    if not report.sound:
        sys.exit(int(ExitCode.DATA))


@store.command(
    short_help="Bring up to date what dvc metrics, plots and params show.",
    epilog="Example: eop store index",
)
@json_option
@click.pass_obj
def index(root: Path, as_json: bool) -> None:
    """Make leaderboard/board/ anew from the entries, for `dvc metrics`, `plots` and `params`.

    Each iteration that is recorded does so too. By hand it is needed after a merge of branches that
    both have new entries. In a DVC project `dvc plots` then also draws without a network on this
    machine. Prints the files that were not up to date.
    """
    require_project(root)
    written = write_board(root)
    dvc = Dvc(root)
    if dvc.initialised:
        dvc.use_page(dvc_page(root / "runs"))
    say_files(written, as_json=as_json)
    if not written and not as_json:
        click.echo("leaderboard/board/ is up to date")


def _remedy(remote: bool) -> str:
    if remote:
        return (
            "remove a rotted object there; dvc push brings both back from a cache that holds them"
        )
    return "remove a rotted object; dvc fetch brings both back from a remote that holds them"
