"""A cap stops every product: what would pass it is never asked of the model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from attempts_real import LIMITS, attempt
from kits import KITS, Kit
from scripted_model import Say, Tokens

from eop.agents.contract import Source, Status
from eop.agents.gateway.ledger import LEDGER
from eop.agents.stream import json_lines

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.products
MADE = 2


@pytest.mark.parametrize("kit", KITS)
def test_a_cap_on_calls_stops_it(kit: Kit, tmp_path: Path) -> None:
    def never_done(number: int) -> Say:
        return Say("On and on.", (kit.run(f"echo {number}"),), Tokens(1000, 0, 20))

    done = attempt(
        kit,
        tmp_path,
        lambda space: [never_done(number) for number in range(50)],
        limits=replace(LIMITS, model_calls=MADE),
    )
    assert done.result.status is Status.BUDGET_EXHAUSTED, done.result.reason
    assert done.result.reason.source == Source.GATEWAY
    assert len(done.model.said) == MADE
    assert (done.result.usage.input, done.result.usage.output) == (2000, 40)
    refused = [
        line for line in json_lines(tmp_path / "attempt" / LEDGER) if line and line.get("refused")
    ]
    assert 1 <= len(refused) <= 3
