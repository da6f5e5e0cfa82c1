"""What a project needs of its machine, judged from facts about it: pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from eop.agents.jail import Containment, Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eop.driver.rehearsal import Rehearsed

_GIB = 1 << 30
_LEAST_FREE, _LITTLE_FREE = _GIB, 10 * _GIB


class State(StrEnum):
    """How a check ended: only what is ``missing`` keeps a run from going well."""

    OK = "ok"
    NOTE = "note"
    MISSING = "missing"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what was found, and the command that mends it if one does."""

    group: str
    name: str
    state: State
    found: str
    mend: str | None = None


@dataclass(frozen=True)
class Tool:
    """A program or a package; ``version`` is ``None`` when it is not there."""

    name: str
    version: str | None
    mend: str


@dataclass(frozen=True)
class Fault:
    """Why something cannot be used, and what to do about it."""

    what: str
    mend: str | None = None


@dataclass(frozen=True)
class Agent:
    """A product. ``needed``: the protocol names it. ``fault`` is why it cannot be started.

    ``key_env`` names the variable of its key, ``key`` says whether it is set; its value is not
    here. ``url`` and ``model`` are those of its settings; ``priced``: the model has a price.
    """

    name: str
    needed: bool
    version: str = ""
    sha256: str = ""
    fault: Fault | None = None
    calls_model: bool = True
    url: str | None = None
    key_env: str | None = None
    key: bool = False
    model: str | None = None
    priced: bool = False


@dataclass(frozen=True)
class Prison:
    """The jail that agents would get, and what a rehearsal in it came to, if there was one."""

    level: Level
    containment: Containment
    isolation: str
    described: str
    rehearsed: Rehearsed | None = None


@dataclass(frozen=True)
class Machine:
    """All facts. ``gpu`` is ``None`` without one; ``identity`` is git's name and address.

    ``remote`` is the DVC remote that answered, ``None`` without one; ``signers`` the file of those
    who may answer, with its ``signers_fault``.
    """

    tools: tuple[Tool, ...]
    setup: Fault | None
    protocol: str
    agents: tuple[Agent, ...]
    prison: Prison
    gpu: str | None
    free_bytes: int
    identity: tuple[str, str]
    commits: bool
    remote: str | None
    remote_fault: Fault | None
    signers: str | None
    signers_fault: Fault | None


def checks(machine: Machine) -> list[Check]:
    """Every check, in the order in which people set a machine up."""
    return [
        *_tools(machine),
        _setup(machine),
        *_agents(machine),
        *_jail(machine),
        *_hardware(machine),
        *_records(machine),
    ]


def _tools(machine: Machine) -> Iterator[Check]:
    for tool in machine.tools:
        state = State.OK if tool.version else State.MISSING
        mend = None if tool.version else tool.mend
        yield Check("programs", tool.name, state, tool.version or "not installed", mend)


def _setup(machine: Machine) -> Check:
    if machine.setup:
        return Check("project", machine.protocol, State.MISSING, machine.setup.what,
                     machine.setup.mend)  # fmt: skip
    return Check("project", machine.protocol, State.OK, "config and protocol are sound")


def _agents(machine: Machine) -> Iterator[Check]:
    for agent in machine.agents:
        lacking = State.MISSING if agent.needed else State.NOTE
        if agent.fault:
            yield Check("agents", agent.name, lacking, agent.fault.what, agent.fault.mend)
            continue
        found = f"version {agent.version}, sha256 {agent.sha256}"
        yield Check("agents", agent.name, State.OK, found)
        if agent.calls_model:
            yield from _model(agent, lacking)


def _model(agent: Agent, lacking: State) -> Iterator[Check]:
    name = f"{agent.name}: key"
    config = f"agents.{agent.name} in config/config.yaml"
    if not agent.url or not agent.key_env:
        absent = "url" if not agent.url else "key_env"
        yield Check("agents", name, lacking, f"no {absent} is given", f"add {absent} to {config}")
    elif not agent.key:
        mend = f"export {agent.key_env}=<key>"
        yield Check("agents", name, lacking, f"{agent.key_env} is not set", mend)
    else:
        yield Check("agents", name, State.OK, f"{agent.key_env} is set")
    name = f"{agent.name}: price"
    if agent.priced:
        yield Check("agents", name, State.OK, f"{agent.model} is in config/prices.yaml")
        return
    found = f"{agent.model} has no price: dollars are unknown and cannot be limited"
    yield Check("agents", name, State.NOTE, found, "add the model to config/prices.yaml")


