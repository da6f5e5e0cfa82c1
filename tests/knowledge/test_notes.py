from __future__ import annotations

import yaml
from entry_samples import FILES, candidate, evidence, failed, project

from eop.knowledge import note_path, tried, tried_text, write_note
from eop.leaderboard import Decision, Proposal, write_entry


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
    assert front(text) == {
        "entry": "demo-it01-p01",
        "run": "demo",
        "proposal": "p01",
        "outcome": "completed",
        "metrics": {"validation": entry.validation.mean, "test": entry.test.mean},
    }
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
    assert front(text)["entry"] == entry.id
    assert "> rm -rf /" in text


def test_the_same_note_is_left_alone(tmp_path):
    path = write_note(tmp_path, candidate(), "because")
    before = path.stat().st_mtime_ns
    write_note(tmp_path, candidate(), "because")
    assert path.stat().st_mtime_ns == before


def test_what_was_tried_lists_candidates_with_their_ends(tmp_path):
    root = project(tmp_path)
    assert tried_text(root) == ""
    write_entry(root, failed("demo-it01-p02"), {})
    write_entry(root, candidate("demo-it01-p01"), FILES)
    write_entry(root, candidate("demo-base", kind="base", decision=None), FILES)
    worse = Decision(False, -0.004, (-0.006, -0.002), "worse")
    long = Proposal("p03", "word " * 60 + "\n# end", "x")
    write_entry(root, candidate("demo-it02-p03", proposal=long, decision=worse), FILES)
    items = tried(root)
    assert [(item.entry, item.outcome, item.delta) for item in items] == [
        ("demo-it01-p01", "completed", 0.02),
        ("demo-it01-p02", "failed", None),
        ("demo-it02-p03", "completed", -0.004),
    ]
    lines = tried_text(root).splitlines()
    assert lines[:4] == [
        "## What was tried before",
        "",
        "- Genre features (demo-it01-p01): completed, +0.0200 NDCG@10, promoted",
        "- Longer history (demo-it01-p02): failed, not measured",
    ]
    assert len(lines) == 5
    assert lines[4].endswith("… (demo-it02-p03): completed, -0.0040 NDCG@10")
