"""A real product does the work: a real patch, the usage that the model's side has, no secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from attempts_real import TOKEN, attempt, works
from kits import CLAUDE, CODEX, OPENCODE, OPENHANDS, QWEN, Kit

from eop.agents import landlock
from eop.agents.contract import Status
from eop.agents.jail import Jail, Level, detect

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.products
THERE = {Level.BWRAP: detect() is Level.BWRAP, Level.LANDLOCK: landlock.abi() >= 1}


def jailed(level: Level) -> Jail:
    if not THERE[level]:
        pytest.skip(f"this machine has no {level}")
    return Jail(level)


@pytest.mark.parametrize(
    ("kit", "level"),
    [
        (CLAUDE, Level.BWRAP), (CLAUDE, Level.LANDLOCK),
        (CODEX, Level.BWRAP), (CODEX, Level.LANDLOCK),
        (OPENCODE, Level.BWRAP), (QWEN, Level.LANDLOCK), (OPENHANDS, Level.LANDLOCK),
    ],
)  # fmt: skip
def test_work_is_done_and_told(kit: Kit, level: Level, tmp_path: Path) -> None:
    done = attempt(kit, tmp_path, works(kit), jail=jailed(level))
    result = done.result
    assert result.status is Status.OK, result.reason
    assert result.patch is not None
    assert [(c.path, c.kind) for c in result.patch.changes] == [("models/a.py", "M")]
    assert done.tree()["models/a.py"] == "a = 2\n"
    assert (result.usage.input, result.usage.output) == done.spent == (2500, 52)
    assert (result.usage.cache_read, result.usage.complete) == (2200, True)
    assert result.usage.source == "gateway"
    assert (result.counters.actions, result.counters.model_calls) == (1, 2)
    assert result.product is not None
    assert result.product.version == kit.version
    left = [path for path in (tmp_path / "attempt").rglob("*") if path.is_file()]
    assert len(left) > 10
    assert not [path for path in left if TOKEN.encode() in path.read_bytes()]
