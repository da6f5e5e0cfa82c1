"""Two runs side by side: what a switch, such as memory, was worth."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from eop.core.errors import EopError, ExitCode
from eop.core.files import read_json
from eop.evidence import FileRef
from eop.leaderboard.standing import NEGATIVE, PROMOTED, WITHIN_NOISE, WORSE, standing
from eop.stats import common_seeds, read_ranks, same_seed_difference

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eop.leaderboard import Entry
    from eop.stats import Ranks


@dataclass(frozen=True)
class RunFacts:
    """What a run came to. ``not_better`` are measured, and worse or within the noise.

    ``repeats`` counts proposals that a screening has flagged, ``None`` where nothing was screened,
    or the run's folder is not here.
    """

    run: str
    entries: int
    candidates: int
    promoted: int
    not_better: int
    failed: int
    repeats: int | None
    champion: str


@dataclass(frozen=True)
class Difference:
    """NDCG@10 of the second run's champion over the first's, on the users and seeds of both.

    ``delta`` is ``None`` where the two are not compared, and ``reason`` says why.
    """

    delta: float | None
    interval: tuple[float, float] | None
    seeds: tuple[int, ...]
    reason: str


def run_facts(root: Path, run: str, entries: Sequence[Entry]) -> RunFacts:
    """The facts of one run; EOP684 when the leaderboard has no row of it."""
    own = [entry for entry in entries if entry.run == run]
    if not own:
        known = sorted({entry.run for entry in entries})
        raise EopError(
            "EOP684",
            f"no entry of a run '{run}'",
            hint=f"runs with entries: {', '.join(known) or 'none'}",
            exit_code=ExitCode.STATE,
        )
    candidates = [entry for entry in own if entry.kind == "candidate"]
    ends = [standing(entry) for entry in candidates]
    return RunFacts(
        run=run,
        entries=len(own),
        candidates=len(candidates),
        promoted=ends.count(PROMOTED),
        not_better=sum(end in (WORSE, WITHIN_NOISE) for end in ends),
        failed=sum(end in NEGATIVE for end in ends),
        repeats=_repeats(root / "runs" / run),
        champion=champion(own).id,
    )


def champion(entries: Sequence[Entry]) -> Entry:
    """The last promoted entry of a run, else its base, else its first."""
    promoted = [entry for entry in entries if entry.decision and entry.decision.promoted]
    if promoted:
        return max(promoted, key=lambda entry: (entry.iteration or 0, entry.id))
    return next((entry for entry in entries if entry.kind == "base"), entries[0])


def difference(root: Path, first: Entry, second: Entry) -> Difference:
    """Compare two champions user by user on validation, if their splits are the same."""
    splits = [entry.evidence["split"]["digest"] for entry in (first, second)]
    if splits[0] != splits[1]:
        return Difference(None, None, (), "the splits differ")
    if first.id == second.id:
        return Difference(None, None, (), "it is the same entry")
    sides = []
    for entry in (first, second):
        ranks, missing = _ranks(root, entry)
        if missing:
            return Difference(None, None, (), missing)
        sides.append(ranks)
    seeds = tuple(common_seeds(sides[1], sides[0]))
    if not seeds:
        return Difference(None, None, (), "they have no seed in common")
    found = same_seed_difference(sides[1], sides[0])
    return Difference(found.mean, found.interval95, seeds, "")


def to_json(facts: Sequence[RunFacts], found: Difference) -> dict[str, Any]:
    """Plain data of the comparison."""
    return {"runs": [asdict(one) for one in facts], "champions": asdict(found)}


def _ranks(root: Path, entry: Entry) -> tuple[dict[int, Ranks], str]:
    """The ranks of an entry by seed; or what is missing."""
    ranks = {}
    for file in entry.evidence.get("ranks", ()):
        if file["target"] != "validation":
            continue
        wrong = FileRef(file["path"], file["sha256"], file["size"]).check(root)
        if wrong:
            return {}, f"{wrong[0]}; fetch it with `dvc pull`"
        ranks[file["seed"]] = read_ranks(root / file["path"])
    return ranks, "" if ranks else f"{entry.id} keeps no ranks of its users"


def _repeats(folder: Path) -> int | None:
    reports = [
        report
        for path in sorted(folder.glob("it*/*/artifacts/screening.json"))
        for report in [read_json(path)]
    ]
    if not reports:
        return None
    return sum(len({one["proposal"] for one in report["repeats"]}) for report in reports)