def _jail(machine: Machine) -> Iterator[Check]:
    prison = machine.prison
    untrusted = any(agent.needed and agent.calls_model for agent in machine.agents)
    if prison.isolation == "off":
        found = "isolation: off in the config: agents run without a jail"
        yield Check("jail", "level", State.NOTE, found)
        return
    best = "apt-get install bubblewrap, and allow user namespaces"
    if prison.level is Level.NONE:
        needed = untrusted or prison.isolation == "require"
        state = State.MISSING if needed else State.NOTE
        yield Check("jail", "level", state, prison.described, best)
        return
    better = None if prison.level is Level.BWRAP else best
    yield Check("jail", "level", State.OK, prison.described, better)
    yield from _holds(prison)


def _holds(prison: Prison) -> Iterator[Check]:
    tried = prison.rehearsed
    if tried is None or tried.fault:
        found = tried.fault if tried and tried.fault else "it was not tried"
        yield Check("jail", "it holds", State.MISSING, found)
        return
    for name, broken, bad, good in (
        ("files", tried.read_hidden, "a hidden file was read", "a hidden file stays hidden"),
        ("processes", tried.survived, "a daemon outlived its end", "no process outlives its end"),
    ):
        yield Check("jail", name, State.MISSING if broken else State.OK, bad if broken else good)
    yield _network(prison, tried)


def _network(prison: Prison, tried: Rehearsed) -> Check:
    if not tried.reached_gateway:
        return Check("jail", "network", State.MISSING, "the gateway cannot be reached from inside")
    if prison.containment is Containment.NONE:
        found = "open: an agent reaches its gateway, and everything else"
        return Check("jail", "network", State.NOTE, found, "use bubblewrap, or Linux 6.7 or newer")
    if tried.went_out:
        return Check("jail", "network", State.MISSING, "a connection past the gateway was made")
    held = {
        Containment.NAMESPACE: "an agent has a network of its own with nothing but its gateway",
        Containment.PORT: "TCP leads to the gateway's port alone; UDP is not held",
    }
    return Check("jail", "network", State.OK, held[prison.containment])


def _hardware(machine: Machine) -> Iterator[Check]:
    gpu = machine.gpu or "none: training and evaluation run on the CPU"
    yield Check("machine", "GPU", State.OK if machine.gpu else State.NOTE, gpu)
    free = machine.free_bytes
    state = State.OK if free >= _LITTLE_FREE else State.NOTE
    state = State.MISSING if free < _LEAST_FREE else state
    mend = None if state is State.OK else "make room: runs/ and data/ grow"
    yield Check("machine", "disk", state, f"{free / _GIB:.1f} GiB free", mend)


def _records(machine: Machine) -> Iterator[Check]:
    lacking = State.MISSING if machine.commits else State.NOTE
    for key, value in zip(("user.name", "user.email"), machine.identity, strict=True):
        mend = None if value else f"git config --global {key} <yours>"
        state = State.OK if value else lacking
        yield Check("records", f"git {key}", state, value or "not set", mend)
    if machine.remote_fault:
        fault = machine.remote_fault
        yield Check("records", "DVC remote", State.MISSING, fault.what, fault.mend)
    elif machine.remote is None:
        add = "dvc remote add --default storage <folder or url>"
        found = "none: models and splits stay on this machine"
        yield Check("records", "DVC remote", State.NOTE, found, add)
    else:
        yield Check("records", "DVC remote", State.OK, f"'{machine.remote}' answers")
    if machine.signers_fault:
        fault = machine.signers_fault
        yield Check("records", "signers", State.MISSING, fault.what, fault.mend)
    elif machine.signers:
        yield Check(
            "records", "signers", State.OK, f"gates take answers signed by {machine.signers}"
        )
