"""The champion of a run: which row it is, and its way out as patches and as a recipe."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import write_bytes
from eop.evidence import FileRef
from eop.functions.recipes import RECIPE_NAME, SECTIONS
from eop.functions.trees import steps
from eop.leaderboard import entry_folder, read_entries
from eop.leaderboard.standing import stands_on

if TYPE_CHECKING:
    from pathlib import Path

    from eop.leaderboard import Entry


@dataclass(frozen=True)
class Standing:
    """A run's champion and the rows that it stands on, the base first and itself last."""

    champion: Entry
    chain: list[Entry]

    @property
    def base(self) -> Entry:
        """The run's base."""
        return self.chain[0]


def champion_of(root: Path, run: str) -> Standing:
    """The champion of the published turns: the last row that was promoted, else the base.

    Raises ``EopError`` (EOP694) when the run has published no base, or a row that the champion
    stands on is missing or was not promoted: nothing may be built on such a chain.
    """
    entries = {entry.id: entry for entry in read_entries(root) if entry.run == run}
    base = next((entry for entry in entries.values() if entry.kind == "base"), None)
    if base is None:
        known = sorted({entry.run for entry in read_entries(root)})
        raise _refused(f"run '{run}' has published no base", f"runs: {', '.join(known) or 'none'}")
    promoted = [entry for entry in entries.values() if entry.decision and entry.decision.promoted]
    champion = max(promoted, key=lambda entry: entry.iteration or 0, default=base)
    chain = []
    for name in [*stands_on(champion, entries), champion.id]:
        entry = entries.get(name)
        if entry is None:
            raise _refused(f"'{champion.id}' stands on '{name}', which is not there", _RESTORE)
        if entry is not base and not (entry.decision and entry.decision.promoted):
            raise _refused(f"'{champion.id}' stands on '{name}', which was not promoted", _RESTORE)
        chain.append(entry)
    return Standing(champion, chain)


def export(root: Path, standing: Standing, folder: Path, name: str) -> list[Path]:
    """Write the champion to ``folder`` as the recipe ``name``, and return the files.

    ``<name>.yaml`` holds the settings that differ from the base's, ``<name>.patch`` the change of
    code against the pinned snapshot: together what `recipes` lays over any data set's base.
    ``<name>.series/`` has the same change as a patch for each promotion, to be read and applied
    one after the other. Raises ``EopError`` (EOP694) when the champion is the base, or differs
    from it in a way that no recipe can say; EOP695 when its files have changed.
    """
    champion = standing.champion
    if not RECIPE_NAME.fullmatch(name):
        raise _refused(f"'{name}' is no name of a recipe", "lower-case letters, digits, '-', '_'")
    if champion is standing.base:
        raise _refused("the champion is the base: nothing was promoted", "run another turn")
    settings = _settings(standing)
    patches = [_patch(root, entry) for entry in standing.chain]
    files = {folder / f"{name}.yaml": _recipe_text(champion, settings).encode()}
    if patches[-1]:
        files[folder / f"{name}.patch"] = patches[-1]
    series = steps(_snapshot(root, champion), patches[1:])
    for number, (entry, patch) in enumerate(zip(standing.chain[1:], series, strict=True), start=1):
        if patch:
            title = _header(entry).encode()
            path = folder / f"{name}.series" / f"{number:04d}-{entry.proposal.id}.patch"
            files[path] = title + patch
    for path, content in files.items():
        write_bytes(path, content)
    return list(files)


def _settings(standing: Standing) -> dict[str, Any]:
    champion, base = standing.champion.evidence["config"], standing.base.evidence["config"]
    lost: list[str] = []
    found: dict[str, Any] = _over(base or {}, champion or {}, "", lost)
    lost += [f"section {name}" for name in found if name not in SECTIONS]
    if lost:
        raise _refused(
            f"no recipe can say how '{standing.champion.id}' differs from the base: "
            f"{', '.join(lost)}",
            "a recipe adds to the base's settings or replaces them; it takes none away",
        )
    return found


def _over(base: dict[str, Any], other: dict[str, Any], place: str, lost: list[str]) -> Any:
    """What must be laid over ``base`` to make ``other``; keys that it lacks are put in ``lost``."""
    lost += [f"{place}{key} is gone" for key in base if key not in other]
    found: dict[str, Any] = {}
    for key, value in other.items():
        if key in base and isinstance(value, dict) and isinstance(base[key], dict):
            inner = _over(base[key], value, f"{place}{key}.", lost)
            found |= {key: inner} if inner else {}
        elif key not in base or base[key] != value:
            found[key] = value
    return found


def _recipe_text(champion: Entry, settings: dict[str, Any]) -> str:
    snapshot = champion.evidence["snapshot"]
    title = " ".join(champion.proposal.title.split()).rstrip(".")
    facts = f"Champion {champion.id} of {champion.evidence['split']['dataset']}"
    if champion.decision and champion.decision.interval and champion.decision.delta is not None:
        low, high = champion.decision.interval
        facts += (
            f", {champion.decision.delta:+.4f} [{low:+.4f}, {high:+.4f}] NDCG@10 over "
            f"{champion.parent} on validation"
        )
    head = f"# {title}. {facts}. Snapshot {snapshot['sha256'][:16]}.\n"
    return head + (yaml.safe_dump(settings, sort_keys=False) if settings else "{}\n")


def _header(entry: Entry) -> str:
    """What git and patch skip over: whose step it is."""
    return f"{' '.join(entry.proposal.title.split())}\n\nEntry: {entry.id}\n\n"


def _patch(root: Path, entry: Entry) -> bytes:
    recorded = entry.evidence["patch"]
    if recorded is None:
        return b""
    path = entry_folder(root, entry.id) / "patch.diff"
    content = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(content).hexdigest() != recorded["sha256"]:
        raise _changed(path)
    return content


def _snapshot(root: Path, entry: Entry) -> Path:
    recorded = entry.evidence["snapshot"]
    path: Path = root / recorded["path"]
    if not path.is_file() or FileRef.of(path, root).sha256 != recorded["sha256"]:
        raise _changed(path)
    return path


def _changed(path: Path) -> EopError:
    return EopError(
        "EOP695",
        "it is missing, or not what the entry recorded",
        where=Where(str(path)),
        hint=f"bring it with: dvc pull {path.name}.dvc, or git checkout",
        exit_code=ExitCode.DATA,
    )


_RESTORE = "bring the entry back with git; nothing is built on what was not promoted"


def _refused(message: str, hint: str) -> EopError:
    return EopError("EOP694", message, hint=hint, exit_code=ExitCode.STATE)
