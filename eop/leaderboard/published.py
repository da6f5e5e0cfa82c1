"""Files of published numbers, which a person keeps beside the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from eop.core.errors import EopError, ExitCode, Where
from eop.core.schema import problems
from eop.core.yaml_files import read_yaml

if TYPE_CHECKING:
    from pathlib import Path


def read_published(root: Path, name: str, code: str) -> dict[str, Any] | None:
    """The document in ``config/<name>.yaml``, held to its schema; ``None`` without the file.

    Raises ``EopError`` (``code``) when it is no YAML or breaks the schema.
    """
    file = f"config/{name}.yaml"
    if not (root / file).is_file():
        return None
    try:
        data: dict[str, Any] = read_yaml(root / file)
        found = problems(data, read_yaml(root / "config" / "schemas" / f"{name}.schema.yaml"))
    except yaml.YAMLError as error:
        found = [str(error)]
    if found:
        raise EopError(
            code,
            f"not valid {name}:\n  " + "\n  ".join(found),
            where=Where(file),
            exit_code=ExitCode.CONFIG,
        )
    return data
