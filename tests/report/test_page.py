"""The page as a text: what it holds, that it needs nothing else, that hostile words stay words."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace

import pytest
import yaml
from page_reader import LOADING, Page
from reported_run import HOSTILE, reported

from eop.evidence.objects import ObjectStore
from eop.leaderboard import entry_folder, read_entries
from eop.report import write_report
from eop.report.scripts import chart_script, data_block, own_script
from eop.report.view import RunView


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return reported(tmp_path_factory.mktemp("original"))


@pytest.fixture
def found(original, tmp_path):
    """The run, in a folder of the test's own."""
    shutil.copytree(original.root, tmp_path, dirs_exist_ok=True)
    return replace(original, root=tmp_path)


def test_the_page_holds_the_whole_story(found, tmp_path):
    path = write_report(tmp_path, "r1")
    assert path == found.run_dir / "report.html"
    page = Page(path.read_text())
    assert page.open == []
    text = " ".join(" ".join(page.text).split())
    for words in (
        "look again",  # why a gate was rejected
        "fine now",
        "the worker gave up",
        "A deeper net",
        "I5 failed: one scoring function",
        "rejected by preflight",
        "+0.0200 [+0.0100, +0.0300]",
        "seed 2",
        "An analysis.",
        "Waiting for you: evolve",
        "touch gates/r1/it01-evolve.",
        "gate confirm",
        # Of the evidence: the review's findings and rounds, the preflight, what a node cost.
        "A claim: A wider net",
        "Round 1: A wider net",
        "its check failed, fix",
        "causality A wider net",
        "1 m 01 s",
    ):
        assert words in text, words
    assert re.search(r"by \w+ , 20\d\d-", text), "who decided, and when"
    assert page.tags.count("polyline") == 5
    plots = json.loads(page.scripts[0])
    assert plots.keys() == {"scores", "curves", "work", "spend"}


def test_a_score_has_its_interval_in_the_table_and_in_its_section(found, tmp_path):
    text = " ".join(" ".join(Page(write_report(tmp_path, "r1").read_text()).text).split())
    # In the table, at the head of its section, and beside the mean of its seeds.
    assert text.count("[0.0850, 0.1050]") == 3
    (tmp_path / "leaderboard/r1-base/entry.yaml").rename(tmp_path / "away")
    after = " ".join(Page(write_report(tmp_path, "r1").read_text()).text)
    assert "[0.0850, 0.1050]" not in after


def test_the_tile_shows_who_leads_and_not_the_luckiest_test(found, tmp_path):
    def tile():
        text = " ".join(" ".join(Page(write_report(tmp_path, "r1").read_text()).text).split())
        return re.search(r"(\S+) NDCG@10 of the leader, canonical test", text)[1]

    assert tile() == "0.1100"
    path = tmp_path / "leaderboard/r1-it01-p03/entry.yaml"
    lucky = yaml.safe_load(path.read_text())
    lucky["test"]["mean"]["ndcg@10"] = 0.2
    path.write_text(yaml.safe_dump(lucky))
    best = max(entry.test.mean["ndcg@10"] for entry in read_entries(tmp_path) if entry.test)
    assert (best, tile()) == (0.2, "0.1100"), "it was not promoted"


def test_the_head_says_how_the_run_stands_in_the_words_of_eop_status(found, tmp_path, monkeypatch):
    page = write_report(tmp_path, "r1").read_text()
    assert '<span class="badge warn">waits for a person</span>' in page
    monkeypatch.setattr(RunView, "standing", "as said elsewhere")
    assert ">as said elsewhere</span>" in write_report(tmp_path, "r1").read_text()


def test_the_page_needs_nothing_else(found, tmp_path):
    source = write_report(tmp_path, "r1").read_text()
    page = Page(source)
    assert not LOADING & set(page.tags)
    assert not any(name in ("src", "srcset", "style", "action") for name, _ in page.attributes)
    assert all(
        value.startswith("#") for name, value in page.attributes if name in ("href", "xlink:href")
    )
    style = source.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    assert "light-dark(" in style


def test_every_link_leads_somewhere_in_the_page(found, tmp_path):
    page = Page(write_report(tmp_path, "r1").read_text())
    places = [value for name, value in page.attributes if name == "id"]
    assert len(places) == len(set(places))
    links = {value[1:] for name, value in page.attributes if name == "href"}
    assert links <= set(places)
    assert {"r1-it01-p01", "row-r1-it01-p01", "gate-it01_confirm"} <= links


def test_hostile_words_stay_words(tmp_path):
    reported(tmp_path, HOSTILE)
    page = Page(write_report(tmp_path, "r1").read_text())
    assert page.open == []
    assert not LOADING & set(page.tags)
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert page.tags.count("script") == 3
    # Title, hypothesis, reasons of gates, nodes and rows, note, run title, patch (its file's name,
    # code and comment), finding (claim, place, evidence, check), rounds, preflight: as they are.
    assert " ".join(page.text).count("<script>alert(1)</script>") >= 20
    # In the charts, too, they are text.
    assert "<script>alert(1)</script>" in str(json.loads(page.scripts[0]))
    assert "<" not in page.scripts[0]


def test_a_script_that_is_not_ours_has_no_leave_to_run(found, tmp_path):
    source = write_report(tmp_path, "r1").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', source)[1]
    allowed = policy.replace("&#39;", "'").partition("script-src ")[2].partition(";")[0].split()
    ours = {own_script().source, chart_script(tmp_path / "runs").source}
    assert set(allowed) == ours
    assert "unsafe-eval" not in policy
    assert "connect-src &#39;none&#39;" in policy


def test_the_same_run_gives_the_same_page(found, tmp_path):
    first = write_report(tmp_path, "r1").read_bytes()
    assert write_report(tmp_path, "r1").read_bytes() == first


def test_a_broken_curve_is_said_and_hides_no_row(found, tmp_path):
    curve = entry_folder(tmp_path, "r1-it01-p01") / "curve.tsv"
    curve.write_text("epoch\tloss\n1\tnan\n")
    text = write_report(tmp_path, "r1").read_text()
    assert "epoch 1 has the loss nan" in text
    assert "A wider net" in text


def test_lost_and_malformed_evidence_is_said_and_hides_no_row(found, tmp_path):
    objects = sorted((tmp_path / "evidence" / "objects").rglob("*"))
    files = [path for path in objects if path.is_file()]
    assert len(files) == 2
    files[0].unlink()
    malformed = ObjectStore.of(tmp_path).put(b'{"schema": "review/1", "verdict": 7}')
    manifest = entry_folder(tmp_path, "r1-it01-p01") / "evidence.json"
    data = json.loads(manifest.read_text())
    odd = {**data["files"][0], "sha256": malformed, "path": "runs/r1/x/artifacts/odd.json"}
    manifest.write_text(json.dumps({**data, "files": [*data["files"], odd]}))
    text = write_report(tmp_path, "r1").read_text()
    assert "missing" in text
    assert "odd.json: not a valid review" in text
    assert "A wider net" in text


def test_a_run_without_entries_has_a_page(tmp_path):
    project = reported(tmp_path)
    shutil.rmtree(tmp_path / "leaderboard")
    shutil.rmtree(tmp_path / "knowledge" / "notes")
    text = " ".join(Page(write_report(tmp_path, project.run).read_text()).text)
    assert "No entry yet." in text
    # Its branches are on their way.
    assert "A deeper net" in text
    assert "On their way" in text


def test_data_in_a_page_ends_no_element():
    value = {"a": "</script><!-- & <script>"}
    text = data_block(value)
    assert not {"<", ">", "&"} & set(text)
    assert json.loads(text) == value
