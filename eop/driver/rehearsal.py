"""A rehearsal: a program of ours is invoked as an agent is, and tries to get out of its jail."""

from __future__ import annotations

import secrets
import socket
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eop.agents import patch, workspace
from eop.agents.contract import (
    Command,
    Endpoint,
    Limits,
    Mode,
    ProductFacts,
    Request,
    Status,
    Turn,
)
from eop.agents.events import Event, Kind
from eop.agents.invoke import invoke
from eop.agents.stream import json_lines

if TYPE_CHECKING:
    from eop.agents.contract import Recording
    from eop.agents.jail import Jail

_NAME = "rehearsal"
_LIMITS = Limits(wall_s=60, idle_s=60, grace_s=1)
# Nothing listens on the discard port: the gateway answers a call of the model with 502.
_NOWHERE = "http://127.0.0.1:9"
_PROGRAM = """
import json, os, socket, subprocess, sys, urllib.error, urllib.request
hidden, port, mark = sys.argv[1:]
def tried(do):
    try:
        do()
    except OSError:
        return False
    return True
def gateway():
    headers = {"x-api-key": os.environ["TOKEN"]}
    asked = urllib.request.Request(os.environ["BASE"] + "/v1/messages", b"{}", headers)
    try:
        urllib.request.urlopen(asked, timeout=20).close()
    except urllib.error.HTTPError as error:
        return error.code == 502
    except OSError:
        return False
quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
stay = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)", mark]
subprocess.Popen(stay, start_new_session=True, **quiet)
print(json.dumps({
    "type": "final", "status": "success",
    "read_hidden": tried(lambda: open(hidden).read()),
    "went_out": tried(lambda: socket.create_connection(("127.0.0.1", int(port)), 5).close()),
    "reached_gateway": gateway(),
}), flush=True)
"""


@dataclass(frozen=True)
class Rehearsed:
    """What a program could do in the jail. ``fault`` is set when it could not be tried."""

    read_hidden: bool = False
    went_out: bool = False
    survived: bool = False
    reached_gateway: bool = False
    fault: str | None = None


@dataclass(frozen=True)
class _Trial:
    """The product: our program, told of a file that is not its own and of a port that is not."""

    hidden: Path
    port: int
    mark: str
    name: str = _NAME
    vendor: str = _NAME
    trusted: bool = False
    answers: bool = False
    capabilities: frozenset[str] = frozenset({"read"})
    sessions: tuple[str, ...] = ()

    def probe(self) -> ProductFacts:
        return ProductFacts(_NAME, "1", "")

    def upstream(self) -> Endpoint:
        return Endpoint(_NOWHERE, "")

    def command(self, request: Request) -> Command:
        assert request.endpoint is not None
        words = (str(self.hidden), str(self.port), self.mark)
        argv = (sys.executable, "-I", "-S", "-c", _PROGRAM, *words)
        env = {"BASE": request.endpoint.url, "TOKEN": request.endpoint.token}
        return Command(argv, env, secrets=(request.endpoint.token,))

    def parse(self, recording: Recording) -> list[Event]:
        lines = [line for line in json_lines(recording.stdout) if line]
        return [Event(Kind.FINAL, line) for line in lines if line.get("type") == Kind.FINAL]


def rehearse(jail: Jail) -> Rehearsed:
    """Let a program try to read what is hidden, to connect elsewhere, and to outlive its end."""
    with (
        tempfile.TemporaryDirectory(prefix="eop-") as name,
        socket.create_server(("127.0.0.1", 0)) as elsewhere,
    ):
        folder = Path(name).resolve()
        hidden = folder / "hidden.txt"
        hidden.write_text("not for agents\n")
        mark = secrets.token_hex(16)
        trial = _Trial(hidden, elsewhere.getsockname()[1], mark)
        result = invoke(trial, _request(folder), jail)
        if result.status is not Status.OK:
            return Rehearsed(fault=f"{result.status}: {result.reason.detail}")
        (said,) = json_lines(result.trace["stdout"])
        assert said is not None
        return Rehearsed(
            said["read_hidden"], said["went_out"], _alive(mark), said["reached_gateway"]
        )


def _request(folder: Path) -> Request:
    (folder / "base").mkdir()
    store = patch.init_store(folder / "store.git")
    tree = patch.commit_tree(store, folder / "base")
    space, _ = workspace.create(folder / "attempt", store, tree, {}, "Try to get out.\n")
    return Request(
        turn=Turn(_NAME, _NAME, _NAME, _NAME, 1),
        product=_NAME,
        task="Try to get out.\n",
        directory=space.directory,
        store=store,
        base=tree,
        mode=Mode.READ_ONLY,
        editable=(),
        capabilities=("read",),
        limits=_LIMITS,
    )


def _alive(mark: str) -> bool:
    """Whether any process of this machine has ``mark`` in its command line."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if mark.encode() in path.read_bytes():
                return True
    return False
