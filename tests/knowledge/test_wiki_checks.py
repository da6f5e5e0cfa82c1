from __future__ import annotations

from dataclasses import replace

import pytest
from click.testing import CliRunner
from knowledge_samples import claim, facts, note, page, project, write

from eop.cli import cli
from eop.core.errors import EopError
from eop.knowledge.checks import check
from eop.knowledge.index import index_file
from eop.knowledge.store import open_store


def messages(root):
    return [str(problem) for problem in check(root).problems]


@pytest.fixture
def root(tmp_path):
    """One claim that stands."""
    project(tmp_path)
    note(tmp_path, "n1")
    page(tmp_path, claim("film-helps", "better", "n1"))
    assert messages(tmp_path) == []
    return tmp_path


def test_a_claim_whose_note_is_deleted_goes_red(root):
    (root / "knowledge/notes/n1.md").unlink()
    (message,) = messages(root)[:1]
    assert message == "knowledge/wiki/film.md:3: film-helps: its evidence is gone: " + (
        "there is no note 'n1'"
    )


def test_a_claim_that_cites_nothing_goes_red(root):
    page(root, claim("film-helps", "better"))
    assert any("without evidence" in message for message in messages(root))


def test_a_claim_on_superseded_evidence_goes_red(root):
    note(root, "n2", "within_noise", supersedes=("n1",))
    assert any("superseded: n2 replaces n1" in message for message in messages(root))


@pytest.mark.parametrize("fault", ["gone", "edited"])
def test_a_claim_whose_entry_has_gone_or_changed_goes_red(root, fault):
    entry = root / "leaderboard/n1/entry.yaml"
    entry.unlink() if fault == "gone" else entry.write_text("id: n1\nreason: better now\n")
    found = messages(root)
    assert len(found) == 2
    said = "is missing" if fault == "gone" else "has changed since the note was written"
    assert all(said in message for message in found)


@pytest.mark.parametrize("said", ["worse", "within_noise", "fails"])
def test_a_claim_must_be_what_its_notes_say(root, said):
    page(root, claim("film", said, "n1"))
    assert any(f"no note that it cites says '{said}'" in message for message in messages(root))


def test_one_seed_carries_no_claim(root):
    one = facts(root, "n1")
    write(root, replace(one, effect=replace(one.effect, seeds=(1,), sign="not_measured")))
    assert any("no note that it cites says 'better'" in message for message in messages(root))


def test_a_claim_may_not_reach_beyond_where_its_notes_have_seen(root):
    page(root, claim("film", "better", "n1", when={"dataset": "other"}))
    assert len(messages(root)) == 1
    page(root, claim("film", "better", "n1", when={"base.model.dim": {"min": 4, "max": 8}}))
    assert messages(root) == []


def test_evidence_against_a_claim_turns_it_red_until_it_says_so(root):
    note(root, "n2", "worse", conditions={"dataset": "other"})
    (message,) = messages(root)
    assert "film-helps: note:n2 says 'worse'" in message
    page(root, claim("film-helps", "better", "n1", disputes=("note:n2",)))
    assert messages(root) == []
    page(root, claim("film-helps", "better", "n1", when={"dataset": "toy"}))
    assert messages(root) == []


def test_two_claims_may_not_contradict_each_other(root):
    note(root, "n2", "worse", conditions={"dataset": "other"})
    both = claim("film-helps", "better", "n1"), claim("film-hurts", "worse", "n2")
    page(root, *both)
    assert {"film-helps", "film-hurts"} == {m.split(": ")[1] for m in messages(root)}
    parted = [
        replace(one, when={"dataset": d}) for one, d in zip(both, ("toy", "other"), strict=True)
    ]
    page(root, *parted)
    assert messages(root) == []


def test_notes_that_contradict_each_other_are_named_and_no_fault_of_the_wiki(root):
    note(root, "n2", "worse")
    page(root, claim("film", "better", "n1", disputes=("note:n2",)))
    found = check(root)
    assert found.problems == ()
    assert [str(one) for one in found.open] == ["note:n1 and note:n2 contradict each other"]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("```claim\nid: a\n", 1, "a block of a claim is"),
        ("~~~claim\nid: a\n~~~\n", 1, "a block of a claim is"),
        ("\n```claim\nid: [a\n```\n", 4, "not valid YAML"),
        ("```claim\nid: a\nsay: x\n```\n", 1, "unknown key 'say' (did you mean 'says'?)"),
        ("```claim\nid: a\nsays: x\nabout: [x:y]\nsign: good\nnotes: []\n```\n", 1, "sign: "),
    ],
)
def test_a_malformed_block_is_an_error_at_its_line(root, text, line, said):
    (root / "knowledge/wiki/bad.md").write_text(text)
    first = next(m for m in messages(root) if m.startswith("knowledge/wiki/bad.md"))
    assert first.startswith(f"knowledge/wiki/bad.md:{line}: ") and said in "".join(messages(root))


def test_a_malformed_note_is_an_error_and_carries_nothing(root):
    path = root / "knowledge/notes/n1.md"
    path.write_text(path.read_text().replace("sign: better", "sign: good"))
    found = messages(root)
    assert any("effect.sign" in message for message in found)
    assert any("there is no note 'n1'" in message for message in found)
    path.write_text("no front matter\n")
    assert any("begins with front matter" in message for message in messages(root))


def test_names_that_nobody_knows_are_errors(root):
    page(root, claim("film", "better", "n1", about=("intervention:film", "intervention:fim")))
    assert any("'intervention:fim' is no entity" in message for message in messages(root))
    path = root / "knowledge/entities.yaml"
    path.write_text("entities: {gadget:x: {}, model:y: {changes: [model:z], name: [a]}}")
    with pytest.raises(EopError, match=r"gadget:x: .*(?s:.)*'model:z' is no entity") as caught:
        check(root)
    assert caught.value.code == "EOP681" and "name: unknown key" in str(caught.value)


def test_a_check_reads_every_file_whatever_its_stamp_says(root):
    """The index goes by times and sizes in between; what is checked is what is there."""
    with open_store(root) as store:
        assert store.note("n1").sign == "better"
    path = root / "knowledge/notes/n1.md"
    text = path.read_text()
    page(root, claim("film", "better", "n1"))
    import sqlite3

    path.write_text(text.replace("sign: better", "sign: worse "))
    stat = path.stat()
    stamp = f"{stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_size} {stat.st_ino}"
    with sqlite3.connect(index_file(root)) as forged:
        row = (stamp, stat.st_mtime_ns + 10**12, "knowledge/notes/n1.md")
        forged.execute("UPDATE files SET stamp = ?, seen = ? WHERE path = ?", row)
    assert any("no note that it cites says 'better'" in message for message in messages(root))


def test_the_command_prints_problems_with_their_place_and_ends_with_status_6(root):
    run = lambda *a: CliRunner().invoke(cli, ["--project", str(root), "knowledge", *a])  # noqa: E731
    done = run("check")
    assert (done.exit_code, done.output) == (0, "1 notes, 1 claims: every claim stands\n")
    (root / "knowledge/notes/n1.md").unlink()
    done = run("check")
    assert done.exit_code == 6 and "knowledge/wiki/film.md:3: film-helps" in done.output
    assert '"open": []' in run("check", "--json").output
