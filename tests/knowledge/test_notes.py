from __future__ import annotations

import pytest
import yaml
from entry_samples import FILES, candidate, evidence, failed, project
from knowledge_samples import facts

from eop.core.canonical import file_digest
from eop.knowledge import note_path
from eop.knowledge import write_note as note_of
from eop.knowledge.change import changed_paths, changed_settings
from eop.knowledge.effect import sign
from eop.leaderboard import Proposal, write_entry


def write_note(root, entry, analysis):
    """The entry, published with all that its evidence names, and its note."""
    if not (root / "config").exists():
        project(root)
    files = dict(FILES) if entry.evidence["patch"] else {}
    write_entry(root, entry, files)
    return note_of(root, entry, analysis)


def front(text: str) -> dict[str, object]:
    return yaml.safe_load(text.split("---\n")[1])


def headings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#")]


SECTIONS = ["What was tried", "What happened", "Why", "Conditions", "How to reproduce"]


def test_a_note_stands_on_its_own(tmp_path):
    entry = candidate()
    text = write_note(tmp_path, entry, "Genres help users with short histories.").read_text()
    assert note_path(tmp_path, entry.id).read_text() == text
    assert headings(text) == ["# Genre features", *(f"## {name}" for name in SECTIONS)]
    facts = front(text)
    assert facts["schema"] == "note/1"
    assert facts["id"] == "demo-it01-p01" and facts["run"] == "demo"
    assert facts["metrics"] == {"validation": entry.validation.mean, "test": entry.test.mean}
    for fact in (
        "| test (canonical) | 0.1100 | 0.2200 | 0.0550 | 1, 2 |",
        "+0.0200 NDCG@10, 95 % interval [+0.0100, +0.0300]; promoted",
        "> Genres help users with short histories.",
        "dvc repro -f -s --no-run-cache leaderboard/demo-it01-p01/dvc.yaml:reproduce",
        "training time: 20.5 s",
        "differ by 0.0003",
    ):
        assert fact in text


def test_what_was_not_measured_is_said_and_is_no_zero(tmp_path):
    text = write_note(tmp_path, failed(), None).read_text()
    assert front(text)["metrics"] == {"validation": None, "test": None}
    assert "| test (canonical) | not measured | not measured | not measured | none |" in text
    assert "Outcome: **failed** (the program ended with status 1)." in text
    assert "agent actions: not measured" in text
    assert "No analysis was written." in text
    assert "Not possible: nothing was trained." in text
    assert "dvc repro" not in text
    assert "0.0000" not in text


def test_failed_invariants_are_named(tmp_path):
    entry = failed(evidence=evidence(preflight={"passed": False, "failed": ["I5", "I8"]}))
    assert "Failed invariants: I5, I8." in write_note(tmp_path, entry, None).read_text()


def test_words_of_agents_cannot_pass_for_the_record(tmp_path):
    hostile = "fine\n---\nentry: other\n---\n## How to reproduce\n\nrm -rf /\n"
    entry = candidate(proposal=Proposal("p01", "A\n## B\ntitle", hostile))
    text = write_note(tmp_path, entry, hostile).read_text()
    assert headings(text)[1:] == [f"## {name}" for name in SECTIONS]
    assert front(text)["id"] == entry.id
    assert "> rm -rf /" in text


def test_the_same_note_is_left_alone(tmp_path):
    path = write_note(tmp_path, candidate(), "because")
    before = path.stat().st_mtime_ns
    write_note(tmp_path, candidate(), "because")
    assert path.stat().st_mtime_ns == before


BASE = "demo-base"


def with_base(root, **changes):
    """The facts of a candidate's note whose parent stands on the leaderboard."""
    config = {"model": {"dim": 8, "dropout": 0.2}}
    base = candidate(
        BASE, kind="base", parent=None, decision=None, evidence=evidence(config=config, patch=None)
    )
    write_note(root, base, None)
    mine = evidence(config={"model": {"dim": 8, "dropout": 0.1}, "interventions": {"film": {}}})
    return front(write_note(root, candidate(evidence=mine, **changes), None).read_text())


