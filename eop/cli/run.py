"""`eop init`, `eop run`, `eop reproduce` and `eop demo`."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eop.cli.common import config_option, overrides
from eop.cli.completions import entries, shipped_protocols
from eop.cli.output import json_option, print_json
from eop.cli.watch import News
from eop.core.errors import ExitCode
from eop.core.processes import die_with_parent
from eop.driver.create import create
from eop.driver.demo import play
from eop.driver.gpus import devices
from eop.driver.loop import run_until_still
from eop.functions.lineage import base_id
from eop.functions.reproduce import reproduce as reproduce_entry
from eop.knowledge.store import open_store
from eop.report import leaderboard_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from eop.project.project import Project


class _WithPairs(click.Command):
    """As with Snakemake, ``--config`` takes every KEY=VALUE word that follows it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _spelled_out(args))


def _spelled_out(arguments: list[str]) -> list[str]:
    """With a ``--config`` before each KEY=VALUE word that follows one; ``-C`` is its short name.

    Words after other options, such as ``--resources gpu=1``, are theirs.
    """
    spelled: list[str] = []
    taking = False
    for at, word in enumerate(arguments):
        if word == "--":
            return [*spelled, *arguments[at:]]
        if word in ("--config", "-C"):
            taking = True
            # With no pair after it, it is refused as any option without its value.
            if not any(map(_is_pair, arguments[at + 1 : at + 2])):
                spelled.append("--config")
        elif taking and _is_pair(word):
            spelled += ["--config", word]
        else:
            taking = word.startswith("--config=")
            spelled.append(word)
    return spelled


def _is_pair(word: str) -> bool:
    return "=" in word and not word.startswith("-")


def _for_snakemake(options: tuple[str, ...]) -> tuple[str, ...]:
    """The options, unless they hold config that Snakemake alone would see: it makes another run."""
    for word in options:
        if word.partition("=")[0] in ("--config", "--configfile", "--configfiles", "-C"):
            raise click.UsageError(
                f"only Snakemake would see this {word}: write --config KEY=VALUE, before any --"
            )
    return options


