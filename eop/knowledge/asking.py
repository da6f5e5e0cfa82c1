"""What a phase asks of what is known, and how many tokens of it are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.knowledge.conditions import flat
from eop.knowledge.entities import read_registry
from eop.knowledge.recall import Query

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from eop.protocol.model import Phase, Plan


def proposes(plan: Plan, phase: Phase) -> bool:
    """Whether this phase leaves the list that opens the branches."""
    lists = {other.fan_out.artifact for other in plan.phases if other.fan_out}
    return any(output.name in lists for output in phase.outputs)


def text_query(root: Path, text: str) -> Query:
    """What a person asks."""
    return Query(text, tuple(read_registry(root).named(text)))


def phase_query(
    root: Path, plan: Plan, phase: Phase, *, text: str = "", item: Any = None
) -> Query | None:
    """What a phase of agents asks; ``None`` for one that neither proposes nor works on a proposal.

    ``item`` is the proposal that its branch works on; ``text`` is asked besides.
    """
    proposing = proposes(plan, phase)
    if phase.function or not (proposing or phase.branch):
        return None
    words = "\n".join([text, *(_words(item) if item else [phase.body])])
    settings = _settings(item)
    registry = read_registry(root)
    entities = {*registry.named(words), *registry.touched(settings, ())}
    links = (*sorted(entities), *(f"setting:{key}" for key in settings))
    return Query(words, links, fill=proposing)


def _words(item: Mapping[str, Any]) -> list[str]:
    """What a proposal says of itself: its texts, as they are."""
    return [value for value in item.values() if isinstance(value, str)]


def _settings(item: Any) -> list[str]:
    """The settings that a recipe names; a proposal of an agent names none."""
    recipe = item.get("recipe") if isinstance(item, dict) else None
    return [key for key, _ in flat(recipe, "")] if isinstance(recipe, dict) else []
