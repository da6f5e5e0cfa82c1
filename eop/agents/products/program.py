"""What all command lines of real products share: settings, the pinned program, the endpoint."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

from eop.agents.contract import Endpoint, Mode, ProductFacts
from eop.core.errors import EopError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.agents.contract import Request

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?(?:[-.\w]*)?")
_PROBE_S = 60


@dataclass(frozen=True)
class Settings:
    """How a product is to be run, from the workflow config.

    ``binary`` is a path or a name to be found on PATH. ``version``, when given, is the only one
    that may run. ``url`` is the base URL of the model's API; its key is the value of the
    environment variable ``key_env``, read when a node starts and never stored; only the gateway
    gets it. ``package_dirs`` are further folders that the program needs to read.
    """

    binary: str
    model: str
    version: str | None = None
    effort: str | None = None
    url: str | None = None
    key_env: str | None = None
    package_dirs: tuple[Path, ...] = ()

    def upstream(self, product: str) -> Endpoint:
        """The model's API and its key, as the operator has set them; EOP871 when they are not."""
        token = os.environ.get(self.key_env, "") if self.key_env else ""
        if self.url and token:
            return Endpoint(self.url, token)
        missing = (
            f"the environment variable {self.key_env}" if self.url else f"agents.{product}.url"
        )
        raise EopError(
            "EOP871",
            f"product '{product}' has no model: {missing} is not set",
            hint="name the model's API by url and key_env in config/config.yaml",
            exit_code=ExitCode.ENVIRONMENT,
        )

    def program(self, product: str) -> Path:
        """The program's file, links resolved; ``EopError`` when it is not there."""
        return self.started(product).resolve()

    def started(self, product: str) -> Path:
        """The program by the name that it must be started by: a Python knows its environment so."""
        found = shutil.which(self.binary)
        if found is None:
            raise EopError(
                "EOP872",
                f"product '{product}': there is no program {self.binary}",
                hint=f"install it, or correct agents.{product}.binary in config/config.yaml",
                exit_code=ExitCode.ENVIRONMENT,
            )
        return Path(found).parent.resolve() / Path(found).name

    def facts(self, product: str, *version_argv: str) -> ProductFacts:
        """Version and digest of the program; another version than the pinned one is refused."""
        path = self.program(product)
        argv = (str(self.started(product)), *(version_argv or ("--version",)))
        version = _version(argv, path.stat().st_mtime_ns)
        if self.version is not None and version != self.version:
            raise EopError(
                "EOP873",
                f"product '{product}' is version {version or 'unknown'}, pinned is {self.version}",
                hint=f"install the pinned version, or change agents.{product}.version",
                exit_code=ExitCode.ENVIRONMENT,
            )
        return ProductFacts(product, version, _digest(path, path.stat().st_mtime_ns))


@dataclass(frozen=True)
class RealProduct:
    """What products with a command line of their own have in common; a subclass adds the rest.

    None is trusted, each calls a model and answers by its last message.
    """

    settings: Settings
    name: ClassVar[str]
    vendor: ClassVar[str]
    trusted: ClassVar[bool] = False
    answers: ClassVar[bool] = True
    capabilities: ClassVar[frozenset[str]] = frozenset({"read", "edit", "shell"})
    sessions: ClassVar[tuple[str, ...]] = ()

    def probe(self) -> ProductFacts:
        """Version and digest of the program."""
        return self.settings.facts(self.name)

    def upstream(self) -> Endpoint:
        """The model's API as the operator has set it."""
        return self.settings.upstream(self.name)


def read_settings(product: str, given: Mapping[str, Any] | None) -> Settings:
    """The settings of a product as the workflow config has them, which was checked already."""
    if given is None:
        raise EopError(
            "EOP875",
            f"the protocol names product '{product}', but its settings are not given",
            hint=f"add agents.{product} with binary, model, url and key_env to config/config.yaml",
            exit_code=ExitCode.CONFIG,
        )
    folders = tuple(Path(folder).absolute() for folder in given.get("package_dirs", ()))
    return Settings(**{**given, "package_dirs": folders})


def endpoint_of(request: Request) -> Endpoint:
    """The gateway that stands before the model; a product is never started without one."""
    if request.endpoint is None:
        raise ValueError("the request names no endpoint")
    return request.endpoint


def together(request: Request, product: str, needed: str, because: str) -> None:
    """Refuse a request without the capability ``needed``, which the product cannot be denied.

    A node that only reads may lack ``edit``: its workspace is read-only, whatever it tries.
    """
    if needed in request.capabilities or (needed == "edit" and request.mode is Mode.READ_ONLY):
        return
    raise EopError(
        "EOP874",
        f"product '{product}' cannot be denied '{needed}': {because}",
        hint=f"allow '{needed}' in the phase's tools, or give the node another product",
    )


@functools.cache
def _version(argv: tuple[str, ...], changed_ns: int) -> str:
    """The version that the program tells; empty when it tells none."""
    del changed_ns
    # A HOME that is there: opencode makes folders in it before it tells its version.
    with TemporaryDirectory() as home:
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": home}
        try:
            done = subprocess.run(
                argv, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                text=True, errors="replace", timeout=_PROBE_S, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return ""
    match = _VERSION.search(done.stdout)
    return match[0] if match else ""


@functools.cache
def _digest(path: Path, changed_ns: int) -> str:
    """SHA-256 of a program of several hundred megabytes: once for each state of the file."""
    del changed_ns
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
