"""From the conclusions that an agent proposes to the wiki: only what really settles is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eop.knowledge.conditions import meet
from eop.knowledge.contradictions import (
    Contradiction,
    claims_of,
    contradictions,
    objections,
)
from eop.knowledge.effect import opposite
from eop.knowledge.index import judged_key
from eop.knowledge.pages import Claim
from eop.knowledge.wiki import page_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from eop.knowledge.store import Store

SCHEMA = "reconciled/1"


@dataclass(frozen=True)
class Reconciled:
    """``claims`` settle the contradictions in ``settled`` and stand ``instead_of`` others.

    ``open`` are contradictions that nothing has settled, each with the reasons.
    """

    claims: tuple[Claim, ...]
    instead_of: tuple[Claim, ...]
    settled: tuple[Contradiction, ...]
    open: tuple[tuple[Contradiction, tuple[str, ...]], ...]

    def to_json(self) -> dict[str, Any]:
        """What a gate shows, as data of the schema ``reconciled``."""
        return {
            "schema": SCHEMA,
            "settled": [{"id": one.id, "what": str(one)} for one in self.settled],
            "claims": [claim.to_json() for claim in self.claims],
            "open": [{"id": one.id, "what": str(one), "why": list(why)} for one, why in self.open],
        }


def reconcile(store: Store, conclusions: Sequence[Mapping[str, Any]]) -> Reconciled:
    """Hold each conclusion (of the schema ``conclusions``) to the contradiction that it names.

    One that does not settle it, or is missing, leaves it open, unless the claims that settle
    another take the place of a side of it and no longer contradict the rest. Claims of a conclusion
    that names no contradiction that is there are not written.
    """
    given = {str(one["contradiction"]): one for one in conclusions}
    claims: dict[str, Claim] = {}
    replaced: dict[str, Claim] = {}
    settled: list[Contradiction] = []
    left: list[tuple[Contradiction, tuple[str, ...]]] = []
    for found in contradictions(store):
        conclusion = given.get(found.id)
        proposed = [Claim.from_json(one) for one in (conclusion or {}).get("claims", ())]
        reasons = _why_open(store, found, conclusion, proposed)
        if reasons:
            left.append((found, tuple(reasons)))
            continue
        settled.append(found)
        old = [claim for side in found.sides for claim in claims_of(store, side)]
        path = old[0].path if old else page_of(proposed[0])
        replaced |= {claim.id: claim for claim in old}
        claims |= {claim.id: replace(claim, path=path) for claim in proposed}
    still = []
    for found, why in left:
        if _resolved(found, replaced, claims.values()):
            settled.append(found)
        else:
            still.append((found, why))
    return Reconciled(
        tuple(claims.values()), tuple(replaced.values()), tuple(settled), tuple(still)
    )


def _resolved(found: Contradiction, replaced: Mapping[str, Claim], claims: Iterable[Claim]) -> bool:
    """Whether what stands now in place of one side, or of both, no longer contradicts the other."""
    kept = [side for side in found.sides if side.source.removeprefix("claim:") not in replaced]
    return len(kept) < len(found.sides) and not any(
        opposite(claim.sign, side.sign)
        and judged_key(claim.interventions, claim.metric) == side.judged
        and meet(claim.when, side.seen)
        for claim in claims
        for side in kept
    )


def _why_open(
    store: Store,
    found: Contradiction,
    conclusion: Mapping[str, Any] | None,
    proposed: Sequence[Claim],
) -> list[str]:
    if conclusion is None:
        return ["no conclusion was proposed"]
    if not proposed:
        return [str(conclusion["open"])]
    taken = [
        f"a claim '{claim.id}' is there already"
        for claim in proposed
        if store.claims(claim.id) and claim.id not in found.claims
    ]
    return [*taken, *objections(store, found, proposed)]
