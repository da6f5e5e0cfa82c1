"""A run's variables: the protocol's defaults, with what the workflow config sets instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yaml import YAMLError

from eop.core.errors import EopError, ExitCode, Where, did_you_mean
from eop.core.yaml_files import parse_yaml
from eop.protocol.expressions import is_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.protocol.expressions import Value


def resolve_variables(
    declared: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any], config_file: str
) -> dict[str, Value]:
    """A value for every declared variable.

    Raises ``EopError`` (EOP605) that lists every unknown name and every value of a wrong type.
    """
    faults = []
    values: dict[str, Value] = {name: kind["default"] for name, kind in declared.items()}
    for name, raw in given.items():
        if name not in declared:
            hint = did_you_mean(str(name), declared)
            faults.append(f"unknown variable '{name}'" + (f" ({hint})" if hint else ""))
            continue
        kind = declared[name]["type"]
        value = raw if kind == "text" else _read(raw)
        if is_of(value, kind):
            values[name] = value
        else:
            faults.append(f"variable '{name}' is of type {kind}, not {raw!r}")
    if faults:
        raise EopError(
            "EOP605",
            "the variables do not fit the protocol:\n  " + "\n  ".join(faults),
            where=Where(config_file),
            hint=f"it declares: {', '.join(declared) or 'none'}",
            exit_code=ExitCode.CONFIG,
        )
    return values


def _read(raw: Any) -> Any:
    """``raw`` as YAML has it: Snakemake hands over what is inside a mapping as text."""
    if not isinstance(raw, str):
        return raw
    try:
        return parse_yaml(raw)
    except YAMLError:
        return raw
