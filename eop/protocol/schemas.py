"""The JSON Schemas of artifacts, as a project has them in ``config/schemas``."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from yaml import YAMLError

from eop.core.errors import did_you_mean
from eop.core.yaml_files import parse_yaml

if TYPE_CHECKING:
    from pathlib import Path

    from eop.protocol.diagnostics import Report, Span


class Schemas:
    """The artifact schemas below a project's root; each fault is reported where it is named."""

    def __init__(self, root: Path, report: Report) -> None:
        self._folder = root / "config" / "schemas"
        self._report = report

    def load(self, name: str, span: Span) -> dict[str, Any] | None:
        """The schema ``name``; ``None`` when it cannot be used, which is reported at ``span``."""
        path = self._folder / f"{name}.schema.yaml"
        shown = f"config/schemas/{path.name}"
        try:
            schema = _parse_schema(path.read_bytes())
        except OSError:
            names = [file.name.split(".")[0] for file in self._folder.glob("*.schema.yaml")]
            hint = did_you_mean(name, names) or f"write {shown}"
            self._report.error("EOP208", f"{shown} does not exist", span, hint)
            return None
        if isinstance(schema, str):
            message = f"{shown} is not a JSON Schema: {schema}"
            self._report.error("EOP208", message, span, "mend the schema")
            return None
        return schema


@lru_cache(maxsize=64)
def _parse_schema(content: bytes) -> dict[str, Any] | str:
    """The JSON Schema in a YAML file, or what is wrong with it."""
    try:
        schema = parse_yaml(content.decode())
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return error.message
    except (YAMLError, UnicodeDecodeError) as error:
        return str(error).split("\n")[0]
    return schema if isinstance(schema, dict) else "it is not a mapping"