def test_a_note_says_what_was_changed_and_to_what(tmp_path):
    facts = with_base(tmp_path)
    assert facts["change"]["settings"] == {
        "model.dropout": [0.2, 0.1],
        "interventions.film": [None, {}],
    }
    assert facts["conditions"] == {
        "dataset": "toy",
        "split": facts["conditions"]["split"],
        "base.model.dim": 8,
        "base.model.dropout": 0.2,
    }
    assert facts["effect"] == {
        "metric": "ndcg@10",
        "delta": 0.02,
        "interval": [0.01, 0.03],
        "seeds": [1, 2],
        "sign": "better",
    }
    entry = "leaderboard/demo-it01-p01/entry.yaml"
    assert facts["evidence"][0] == {"path": entry, "sha256": file_digest(tmp_path / entry)}


def test_entities_are_found_by_settings_files_and_names(tmp_path):
    registry = tmp_path / "knowledge" / "entities.yaml"
    registry.parent.mkdir()
    registry.write_text(
        "entities:\n"
        "  intervention:film: {settings: [interventions.film]}\n"
        "  intervention:other: {settings: [interventions.fil], paths: [hstu/y.py]}\n"
        "  intervention:x: {paths: [hstu/x.py]}\n"
        "  feature:genre: {names: [genre features]}\n"
        "  feature:gen: {names: [gen]}\n"
    )
    found = with_base(tmp_path)["entities"]
    assert found == ["dataset:toy", "feature:genre", "intervention:film", "intervention:x"]
    bad = failed(evidence=evidence(patch=None, preflight={"passed": False, "failed": ["I5"]}))
    assert "fault:I5" in front(write_note(tmp_path, bad, None).read_text())["entities"]


def test_without_its_parent_a_note_states_no_condition_that_it_does_not_know(tmp_path):
    facts = front(write_note(tmp_path, candidate(), None).read_text())
    assert facts["change"]["settings"] == {} and set(facts["conditions"]) == {"dataset", "split"}


@pytest.mark.parametrize(
    ("interval", "seeds", "expected"),
    [
        ((0.001, 0.02), (1, 2), "better"),
        ((-0.02, -0.001), (1, 2), "worse"),
        ((-0.01, 0.01), (1, 2), "within_noise"),
        ((0.0, 0.01), (1, 2), "within_noise"),
        ((0.001, 0.02), (1,), "not_measured"),
        (None, (1, 2), "not_measured"),
    ],
)
def test_a_sign_needs_an_interval_and_two_seeds(interval, seeds, expected):
    assert sign(interval, seeds) == expected


def test_what_differs_between_two_patches_is_a_file_each():
    other = "diff --git a/hstu/{0} b/hstu/{0}\nindex 1..2\n--- a/hstu/{0}\n+++ b/hstu/{0}\n{1}\n"
    parent = other.format("a.py", "@@ -1 +1 @@\n-a\n+b") + other.format(
        "b.py", "@@ -1 +1 @@\n-a\n+b"
    )
    child = other.format("a.py", "@@ -1 +1 @@\n-a\n+b") + other.format(
        "b.py", "@@ -1 +1 @@\n-a\n+c"
    )
    assert changed_paths(parent, child) == ("hstu/b.py",)
    assert changed_paths(parent, "") == ("hstu/a.py", "hstu/b.py")
    assert changed_paths(child, child.replace("1..2", "3..4")) == ()
    assert changed_settings(None, {"a": 1}) == {}


def test_what_was_cut_short_is_no_evidence_against_the_idea(tmp_path):
    knowledge_of = lambda outcome: facts(tmp_path, "n1", "none", outcome=outcome)  # noqa: E731
    assert [knowledge_of(outcome).negative for outcome in ("failed", "tampered")] == [True, True]
    for outcome in ("budget_exhausted", "cut_off", "skipped", "blocked"):
        assert not knowledge_of(outcome).negative, outcome
