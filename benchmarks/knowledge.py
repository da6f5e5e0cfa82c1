"""What grows with the notes of a project: what a phase is told, and the check of the wiki."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from benchmarks import child
from benchmarks.harness import best, cpu_seconds
from benchmarks.table import Table, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.child import Row
    from benchmarks.grid import Grid
    from eop.knowledge.entities import Entity

_NOTE = (
    "Notes of one project, an entry behind each, and a claim of the wiki upon each. CPU "
    "seconds of one process. Index: from nothing. Recall: 1,500 tokens for a proposal, best of "
    "three, the look at every file's stamp included. Once more: recall after one note was added. "
    "Check: every file read and digested anew, beside an index that is up to date. Graph: built "
    "and written in both formats."
)
_NOTES = (100, 1000, 10_000)
_QUICK = (50,)
_WORDS = [
    "attention",
    "causal",
    "decay",
    "dropout",
    "embedding",
    "epoch",
    "gate",
    "gradient",
    "head",
    "history",
    "horizon",
    "item",
    "length",
    "loss",
    "mask",
    "negative",
    "norm",
    "position",
    "preference",
    "query",
    "rank",
    "recency",
    "residual",
    "sample",
    "scale",
    "sequence",
    "session",
    "softmax",
    "spike",
    "tail",
    "temperature",
    "time",
    "token",
    "user",
    "warmup",
    "weight",
    "window",
]
_SIGNS = {"better": (0.001, 0.004), "worse": (-0.004, -0.001), "within_noise": (-0.002, 0.002)}


def rows(grid: Grid) -> Iterator[Row]:
    """Measure project after project."""
    for notes in _QUICK if grid.quick else _NOTES:
        yield child.run(__name__, {"notes": notes}, environment={})


def measure(case: Row) -> Row:
    """One project, in a folder of its own."""
    from eop.knowledge.checks import check
    from eop.knowledge.graph import build, write_graph
    from eop.knowledge.index import open_index
    from eop.knowledge.recall import Query, recall
    from eop.knowledge.store import open_store

    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        entities = _plant(root, case["notes"])
        query = Query(
            "Decay the weight of old sessions in attention, so that recency counts.",
            ("intervention:elapsed-decay", "setting:interventions.elapsed_decay.form"),
        )
        index_s = cpu_seconds(lambda: open_index(root).close())
        recall(root, query, 1500)
        recall_s = best(lambda: recall(root, query, 1500))
        _write_note(root, entities, random.Random(1), case["notes"])
        again_s = cpu_seconds(lambda: recall(root, query, 1500))
        found: list[Any] = []
        check_s = cpu_seconds(lambda: found.append(check(root)))
        with open_store(root) as store:
            graph_s = cpu_seconds(lambda: write_graph(build(store), root / "graph"))
        assert not [p for p in found[0].problems if "both can hold" not in p.message]
        return {
            "index_s": index_s,
            "recall_s": recall_s,
            "again_s": again_s,
            "check_s": check_s,
            "graph_s": graph_s,
        }


def _plant(root: Path, notes: int) -> Mapping[str, Entity]:
    from eop.knowledge.entities import read_registry

    for name in ("config/schemas/note.schema.yaml", "config/schemas/claim.schema.yaml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes((child.ROOT / name).read_bytes())
    (root / "knowledge/wiki").mkdir(parents=True)
    listed = (child.ROOT / "knowledge/entities.yaml").read_bytes()
    (root / "knowledge/entities.yaml").write_bytes(listed)
    chance = random.Random(0)
    entities = read_registry(root).entities
    for at in range(notes):
        _write_note(root, entities, chance, at)
    return entities


def _write_note(root: Path, entities: Mapping[str, Entity], chance: random.Random, at: int) -> None:
    """A note about one or two interventions, on one of many bases; a claim for each."""
    from eop.core.canonical import file_digest
    from eop.knowledge.change import Change
    from eop.knowledge.effect import Effect
    from eop.knowledge.facts import Evidence, Facts
    from eop.knowledge.pages import Claim

    about = chance.sample(sorted(n for n in entities if n.startswith("intervention:")), 1 + at % 2)
    said = chance.choice(sorted(_SIGNS))
    entry = root / f"leaderboard/e{at}/entry.yaml"
    entry.parent.mkdir(parents=True)
    entry.write_text("".join(f"{word}: {chance.random()}\n" for word in _WORDS))
    facts = Facts(
        id=f"e{at}",
        title=" ".join(chance.sample(_WORDS, 6)),
        run=f"r{at // 50}",
        proposal=f"p{at}",
        outcome="completed",
        entities=tuple(sorted([*about, "dataset:ml-1m"])),
        change=Change({k: (None, at % 7) for n in about for k in entities[n].settings}),
        effect=Effect("ndcg@10", sum(_SIGNS[said]) / 2, _SIGNS[said], (1, 2), said),
        conditions={
            "dataset": f"d{at % 5}",
            "split": "ab" * 32,
            **{f"base.model.{word}": at // 50 for word in _WORDS[:16]},
        },
        lesson=" ".join(chance.choices(_WORDS, k=30)),
        evidence=(Evidence(f"leaderboard/e{at}/entry.yaml", file_digest(entry)),),
        metrics={"validation": {"ndcg@10": 0.19}, "test": {"ndcg@10": 0.19}},
    )
    path = root / f"knowledge/notes/e{at}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    front = yaml.dump(facts.to_json(), Dumper=yaml.CSafeDumper, sort_keys=False)
    body = "\n\n".join(" ".join(chance.choices(_WORDS, k=60)) for _ in range(4))
    path.write_text(f"---\n{front}---\n\n# {facts.title}\n\n{body}\n")
    when = {"dataset": f"d{at % 5}", "base.model.attention": at // 50}
    claim = Claim(f"c{at}", facts.title, tuple(about), said, (facts.id,), when=when)
    with (root / f"knowledge/wiki/{about[0].partition(':')[2]}.md").open("a") as page:
        page.write(f"\n{claim.block()}")


def table(rows: Sequence[Row]) -> Table:
    """A line for each project."""
    titles = ["notes", "index", "recall", "once more", "check", "graph"]
    return Table("Knowledge", _NOTE, titles, [_line(row) for row in rows])


def _line(row: Row) -> list[str]:
    seconds = ("index_s", "recall_s", "again_s", "check_s", "graph_s")
    return [f"{row['notes']:,}", *(number(row[name]) for name in seconds)]
