"""Functions ``recipes`` and ``compose``: named settings to measure, without an agent or a patch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from eop.core.errors import EopError, ExitCode, Where, did_you_mean
from eop.core.files import write_json, write_text
from eop.functions.artifacts import EXPERIMENT_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from eop.functions.context import Context

SECTIONS = ("model", "train", "interventions")
_SUFFIX = ".yaml"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?")
_TITLE_CHARS = 100


def recipes(context: Context) -> Path:
    """List the recipes of a folder, or those named, as the items that open the branches.

    The list holds their contents: what is measured is what was there when the list was made.
    Raises ``EopError`` (EOP690) when one is missing or there is none, EOP691 when one is no
    recipe.
    """
    folder, names = context.phase.arguments["folder"], context.phase.arguments.get("names")
    paths = _paths(context.root / folder, names, folder)
    report = context.work / "recipes.json"
    write_json(report, [read_recipe(path, f"{folder}/{path.name}") for path in paths])
    return report


def compose(context: Context) -> Path:
    """The branch's experiment config: the run's base with the branch's recipe laid over it."""
    at = context.instance
    assert at.branch is not None, "the protocol's checks see to it"
    recipe = context.artifacts.proposal(at.iteration, at.branch)["recipe"]
    base = _mapping(context.project.base_experiment, context.project.config.experiment)
    report = context.work / EXPERIMENT_FILE
    write_text(report, yaml.safe_dump(overlay(base, recipe), sort_keys=False, allow_unicode=True))
    return report


def read_recipe(path: Path, shown: str) -> dict[str, Any]:
    """A recipe file as an item: id, title and hypothesis (its opening comment), its settings."""
    settings = _mapping(path, shown)
    if not _NAME.fullmatch(path.stem):
        raise _malformed(shown, "its name must be lower-case letters, digits, '-' and '_'")
    for key, value in settings.items():
        if key not in SECTIONS:
            hint = did_you_mean(str(key), SECTIONS)
            raise _malformed(shown, f"unknown section '{key}'", hint)
        if not isinstance(value, dict):
            raise _malformed(shown, f"the section '{key}' must be a mapping of settings")
    text = _opening_comment(path.read_text())
    return {
        "id": path.stem,
        "title": _title(text) or path.stem,
        "hypothesis": text,
        "recipe": settings,
    }


def overlay(base: Any, over: Any) -> Any:
    """``over`` laid over ``base``: mappings are merged key by key, anything else replaces."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return {**base, **{key: overlay(base.get(key), value) for key, value in over.items()}}


def _paths(folder: Path, names: list[str] | None, shown: str) -> list[Path]:
    found = {path.stem: path for path in sorted(folder.glob(f"*{_SUFFIX}"))}
    if not found:
        raise _missing(shown, "there is no recipe here", "write one as <name>.yaml")
    for name in names or ():
        if name not in found:
            hint = did_you_mean(name, found) or f"known: {', '.join(found)}"
            raise _missing(f"{shown}/{name}{_SUFFIX}", "there is no such recipe", hint)
    return [found[name] for name in names or found]


def _mapping(path: Path, shown: str) -> dict[str, Any]:
    """The mapping in a YAML 1.2 file, as the recommender reads it; an empty one is ``{}``."""
    try:
        data = YAML(typ="safe", pure=True).load(path.read_text())
    except (YAMLError, UnicodeDecodeError) as error:
        raise _malformed(shown, f"not valid YAML: {error}") from error
    if data is not None and not isinstance(data, dict):
        raise _malformed(shown, "it must be a mapping of sections to settings")
    return data or {}


def _opening_comment(text: str) -> str:
    """The words of the comment lines that a file begins with, as one paragraph."""
    words = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        words.append(line.lstrip("#").strip())
    return " ".join(filter(None, words))


def _title(text: str) -> str:
    """The first sentence, or as much of it as makes a title."""
    sentence = re.split(r"(?<=[.;])\s", text, maxsplit=1)[0].rstrip(".;")
    if len(sentence) <= _TITLE_CHARS:
        return sentence
    return sentence[: _TITLE_CHARS - 3].rsplit(" ", 1)[0] + "..."


def _missing(shown: str, message: str, hint: str) -> EopError:
    return EopError("EOP690", message, where=Where(shown), hint=hint, exit_code=ExitCode.CONFIG)


def _malformed(shown: str, message: str, hint: str | None = None) -> EopError:
    advice = hint or f"a recipe holds any of {', '.join(SECTIONS)}, each with settings"
    return EopError("EOP691", message, where=Where(shown), hint=advice, exit_code=ExitCode.CONFIG)
