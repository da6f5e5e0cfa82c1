"""Functions ``summarize``, ``contradictions`` and ``reconcile``: from an iteration to the wiki."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.files import read_json, write_json
from eop.knowledge.contradictions import artifact
from eop.knowledge.contradictions import contradictions as contradicting
from eop.knowledge.reconcile import reconcile as concluded
from eop.knowledge.store import open_store
from eop.knowledge.wiki import page_of, summarized, write_claims

if TYPE_CHECKING:
    from pathlib import Path

    from eop.functions.context import Context

_CONCLUSIONS = "conclusions"


def summarize(context: Context) -> Path:
    """Add what this iteration's notes say to the wiki, by rule; the report of it."""
    entries = read_json(context.produced("publish"))["entries"]
    with open_store(context.root) as store:
        notes = list(store.notes(entries))
        claims = summarized(store, notes)
    pages = sorted({claim.path or page_of(claim) for claim in claims})
    report = {
        "schema": "summary/1",
        "notes": [note.id for note in notes],
        "claims": [claim.to_json() for claim in claims],
        "pages": pages,
    }
    left = _left(context, "summary.json", report)
    write_claims(context.root, claims)
    return left


def contradictions(context: Context) -> Path:
    """What the wiki and the notes contradict each other in: for an agent to conclude on."""
    with open_store(context.root) as store:
        return _left(context, "contradictions.json", artifact(store, contradicting(store)))


def reconcile(context: Context) -> Path:
    """Write those conclusions to the wiki that settle what they name; what stays open is reported.

    Conclusions are read from an artifact of the schema ``conclusions``; without one all stays open.
    """
    with open_store(context.root) as store:
        found = concluded(store, _conclusions(context))
    left = _left(context, "reconciled.json", found.to_json())
    write_claims(context.root, found.claims, instead_of=found.instead_of)
    return left


def _conclusions(context: Context) -> list[dict[str, object]]:
    paths = context.artifacts.of_schema(_CONCLUSIONS, context.instance.iteration)
    return [conclusion for path in paths for conclusion in read_json(path)]


def _left(context: Context, name: str, document: object) -> Path:
    """Write a report before the wiki is; what a killed attempt has reported is what it began."""
    report = context.work / name
    if not report.is_file():
        write_json(report, document)
    return report
