"""Figures for papers as files; no browser and no network is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import write_bytes
from eop.leaderboard import read_entries
from eop.leaderboard.ranking import ranked, split_of
from eop.leaderboard.selection import Selection
from eop.project.project import Project

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eop.leaderboard import Entry
    from eop.report.figure_drawing import Spec

LEADERBOARD, NOISE = "leaderboard", "noise"
FIGURES = (LEADERBOARD, NOISE)
_SUFFIXES = (".svg", ".png", ".pdf")
# PNG: four dots for each px of 1/96 inch, so that a printed column has 384 dots an inch.
_DOTS, _PNG_BASE = 384, 72


def write_figure(root: Path, kind: str, path: Path, selection: Selection) -> None:
    """Write a figure of ``FIGURES`` to ``path``, as its suffix says: SVG, PNG or PDF.

    Raises ``EopError``: EOP892 for another suffix, EOP893 when there is nothing to draw, EOP894
    when the rows selected are of several splits, which no ranking may mix.
    """
    if path.suffix.lower() not in _SUFFIXES:
        raise EopError(
            "EOP892",
            f"a figure is written as {', '.join(_SUFFIXES)}, not as '{path.suffix}'",
            where=Where(str(path)),
            hint=f"name a file such as {path.with_suffix('.svg').name}",
            exit_code=ExitCode.USAGE,
        )
    entries = ranked(selection.of(read_entries(root)))
    splits = {split_of(entry) for entry in entries}
    if len(splits) > 1:
        named = ", ".join(f"{dataset} {digest[:8]}" for dataset, digest in sorted(splits))
        raise EopError(
            "EOP894",
            f"the rows are of several splits: {named}",
            hint="name one run with --run, or one data set with --dataset",
            exit_code=ExitCode.USAGE,
        )
    spec = _spec(kind, entries)
    if spec is None:
        raise EopError(
            "EOP893",
            f"nothing to draw: {_nothing(kind, entries)}",
            hint="`eop leaderboard` lists the rows there are",
            exit_code=ExitCode.STATE,
        )
    write_bytes(path, _drawn(spec, path.suffix.lower()))


def write_run_figures(root: Path, run: str) -> None:
    """Write both figures of a run's own rows beside its page, as SVG; an empty one says why."""
    from eop.report.figure_drawing import empty_figure

    entries = ranked(Selection(run=run).of(read_entries(root)))
    folder = Project.of_run(root, run).run_dir
    for kind in FIGURES:
        spec = _spec(kind, entries) or empty_figure(_nothing(kind, entries))
        write_bytes(folder / f"{kind}.svg", _drawn(spec, ".svg"))


def _spec(kind: str, entries: Sequence[Entry]) -> Spec | None:
    # The chart library takes half a second to load.
    from eop.report.figures import leaderboard_figure, noise_figure

    return {LEADERBOARD: leaderboard_figure, NOISE: noise_figure}[kind](entries)


def _nothing(kind: str, entries: Sequence[Entry]) -> str:
    done = {LEADERBOARD: "measured", NOISE: "compared with its parent"}[kind]
    return f"of {len(entries)} rows none was {done}" if entries else "there is no row"


def _drawn(spec: Spec, suffix: str) -> bytes:
    """Equal figures give equal SVG."""
    import vl_convert

    if suffix == ".svg":
        return vl_convert.vegalite_to_svg(spec).encode()
    if suffix == ".pdf":
        return vl_convert.vegalite_to_pdf(spec)
    return vl_convert.vegalite_to_png(spec, scale=_PNG_BASE / 96, ppi=_DOTS)
