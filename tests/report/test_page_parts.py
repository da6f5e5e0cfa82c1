"""The pure parts of the page: time line, tree, entity graph, curves and charts."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import pytest
from entry_samples import candidate, failed
from hypothesis import given
from hypothesis import strategies as st
from research_run import Run, research

from eop.leaderboard import Decision
from eop.report.curves import common_limit, interval_bar, picture, read_curve
from eop.report.entry_files import EntryFiles
from eop.report.knowledge_map import knowledge_map
from eop.report.lineage import open_branches, tree
from eop.report.plots import Plot, curves_plot, scores_plot, spend_plot, time_plot
from eop.report.terminal import counted
from eop.report.timeline import timeline
from eop.report.view import view
from eop.runtime.node import Usage


def values(chart: Plot) -> list[dict]:
    (drawn,) = chart.spec["datasets"].values()
    return drawn


def test_the_time_line_has_every_attempt_and_every_wait(tmp_path):
    run = Run(tmp_path)
    run.do("it01_investigate", usage=Usage(3, 2.0))
    run.advance()
    waits = timeline(run.plan, run.trace.events())
    assert [(gate.status, gate.end) for gate in waits.gates] == [("requested", None)]
    run.touch("rejected", "look again")
    run.enter("it01_investigate_r2")
    line = timeline(run.plan, run.trace.events())
    assert line.rows == ("investigate", "confirm")
    first, second = line.spans
    assert (first.node, first.outcome) == ("it01_investigate", "completed")
    assert first.start <= first.end
    assert (second.node, second.outcome, second.end) == ("it01_investigate_r2", "open", None)
    (gate,) = line.gates
    assert (gate.status, gate.reason) == ("rejected", "look again")
    assert [point.actions for point in line.spent] == [0, 3]
    assert line.last == run.trace.events()[-1].time


def test_every_bar_in_time_leads_to_the_row_of_its_step_or_gate(tmp_path):
    run = Run(tmp_path)
    run.do("it01_investigate")
    run.advance()
    bars = values(time_plot(timeline(run.plan, run.trace.events())))
    assert [bar["leads_to"] for bar in bars] == ["node-it01_investigate", "gate-it01_confirm"]
    shown = view(run.plan, run.trace.state())
    assert bars[1]["leads_to"] == f"gate-{shown.gates[0].key}"


def test_the_charts_in_time_say_what_is_still_at_work(tmp_path):
    run = Run(tmp_path)
    run.enter("it01_investigate")
    line = timeline(run.plan, run.trace.events())
    chart = time_plot(line)
    assert chart.legend == (("open", "mark-calm"),)
    assert values(chart)[0]["end_as"] == "open"
    assert spend_plot(line) is None
    assert time_plot(timeline(research(), ())) is None


def test_the_tree_stands_by_parents_and_turns():
    base = candidate("base", kind="base", iteration=None, parent=None)
    first = candidate("it01-p01", parent="base")
    second = candidate("it01-p02", parent="base")
    later = candidate("it02-p01", iteration=2, parent="it01-p01")
    stray = candidate("x", parent="of another run")
    found = tree([later, stray, second, first, base])
    assert [stem.entry.id for stem in found] == ["x", "base", "it01-p01"]
    (turn,) = found[1].turns
    assert turn.iteration == 1
    assert [entry.id for entry in turn.tried] == ["it01-p01", "it01-p02"]
    (turn,) = found[2].turns
    assert (turn.iteration, [entry.id for entry in turn.tried]) == (2, ["it02-p01"])


@given(st.dictionaries(st.integers(0, 30), st.integers(-1, 30), max_size=31))
def test_every_row_stands_once_below_its_parent_or_on_none(parents):
    entries = [candidate(str(child), parent=str(parent)) for child, parent in parents.items()]
    known = {entry.id for entry in entries}
    found = tree(entries)
    stems = [stem.entry.id for stem in found]
    tried = [entry for stem in found for turn in stem.turns for entry in turn.tried]
    assert len(stems) == len(set(stems))
    assert {e.id for e in entries if e.parent not in known} <= set(stems)
    assert sorted(e.id for e in tried) == sorted(e.id for e in entries if e.parent in known)
    for stem in found:
        assert all(e.parent == stem.entry.id for turn in stem.turns for e in turn.tried)


def test_a_branch_without_a_row_is_on_its_way(tmp_path):
    run = Run(tmp_path)
    run.to_branches()
    run.do("it01_p01_implement")
    run.enter("it01_p01_train")
    shown = view(run.plan, run.trace.state())
    found = {one.branch: one for one in open_branches(shown, [])}
    assert (found["p01"].step, found["p01"].status) == ("train", "open")
    assert found["p02"].title == "A deeper net"
    told = [candidate("a", branch="p01", iteration=1)]
    assert [one.branch for one in open_branches(shown, told)] == ["p02"]


def graph_of(*edges: tuple[str, str, str]) -> nx.MultiDiGraph:
    graph = nx.MultiDiGraph()
    for source, relation, target in edges:
        for name in (source, target):
            graph.add_node(name, kind=name.partition(":")[0], label=f"the {name}")
        graph.add_edge(source, target, key=relation, relation=relation)
    return graph


def test_the_entity_graph_stands_in_columns_and_names_only_this_run_s_rows():
    graph = graph_of(
        ("note:a", "about", "intervention:film"),
        ("note:other", "about", "intervention:film"),
        ("note:a", "about", "dataset:toy"),
        ("note:a", "rests_on", "entry:a"),
        ("intervention:film", "risks", "fault:I1"),
    )
    found = knowledge_map(graph, ["a"])
    at = {node.id: node for node in found.nodes}
    assert set(at) == {"note:a", "intervention:film", "fault:I1"}
    assert at["note:a"].x < at["intervention:film"].x < at["fault:I1"].x
    assert at["note:a"].entry == "a"
    assert {(e.source, e.relation, e.target) for e in found.edges} == {
        ("note:a", "about", "intervention:film"),
        ("intervention:film", "risks", "fault:I1"),
    }
    assert knowledge_map(graph, ["none such"]) is None


def test_an_entity_graph_of_a_thousand_rows_shows_the_best_linked_and_says_so():
    edges = [(f"note:{k}", "about", f"intervention:{k % 7}") for k in range(1000)]
    found = knowledge_map(graph_of(*edges), [str(k) for k in range(1000)])
    assert found.left_out == 1000 - 30
    assert found.height < 1000


def test_counts_agree_with_their_nouns():
    assert [counted(n, "seed") for n in (0, 1, 2)] == ["0 seeds", "1 seed", "2 seeds"]
    assert counted(1200, "entry") == "1,200 entries"


@pytest.mark.parametrize("text", ["", "epoch\tloss\n", "a\tb\n1\t2\n", "epoch\tloss\n1\tx\n"])
def test_a_curve_without_points_is_an_error(text):
    with pytest.raises(ValueError):
        read_curve(text)


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.floats(-1e6, 1e6), st.sampled_from(["1", "2", "3"])),
        min_size=1,
        max_size=40,
    )
)
def test_every_point_of_a_curve_lies_in_its_picture(points):
    lines = "".join(f"{epoch}\t{loss!r}\t{seed}\n" for epoch, loss, seed in points)
    drawn = picture(read_curve(f"epoch\tloss\tseed\n{lines}"))
    for line in drawn.lines:
        for pixel in line.points.split():
            x, y = map(float, pixel.split(","))
            assert drawn.left <= x <= drawn.right
            assert 0 <= y <= drawn.height
    heights = sorted(line.label_y for line in drawn.lines)
    assert all(b - a >= 13 for a, b in pairwise(heights))


def test_the_scale_of_intervals_is_never_empty():
    assert common_limit([]) == 1.0
    assert common_limit([None, Decision(False, None, None, "")]) == 1.0
    wide = Decision(False, 0.0, (-0.2, 0.1), "")
    assert common_limit([wide]) == pytest.approx(0.21)
    bar = interval_bar(wide, 0.21)
    assert bar.low < bar.mean == bar.zero < bar.high
    assert bar.kind == "even"
    assert interval_bar(None, 1.0) is None


def test_scores_stand_side_by_side_within_their_iteration():
    rows = [candidate(f"c{k}", iteration=1 + k // 3) for k in range(6)]
    chart = scores_plot([*rows, failed(), candidate("base", kind="base", iteration=None)])
    places = [point["place"] for point in values(chart)]
    assert len(set(places)) == 7
    assert all(abs(point["place"] - point["turn"]) < 0.5 for point in values(chart))
    assert scores_plot([failed()]) is None


def test_long_curves_are_thinned_and_keep_their_end():
    lines = "".join(f"{epoch}\t{1 / epoch}\n" for epoch in range(1, 1001))
    entry = candidate()
    files = {entry.id: EntryFiles(curve=f"epoch\tloss\n{lines}")}
    chart = curves_plot([entry], files)
    epochs = [point["epoch"] for point in values(chart)]
    assert len(epochs) <= 70
    assert epochs[-1] == 1000
    assert curves_plot([entry], {entry.id: EntryFiles(curve="odd")}) is None
