from __future__ import annotations

from dataclasses import replace

import pytest
from click.testing import CliRunner
from knowledge_samples import claim, note, page, project

from eop.cli import cli
from eop.core.schema import problems
from eop.core.yaml_files import read_yaml
from eop.knowledge.checks import check
from eop.knowledge.contradictions import artifact, contradictions
from eop.knowledge.effect import BETTER, WORSE
from eop.knowledge.reconcile import reconcile
from eop.knowledge.store import open_store
from eop.knowledge.wiki import summarized, write_claims

LARGE = {"dataset": "toy", "split": "ab" * 32, "base.model.dim": 64}


@pytest.fixture
def root(tmp_path):
    """FiLM has helped a small base and hurt a large one; the wiki says both of any."""
    project(tmp_path)
    note(tmp_path, "small", "better")
    note(tmp_path, "large", "worse", conditions=LARGE)
    page(tmp_path, claim("helps", "better", "small"), claim("hurts", "worse", "large"))
    return tmp_path


def found(root):
    with open_store(root) as store:
        return contradictions(store)


def conforms(root, name, data):
    return problems(data, read_yaml(root / f"config/schemas/{name}.schema.yaml")) == []


def parted(**changes):
    """Claims that part the two sides by the size of the base."""
    sides = {
        "helps": claim("small-base", "better", "small", when={"base.model.dim": {"max": 32}}),
        "hurts": claim("large-base", "worse", "large", when={"base.model.dim": {"min": 33}}),
    }
    return [replace(one, **changes.get(name, {})).to_json() for name, one in sides.items()]


def concluded(root, claims):
    """What a conclusion comes to for the contradiction of the two claims."""
    both = next(one for one in found(root) if set(one.claims) == {"helps", "hurts"})
    with open_store(root) as store:
        return reconcile(store, [{"contradiction": both.id, "claims": claims}])


def test_what_takes_the_place_of_a_side_settles_what_else_that_side_was_in(root):
    (both,) = [one for one in found(root) if len(one.claims) == 2]
    with open_store(root) as store:
        result = reconcile(store, [{"contradiction": both.id, "claims": parted()}])
    assert len(result.settled) == 3 and result.open == ()


def test_a_claim_elsewhere_that_still_contradicts_the_conclusion_keeps_it_open(root):
    note(root, "again", "better")
    mild = claim("helps-too", "better", "again", when={"dataset": "toy"})
    page(root, mild, name="other")
    assert {str(one) for one, _ in concluded(root, parted()).open} == {
        "claim:helps-too and claim:hurts contradict each other",
        "claim:helps-too and note:large contradict each other",
    }


def test_claims_that_say_the_same_twice_are_one_side_and_all_their_evidence_is_due(root):
    note(root, "again", "better")
    page(root, claim("helps-too", "better", "again"), name="other")
    assert "(claim:helps) is not cited for it: again" in why(root, parted())
    result = concluded(root, parted(helps={"notes": ("small", "again")}))
    assert result.open == ()
    write_claims(root, result.claims, instead_of=result.instead_of)
    assert check(root).problems == () and found(root) == []


def why(root, claims):
    result = concluded(root, claims)
    (reasons,) = [reasons for one, reasons in result.open if set(one.claims) == {"helps", "hurts"}]
    assert not result.claims
    return "; ".join(reasons)


def test_a_known_contradiction_is_found_from_every_side(root):
    assert sorted(str(one) for one in found(root)) == [
        "claim:helps and claim:hurts contradict each other",
        "claim:helps and note:large contradict each other",
        "note:small and claim:hurts contradict each other",
    ]
    page(root)
    assert found(root) == []
    note(root, "same", "worse")
    (one,) = found(root)
    assert (one.better.source, one.worse.source) == ("note:small", "note:same")


def test_no_effect_seen_contradicts_nothing_and_neither_does_another_thing(root):
    page(root)
    note(root, "null", "within_noise")
    note(root, "other", "worse", entities=("intervention:dropout",))
    note(root, "both", "worse", entities=("intervention:dropout", "intervention:film"))
    assert found(root) == []


def test_the_agent_is_given_both_sides_with_their_evidence(root):
    with open_store(root) as store:
        data = artifact(store, contradictions(store))
    assert conforms(root, "contradictions", data) and data["found"] is True
    one = next(c for c in data["contradictions"] if c["worse"]["source"] == "claim:hurts")
    assert one["worse"]["says"] == "FiLM is worse."
    assert one["worse"]["notes"][0]["conditions"]["base.model.dim"] == 64
    assert "0.9876" not in str(data)
    page(root)
    with open_store(root) as store:
        assert artifact(store, contradictions(store)) == {
            "schema": "contradictions/1",
            "found": False,
            "contradictions": [],
        }


