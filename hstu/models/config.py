"""The experiment config: what one training run is, read from ``config/experiments/*.yaml``.

A change of the model that needs a setting adds a field here, with a default that leaves the model
as it was.
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, dataclass, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from hstu.data.errors import ExitCode, HstuError

if TYPE_CHECKING:
    from pathlib import Path

_Section = TypeVar("_Section")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Shape of the network. Two configs with equal values build networks of equal shape."""

    dim: int
    blocks: int
    heads: int
    dqk: int
    dv: int
    history_length: int
    out_len: int
    input_dropout: float
    linear_dropout: float
    temperature: float

    @property
    def width(self) -> int:
        """N, the padded width of the reference: attention is divided by it."""
        return self.history_length + self.out_len

    def __post_init__(self) -> None:
        for name in ("dim", "blocks", "heads", "dqk", "dv", "history_length", "out_len"):
            _require(getattr(self, name) >= 1, f"model.{name}", "must be at least 1")
        for name in ("input_dropout", "linear_dropout"):
            _require(0 <= getattr(self, name) < 1, f"model.{name}", "must be in [0, 1)")
        _require(self.temperature > 0, "model.temperature", "must be above 0")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How the network is trained: AdamW, ``negatives`` uniform draws for each supervised token."""

    epochs: int
    batch_users: int
    learning_rate: float
    betas: tuple[float, float]
    weight_decay: float
    negatives: int

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_users", "negatives"):
            _require(getattr(self, name) >= 1, f"train.{name}", "must be at least 1")
        _require(self.learning_rate > 0, "train.learning_rate", "must be above 0")
        _require(self.weight_decay >= 0, "train.weight_decay", "must not be negative")
        _require(all(0 <= b < 1 for b in self.betas), "train.betas", "must be in [0, 1)")


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
    """One experiment: the network and its training. The seed is not part of it."""

    model: ModelConfig
    train: TrainConfig

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; ``parse`` reads it back."""
        data = asdict(self)
        data["train"]["betas"] = list(self.train.betas)
        return data


def read_config(path: Path) -> ExperimentConfig:
    """Read an experiment config. Raises ``HstuError`` (exit code 5) that names file and key."""
    try:
        data = YAML(typ="safe", pure=True).load(path.read_text())
    except FileNotFoundError:
        raise _error("the experiment config does not exist", str(path)) from None
    except YAMLError as error:
        raise _error(f"not valid YAML: {error}", str(path)) from error
    return parse_config(data, source=str(path))


def parse_config(data: Any, *, source: str) -> ExperimentConfig:
    """Check plain data against the config's fields; ``source`` is the file named in errors."""
    try:
        sections = _known_keys(data, ExperimentConfig, "")
        return ExperimentConfig(
            model=_section(sections["model"], ModelConfig, "model."),
            train=_section(sections["train"], TrainConfig, "train."),
        )
    except _KeyProblemError as problem:
        raise _error(str(problem), f"{source}: {problem.key}", problem.hint) from None


class _KeyProblemError(ValueError):
    def __init__(self, key: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.hint = hint


def _require(condition: bool, key: str, message: str) -> None:
    if not condition:
        raise _KeyProblemError(key, message)


def _error(message: str, where: str, hint: str | None = None) -> HstuError:
    return HstuError(message, where=where, hint=hint, exit_code=ExitCode.CONFIG)


def _known_keys(data: Any, cls: type, prefix: str) -> dict[str, Any]:
    """``data`` as a mapping that has every required key of ``cls`` and no other."""
    place = prefix.rstrip(".") or "top level"
    if not isinstance(data, dict):
        raise _KeyProblemError(place, f"must be a mapping of keys, found {data!r}")
    known = {field.name: field for field in fields(cls)}
    for key in data:
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(known)}"
            raise _KeyProblemError(f"{prefix}{key}", "unknown key", hint)
    for name, field in known.items():
        if name not in data and field.default is MISSING:
            raise _KeyProblemError(f"{prefix}{name}", "the key is missing", f"add '{name}:'")
    return data


def _section(data: Any, cls: type[_Section], prefix: str) -> _Section:
    hints = get_type_hints(cls)
    values = _known_keys(data, cls, prefix)
    return cls(**{key: _typed(value, hints[key], prefix + key) for key, value in values.items()})


def _typed(value: Any, kind: Any, key: str) -> Any:
    """``value`` as ``kind``; whole numbers pass for floats, nothing else is converted."""
    if get_origin(kind) is tuple:
        parts = get_args(kind)
        if not isinstance(value, list | tuple) or len(value) != len(parts):
            raise _KeyProblemError(key, f"must be a list of {len(parts)} numbers, found {value!r}")
        return tuple(_typed(part, want, key) for part, want in zip(value, parts, strict=True))
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise _KeyProblemError(key, f"must be of type {kind.__name__}, found {value!r}")
    return value
