"""The product ``scripted``: a program that plays a playbook, started like any other product."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import yaml

from eop.agents.contract import Command, ProductFacts, Request
from eop.agents.events import Event, Kind
from eop.agents.stream import json_lines
from eop.agents.workspace import Workspace
from eop.core.canonical import digest, file_digest
from eop.core.errors import EopError, ExitCode, Where
from eop.core.schema import problems
from eop.core.yaml_files import read_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.agents.contract import Recording

NAME = "scripted"
VERSION = "1"
PROGRAM = Path(__file__).with_name("scripted_program.py")
_KINDS = frozenset({Kind.STARTED, Kind.TOOL_CALL, Kind.MESSAGE, Kind.USAGE, Kind.FINAL})


@dataclass(frozen=True)
class Scripted:
    """Plays ``playbook``; make it with ``load``, which checks the file and finds its edit files."""

    playbook: Path
    edit_files: tuple[Path, ...]
    name: ClassVar[str] = NAME
    vendor: ClassVar[str] = NAME
    trusted: ClassVar[bool] = True
    answers: ClassVar[bool] = False
    capabilities: ClassVar[frozenset[str]] = frozenset({"read", "edit", "shell"})
    sessions: ClassVar[tuple[str, ...]] = ()

    def probe(self) -> ProductFacts:
        """The digest covers the program, the playbook and the edit files that it names."""
        files = [PROGRAM, self.playbook, *self.edit_files]
        return ProductFacts(self.name, VERSION, digest([file_digest(path) for path in files]))

    def upstream(self) -> None:
        """It calls no model."""

    def command(self, request: Request) -> Command:
        """Isolated Python, so that nothing in the workspace is imported."""
        argv = (
            sys.executable, "-I", str(PROGRAM), "--playbook", str(self.playbook),
            "--request", str(Workspace(request.directory).request),
        )  # fmt: skip
        return Command(argv, read=(PROGRAM, self.playbook, *self.edit_files))

    def parse(self, recording: Recording) -> list[Event]:
        """The program's lines are normalised events already."""
        events = []
        for line in json_lines(recording.stdout):
            kind = (line or {}).get("type")
            known = line is not None and kind in _KINDS
            data = {key: value for key, value in (line or {}).items() if key != "type"}
            events.append(Event(str(kind), data) if known else Event(Kind.OTHER, {"raw": line}))
        return events


class ScriptedPeer(Scripted):
    """The same program, counted as of another vendor: who judges what the first one made."""

    name = "scripted-peer"
    vendor = "scripted-peer"


SCRIPTED: Mapping[str, type[Scripted]] = MappingProxyType(
    {kind.name: kind for kind in (Scripted, ScriptedPeer)}
)


def load(playbook: Path, schema: Mapping[str, Any], kind: type[Scripted] = Scripted) -> Scripted:
    """Check a playbook against ``config/schemas/playbook.schema.yaml`` and make the product.

    Raises ``EopError`` (exit CONFIG) with one line per fault: wrong keys, missing edit files.
    """
    playbook = playbook.resolve()
    data = _read(playbook)
    faults = problems(data, dict(schema))
    files = [] if faults else _edit_files(playbook, data)
    faults += [f"edits: {path} does not exist" for path in files if not path.is_file()]
    if faults:
        raise EopError(
            "EOP870",
            "the playbook is wrong: " + "; ".join(faults),
            where=Where(str(playbook)),
            hint="its keys are described in config/schemas/playbook.schema.yaml",
            exit_code=ExitCode.CONFIG,
        )
    return kind(playbook, tuple(files))


def _edit_files(playbook: Path, data: dict[str, Any]) -> list[Path]:
    actions = [action for step in data["steps"] for action in step["do"]]
    return [playbook.parent / action["edits"] for action in actions if "edits" in action]


def _read(playbook: Path) -> Any:
    try:
        return read_yaml(playbook)
    except (OSError, yaml.YAMLError) as error:
        raise EopError(
            "EOP870",
            f"the playbook cannot be read: {getattr(error, 'strerror', None) or error}",
            where=Where(str(playbook)),
            hint=f"the product '{NAME}' plays it (docs/protocol.md shows one); `agents: {{{NAME}: "
            "{playbook: ...}}` in the config names another",
            exit_code=ExitCode.CONFIG,
        ) from error
