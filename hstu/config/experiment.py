"""The experiment config: what one training run is, read from ``config/experiments/*.yaml``.

A recipe (``config/recipes/*.yaml``) holds only what differs from such a config, whichever that is.

A change of the model that needs a setting adds a field to its section, with a default that leaves
the model as it was.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from hstu.config.interventions import Interventions
from hstu.config.model import ModelConfig
from hstu.config.sections import KeyProblemError, section
from hstu.config.train import TrainConfig
from hstu.data.errors import ExitCode, HstuError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
    """One experiment: the network and its training. The seed is not part of it."""

    model: ModelConfig
    train: TrainConfig
    interventions: Interventions = field(default_factory=Interventions)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; ``parse_config`` reads it back. What is off is left out."""
        data: dict[str, Any] = _without_nothing(asdict(self))
        if not data["interventions"]:
            del data["interventions"]
        return data


def read_config(path: Path, recipes: Sequence[Path] = ()) -> ExperimentConfig:
    """Read an experiment config, changed by each of ``recipes`` in turn.

    A recipe is a file with only the keys that differ. Raises ``HstuError`` (exit code 5) that names
    file and key: the recipe's, when it is a recipe that brings the fault in.

    Example: ``read_config(Path("base.yaml"), [Path("config/recipes/synapse.yaml")])``
    """
    data = _read(path)
    config = parse_config(data, source=str(path))
    for recipe in recipes:
        changes = _read(recipe)
        if not isinstance(changes, dict) or not changes:
            raise _error(f"must be a mapping of keys, found {changes!r}", str(recipe))
        data = _merged(data, changes)
        config = parse_config(data, source=str(recipe))
    return config


def _read(path: Path) -> Any:
    try:
        return YAML(typ="safe", pure=True).load(path.read_text())
    except FileNotFoundError:
        raise _error("the experiment config does not exist", str(path)) from None
    except OSError as error:
        raise _error(f"cannot be read: {error.strerror}", str(path)) from error
    except (YAMLError, UnicodeDecodeError) as error:
        raise _error(f"not valid YAML: {error}", str(path)) from error


def _merged(data: Any, changes: Any) -> Any:
    """``data`` with ``changes`` over it: mappings key by key, all else replaced."""
    if not (isinstance(data, dict) and isinstance(changes, dict)):
        return changes
    return data | {key: _merged(data.get(key), value) for key, value in changes.items()}


def parse_config(data: Any, *, source: str) -> ExperimentConfig:
    """Check plain data against the config's fields; ``source`` is the file named in errors."""
    try:
        return section(data, ExperimentConfig)
    except KeyProblemError as problem:
        raise _error(str(problem), f"{source}: {problem.key}", problem.hint) from None


def _error(message: str, where: str, hint: str | None = None) -> HstuError:
    return HstuError(message, where=where, hint=hint, exit_code=ExitCode.CONFIG)


def _without_nothing(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _without_nothing(value) for key, value in data.items() if value is not None}
    if isinstance(data, tuple):
        return [_without_nothing(value) for value in data]
    return data
