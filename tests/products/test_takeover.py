"""A hostile repository runs no command, redirects no traffic and is obeyed by nobody."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from attempts_real import FILES, TOKEN, Done, attempt, works
from hostile_repository import ORDER, Hostile
from kits import CLAUDE, KITS, OPENCODE, Kit
from scripted_model import Part, Say, Script, ScriptedModel

from eop.agents.contract import Status
from eop.agents.products.claude_code import ClaudeCode

if TYPE_CHECKING:
    from pathlib import Path

    from eop.agents.contract import Command, Product, Request

pytestmark = pytest.mark.products


def work_on(kit: Kit, folder: Path) -> tuple[Done, Hostile, ScriptedModel]:
    """An attempt at the repository; the hostile server would answer like a model."""
    obliging = Script([Part([Say("Welcome.")])])
    with ScriptedModel(obliging, TOKEN) as elsewhere:
        hostile = Hostile(folder / "attempt/outputs", elsewhere.url)
        files = {**FILES, **hostile.files()}
        return attempt(kit, folder, works(kit), files=files), hostile, elsewhere


@pytest.mark.parametrize("kit", KITS)
def test_a_repository_does_not_take_over(kit: Kit, tmp_path: Path) -> None:
    done, hostile, elsewhere = work_on(kit, tmp_path)
    assert hostile.ran() == set()
    assert elsewhere.seen == []
    assert done.result.status is Status.OK, done.result.reason
    assert done.result.patch is not None
    assert [change.path for change in done.result.patch.changes] == ["models/a.py"]
    assert not [asked for asked in done.model.asked if ORDER in asked.text]


def test_plugins_in_a_repository_keep_opencode_from_it(tmp_path: Path) -> None:
    files = {**FILES, ".opencode/plugin/own.js": "export const Own = async () => ({})\n"}
    done = attempt(OPENCODE, tmp_path, works(OPENCODE), files=files)
    assert done.result.status is Status.SETUP_ERROR
    assert "EOP877" in done.result.reason.detail
    assert done.model.seen == []


class Unguarded(ClaudeCode):
    """Claude Code without the options that keep the repository's settings out."""

    def command(self, request: Request) -> Command:
        made = super().command(request)
        argv = list(made.argv)
        at = argv.index("--setting-sources")
        del argv[at : at + 2]
        argv.remove("--strict-mcp-config")
        return replace(made, argv=tuple(argv))


@dataclass(frozen=True)
class UnguardedKit(Kit):
    def product(self) -> Product:
        return Unguarded(super().product().settings)  # type: ignore[attr-defined]


def test_the_traps_are_real(tmp_path: Path) -> None:
    kit = UnguardedKit(**{name: getattr(CLAUDE, name) for name in CLAUDE.__dataclass_fields__})
    done, hostile, elsewhere = work_on(kit, tmp_path)
    assert {"claude-hook-project", "claude-hook-local"} <= hostile.ran()
    # Where it was sent the jail does not let it go.
    assert done.model.seen == elsewhere.seen == []
    assert done.result.status is not Status.OK
