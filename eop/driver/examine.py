"""The facts about a machine that `eop doctor` judges: programs are asked, a jail is tried."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any

from eop.agents.gateway.prices import NO_PRICES
from eop.agents.jail import Isolation, Jail, Level, describe, detect
from eop.agents.products import REAL, scripted
from eop.agents.products.program import read_settings
from eop.agents.products.scripted import SCRIPTED
from eop.core.errors import EopError
from eop.core.yaml_files import read_yaml
from eop.driver.asking import PATIENCE_S, said
from eop.driver.doctor import Agent, Fault, Machine, Prison, Tool
from eop.driver.rehearsal import rehearse
from eop.evidence.dvc import Dvc
from eop.project.config import check_keys, read_raw, resolve
from eop.project.prices import read_prices, unpriced
from eop.protocol.compiler import load
from eop.runtime.signatures import Signers, require_keygen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from eop.agents.gateway.prices import Prices

_PACKAGES = ("torch", "snakemake", "dvc")
_GPU = "import torch as t; print(t.cuda.get_device_name(0) if t.cuda.is_available() else '')"
_VERSION = re.compile(r"\d+(?:\.\d+)+")


def examine(root: Path, overrides: Mapping[str, Any] | None = None) -> Machine:
    """Look at the machine for the project at ``root``. Nothing that is wrong with it raises.

    ``overrides`` lie on top of the workflow config, as those of a run would.
    """
    raw, named, playbook, setup = _project(root, overrides)
    remote, remote_fault = _remote(root)
    signers = _mapping(raw, "gates").get("signers")
    return Machine(
        tools=_tools(),
        setup=setup,
        protocol=str(raw.get("protocol") or "config/config.yaml"),
        agents=_agents(root, _mapping(raw, "agents"), named, playbook),
        prison=_prison(str(raw.get("isolation") or "off")),
        gpu=_gpu(),
        free_bytes=shutil.disk_usage(root).free,
        identity=(_git(root, "user.name"), _git(root, "user.email")),
        commits=bool(raw.get("commit")),
        remote=remote,
        remote_fault=remote_fault,
        signers=signers,
        signers_fault=_signers(root / signers) if signers else None,
    )


def _fault(error: EopError) -> Fault:
    return Fault(error.message, error.hint)


def _mapping(raw: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The settings under ``key``; a value that is none is a fault of the config, named as such."""
    value = raw.get(key)
    return value if isinstance(value, dict) else {}


def _project(
    root: Path, overrides: Mapping[str, Any] | None
) -> tuple[dict[str, Any], frozenset[str], Path | None, Fault | None]:
    """The config, the products that its protocol names, the playbook, and what is wrong with it."""
    raw: dict[str, Any] = {"isolation": Isolation.AUTO}
    try:
        raw = read_raw(root, overrides)
        check_keys(root, raw)
        plan = load(root / raw["protocol"], root=root, unpriced=unpriced(root, raw))
        playbook = root / resolve(root, raw, plan).playbook
    except EopError as error:
        path = raw.get("protocol")
        return raw, frozenset(), None, Fault(error.message, error.hint or f"eop check {path}")
    return raw, frozenset(name for phase in plan.phases for _, name in phase.cast), playbook, None


def _tools() -> tuple[Tool, ...]:
    python = platform.python_version() if sys.version_info >= (3, 11) else None
    found = [Tool("Python", python, "make setup PYTHON=python3.11")]
    for name in _PACKAGES:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = None
        found.append(Tool(name, version, "make setup"))
    told = said(["git", "--version"])
    number = _VERSION.search(told) if told else None
    found.append(Tool("git", number[0] if number else None, "apt-get install git"))
    return tuple(found)


def _agents(
    root: Path, settings: Mapping[str, Any], named: frozenset[str], playbook: Path | None
) -> tuple[Agent, ...]:
    """Those that the protocol names or the config sets up; where that is nobody, all."""
    try:
        prices = read_prices(root)
    except EopError:
        prices = NO_PRICES
    played = [_played(root, name, playbook) for name in sorted(named & SCRIPTED.keys()) if playbook]
    wanted = sorted({*named, *settings} & REAL.keys()) or ([] if played else sorted(REAL))
    real = [_real(name, settings.get(name), prices, needed=name in named) for name in wanted]
    return (*played, *real)


def _played(root: Path, name: str, playbook: Path) -> Agent:
    try:
        schema = read_yaml(root / "config/schemas/playbook.schema.yaml")
        facts = scripted.load(playbook, schema, SCRIPTED[name]).probe()
    except EopError as error:
        return Agent(name, needed=True, calls_model=False, fault=_fault(error))
    return Agent(name, needed=True, version=facts.version, sha256=facts.sha256, calls_model=False)


def _real(name: str, given: Any, prices: Prices, *, needed: bool) -> Agent:
    try:
        known = read_settings(name, given)
        facts = REAL[name](known).probe()
    except EopError as error:
        return Agent(name, needed, fault=_fault(error))
    return Agent(
        name,
        needed,
        facts.version,
        facts.sha256,
        url=known.url,
        key_env=known.key_env,
        key=bool(known.key_env and os.environ.get(known.key_env)),
        model=known.model,
        priced=prices.of(known.model) is not None,
    )


def _prison(isolation: str) -> Prison:
    jail = Jail(Level.NONE if isolation == Isolation.OFF else detect())
    tried = None if jail.kind is Level.NONE else rehearse(jail)
    return Prison(jail.kind, jail.containment(), isolation, describe(jail.kind), tried)


def _gpu() -> str | None:
    return (said([sys.executable, "-c", _GPU]) or "").strip() or None


def _git(root: Path, key: str) -> str:
    return (said(["git", "-C", str(root), "config", key]) or "").strip()


def _remote(root: Path) -> tuple[str | None, Fault | None]:
    try:
        return Dvc(root, timeout_s=PATIENCE_S).reached(), None
    except EopError as error:
        return None, _fault(error)


def _signers(path: Path) -> Fault | None:
    try:
        require_keygen()
        named = Signers(path.read_bytes()).named()
    except EopError as error:
        return _fault(error)
    except OSError as error:
        return Fault(f"{path.name} cannot be read: {error.strerror}", f"write {path}")
    return None if named else Fault(f"{path.name} names nobody", f"add a line to {path}")
