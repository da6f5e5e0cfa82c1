"""Where known data sets come from and what may be done with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MOVIELENS_TERMS = (
    "MovieLens data: research use only, no commercial use, no redistribution without "
    "GroupLens' permission; cite Harper and Konstan (2015). Keep it out of the repository."
)


@dataclass(frozen=True)
class Source:
    """A place to get a data set from, the files to put down, and the owner's terms."""

    origin: str
    files: str
    terms: str


SOURCES: dict[str, Source] = {
    "ml-100k": Source(
        "https://grouplens.org/datasets/movielens/100k/", "u.data and u.item", MOVIELENS_TERMS
    ),
    "ml-1m": Source(
        "https://grouplens.org/datasets/movielens/1m/",
        "ratings.dat and movies.dat",
        MOVIELENS_TERMS,
    ),
    "ml-20m": Source(
        "https://grouplens.org/datasets/movielens/20m/",
        "ratings.csv and movies.csv",
        MOVIELENS_TERMS,
    ),
    "ml-latest-small": Source(
        "https://grouplens.org/datasets/movielens/latest/",
        "ratings.csv and movies.csv",
        "GroupLens: research use; redistribution under the same conditions only.",
    ),
    "amazon-beauty": Source(
        "https://cseweb.ucsd.edu/~jmcauley/datasets.html",
        "interactions.parquet or interactions.csv (user_id, item_id, timestamp)",
        "No licence is stated; cite the owners and treat it as research use only.",
    ),
    "yelp-2020": Source(
        "https://www.yelp.com/dataset",
        "interactions.parquet or interactions.csv (user_id, item_id, timestamp)",
        "Yelp Dataset terms: academic, non-commercial, no redistribution.",
    ),
}

FETCHABLE = ("ml-100k",)


def missing_message(dataset: str, folder: Path) -> str:
    """What to do about an absent data set: where to get it and where to put it."""
    source = SOURCES.get(dataset)
    if source is None:
        lines = [
            f"put interactions.parquet or .csv (user_id, item_id, timestamp) into {folder}",
            "and, if there are any, items.parquet or .csv (item_id, title, genres, year)",
        ]
    else:
        lines = [f"get it from {source.origin} and put {source.files} into {folder}", source.terms]
    if dataset in FETCHABLE:
        lines.insert(0, f"`make data DATASET={dataset}` fetches it into data/raw/{dataset}; or")
    else:
        lines.append(f"fetched by `make data DATASET=NAME`: {', '.join(FETCHABLE)}")
    return "\n    ".join(lines)
