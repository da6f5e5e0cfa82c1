from __future__ import annotations

import json

import numpy as np
import pytest
from entry_samples import REPOSITORY
from hypothesis import given, settings
from hypothesis import strategies as st

from eop.core.errors import EopError
from eop.core.schema import problems
from eop.core.yaml_files import read_yaml
from eop.leaderboard.promotion import Candidate, Champion, Rule
from eop.leaderboard.promotion import decide as decide_with
from eop.stats import NoiseBand, Ranks

USERS = np.arange(400)


def model(quality: float, *, seeds: int = 3, noise: float = 0.0) -> dict[int, Ranks]:
    """Ranks that are 1 for a share ``quality`` of the users; seeds differ by ``noise``."""
    made = {}
    for seed in range(seeds):
        good = int(len(USERS) * (quality + noise * (seed - (seeds - 1) / 2)))
        made[seed] = Ranks.of(USERS, np.where(good > USERS, 1, 50))
    return made


def challenger(name: str, ranks, outcome: str = "completed") -> Candidate:
    return Candidate(name, f"e-{name}", outcome, ranks)


SCHEMA = read_yaml(REPOSITORY / "config" / "schemas" / "decision.schema.yaml")
QUIET = NoiseBand(0.3, 0.0, 0.0, 3)


def decide(parent, candidates, band=QUIET, **more):
    """The decision, which is what its schema says whatever it is."""
    decision = decide_with(parent, candidates, band, **more)
    assert problems(json.loads(json.dumps(decision, allow_nan=False)), SCHEMA) == []
    return decision


PARENT = Champion("e-base", model(0.3))


def test_the_best_of_those_that_clear_the_noise_is_promoted():
    decision = decide(
        PARENT,
        [
            challenger("p01", model(0.4)),
            challenger("p02", model(0.5)),
            challenger("p03", model(0.2)),
            challenger("p04", None, "rejected_by_preflight"),
        ],
    )
    assert decision["champion"] == "e-p02"
    rows = {row["proposal"]: row for row in decision["candidates"]}
    assert [row["promoted"] for row in decision["candidates"]] == [False, True, False, False]
    assert "less than e-p02" in rows["p01"]["reason"]
    assert "worse than the parent" in rows["p03"]["reason"]
    assert rows["p04"]["delta"] is None
    assert rows["p04"]["interval"] is None
    assert "rejected_by_preflight" in rows["p04"]["reason"]


def test_nobody_is_promoted_for_noise():
    # One point up, but the seeds of both sides spread by more.
    parent = Champion("e-base", model(0.3, noise=0.05))
    decision = decide(parent, [challenger("p01", model(0.34, noise=0.05))])
    assert decision["champion"] == "e-base"
    assert "within the noise" in decision["candidates"][0]["reason"]
    assert decision["candidates"][0]["delta"] > 0
    quiet = decide(Champion("e-base", model(0.3)), [challenger("p01", model(0.34))])
    assert quiet["champion"] == "e-p01"


def test_one_seed_cannot_tell_a_gain_from_noise():
    challengers = [challenger("p01", model(0.9, seeds=1))]
    decision = decide(PARENT, challengers)
    assert decision["champion"] == "e-base"
    assert "1 seed(s) against 3" in decision["candidates"][0]["reason"]
    assert decision["candidates"][0]["seeds"] == [0]
    assert decision["candidates"][0]["p"] < 0.001, "compared, and not put to the test"
    assert decision["candidates"][0]["p_adjusted"] is None
    three = Rule(seeds=3)
    two = decide(PARENT, [challenger("p01", model(0.9, seeds=2))], rule=three)
    assert two["champion"] == "e-base"
    assert decide(PARENT, [challenger("p01", model(0.9))], rule=three)["champion"] == "e-p01"


def test_only_common_seeds_are_compared():
    ranks = model(0.3, noise=0.05)
    parent = Champion("e-base", {1: ranks[0], 2: ranks[1], 3: ranks[2]})
    same = decide(parent, [challenger("p01", {3: ranks[2]})])["candidates"][0]
    assert (same["delta"], same["seeds"]) == (0.0, [3]), "the very model of that seed"
    low, high = same["interval"]
    assert low < 0 < high, "the parent's other seeds say how much training varies"
    none = decide(parent, [challenger("p01", {7: ranks[2]})])["candidates"][0]
    assert (none["delta"], none["interval"], none["seeds"]) == (None, None, [])
    assert "no seed in common" in none["reason"]


