"""What an agent phase that is at work has spent until now, as far as its files show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.files import read_json
from eop.patterns import attempts
from eop.patterns.ledger import total
from eop.runtime.node import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from eop.agents.contract import Product


def spent_so_far(work: Path, products: Mapping[str, Product]) -> Usage | None:
    """The sum over the nodes in a phase's folder ``work``; ``None`` when none has begun.

    ``products`` by name. What is at work is counted by its gateway's ledger, where a call under way
    has its worst cost, and by its stream, which tells a lower bound.
    """
    spent: list[Usage] = []
    for folder in sorted(work.glob("[0-9][0-9]-*")):
        committed = folder / "committed.json"
        if committed.is_file():
            spent.append(Usage(**read_json(committed)["usage"]))
        elif product := products.get(attempts.product_of(folder) or ""):
            spent += [attempt.usage for attempt in attempts.earlier(folder, product)]
    return total(spent) if spent else None
