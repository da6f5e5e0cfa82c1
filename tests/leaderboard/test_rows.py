from __future__ import annotations

from datetime import date

import pandas as pd
import pytest
from entry_samples import FILES, candidate, evidence, failed, project, scores

from eop.core.errors import EopError
from eop.leaderboard import Decision, Entry, Scores, write_entry
from eop.leaderboard.rows import rows
from eop.leaderboard.selection import Selection
from eop.leaderboard.standing import NEGATIVE, STANDINGS, standing, stands_on
from eop.leaderboard.summary import summaries


def judged(low: float, high: float, **facts: object) -> Decision:
    return Decision(False, (low + high) / 2, (low, high), "a reason", **facts)  # type: ignore[arg-type]


def test_rows_go_by_canonical_test_and_end_with_the_unmeasured(tmp_path):
    root = project(tmp_path)
    nothing = Scores(dict.fromkeys(("ndcg@10", "hr@10", "mrr"), 0.0))
    # Validation says the opposite of test: it must not decide the order.
    write_entry(root, candidate("a", validation=scores(0.9), test=scores(0.1)), FILES)
    write_entry(root, candidate("b", validation=scores(0.2), test=scores(0.3)), FILES)
    write_entry(root, failed("aa"), {})
    write_entry(root, candidate("zero", test=nothing), FILES)
    frame = rows(root)
    assert list(frame["entry"]) == ["b", "a", "zero", "aa"]
    last = frame.iloc[-1]
    assert (last["outcome"], last["standing"]) == ("failed", "failed")
    for column in ("test_ndcg@10", "test_low", "on_test", "delta", "train_s", "actions", "seeds"):
        assert last[column] is pd.NA
    first = frame.iloc[0]
    assert (first["delta_low"], first["seeds"], first["test_reads"]) == (0.01, 2, 1)
    assert (first["test_low"], first["test_high"]) == pytest.approx((0.29, 0.31))
    assert (first["validation_low"], first["on_test_high"]) == (pytest.approx(0.19), pd.NA)


def test_no_entries_is_an_empty_table_with_its_columns(tmp_path):
    frame = rows(tmp_path)
    assert frame.empty
    assert {"entry", "test_ndcg@10", "outcome", "stands_on"} <= set(frame.columns)


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        (candidate(), "promoted"),
        (candidate(decision=judged(-0.01, 0.02)), "within_noise"),
        (candidate(decision=judged(0.0, 0.02)), "within_noise"),
        (candidate(decision=judged(-0.02, -0.01)), "worse"),
        (candidate(decision=judged(0.01, 0.02)), "better"),
        (candidate(decision=Decision(False, None, None, "no seed in common")), "not_compared"),
        (candidate(kind="base", parent=None, decision=None), "reference"),
        *((failed(outcome=word), word) for word in NEGATIVE),
    ],
)
def test_every_end_has_a_word_of_its_own(entry, word):
    assert standing(entry) == word
    assert word in STANDINGS


def test_a_row_is_set_against_the_base_and_the_published_anchor(tmp_path):
    root = project(tmp_path)
    base = candidate("demo-base", kind="base", parent=None, decision=None, test=scores(0.1))
    for entry in (base, candidate("demo-it01-p01", test=scores(0.13)), failed("demo-it01-p02")):
        write_entry(root, entry, FILES if entry.test else {})
    frame = rows(root).set_index("entry")
    assert frame.loc["demo-it01-p01", "over_base"] == pytest.approx(0.03)
    assert frame.loc["demo-it01-p01", "over_anchor"] is pd.NA, "nobody has published this data set"
    text = "toy: [{name: A, ndcg@10: 0.2, source: s}, {name: B, ndcg@10: 0.9, source: s}]\n"
    (root / "config" / "anchors.yaml").write_text(text)
    frame = rows(root).set_index("entry")
    assert frame.loc["demo-it01-p01", "over_anchor"] == pytest.approx(-0.07)
    for column in ("over_base", "over_anchor"):
        assert frame.loc["demo-it01-p02", column] is pd.NA
    (root / "config" / "anchors.yaml").write_text("toy: [{name: A, ndcg: 0.2, source: s}]\n")
    with pytest.raises(EopError, match=r"EOP665[^$]*unknown key 'ndcg'"):
        rows(root)


