"""What the wiki claims on the strength of a run's notes, for the page of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.knowledge.checks import doubts
from eop.knowledge.text import conditions_text

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from eop.knowledge.store import Store


@dataclass(frozen=True)
class ShownClaim:
    """A claim as people read it; ``doubt`` says why it may not be believed, if it may not."""

    id: str
    page: str
    says: str
    when: str
    notes: tuple[str, ...]
    doubt: str | None


def shown_claims(root: Path, store: Store, notes: Collection[str]) -> list[ShownClaim]:
    """The claims that rest on any of these notes, by page and line."""
    found = []
    for claim in store.claims():
        if set(claim.notes) & set(notes):
            wrong = doubts(root, store, claim)
            found.append(
                ShownClaim(
                    claim.id,
                    claim.path,
                    claim.says,
                    conditions_text(claim.when),
                    claim.notes,
                    wrong[0] if wrong else None,
                )
            )
    return found
