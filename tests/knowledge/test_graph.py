from __future__ import annotations

import json

import networkx as nx
import pytest
from click.testing import CliRunner
from knowledge_samples import claim, note, page, project

from eop.cli import cli


@pytest.fixture
def root(tmp_path):
    project(tmp_path)
    note(tmp_path, "n1")
    note(tmp_path, "n2", "failed", entities=("fault:I5", "intervention:genre"), supersedes=("n1",))
    page(tmp_path, claim("film", "better", "n1"))
    return tmp_path


def run(root, *arguments):
    return CliRunner().invoke(cli, ["--project", str(root), "knowledge", "graph", *arguments])


def test_both_forms_hold_the_same_typed_edges(root, tmp_path):
    out = tmp_path / "out"
    done = run(root, str(out))
    assert done.output.split() == [str(out / "graph.graphml"), str(out / "graph.json")]
    data = json.loads((out / "graph.json").read_text())
    edges = {(e["source"], e["relation"], e["target"]) for e in data["edges"]}
    assert {
        ("note:n1", "about", "intervention:film"),
        ("note:n1", "measured_on", "dataset:toy"),
        ("note:n1", "rests_on", "entry:n1"),
        ("note:n2", "about", "fault:I5"),
        ("note:n2", "supersedes", "note:n1"),
        ("claim:film", "cites", "note:n1"),
        ("claim:film", "about", "intervention:film"),
        ("page:film", "holds", "claim:film"),
        ("intervention:film", "changes", "model:hstu"),
        ("intervention:genre", "uses", "feature:genre"),
    } <= edges
    assert not any("setting:" in target for _, _, target in edges)
    read = nx.read_graphml(out / "graph.graphml")
    assert {(s, d["relation"], t) for s, t, d in read.edges(data=True)} == edges
    nodes = {node["id"]: node for node in data["nodes"]}
    assert set(read) == set(nodes)
    assert nodes["note:n2"]["sign"] == "fails" and nodes["note:n1"]["label"] == "FiLM conditioning"


def test_a_neighbourhood_is_part_of_it(root, tmp_path):
    out = tmp_path / "out"
    assert run(root, str(out), "--around", "fault:I5", "--steps", "1").exit_code == 0
    data = json.loads((out / "graph.json").read_text())
    assert {node["id"] for node in data["nodes"]} == {"fault:I5", "note:n2"}
    wrong = run(root, str(out), "--around", "intervention:fim")
    assert wrong.exit_code == 2
    assert "no node 'intervention:fim': did you mean 'intervention:film'?" in wrong.output
    assert "no node 'x'" in run(root, str(out), "--around", "x").output
