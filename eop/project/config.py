"""The workflow config: read, checked against its schema, resolved."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from eop.core.errors import EopError, ExitCode, Where
from eop.core.schema import problems
from eop.core.yaml_files import read_yaml
from eop.project.variables import resolve_variables

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from eop.protocol.expressions import Value
    from eop.protocol.model import Plan

CONFIG_FILE = "config/config.yaml"
SCHEMA_FILE = "config/schemas/config.schema.yaml"
SYNTHETIC = "synthetic"
# Where jobs of agents run under a profile of a cluster.
HEAD = "head"
# Keys about the person's machines: they decide no result and may change while a run goes on.
OF_MACHINES = ("commit", "allow_unsafe", "agent_jobs")


@dataclass(frozen=True)
class Config:
    """A resolved workflow config: every default filled in. Paths are as written, below the root.

    ``signers`` names the file of those whose signed answers open gates, ``None`` takes any answer.

    ``threads`` counts CPU threads of one training; ``tolerance`` is absolute, in metric units.
    ``agents`` are the settings of the real products, by product. ``memory`` is what an agent may
    be told of earlier results, tokens; 0 tells it nothing. ``agent_jobs`` says whether agents run
    on the ``head`` node or on the ``cluster``.
    """

    protocol: str
    run: str
    dataset: str
    data_dir: str
    experiment: str
    threads: int
    tolerance: float
    isolation: str
    commit: bool
    playbook: str
    allow_unsafe: bool
    agents: dict[str, Any] = field(default_factory=dict)
    signers: str | None = None
    variables: dict[str, Value] = field(default_factory=dict)
    memory: int = 1500
    agent_jobs: str = HEAD

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)


def require_project(root: Path) -> None:
    """Raise ``EopError`` (EOP601) for a folder with neither a workflow config nor rows nor notes.

    What reads rows or notes alone would else call them none in every other folder.
    """
    if not any((root / part).exists() for part in (CONFIG_FILE, "leaderboard", "knowledge")):
        raise _no_project(root)


def read_raw(root: Path, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The project's ``config/config.yaml`` with ``overrides`` on top, unchecked."""
    path = root / CONFIG_FILE
    try:
        raw = read_yaml(path)
    except FileNotFoundError:
        raise _no_project(root) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = Where(CONFIG_FILE, mark.line + 1, mark.column + 1) if mark else Where(CONFIG_FILE)
        problem = getattr(error, "problem", None) or error
        raise EopError(
            "EOP602", f"not valid YAML: {problem}", where=where, exit_code=ExitCode.CONFIG
        ) from error
    if raw is not None and not isinstance(raw, dict):
        raise EopError(
            "EOP604",
            "the workflow config must be a mapping of keys to values",
            where=Where(CONFIG_FILE),
            exit_code=ExitCode.CONFIG,
        )
    return {**(raw or {}), **(overrides or {})}


def resolve(root: Path, raw: Mapping[str, Any], plan: Plan) -> Config:
    """Check ``raw`` against the schema and the plan's variables, and fill in its defaults.

    Raises ``EopError``: EOP603 lists every unknown or ill-typed key at once, EOP605 every variable
    that does not fit the protocol.
    """
    check_keys(root, raw)
    raw = _typed(raw)
    dataset = raw["dataset"]
    own = f"config/experiments/{dataset}.yaml"
    fallback = own if (root / own).is_file() else "config/experiments/base.yaml"
    scripted = raw["agents"].get("scripted", {})
    return Config(
        protocol=raw["protocol"],
        run=raw.get("run") or f"{plan.name}-{dataset}",
        dataset=dataset,
        data_dir=str(raw.get("data_dir") or f"data/raw/{dataset}"),
        experiment=raw.get("experiment") or fallback,
        threads=raw["threads"],
        tolerance=float(raw["tolerance"]),
        # YAML reads a bare `off` as false.
        isolation=raw["isolation"] or "off",
        commit=raw["commit"],
        playbook=scripted.get("playbook") or f"config/playbooks/{plan.name}.yaml",
        allow_unsafe=bool(raw["allow_unsafe"]),
        agents={name: given for name, given in raw["agents"].items() if name != "scripted"},
        signers=raw.get("gates", {}).get("signers"),
        variables=resolve_variables(plan.variables, raw.get("variables") or {}, CONFIG_FILE),
        memory=raw.get("memory", Config.memory),
        agent_jobs=raw.get("agent_jobs", Config.agent_jobs),
    )


def _typed(raw: Mapping[str, Any]) -> dict[str, Any]:
    """``raw`` with ``commit=true`` as YAML has it: Snakemake hands that over as text."""
    words = {"true": True, "false": False}
    commit = raw.get("commit")
    if isinstance(commit, str) and commit.lower() in words:
        return {**raw, "commit": words[commit.lower()]}
    return dict(raw)


def check_keys(root: Path, raw: Mapping[str, Any]) -> None:
    """Refuse unknown or ill-typed keys, all at once, each with the nearest known name."""
    schema = read_yaml(root / SCHEMA_FILE)
    found = problems(_typed(raw), schema)
    if found:
        raise EopError(
            "EOP603",
            "the workflow config does not conform:\n  " + "\n  ".join(found),
            where=Where(CONFIG_FILE),
            hint=f"keys come from {CONFIG_FILE} and --config; {SCHEMA_FILE} explains each",
            exit_code=ExitCode.CONFIG,
        )


def _no_project(root: Path) -> EopError:
    return EopError(
        "EOP601",
        f"no {CONFIG_FILE} in {root}",
        hint="run the command at the top of a project, or name it with --project",
        exit_code=ExitCode.CONFIG,
    )
