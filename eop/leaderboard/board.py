"""What `dvc metrics`, `dvc plots` and `dvc params` show: ``leaderboard/board/``, made from entries.

DVC has no patterns of file names in its lists, so they are written out. Every byte follows from
the entries: the folder can be removed and made again, and is, after a merge.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

import yaml

from eop.core.files import dumps, write_if_changed
from eop.core.locks import exclusive
from eop.leaderboard.board_plots import CURVES, SCORES, TEMPLATES
from eop.leaderboard.files import LOCK, entry_folder, read_entries
from eop.leaderboard.ranking import leader, metric, ranked, split_of
from eop.leaderboard.standing import standing

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping
    from pathlib import Path

    from eop.leaderboard.entry import Entry, Scores

BOARD = "leaderboard/board"
TEMPLATE_FOLDER = ".dvc/plots"
# Rows of a split that DVC is told of: a table, a legend and a start-up that people can bear.
SHOWN = 20
_HEADER = """\
# Made from the entries by `record` and `eop store index`; edits are lost. Of each split it has who
# leads and the first {shown} rows by canonical test ({total} rows in all: `eop leaderboard`).
"""
# Two branches with new entries always conflict here, in the open: no merge by lines is right.
_ATTRIBUTES = "# After a merge: eop store index\n* -merge\n"
_POINTS = ("ndcg@10", "hr@10", "mrr")


def write_board(root: Path) -> list[str]:
    """Bring ``leaderboard/board/`` and its plot templates up to date; the paths that were written.

    Safe to be killed and repeated: each file is whole, and DVC's list comes last.
    """
    with exclusive(root / LOCK, wait=True):
        entries = read_entries(root)
        files = {entry.id: _names(root, entry) for entry in entries}
        content = {f"{BOARD}/{name}": text for name, text in board(entries, files).items()}
        content |= {f"{TEMPLATE_FOLDER}/{n}.json": dumps(spec) for n, spec in TEMPLATES.items()}
        last = f"{BOARD}/dvc.yaml"
        written = [
            path
            for path in sorted(content, key=lambda path: (path == last, path))
            if write_if_changed(root / path, content[path])
        ]
        # A table of other rows, or what a writer that was killed has left.
        for path in [*(root / BOARD).rglob("*"), *(root / TEMPLATE_FOLDER).glob(".*.tmp")]:
            if path.is_file() and path.relative_to(root).as_posix() not in content:
                path.unlink()
    return written


def board(entries: Iterable[Entry], files: Mapping[str, Container[str]]) -> dict[str, str]:
    """The files of the board by path below it; ``files`` names each entry's own files."""
    content: dict[str, str] = {".gitattributes": _ATTRIBUTES}
    listed: dict[str, list[Any]] = {"metrics": [], "params": [], "plots": []}
    rows = ranked(entries)
    for (dataset, digest), group in groupby(rows, key=split_of):
        name, of_split = f"{dataset}-{digest[:8]}", list(group)
        shown = of_split[:SHOWN]
        first = leader(of_split)
        if first is not None:
            content[f"{name}.leader.json"] = dumps({"entry": first.id, **_row(first)})
            listed["metrics"].append(f"{name}.leader.json")
            if first.evidence["config"] is not None:
                text = yaml.safe_dump(first.evidence["config"], sort_keys=True)
                content[f"{name}.leader.yaml"] = text
                listed["params"].append(f"{name}.leader.yaml")
        for entry in shown:
            content[f"{name}/{entry.id}.json"] = dumps(_row(entry))
            listed["metrics"].append(f"{name}/{entry.id}.json")
            if "config.yaml" in files[entry.id]:
                listed["params"].append(f"../{entry.id}/config.yaml")
        title = f"{dataset}, split {digest[:8]}"
        scores = [_point(entry) for entry in shown if entry.test]
        if scores:
            content[f"{name}.scores.json"] = json.dumps(scores, indent=1, sort_keys=True) + "\n"
            plot = {"title": f"{title}: canonical test", "template": SCORES, "x": "ndcg@10"}
            listed["plots"].append(
                {f"scores-{name}": {**plot, "y": {f"{name}.scores.json": "entry"}}}
            )
        curves = {f"../{e.id}/curve.tsv": "loss" for e in shown if "curve.tsv" in files[e.id]}
        if curves:
            plot = {"title": f"{title}: training", "template": CURVES, "x": "epoch"}
            listed["plots"].append({f"curves-{name}": {**plot, "y": curves}})
    header = _HEADER.format(shown=SHOWN, total=len(rows))
    content["dvc.yaml"] = header + yaml.safe_dump(listed, sort_keys=False, width=100)
    return content


def _row(entry: Entry) -> dict[str, Any]:
    """An entry's row as DVC's table has it; what was not measured is left out, and shown as -."""
    return {
        "standing": standing(entry),
        "test": _scores(entry.test),
        "validation": _scores(entry.validation),
    }


def _scores(scores: Scores | None) -> dict[str, float]:
    if scores is None:
        return {}
    low_high = dict(zip(("low", "high"), scores.interval or (), strict=False))
    return {name: scores.mean[name] for name in _POINTS} | low_high


def _point(entry: Entry) -> dict[str, Any]:
    """What the picture of scores draws: one mean with its interval, where it has one."""
    low, high = entry.test.interval if entry.test and entry.test.interval else (None, None)
    return {
        "entry": entry.id,
        "standing": standing(entry),
        "ndcg@10": metric(entry.test, "ndcg@10"),
        "low": low,
        "high": high,
    }


def _names(root: Path, entry: Entry) -> set[str]:
    return {path.name for path in entry_folder(root, entry.id).iterdir()}