def test_lineage_says_which_rows_a_row_stands_on():
    entries = {
        entry.id: entry
        for entry in (
            candidate("base", kind="base", parent=None),
            candidate("one", parent="base"),
            candidate("two", parent="one"),
            failed("three", parent="two"),
        )
    }
    assert stands_on(entries["three"], entries) == ["base", "one", "two"]
    assert stands_on(entries["base"], entries) == []
    del entries["one"]
    assert stands_on(entries["three"], entries) == ["one", "two"], "named, though it is not here"
    looped = {"a": candidate("a", parent="b"), "b": candidate("b", parent="a")}
    assert stands_on(looped["a"], looped) == ["a", "b"]


def dated(name: str, at: str | None, **changes: object) -> Entry:
    return candidate(name, evidence=evidence(**({"recorded": at} if at else {})), **changes)


@pytest.mark.parametrize(
    ("selection", "names", "undated"),
    [
        (Selection(), ["late", "early", "never", "lost"], 0),
        (Selection(run="other"), ["early"], 0),
        (Selection(dataset="elsewhere"), [], 0),
        (Selection(standings=frozenset({"failed"})), ["lost"], 0),
        (
            Selection(standings=frozenset({"failed", "promoted"})),
            ["late", "early", "never", "lost"],
            0,
        ),
        (Selection(since=date(2026, 3, 2)), ["late"], 2),
        (Selection(since=date(2026, 3, 1)), ["late", "early"], 2),
        (Selection(run="other", since=date(2026, 3, 1)), ["early"], 0),
    ],
)
def test_rows_are_selected_by_all_that_is_asked(tmp_path, selection, names, undated):
    entries = [
        dated("late", "2026-03-02T00:00:00+00:00"),
        dated("early", "2026-03-01T23:59:59+00:00", run="other"),
        dated("never", None),
        failed("lost"),
    ]
    assert [entry.id for entry in selection.of(entries)] == names
    assert selection.undated(entries) == undated
    root = project(tmp_path)
    for entry in entries:
        write_entry(root, entry, FILES if entry.test else {})
    assert set(rows(root, selection)["entry"]) == set(names)


def test_a_subset_s_metrics_are_no_row(tmp_path):
    subset = {"subset/ndcg@10": 0.9, "hr@10": 0.9, "mrr": 0.9}
    with pytest.raises(EopError, match=r"EOP661[^$]*subset/ndcg@10"):
        write_entry(project(tmp_path), candidate(test=Scores(subset)), FILES)


def test_a_summary_holds_base_rates_power_and_q_values():
    def tested(name: str, turn: int, p: float, *, promoted: bool = False) -> Entry:
        facts = {"p": p, "p_adjusted": min(1.0, 2 * p), "alpha": 0.05, "detectable": 0.01 * turn}
        decision = Decision(promoted, 0.01, (-0.01, 0.03), "a reason", (1, 2), **facts)
        return candidate(name, iteration=turn, decision=decision)

    entries = [
        candidate("base", kind="base", parent=None, decision=None, iteration=None),
        tested("a", 1, 0.01, promoted=True),
        tested("b", 1, 0.5),
        tested("c", 2, 0.04),
        failed("d", iteration=2),
        candidate("elsewhere", run="other"),
    ]
    found, other = summaries(entries)
    assert (found.run, found.candidates, found.turns, found.promoted) == ("demo", 4, 2, 1)
    assert found.standings == {"failed": 1, "promoted": 1, "within_noise": 2}
    assert found.false_promotions == pytest.approx(0.1), "two turns at 0.05"
    assert found.detectable == pytest.approx(0.01)
    assert found.test_reads == 4
    assert [(one.entry, round(one.q, 4)) for one in found.comparisons] == [
        ("a", 0.03),
        ("c", 0.06),
        ("b", 0.5),
    ]
    assert (other.run, other.false_promotions, other.comparisons) == ("other", None, [])
