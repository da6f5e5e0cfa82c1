"""`eop knowledge`: what earlier runs have taught, whether it holds, what a phase is told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eop.cli.output import json_option, print_json, say_files
from eop.core.errors import ExitCode, did_you_mean
from eop.driver.workflow import load_project
from eop.knowledge.asking import phase_query, text_query
from eop.knowledge.checks import check as check_knowledge
from eop.knowledge.recall import recall as find
from eop.knowledge.store import open_store
from eop.knowledge.wiki import summarized, write_claims
from eop.project.config import read_raw, require_project

if TYPE_CHECKING:
    from eop.knowledge.recall import Query
    from eop.project.project import Project


@click.group(
    short_help="Notes, the wiki above them, and what is made of both.",
    epilog='Example: eop knowledge recall "dropout on short histories"',
)
def knowledge() -> None:
    """Notes of every entry, the wiki above them, and what is made of both."""


@knowledge.command(
    short_help="Hold every claim to its evidence.", epilog="Example: eop knowledge check --json"
)
@json_option
@click.pass_obj
def check(root: Path, as_json: bool) -> None:
    """Hold every claim to its evidence; status 6 when one does not stand.

    Reads every file anew. Contradictions of notes that no claim has taken up are named and are no
    fault of the wiki.
    """
    require_project(root)
    found = check_knowledge(root)
    if as_json:
        problems = [{"path": p.path, "line": p.line, "message": p.message} for p in found.problems]
        facts = {"notes": found.notes, "claims": found.claims, "problems": problems}
        still = [str(one) for one in found.open]
        print_json({"schema": "knowledge-check/1", **facts, "open": still})
    else:
        for problem in found.problems:
            click.echo(str(problem), err=True)
        for one in found.open:
            click.echo(f"open: {one}")
        verdict = f"{len(found.problems)} problems" if found.problems else "every claim stands"
        click.echo(f"{found.notes} notes, {found.claims} claims: {verdict}")
    if found.problems:
        sys.exit(int(ExitCode.DATA))


@knowledge.command(
    short_help="Bring to the wiki what notes say anew, by rule.",
    epilog="Example: eop knowledge summarize",
)
@json_option
@click.pass_obj
def summarize(root: Path, as_json: bool) -> None:
    """Bring to the wiki what notes say that no claim rests on yet, by rule.

    A protocol with the function `summarize` does this in every iteration.
    """
    require_project(root)
    with open_store(root) as store:
        claims = summarized(store, store.notes())
    pages = write_claims(root, claims)
    if as_json:
        facts = {"pages": [str(page) for page in pages], "claims": len(claims)}
        print_json({"schema": "knowledge-summary/1", **facts})
        return
    for page in pages:
        click.echo(page)
    click.echo(f"{len(claims)} claims are new or rest on more")


@knowledge.command(
    short_help="Show what an agent would be told, and why.",
    epilog='Example: eop knowledge recall "shorter histories" --phase propose',
)
@click.argument("query")
@click.option("--phase", help="Ask as this phase of the config's protocol would, besides.")
@click.option("--tokens", type=click.IntRange(min=1), help="The budget.  [default: the config's]")
@json_option
@click.pass_obj
def recall(root: Path, query: str, phase: str | None, tokens: int | None, as_json: bool) -> None:
    """Show what an agent would be told, within the budget, and why.

    --json prints the manifest that a run keeps of it.
    """
    project = load_project(root, read_raw(root))
    asked = _asked(project, query, phase)
    found = find(root, asked, tokens or project.config.memory)
    if as_json:
        print_json(found.to_json())
        return
    click.echo(found.text or "nothing is known that bears on this\n", nl=False)
    for item in found.told:
        click.echo(f"told      {item.name}: {', '.join(item.why)}", err=True)
    for name, why in found.withheld:
        click.echo(f"withheld  {name}: {why}", err=True)
    for name in found.left_out:
        click.echo(f"left out  {name}: the budget is spent", err=True)


def _asked(project: Project, query: str, name: str | None) -> Query:
    plan = project.plan
    if name is None:
        return text_query(project.root, query)
    known = [phase.id for phase in plan.phases]
    if name not in known:
        raise click.UsageError(f"no phase '{name}' in {plan.name} (phases: {', '.join(known)})")
    asked = phase_query(project.root, plan, plan.phase(name), text=query)
    if asked is None:
        raise click.UsageError(
            f"nothing is recalled for '{name}': it neither proposes nor branches"
        )
    return asked


@knowledge.command(
    short_help="Write who is about what and rests on what, as a graph.",
    epilog="Example: eop knowledge graph OUT --around intervention:film",
)
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.option("--around", help="Only what lies near this node: intervention:film, note:<id>.")
@click.option("--steps", type=click.IntRange(min=1), default=2, show_default=True)
@json_option
@click.pass_obj
def graph(root: Path, out: Path, around: str | None, steps: int, as_json: bool) -> None:
    """Write who is about what and rests on what: OUT/graph.graphml and OUT/graph.json."""
    require_project(root)
    # networkx takes a quarter of a second to load, and no other command needs it.
    from eop.knowledge.graph import build, neighbourhood, write_graph

    with open_store(root) as store:
        found = build(store)
    if around is not None:
        if around not in found:
            near = did_you_mean(around, found) or "OUT without --around has every node"
            raise click.UsageError(f"no node '{around}': {near}")
        found = neighbourhood(found, around, steps)
    say_files(write_graph(found, out), as_json=as_json)
