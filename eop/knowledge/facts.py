"""What a note says to machines: its front matter, made from an entry and read back from a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.core.canonical import file_digest
from eop.knowledge.change import Change, changed_paths, changed_settings
from eop.knowledge.conditions import flat
from eop.knowledge.effect import FAILS, WITHIN_NOISE, WORSE, Effect
from eop.knowledge.entities import read_registry
from eop.leaderboard import entry_folder, read_entry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from eop.leaderboard import Entry

NOTE_SCHEMA = "note/1"
_LESSON = 400
_FAILURES = ("failed", "rejected_by_preflight", "tampered", "timed_out")


@dataclass(frozen=True)
class Evidence:
    """What a note rests on: a file of the project, by its digest."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Facts:
    """The front matter of a note.

    ``entities`` are ids of ``knowledge/entities.yaml``. ``conditions`` are flat (see
    ``eop.knowledge.conditions``). ``lesson`` are an agent's words, one line. ``supersedes`` are ids
    of notes that no longer count. ``metrics`` are for people: the test's are among them, so nothing
    that an agent is told may be made of them.
    """

    id: str
    title: str
    run: str | None
    proposal: str | None
    outcome: str
    entities: tuple[str, ...]
    change: Change
    effect: Effect
    conditions: Mapping[str, Any]
    lesson: str | None
    evidence: tuple[Evidence, ...]
    supersedes: tuple[str, ...] = ()
    metrics: Mapping[str, Any] | None = None

    @property
    def sign(self) -> str:
        """What became of it, in one word: the effect's sign, or ``fails``.

        What ran out of budget, was cut off or never began says nothing of the idea.
        """
        return FAILS if self.outcome in _FAILURES else self.effect.sign

    @property
    def negative(self) -> bool:
        """Whether it is a reason not to do the same again."""
        return self.sign in (WORSE, WITHIN_NOISE, FAILS)

    @property
    def interventions(self) -> tuple[str, ...]:
        """The interventions it is about."""
        return tuple(name for name in self.entities if name.startswith("intervention:"))

    @property
    def seen(self) -> dict[str, Any]:
        """Its conditions together with what the change set each setting to."""
        set_to = {f"change.{key}": after for key, (_, after) in self.change.settings.items()}
        return {**self.conditions, **set_to}

    def to_json(self) -> dict[str, Any]:
        """Plain data in the order of the file."""
        return {
            "schema": NOTE_SCHEMA,
            "id": self.id,
            "title": self.title,
            "run": self.run,
            "proposal": self.proposal,
            "outcome": self.outcome,
            "metrics": self.metrics,
            "entities": list(self.entities),
            "change": self.change.to_json(),
            "effect": self.effect.to_json(),
            "conditions": dict(self.conditions),
            "lesson": self.lesson,
            "evidence": [{"path": e.path, "sha256": e.sha256} for e in self.evidence],
            "supersedes": list(self.supersedes),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Facts:
        """Facts from data that the schema ``note`` has passed."""
        lists: dict[str, Any] = {name: tuple(data[name]) for name in ("entities", "supersedes")}
        plain = ("id", "title", "run", "proposal", "outcome", "conditions", "lesson", "metrics")
        return cls(
            **{name: data[name] for name in plain},
            **lists,
            change=Change.from_json(data["change"]),
            effect=Effect.from_json(data["effect"]),
            evidence=tuple(Evidence(e["path"], e["sha256"]) for e in data["evidence"]),
        )


def entry_facts(root: Path, entry: Entry, analysis: str | None) -> Facts:
    """What an entry of the leaderboard at ``root`` comes to, against its parent if that is there.

    Without the parent nothing is known of what was changed, or of what: those conditions are open.
    """
    parent = _parent(root, entry)
    change = _change(root, parent, entry)
    words = f"{entry.proposal.id} {entry.proposal.title}"
    registry = read_registry(root)
    found = {
        *registry.touched(change.settings, change.paths),
        *registry.named(words.replace("-", " ")),
        f"dataset:{entry.evidence['split']['dataset']}",
        *(f"fault:{name}" for name in (entry.evidence["preflight"] or {}).get("failed", ())),
    }
    folder = entry_folder(root, entry.id)
    files = [folder / "entry.yaml", *(folder / n for n in ("patch.diff",) if change.patch)]
    return Facts(
        id=entry.id,
        title=" ".join(entry.proposal.title.split()),
        run=entry.run,
        proposal=entry.proposal.id,
        outcome=entry.outcome,
        entities=tuple(sorted(found)),
        change=change,
        effect=Effect.of(entry),
        conditions=_conditions(entry, entry if entry.parent is None else parent),
        lesson=_lesson(analysis),
        metrics={
            "validation": entry.validation.mean if entry.validation else None,
            "test": entry.test.mean if entry.test else None,
        },
        evidence=tuple(Evidence(p.relative_to(root).as_posix(), file_digest(p)) for p in files),
    )


def _parent(root: Path, entry: Entry) -> Entry | None:
    if entry.parent is None or not entry_folder(root, entry.parent).is_dir():
        return None
    return read_entry(root, entry.parent)


def _change(root: Path, parent: Entry | None, entry: Entry) -> Change:
    patch = entry.evidence["patch"]
    digest = patch["sha256"] if patch else None
    if parent is None:
        return Change(patch=digest)
    before, after = (e.evidence["config"] for e in (parent, entry))
    paths = changed_paths(_patch(root, parent), _patch(root, entry))
    return Change(changed_settings(before, after), paths, digest)


def _patch(root: Path, entry: Entry) -> str:
    if entry.evidence["patch"] is None:
        return ""
    return (entry_folder(root, entry.id) / "patch.diff").read_text(errors="replace")


def _conditions(entry: Entry, base: Entry | None) -> dict[str, Any]:
    """The data, and the settings of what a change was made to, as far as that is known."""
    split = entry.evidence["split"]
    config = base.evidence["config"] if base else None
    return {
        "dataset": split["dataset"],
        "split": split["digest"],
        **dict(flat(config or {}, "base")),
    }


def _lesson(analysis: str | None) -> str | None:
    """The last paragraph of an analysis: the protocol asks the analyst to end with the lesson."""
    paragraphs = [part.strip() for part in (analysis or "").split("\n\n") if part.strip()]
    line = " ".join(paragraphs[-1].split()) if paragraphs else ""
    if len(line) > _LESSON:
        line = line[: _LESSON - 1].rsplit(" ", 1)[0] + "…"
    return line or None
