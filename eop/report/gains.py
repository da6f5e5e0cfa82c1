"""The gains of recipes on other data sets, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from eop.report.terminal import MISSING, number, seeds_and_reads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from eop.leaderboard.transfer import Claim, Gain


def print_gains(console: Console, gains: Sequence[Gain], claims: dict[str, Claim]) -> None:
    """Print a row for each recipe and data set, beside what was published of that data set.

    ``claims`` are those on data sets that nothing was measured on.
    """
    if not gains:
        console.print("Nothing was replayed yet: eop run with config/protocols/replay.eop.md.")
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("recipe, data set", overflow="fold", ratio=1)
    for name in ("base", "NDCG@10", "gain"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("stands", max_width=12)
    table.add_column("published", overflow="fold", ratio=1)
    for gain in gains:
        table.add_row(
            Text.assemble(gain.recipe, "\n", (gain.dataset, "dim")),
            number(gain.base),
            number(gain.ndcg),
            _gain_cell(gain),
            gain.standing.replace("_", " "),
            _claim(gain.claim),
        )
    console.print(table)
    console.print(
        f"{MISSING} not measured, or not published. Canonical test; under a gain: the interval of "
        "the paired difference of NDCG@10, its seeds, and reads of the test. Published numbers are "
        "of other code and another split.",
        style="dim",
    )
    for name, claim in claims.items():
        text = f"Published of {name}, and not measured here: {_claim(claim)}."
        console.print(Text(text, "dim"))


def _gain_cell(gain: Gain) -> Text:
    text = Text(_share(gain.relative))
    if gain.interval:
        low, high = gain.interval
        text.append(f"\n{number(low, signed=True)}..{number(high, signed=True)}", "dim")
        text.append(f"\n{seeds_and_reads(len(gain.seeds), gain.test_reads)}", "dim")
    return text


def _share(value: float | None) -> str:
    return MISSING if value is None else f"{value:+.1%}"


def _claim(claim: Claim | None) -> str:
    if claim is None:
        return MISSING
    if claim.gain is None:
        return claim.words
    return f"{claim.base:.4f} to {claim.ndcg:.4f}, {_share(claim.gain)}: {claim.words}"
