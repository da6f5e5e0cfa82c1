"""Functions ``recipes`` and ``compose``: named settings to measure, without an agent or a patch."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from eop.agents.target import load, protected_changes
from eop.core.canonical import digest
from eop.core.errors import EopError, ExitCode, Where, did_you_mean
from eop.core.files import write_if_changed, write_json, write_text
from eop.functions.artifacts import EXPERIMENT_FILE
from eop.functions.measure import Start
from eop.functions.trees import changed_paths

if TYPE_CHECKING:
    from pathlib import Path

    from eop.functions.context import Context
    from eop.project.project import Project

SECTIONS = ("model", "train", "interventions")
BASE = "base"
_SUFFIX = ".yaml"
RECIPE_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?")
_TITLE_CHARS = 100


def recipes(context: Context) -> Path:
    """List the recipes of a folder, or those named, as the items that open the branches.

    The list holds their contents: what is measured is what was there when the list was made. A
    recipe may come with a patch against the pinned snapshot, ``<name>.patch`` beside it.

    Raises ``EopError`` (EOP690) when one is missing or there is none, EOP691 when one is no
    recipe, EOP692 when one would begin with what itself begins with another, EOP693 when a patch
    touches what is protected, EOP853 when it does not fit the snapshot.
    """
    arguments = context.phase.arguments
    folder = arguments["folder"]
    found = _found(context.root / folder, folder)
    names = _known(arguments.get("names", list(found)), found, folder)
    begin: dict[str, str] = arguments.get("from", {})
    _known([*begin, *(name for name in begin.values() if name != BASE)], found, folder)
    wanted = {*names, *(begin[name] for name in names if name in begin)} - {BASE}
    read = {name: read_recipe(found[name], f"{folder}/{name}{_SUFFIX}") for name in wanted}
    items = [
        read[name] | _start(name, begin, read) | _patch(context.project, found[name])
        for name in names
    ]
    report = context.work / "recipes.json"
    write_json(report, items)
    return report


def compose(context: Context) -> Path:
    """The branch's experiment config: the run's base with the branch's recipe laid over it.

    What a fine-tuning begins with is laid over the base first: the weights must fit.
    """
    assert context.branch is not None, "the protocol's checks see to it"
    item = context.artifacts.proposal(context.instance.iteration, context.branch)
    composed = overlay(
        start_config(context.project, item) or _base(context.project), item["recipe"]
    )
    report = context.work / EXPERIMENT_FILE
    write_text(report, _dump(composed))
    return report


def start(context: Context) -> Start | None:
    """What the branch's training begins with; ``None`` when that is nothing.

    It is trained on the pinned snapshot, once in a run for all branches that begin with it.
    """
    branch, project = context.branch, context.project
    if branch is None or not project.plan.runs("compose"):
        return None
    item = context.artifacts.proposal(context.instance.iteration, branch)
    config = start_config(project, item)
    if config is None:
        return None
    folder = project.run_dir / "starts" / digest(config)[:16]
    experiment = folder / EXPERIMENT_FILE
    write_if_changed(experiment, _dump(config))
    recommender = context.recommender()
    return Start(replace(recommender, tree=recommender.pristine, scratch=folder), experiment)


def start_config(project: Project, item: dict[str, Any]) -> dict[str, Any] | None:
    """The experiment config of what an item's training begins with, if it begins with anything."""
    begin = item.get("start")
    if begin is None:
        return None
    config: dict[str, Any] = overlay(_base(project), begin["recipe"])
    return config


def read_recipe(path: Path, shown: str) -> dict[str, Any]:
    """A recipe file as an item: id, title and hypothesis (its opening comment), its settings."""
    settings = _mapping(path, shown)
    if not RECIPE_NAME.fullmatch(path.stem):
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


def _found(folder: Path, shown: str) -> dict[str, Path]:
    found = {path.stem: path for path in sorted(folder.glob(f"*{_SUFFIX}"))}
    if not found:
        raise _missing(shown, "there is no recipe here", "write one as <name>.yaml")
    return found


def _known(names: list[str], found: dict[str, Path], shown: str) -> list[str]:
    for name in names:
        if name not in found:
            hint = did_you_mean(name, found) or f"known: {', '.join(found)}"
            raise _missing(f"{shown}/{name}{_SUFFIX}", "there is no such recipe", hint)
    return names


def _patch(project: Project, recipe: Path) -> dict[str, Any]:
    """The key ``patch`` of an item, for a recipe that changes code, once it is found to fit."""
    path = recipe.with_suffix(".patch")
    if not path.is_file():
        return {}
    text = path.read_text()
    changed = changed_paths(project, text.encode())
    target = load(project.root / "config" / "targets" / f"{project.plan.target}.yaml")
    if protected := protected_changes(target, changed):
        raise EopError(
            "EOP693",
            f"the patch touches what is protected: {', '.join(protected)}",
            where=Where(project.relative(path)),
            hint=f"a patch may change {', '.join(target.editable)}",
            exit_code=ExitCode.DATA,
        )
    return {"patch": text} if text else {}


def _start(name: str, begin: dict[str, str], read: dict[str, Any]) -> dict[str, Any]:
    """The key ``start`` of an item, for a recipe that begins with trained weights."""
    if name not in begin:
        return {}
    other = begin[name]
    if other in begin:
        raise EopError(
            "EOP692",
            f"'{name}' begins with '{other}', which itself begins with '{begin[other]}'",
            where=Where("from"),
            hint="begin with what is trained from scratch",
            exit_code=ExitCode.CONFIG,
        )
    return {"start": {"of": other, "recipe": read[other]["recipe"] if other != BASE else {}}}


def _base(project: Project) -> dict[str, Any]:
    return _mapping(project.base_experiment, project.config.experiment)


def _dump(config: dict[str, Any]) -> str:
    return yaml.safe_dump(config, sort_keys=False, allow_unicode=True)


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