@click.command(
    cls=_WithPairs,
    context_settings={"ignore_unknown_options": True},
    epilog="Example: eop run --cores 2 --config dataset=ml-100k data_dir=../ml-100k",
)
@click.option("--cores", type=click.IntRange(min=1), default=2, show_default=True)
@config_option
@click.argument("snakemake_options", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def run(root: Path, cores: int, pairs: tuple[str, ...], snakemake_options: tuple[str, ...]) -> None:
    """Call Snakemake until the run stands still.

    Ends with status 3 when a gate waits for you or the run is paused, 0 when the run
    has ended. --config takes several pairs, as Snakemake's does. Further options go to
    Snakemake as they are (after --).
    """
    extra = _for_snakemake(snakemake_options)
    position = run_until_still(root, overrides(pairs), cores=cores, extra=extra, follow=_follow)
    if position.waiting or (position.state.halt and not position.ended):
        sys.exit(int(ExitCode.GATE_CLOSED))
    if position.ended not in ("completed", "rejected"):
        click.echo(f"the run stopped: {position.ended or position.frontier.reason}", err=True)
        sys.exit(int(ExitCode.FAILURE))


def _follow(project: Project) -> Callable[[], None]:
    """Between Snakemake's lines, and where it writes: what happens, and what is at work."""
    news = News(project)

    def tick() -> None:
        for line in news.lines():
            click.echo(f"eop  {line}", err=True)

    return tick


@click.command(
    short_help="Train and judge an entry again, and compare.",
    epilog="Example: eop reproduce leaderboard/demo-base repro/demo-base",
)
@click.argument("entry", type=click.Path(path_type=Path), shell_complete=entries)
@click.argument("out", type=click.Path(path_type=Path), required=False)
@click.option("--threads", type=click.IntRange(min=1), help="[default: as recorded]")
@click.option(
    "--isolation", type=click.Choice(["auto", "require", "off"]), default="auto", show_default=True
)
@json_option
@click.pass_obj
def reproduce(
    root: Path, entry: Path, out: Path | None, threads: int | None, isolation: str, as_json: bool
) -> None:
    """Train and judge a leaderboard entry again, and compare with what it recorded.

    ENTRY is its id or its folder; OUT, by default repro/ENTRY, is replaced when an earlier
    reproduction left it. Fails when a metric differs by more than the entry's tolerance. This is
    what the entry's DVC stage runs:
    dvc repro -f -s --no-run-cache leaderboard/ENTRY/dvc.yaml:reproduce
    """
    if "DVC_STAGE" in os.environ:
        # DVC that is killed leaves its stage's command alive, and this one has a training.
        die_with_parent()
    to = out or root / "repro" / entry.name
    gpus = len(devices(os.environ))
    verdict = reproduce_entry(root, entry.name, to, threads=threads, isolation=isolation, gpus=gpus)
    if as_json:
        facts = {"reproduced": verdict.reproduced, "identical": verdict.identical}
        distance = {"largest_difference": verdict.largest, "tolerance": verdict.tolerance}
        print_json({"schema": "reproduction/1", **facts, **distance, "elsewhere": verdict.told})
        return
    same = "bit for bit" if verdict.identical else f"within {verdict.tolerance:.2g}"
    click.echo(f"{entry.name}: reproduced {same} (largest difference {verdict.largest:.2g})")
    for what, recorded, now in verdict.elsewhere:
        click.echo(f"  {what}: recorded with {recorded}, now {now}")


@click.command(
    short_help="Make a project in FOLDER.",
    epilog="Example: eop init my-model --protocol hstu-evolve",
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--protocol",
    default="hstu-evolve",
    show_default=True,
    shell_complete=shipped_protocols,
    help="Which of the shipped protocols its config names.",
)
def init(folder: Path, protocol: str) -> None:
    """Make a project in FOLDER: Snakefile, config, protocols and the recommender to evolve."""
    create(folder, protocol=protocol)
    click.echo(f"a project in {folder}, on the synthetic data set, its files staged in git. Next:")
    for line in (
        f"cd {shlex.quote(str(folder))} && git commit -m 'the project as it begins'",
        "dvc remote add -d store <folder or URL>   # where weights and splits are kept",
        "snakemake --cores 2                       # runs up to the first gate",
        "eop doctor                                # which agents are ready on this machine",
    ):
        click.echo(f"  {line}")


@click.command(
    short_help="Run the demo protocol, answering its gates for you.",
    epilog="Example: eop demo .demo",
)
@click.argument("folder", type=click.Path(path_type=Path), default=".demo")
@click.option("--cores", type=click.IntRange(min=1), default=2, show_default=True)
def demo(folder: Path, cores: int) -> None:
    """Run the demo protocol in a project of its own, answering its gates on your behalf."""
    started = time.monotonic()
    folder = folder.resolve()
    project = play(folder, cores=cores)
    click.echo(leaderboard_text(folder))
    base = f"leaderboard/{base_id(project)}/dvc.yaml:reproduce"
    # networkx takes a quarter of a second to load, and no other command here needs it.
    from eop.knowledge.graph import build, write_graph

    with open_store(folder) as store:
        graph = write_graph(build(store), project.run_dir / "knowledge")
    for name, value in {
        "took": f"{time.monotonic() - started:.0f} s",
        "leaderboard": folder / "leaderboard",
        "notes": folder / "knowledge" / "notes",
        "wiki": folder / "knowledge" / "wiki",
        "graph": graph[0],
        "report": project.run_dir / "report.html",
        "make a row again": f". {shlex.quote(str(Path(sys.executable).parent / 'activate'))} && "
        f"cd {shlex.quote(str(folder))} && dvc repro -f -s --no-run-cache {base}",
    }.items():
        click.echo(f"{name:<18}{value}")
