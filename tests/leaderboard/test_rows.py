from __future__ import annotations

import pandas as pd
from entry_samples import FILES, candidate, failed, project, scores

from eop.leaderboard import Scores, write_entry
from eop.leaderboard.rows import rows


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
    assert last["outcome"] == "failed"
    for column in ("test_ndcg@10", "validation_ndcg@10", "delta", "train_s", "actions"):
        assert last[column] is pd.NA
    assert frame.iloc[0]["low"] == 0.01


def test_no_entries_is_an_empty_table_with_its_columns(tmp_path):
    frame = rows(tmp_path)
    assert frame.empty
    assert {"entry", "test_ndcg@10", "outcome"} <= set(frame.columns)
