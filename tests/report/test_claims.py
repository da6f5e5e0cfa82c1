"""The claims of the wiki that a run's page shows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from markupsafe import Markup

from eop.knowledge.store import open_store
from eop.report.claims import ShownClaim, shown_claims
from eop.report.page import Material, page
from eop.report.scripts import Script
from eop.report.timeline import timeline

sys.path.insert(0, str(Path(__file__).parents[1] / "knowledge"))
from knowledge_samples import claim, learn, note, project
from knowledge_samples import page as wiki
from research_run import Run

from eop.report.view import view


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path)


def shown(root: Path, *notes: str) -> list[ShownClaim]:
    with open_store(root) as store:
        return shown_claims(root, store, notes)


def drawn(root: Path, claims: list[ShownClaim]) -> str:
    run = Run(root)
    state, events = run.trace.state(), run.trace.events()
    seen, times = view(run.plan, state, events), timeline(run.plan, events)
    return page(Material(run.plan, seen, [], {}, times, None, claims, {}, Script(Markup(""))))


def test_claims_that_rest_on_the_run_s_notes_are_shown(root: Path) -> None:
    note(root, "n1")
    note(root, "other", title="Another", entities=("intervention:dropout",))
    learn(root)
    (one,) = shown(root, "n1")
    assert (one.id, one.page, one.notes, one.doubt) == (
        "n1",
        "knowledge/wiki/film.md",
        ("n1",),
        None,
    )
    assert one.when == "change.interventions.film is {}, dataset is toy"
    text = drawn(root, [one])
    assert "FiLM conditioning: better by 0.0200 in ndcg@10." in text
    assert "knowledge/wiki/film.md: n1" in text and "<td>yes</td>" in text


def test_a_claim_in_doubt_says_why_and_words_of_agents_stay_words(root: Path) -> None:
    note(root, "n1")
    says = "<script>alert(1)</script>"
    wiki(root, claim("helps", "better", "n1", "gone", says=says))
    (one,) = shown(root, "n1")
    assert one.doubt == "helps: its evidence is gone: there is no note 'gone'"
    text = drawn(root, [one])
    assert says not in text and "&lt;script&gt;alert(1)" in text
    assert "no: helps: its evidence is gone" in text and "<td>always</td>" in text


def test_without_claims_there_is_no_table(root: Path) -> None:
    note(root, "n1")
    assert shown(root, "n1") == [] and "Claims of the wiki" not in drawn(root, [])