def test_conditions_that_part_the_sides_settle_it_and_the_wiki_is_sound_again(root):
    ids = [one.id for one in found(root)]
    conclusions = [{"contradiction": one, "claims": parted()} for one in ids]
    assert conforms(root, "conclusions", conclusions)
    assert len(check(root).problems) == 2 + 2
    with open_store(root) as store:
        result = reconcile(store, conclusions)
    assert [str(one) for one, _ in result.open] == [] and len(result.settled) == 3
    assert conforms(root, "reconciled", result.to_json())
    (root / "knowledge/wiki/film.md").write_text(
        (root / "knowledge/wiki/film.md").read_text() + "\nProse of a person.\n"
    )
    write_claims(root, result.claims, instead_of=result.instead_of)
    assert check(root).problems == () and found(root) == []
    text = (root / "knowledge/wiki/film.md").read_text()
    assert "id: helps" not in text and text.count("```claim") == 2
    assert "Prose of a person." in text and text.startswith("# film\n")
    write_claims(root, result.claims, instead_of=result.instead_of)
    assert (root / "knowledge/wiki/film.md").read_text() == text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hurts": {"notes": ("small",)}}, "cites small, which says better"),
        ({"hurts": {"notes": ("nothing",)}}, "cites nothing, which is no note"),
        ({"hurts": {"notes": ()}}, "the evidence of 'worse' (claim:hurts) is not cited"),
        ({"hurts": {"when": {"dataset": "toy"}}}, "small-base and large-base do not part them"),
        ({"hurts": {"when": {"base.model.dim": 128}}}, "not seen under its conditions"),
        ({"helps": {"when": {"base.model.dim": {"min": 1}}}}, "note:large says the opposite"),
        ({"helps": {"about": ("intervention:dropout",)}}, "small-base judges something else"),
        ({"helps": {"when": {"base.model.heads": 1}}}, "not seen under its conditions"),
    ],
)
def test_a_conclusion_that_does_not_part_them_leaves_it_open(root, changes, said):
    assert said in why(root, parted(**changes))


def test_a_name_that_is_taken_is_refused(root):
    note(root, "x", "within_noise")
    page(root, claim("small-base", "within_noise", "x"), name="other")
    assert "a claim 'small-base' is there already" in why(root, parted())


def test_without_a_conclusion_or_with_a_reason_it_stays_open(root):
    one, *_ = found(root)
    with open_store(root) as store:
        nothing = reconcile(store, [])
        reason = reconcile(store, [{"contradiction": one.id, "open": "Seeds alone differ."}])
    assert len(nothing.open) == 3 and nothing.open[0][1] == ("no conclusion was proposed",)
    assert ("Seeds alone differ.",) in [why for _, why in reason.open]
    assert conforms(root, "reconciled", nothing.to_json())


def test_two_notes_under_the_same_conditions_cannot_be_parted(root):
    page(root)
    note(root, "same", "worse")
    (one,) = found(root)
    sides = [
        claim("a", BETTER, "small", when={"base.model.dim": 8}),
        claim("b", WORSE, "same", when={"base.model.dim": {"min": 9}}),
    ]
    with open_store(root) as store:
        result = reconcile(
            store, [{"contradiction": one.id, "claims": [side.to_json() for side in sides]}]
        )
    assert not result.settled
    assert any("not seen under its conditions" in reason for reason in result.open[0][1])


def test_notes_become_claims_by_rule_and_more_evidence_joins_what_is_there(root):
    page(root)
    note(root, "again", "better")
    note(root, "one", "none", outcome="completed")
    with open_store(root) as store:
        claims = summarized(store, store.notes())
    assert [(c.id, c.sign, c.notes) for c in claims] == [
        ("again", "better", ("again", "small")),
        ("large", "worse", ("large",)),
    ]
    assert claims[0].when == {"dataset": "toy", "change.interventions.film": {}}
    assert claims[1].says == "FiLM conditioning: worse by 0.0200 in ndcg@10."
    write_claims(root, claims)
    with open_store(root) as store:
        assert summarized(store, store.notes()) == []
        assert len(contradictions(store)) == 3


def test_a_null_becomes_a_claim_of_no_difference(root):
    page(root)
    null = note(root, "null", "within_noise")
    with open_store(root) as store:
        (written,) = summarized(store, [null])
    assert written.says == "FiLM conditioning: no difference beyond the noise in ndcg@10."
    write_claims(root, [written])
    assert check(root).problems == ()


def test_the_command_brings_to_the_wiki_what_no_claim_rests_on_yet(root):
    note(root, "null", "within_noise", entities=("dataset:toy",), title="A thing without a name")

    def run():
        return CliRunner().invoke(cli, ["--project", str(root), "knowledge", "summarize"]).output

    assert run() == "knowledge/wiki/general.md\n1 claims are new or rest on more\n"
    text = (root / "knowledge/wiki/general.md").read_text()
    assert text.startswith("# general\n") and "says: 'A thing without a name: no diff" in text
    assert "lesson: Users differ." in text and "about:\n- dataset:toy\n" in text
    assert run() == "0 claims are new or rest on more\n"


def test_what_is_about_no_intervention_is_told_apart_and_contradicts_nothing(root):
    page(root)
    for at, said in enumerate(("better", "worse", "worse")):
        note(root, f"u{at}", said, entities=("dataset:toy",), title=f"Idea {at}")
    with open_store(root) as store:
        claims = summarized(store, store.notes(["u0", "u1", "u2"]))
    assert [one.notes for one in claims] == [("u0",), ("u1",), ("u2",)]
    write_claims(root, claims)
    assert check(root).problems == ()


def test_a_superseded_note_makes_no_claim(root):
    page(root)
    note(root, "small-again", "within_noise", supersedes=("small",))
    with open_store(root) as store:
        claims = summarized(store, store.notes())
    assert [one.id for one in claims] == ["large", "small-again"]
    write_claims(root, claims)
    assert check(root).problems == ()


def test_a_page_without_a_last_line_break_is_edited_like_another(root):
    with open_store(root) as store:
        claim = store.claims()[-1]
    target = root / claim.path
    target.write_text(target.read_text().rstrip())
    write_claims(root, [replace(claim, says="Now it says this.")])
    with open_store(root) as store:
        assert [one.says for one in store.claims(claim.id)] == ["Now it says this."]
