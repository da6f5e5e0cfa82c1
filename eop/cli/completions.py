"""What a shell offers when a word of `eop` is completed. Nothing of a project is judged here."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import click


def _root(context: click.Context) -> Path:
    return Path(context.find_root().params.get("project") or ".")


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})


def runs(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of the runs that have been started, and of those with rows."""
    names = [path.parent.name for path in _root(context).glob("runs/*/plan.json")]
    return _starting(names, incomplete)


def gates(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of the gates of the run that was named, else of all."""
    return _starting(_gates(_root(context), context.params.get("run_name") or "*"), incomplete)


def _gates(root: Path, run: str) -> Iterator[str]:
    for path in root.glob(f"runs/{run}/plan.json"):
        # A shell shows no error: what cannot be read has no names.
        with suppress(OSError, ValueError, KeyError, TypeError):
            plan: dict[str, Any] = json.loads(path.read_bytes())
            yield from (str(gate["id"]) for gate in plan["gates"])


def entries(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Ids of the entries of the leaderboard."""
    found = _root(context).glob("leaderboard/[!.]*/entry.yaml")
    return _starting((path.parent.name for path in found), incomplete)


def protocols(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Protocols of the project; any file where none of them begins so."""
    root = _root(context)
    found = (path.relative_to(root).as_posix() for path in root.glob("config/protocols/*.eop.md"))
    names = _starting(found, incomplete) if root == Path() else []
    return [*map(CompletionItem, names)] or [CompletionItem(incomplete, type="file")]


def shipped_protocols(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Names of the protocols that a new project may begin with."""
    # Looked for where they lie in this installation; no other completion needs it.
    from eop.driver.create import shipped

    return _starting(shipped(), incomplete)
