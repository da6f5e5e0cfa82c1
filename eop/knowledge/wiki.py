"""Writing to the wiki: claims are added, replaced and given more evidence; prose is left alone."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from eop.core.files import write_if_changed
from eop.core.locks import exclusive
from eop.knowledge.conditions import meet
from eop.knowledge.effect import BETTER, FAILS, WITHIN_NOISE, WORSE
from eop.knowledge.pages import WIKI, Claim, claim_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from eop.knowledge.facts import Facts
    from eop.knowledge.store import Store

_WORDS = {
    BETTER: "better",
    WORSE: "worse",
    WITHIN_NOISE: "no difference beyond the noise",
    FAILS: "it came to no result",
}


def write_claims(
    root: Path, claims: Sequence[Claim], *, instead_of: Iterable[Claim] = ()
) -> list[str]:
    """Put ``claims`` on their pages, and take those of ``instead_of`` off theirs; which pages.

    A claim without a page goes to the one of its interventions. One that is there under the same
    id is replaced where it stands; so doing it again changes nothing.
    """
    gone = {claim.id for claim in instead_of} - {claim.id for claim in claims}
    pages: dict[str, dict[str, str]] = defaultdict(dict)
    for claim in instead_of:
        pages[claim.path].update(dict.fromkeys(gone, ""))
    for claim in claims:
        pages[claim.path or page_of(claim)][claim.id] = claim.block()
    with exclusive(root / "runs" / ".wiki.lock", wait=True):
        # What is new first: a claim that is twice there for a moment is lost to nobody.
        for path, blocks in sorted(pages.items(), key=lambda page: "" in page[1].values()):
            target = root / path
            title = f"# {target.stem.replace('+', ' and ')}\n"
            text = target.read_text() if target.is_file() else title
            write_if_changed(target, edited(text, blocks))
    return sorted(pages)


def edited(text: str, blocks: Mapping[str, str]) -> str:
    """A page with the blocks of these claims in place of those that are there; ``""`` removes.

    Blocks of claims that are not there come at the end.
    """
    # A last block without a line break would not be found again, and its claim be lost.
    text = f"{text.rstrip()}\n"
    left = dict(blocks)
    for name, block in claim_blocks(text):
        if name in blocks:
            text = text.replace(block, left.pop(name, ""), 1)
    added = "".join(f"\n{block}" for block in left.values() if block)
    return re.sub(r"\n{3,}", "\n\n", f"{text.rstrip()}\n{added}")


def page_of(claim: Claim) -> str:
    """The page of the interventions that a claim judges; without one, of what else it is about."""
    topics = claim.interventions or [n for n in claim.about if not n.startswith("dataset:")]
    names = [name.partition(":")[2] for name in topics]
    return f"{WIKI}/{'+'.join(names) or 'general'}.md"


def summarized(store: Store, notes: Iterable[Facts]) -> list[Claim]:
    """The claims that these notes carry, by rule: a new one, or one that is there with one more.

    A note that says nothing certain makes no claim. A claim holds for the data set on which it was
    seen and for what the settings were set to: where the base differs and the result with it, that
    is a contradiction, and for a reconciliation to part. What is about no intervention has no other
    like it: such a claim is of one note, and of what that is about.
    """
    known = {claim.id: claim for claim in store.claims()}
    changed: dict[str, Claim] = {}
    for note in notes:
        claim = _claim(note)
        cited = any(note.id in other.notes for other in known.values())
        if claim is None or cited or note.id in store.superseded:
            continue
        same = [other for other in known.values() if _alike(other, claim)]
        if same:
            claim = replace(same[0], notes=tuple(sorted({*same[0].notes, note.id})))
        known[claim.id] = changed[claim.id] = claim
    return list(changed.values())


def _claim(note: Facts) -> Claim | None:
    if note.sign not in _WORDS or not note.entities:
        return None
    when = {
        key: value
        for key, value in note.seen.items()
        if key == "dataset" or key.startswith("change.")
    }
    by = f" by {abs(note.effect.delta):.4f}" if note.effect.delta is not None else ""
    measured = by if note.sign in (BETTER, WORSE) else ""
    where = "" if note.sign == FAILS else f" in {note.effect.metric}"
    return Claim(
        id=note.id,
        says=f"{note.title}: {_WORDS[note.sign]}{measured}{where}.",
        about=tuple(sorted(note.interventions or note.entities)),
        sign=note.sign,
        notes=(note.id,),
        metric=note.effect.metric,
        when=when,
        lesson=note.lesson,
    )


def _alike(one: Claim, other: Claim) -> bool:
    """Whether two claims say the same of the same thing, under conditions that can be one."""
    same = (one.interventions, one.metric, one.sign) == (
        other.interventions,
        other.metric,
        other.sign,
    )
    return (
        bool(one.interventions)
        and same
        and meet(one.when, other.when)
        and dict(one.when).keys() == dict(other.when).keys()
    )
