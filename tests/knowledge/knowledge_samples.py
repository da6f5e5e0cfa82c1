"""A small knowledge base, planted file by file."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from eop.core.canonical import file_digest
from eop.knowledge.change import Change
from eop.knowledge.effect import Effect, sign
from eop.knowledge.facts import Evidence, Facts
from eop.knowledge.pages import Claim
from eop.knowledge.store import open_store
from eop.knowledge.wiki import summarized, write_claims

REPOSITORY = Path(__file__).parents[2]
INTERVALS = {
    "better": (0.01, 0.03),
    "worse": (-0.03, -0.01),
    "within_noise": (-0.01, 0.01),
}
ENTITIES = """\
entities:
  model:hstu: {names: [HSTU]}
  feature:genre: {names: [genre]}
  intervention:film: {names: [FiLM], settings: [interventions.film], changes: [model:hstu]}
  intervention:dropout: {names: [dropout], settings: [model.dropout], changes: [model:hstu]}
  intervention:genre: {names: [side features], uses: [feature:genre], changes: [model:hstu]}
  fault:I5: {names: [genre leak]}
"""


def project(root: Path) -> Path:
    """A folder with schemas and a list of entities."""
    shutil.copytree(REPOSITORY / "config" / "schemas", root / "config" / "schemas")
    (root / "knowledge" / "wiki").mkdir(parents=True)
    (root / "knowledge" / "entities.yaml").write_text(ENTITIES)
    return root


def facts(root: Path, name: str, said: str = "better", **changes: Any) -> Facts:
    """A note's facts: FiLM on `toy`, with a file of evidence that is there."""
    entry = root / "leaderboard" / name / "entry.yaml"
    entry.parent.mkdir(parents=True, exist_ok=True)
    entry.write_text(f"id: {name}\n")
    interval = INTERVALS.get(said)
    delta = sum(interval) / 2 if interval else None
    return replace(
        Facts(
            id=name,
            title="FiLM conditioning",
            run="demo",
            proposal="film",
            outcome="completed" if interval else "failed",
            entities=("dataset:toy", "intervention:film"),
            change=Change({"interventions.film": (None, {})}),
            effect=Effect("ndcg@10", delta, interval, (1, 2), sign(interval, (1, 2))),
            conditions={"dataset": "toy", "split": "ab" * 32, "base.model.dim": 8},
            lesson="Users differ.",
            evidence=(Evidence(entry.relative_to(root).as_posix(), file_digest(entry)),),
            metrics={"validation": None, "test": {"ndcg@10": 0.987654}},
        ),
        **changes,
    )


def write(root: Path, note: Facts, body: str = "What happened.") -> Path:
    """Put a note where notes lie."""
    path = root / "knowledge" / "notes" / f"{note.id}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    front = yaml.safe_dump(note.to_json(), sort_keys=False)
    path.write_text(f"---\n{front}---\n\n# {note.title}\n\n{body}\n")
    return path


def note(root: Path, name: str, said: str = "better", **changes: Any) -> Facts:
    """Plant a note and give its facts."""
    planted = facts(root, name, said, **changes)
    write(root, planted)
    return planted


def claim(name: str, said: str, *notes: str, **changes: Any) -> Claim:
    """A claim about FiLM."""
    text = f"FiLM is {said}."
    return replace(Claim(name, text, ("intervention:film",), said, notes), **changes)


def page(root: Path, *claims: Claim, name: str = "film") -> Path:
    """Put claims on a page of the wiki."""
    path = root / "knowledge" / "wiki" / f"{name}.md"
    path.write_text(f"# {name}\n\n" + "\n".join(one.block() for one in claims))
    return path


def learn(root: Path) -> None:
    """Bring all notes to the wiki."""
    with open_store(root) as store:
        claims = summarized(store, store.notes())
    write_claims(root, claims)
