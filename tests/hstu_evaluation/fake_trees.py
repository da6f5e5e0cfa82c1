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
