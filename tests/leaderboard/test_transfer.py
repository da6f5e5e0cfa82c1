"""The gains of recipes on other data sets, beside what was published."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from entry_samples import FILES, REPOSITORY, candidate, evidence, failed, project, scores

from eop.cli import cli
from eop.core.errors import EopError
from eop.leaderboard import Comparison, Entry, Proposal, write_entry
from eop.leaderboard.transfer import gains, read_claims

if TYPE_CHECKING:
    from pathlib import Path

SHA = "cd" * 32


def replayed(dataset: str, recipe: str, ndcg: float | None, **changes: object) -> list[Entry]:
    """The base of a data set's run, and a recipe that came to ``ndcg`` there, or failed."""
    run = f"replay-{dataset}"
    split = {"dataset": dataset, "digest": SHA, "files": [{"path": "t", "sha256": SHA, "size": 1}]}
    facts = evidence(split=split, plan={"name": "replay", "version": "0.1.0", "digest": SHA})
    own = {"run": run, "evidence": facts}
    base = candidate(f"{run}-base", kind="base", parent=None, test=scores(0.2), **own)
    row = {"parent": base.id, "proposal": Proposal(recipe, recipe, ""), **own, **changes}
    if ndcg is None:
        facts = {**facts, "patch": None, "checkpoints": [], "preflight": None, "config": None}
        return [base, failed(f"{run}-it01-p01", **{**row, "evidence": facts})]
    compared = Comparison(ndcg - 0.2, (ndcg - 0.21, ndcg - 0.19), (1, 2))
    return [base, candidate(f"{run}-it01-p01", test=scores(ndcg), on_test=compared, **row)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project(tmp_path)
    for name in ("config/claims.yaml", "config/schemas/claims.schema.yaml"):
        (tmp_path / name).write_bytes((REPOSITORY / name).read_bytes())
    return tmp_path


def test_each_recipe_on_each_data_set_beside_the_claim(root: Path) -> None:
    entries = [*replayed("yelp-toy", "synapse", 0.23), *replayed("beauty", "synapse", None)]
    entries += [candidate("other", run="demo")]
    beauty, yelp = gains(entries, "replay", read_claims(root))
    assert (yelp.dataset, yelp.recipe, yelp.base) == ("yelp-toy", "synapse", pytest.approx(0.2))
    assert yelp.relative == pytest.approx(0.15)
    assert yelp.interval == pytest.approx((0.02, 0.04))
    assert yelp.claim is not None
    assert yelp.claim.gain == pytest.approx(0.19, abs=0.001)
    assert (beauty.standing, beauty.ndcg, beauty.relative, beauty.claim) == (
        "failed",
        None,
        None,
        None,
    )


def test_a_base_of_another_run_is_no_base(root: Path) -> None:
    _, row = replayed("yelp-toy", "synapse", 0.23)
    (alone,) = gains([row], "replay", {})
    assert (alone.base, alone.relative, alone.interval) == (None, None, None)


def test_the_command_prints_missing_as_missing(root: Path) -> None:
    for entry in [*replayed("yelp-toy", "synapse", 0.23), *replayed("gowalla", "synapse", None)]:
        write_entry(root, entry, FILES if entry.test else {})
    argv = ["--project", str(root), "champion", "gains"]
    printed = json.loads(CliRunner().invoke(cli, [*argv, "--json"]).stdout)
    rows, others = printed["gains"], printed["not_replayed"]
    assert set(others) == {"foursquare-tky", "foursquare-nyc", "gowalla"}, "a failure measures none"
    assert [(row["dataset"], row["ndcg"]) for row in rows] == [
        ("gowalla", None),
        ("yelp-toy", pytest.approx(0.23)),
    ]
    text = CliRunner().invoke(cli, argv, env={"COLUMNS": "160"}).stdout
    assert "+15.0%" in text
    assert "0.0321 to 0.0382, +19.0%" in text
    assert "0.0000" not in text
    assert "Published of foursquare-tky, and not measured here: 0.0200 to 0.0202, +1.0%" in text
    assert "2 seeds, 1 read" in text
    none = CliRunner().invoke(cli, [*argv, "--protocol", "nothing"])
    assert "Nothing was replayed yet" in none.stdout


def test_broken_claims_are_named(root: Path) -> None:
    (root / "config/claims.yaml").write_text("source: s\ndatasets: {yelp: {base: 0}}\n")
    with pytest.raises(EopError, match=r"EOP666[^$]*datasets.yelp"):
        read_claims(root)
    (root / "config/claims.yaml").write_text("source: [s\n")
    with pytest.raises(EopError, match=r"EOP666[^$]*line 2"):
        read_claims(root)