def test_the_parent_against_itself_stays():
    assert decide(PARENT, [challenger("p01", PARENT.ranks)])["champion"] == "e-base"
    assert decide(PARENT, [])["champion"] == "e-base"


def test_other_users_are_an_error_and_no_verdict():
    other = dict.fromkeys(range(3), Ranks.of(USERS + 1, np.ones_like(USERS)))
    with pytest.raises(EopError) as caught:
        decide(PARENT, [challenger("p01", other)])
    assert caught.value.code == "EOP652"


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 1.0), max_size=5))
def test_at_most_one_and_it_is_the_champion(qualities):
    candidates = [challenger(f"p{i:02d}", model(q)) for i, q in enumerate(qualities)]
    decision = decide(PARENT, candidates)
    promoted = [row["entry"] for row in decision["candidates"] if row["promoted"]]
    assert promoted == ([] if decision["champion"] == "e-base" else [decision["champion"]])
    for row in decision["candidates"]:
        qualifies = row["interval"][0] > 0 and row["p_adjusted"] <= 0.05
        assert qualifies or not row["promoted"]
        assert row["detectable"] >= 0
    assert bool(promoted) == any(
        row["interval"][0] > 0 and row["p_adjusted"] <= 0.05 for row in decision["candidates"]
    )


def gain(users: int) -> dict[int, Ranks]:
    """As the parent, and of the users that it fails so many more."""
    return {seed: Ranks.of(USERS, np.where(120 + users > USERS, 1, 50)) for seed in range(3)}


def test_what_clears_the_interval_alone_does_not_among_many():
    alone = decide(PARENT, [challenger("p00", gain(5))])
    assert alone["champion"] == "e-p00"
    assert 0.01 < alone["candidates"][0]["p"] < 0.05
    others = [challenger(f"p{i:02d}", model(0.3)) for i in range(1, 8)]
    many = decide(PARENT, [challenger("p00", gain(5)), *others])
    row = many["candidates"][0]
    assert (many["champion"], row["interval"]) == ("e-base", alone["candidates"][0]["interval"])
    assert row["p_adjusted"] == pytest.approx(8 * row["p"])
    assert "of 8 candidates tried at once" in row["reason"]
    assert row["detectable"] > alone["candidates"][0]["detectable"], "many hide small gains"
    lenient = decide(PARENT, [challenger("p00", gain(5)), *others], rule=Rule(alpha=0.3))
    assert lenient["champion"] == "e-p00"


def test_a_gain_within_the_band_of_null_controls_is_not_promoted():
    candidate = challenger("p01", gain(20))
    band = NoiseBand(0.3, 0.035, 0.07, 3)
    decision = decide(PARENT, [candidate], band)
    row = decision["candidates"][0]
    assert row["band"] == pytest.approx(0.07 * (2 / 3) ** 0.5)
    assert row["interval"][0] > 0
    assert "does not clear the noise band" in row["reason"]
    assert (decision["champion"], decide(PARENT, [candidate])["champion"]) == ("e-base", "e-p01")
    twins = NoiseBand(0.3, 0.0, 0.0, 3, twin=0.051)
    assert decide(PARENT, [candidate], twins)["champion"] == "e-base", "the same seed differs"


def test_without_a_band_nothing_is_promoted():
    decision = decide(PARENT, [challenger("p01", model(0.9))], NoiseBand(0.3, None, None, 1))
    assert decision["champion"] == "e-base"
    assert "the noise band is unknown" in decision["candidates"][0]["reason"]


def test_the_spread_of_others_seeds_counts_and_so_does_that_of_the_base():
    candidate = challenger("p01", model(0.4))
    assert decide(PARENT, [candidate])["champion"] == "e-p01"
    shaky = challenger("p02", model(0.2, noise=0.2))
    assert decide(PARENT, [candidate, shaky])["champion"] == "e-base"
    controls = [model(0.3, noise=0.2)]
    decision = decide(PARENT, [candidate], controls=controls)
    assert decision["champion"] == "e-base"
    assert decision["noise"]["freedom"] == 6
