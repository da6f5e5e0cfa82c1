"""Source trees whose ``hstu worker`` does what a test wants, with the standard library alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PRELUDE = """
import json, os, struct, sys, time
from array import array
out = sys.stdout.buffer
USERS, CORPUS = {users}, {corpus}
def header(users=USERS, corpus=CORPUS, schema="hstu.scores/1"):
    out.write(json.dumps(dict(schema=schema, users=users, corpus=corpus)).encode() + b"\\n")
def rows(count=USERS):
    out.write(array("f", [float(k) for k in range(CORPUS)] * count).tobytes())
"""


def fake_tree(folder: Path, body: str, *, users: int, corpus: int) -> str:
    """A ``PYTHONPATH`` whose ``python -m hstu`` runs ``body``.

    ``body`` may use ``header()`` and ``rows()``, which write what a good worker writes.
    """
    package = folder / "hstu"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    prelude = _PRELUDE.format(users=users, corpus=corpus)
    (package / "__main__.py").write_text(prelude + body + "\nout.flush()\n")
    return str(folder)


_SCORER = """
import sys
from pathlib import Path
import numpy as np
import pyarrow.parquet as pq
options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
if not (Path(options["--checkpoint"]) / "model.safetensors").is_file():
    sys.exit("no weights here")
corpus = pq.read_metadata(options["--items"]).num_rows
histories = pq.read_table(options["--histories"]).column("item_ids").to_pylist()
out = sys.stdout.buffer
head = '{"schema": "hstu.scores/1", "users": %d, "corpus": %d}'
out.write((head % (len(histories), corpus)).encode() + b"\\n")
for items in histories:
    draw = np.random.default_rng([len(items), *items])
    out.write(draw.permutation(corpus).astype("<f4").tobytes())
out.flush()
"""


def scoring_tree(folder: Path) -> str:
    """A ``PYTHONPATH`` whose worker scores any histories, by a draw that depends on each alone."""
    package = folder / "hstu"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(_SCORER)
    return str(folder)
