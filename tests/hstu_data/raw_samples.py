"""Small raw data sets, as their owners lay them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hstu.data.items import Items
from hstu.data.readers import Interactions, RawData

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

EVENTS = [(7, 30, 100), (7, 10, 50), (7, 20, 70), (2, 20, 10), (2, 10, 10), (2, 30, 10)]


def csv_set(folder: Path, events: Sequence[tuple[object, object, object]] = EVENTS) -> Path:
    """A generic data set without items."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["user_id,item_id,timestamp", *(f"{u},{i},{t}" for u, i, t in events)]
    (folder / "interactions.csv").write_text("\n".join(lines) + "\n")
    return folder


def ml_100k(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "u.data").write_text("".join(f"{u}\t{i}\t3\t{t}\n" for u, i, t in EVENTS))
    flags = ["0"] * 19
    comedy, unknown = flags.copy(), flags.copy()
    comedy[5] = comedy[16] = "1"
    unknown[0] = "1"
    rows = [
        ["10", "Café Noir (1994)", "01-Jan-1994", "", "http://x", *comedy],
        ["20", "unknown", "", "", "", *unknown],
        ["30", "Two: Three (1995)", "", "", "", *flags],
        ["40", "Never rated (1990)", "", "", "", *flags],
    ]
    text = "".join("|".join(row) + "\n" for row in rows)
    (folder / "u.item").write_bytes(text.encode("latin-1"))
    return folder


def ml_1m(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ratings.dat").write_text("".join(f"{u}::{i}::3::{t}\n" for u, i, t in EVENTS))
    text = (
        "10::Café Noir (1994)::Comedy|Thriller\n20::unknown::Drama\n"
        '30::Two: "Three" (1995)::Drama\n40::Never, rated (1990)::Drama\n'
    )
    (folder / "movies.dat").write_bytes(text.encode("latin-1"))
    return folder


def ml_20m(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = "".join(f"{u},{i},3.5,{t}\n" for u, i, t in EVENTS)
    (folder / "ratings.csv").write_text("userId,movieId,rating,timestamp\n" + rows)
    (folder / "movies.csv").write_text(
        "movieId,title,genres\n10,Café Noir (1994),Comedy|Thriller\n20,unknown,Drama\n"
        '30,"Two, Three (1995)",Drama\n40,Never rated (1990),(no genres listed)\n'
    )
    return folder


def atomic(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = "".join(f"{u}\t{i}\t3\t{t}\n" for u, i, t in EVENTS)
    header = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
    (folder / "x.inter").write_text(header + rows)
    (folder / "x.item").write_text(
        "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n"
        "10\tCafé Noir\t1994\tComedy Thriller\n20\tunknown\tunknown\tDrama\n"
        "30\tTwo Three\t1995\tDrama\n40\tNever rated\t1990\tDrama\n"
    )
    return folder


def raw(events: Sequence[tuple[int, int, int]]) -> RawData:
    """Events as if read from ``memory``."""
    columns = np.array(list(events), dtype=np.int64).reshape(-1, 3).T
    ids = np.unique(columns[1])
    nothing = [""] * len(ids)
    items = Items.of_columns(ids, nothing, nothing, np.zeros(len(ids), np.int64))
    return RawData(Interactions(*columns), items, lambda row: f"memory:{row + 1}")
