"""`eop knowledge`: what earlier runs have taught, whether it holds, what a phase is told."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from eop.cli.common import json_option, print_json
from eop.core.errors import ExitCode
from eop.knowledge.checks import check as check_knowledge


@click.group(epilog='Example: eop knowledge recall "dropout on short histories"')
def knowledge() -> None:
    """Notes of every entry, the wiki above them, and what is made of both."""


@knowledge.command(epilog="Example: eop knowledge check --json")
@json_option
@click.pass_obj
def check(root: Path, as_json: bool) -> None:
    """Hold every claim to its evidence; status 6 when one does not stand.

    Reads every file anew. Contradictions of notes that no claim has taken up are named and are no
    fault of the wiki.
    """
    found = check_knowledge(root)
    if as_json:
        problems = [{"path": p.path, "line": p.line, "message": p.message} for p in found.problems]
        facts = {"notes": found.notes, "claims": found.claims, "problems": problems}
        print_json({**facts, "open": [str(one) for one in found.open]})
    else:
        for problem in found.problems:
            click.echo(str(problem), err=True)
        for one in found.open:
            click.echo(f"open: {one}")
        verdict = f"{len(found.problems)} problems" if found.problems else "every claim stands"
        click.echo(f"{found.notes} notes, {found.claims} claims: {verdict}")
    if found.problems:
        sys.exit(int(ExitCode.DATA))
