"""`eop doctor`: each lack is found and has its mending; the rehearsal tells a jail from none."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console

from eop.agents.jail import Containment, Jail, Level, detect
from eop.cli import cli
from eop.cli.doctor import show
from eop.driver.doctor import Agent, Fault, Machine, Prison, State, Tool, checks
from eop.driver.rehearsal import Rehearsed, rehearse
from eop.project.config import read_raw

ROOT = Path(__file__).parents[2]
AGENT = Agent(
    "codex", True, "0.171.0", "ab" * 32,
    url="https://model", key_env="MODEL_KEY", key=True, model="gpt-5.3-codex", priced=True,
)  # fmt: skip
HELD = Rehearsed(reached_gateway=True)
PRISON = Prison(Level.BWRAP, Containment.NAMESPACE, "auto", "jail: bubblewrap", HELD)
SOUND = Machine(
    tools=(Tool("git", "2.39", "apt-get install git"),),
    setup=None,
    protocol="some.eop.md",
    agents=(AGENT,),
    prison=PRISON,
    gpu="a GPU",
    free_bytes=100 << 30,
    identity=("me", "me@example.org"),
    commits=True,
    remote="storage",
    remote_fault=None,
    signers="config/allowed_signers",
    signers_fault=None,
)


def states(machine: Machine) -> dict[str, State]:
    return {check.name: check.state for check in checks(machine)}


def test_a_machine_that_has_all_is_all_ok() -> None:
    assert set(states(SOUND).values()) == {State.OK}


def agent(**changes: Any) -> dict[str, Any]:
    return {"agents": (replace(AGENT, **changes),)}


def prison(**changes: Any) -> dict[str, Any]:
    return {"prison": replace(PRISON, **changes)}


def tried(**changes: Any) -> dict[str, Any]:
    return prison(rehearsed=replace(HELD, **changes))


FAULT = Fault("it is gone", "bring it back")


@pytest.mark.parametrize(
    ("changes", "name", "says", "mend"),
    [
        ({"tools": (Tool("git", None, "get git"),)}, "git", "not installed", "get git"),
        ({"setup": FAULT}, "some.eop.md", "it is gone", "bring it back"),
        (agent(fault=FAULT), "codex", "it is gone", "bring it back"),
        (agent(key=False), "codex: key", "MODEL_KEY is not set", "export MODEL_KEY=<key>"),
        (agent(url=None), "codex: key", "no url", "add url to agents.codex"),
        (agent(key_env=None), "codex: key", "no key_env", "add key_env to agents.codex"),
        (prison(level=Level.NONE, rehearsed=None), "level", "bubblewrap", "bubblewrap"),
        (tried(read_hidden=True), "files", "a hidden file was read", None),
        (tried(survived=True), "processes", "outlived", None),
        (tried(went_out=True), "network", "past the gateway", None),
        (tried(reached_gateway=False), "network", "cannot be reached", None),
        (tried(fault="setup_error: x"), "it holds", "setup_error: x", None),
        ({"free_bytes": 1 << 29}, "disk", "0.5 GiB free", "make room"),
        ({"identity": ("", "a@b")}, "git user.name", "not set", "git config --global user.name"),
        ({"remote": None, "remote_fault": FAULT}, "DVC remote", "it is gone", "bring it back"),
        ({"signers_fault": FAULT}, "signers", "it is gone", "bring it back"),
    ],
)
def test_what_is_missing_is_named_with_its_mending(
    changes: dict[str, Any], name: str, says: str, mend: str | None
) -> None:
    missing = [c for c in checks(replace(SOUND, **changes)) if c.state is State.MISSING]
    assert [check.name for check in missing] == [name]
    assert says in missing[0].found
    assert mend is None or (missing[0].mend is not None and mend in missing[0].mend)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        (agent(needed=False, fault=FAULT), "codex"),
        (agent(needed=False, key=False), "codex: key"),
        (agent(priced=False), "codex: price"),
        (prison(isolation="off", level=Level.NONE, rehearsed=None), "level"),
        (prison(containment=Containment.NONE, rehearsed=replace(HELD, went_out=True)), "network"),
        ({"gpu": None}, "GPU"),
        ({"free_bytes": 5 << 30}, "disk"),
        ({"commits": False, "identity": ("", "a@b")}, "git user.name"),
        ({"remote": None}, "DVC remote"),
    ],
)
def test_what_nobody_needs_is_a_note(changes: dict[str, Any], name: str) -> None:
    found = states(replace(SOUND, **changes))
    assert [key for key, state in found.items() if state is not State.OK] == [name]
    assert found[name] is State.NOTE


def test_without_a_jail_a_protocol_of_trusted_agents_can_run() -> None:
    played = Agent("scripted", True, "1", "ab", calls_model=False)
    bare = replace(PRISON, level=Level.NONE, containment=Containment.NONE, rehearsed=None)
    machine = replace(SOUND, agents=(played,), prison=bare)
    assert states(machine)["level"] is State.NOTE
    required = replace(machine, prison=replace(bare, isolation="require"))
    assert states(required)["level"] is State.MISSING


def test_the_table_says_what_to_do() -> None:
    console = Console(record=True, width=100, force_terminal=False, quiet=True)
    console.quiet = False
    show(checks(replace(SOUND, **agent(key=False))), console)
    text = console.export_text()
    assert "-> export MODEL_KEY=<key>" in text
    assert text.rstrip().endswith("1 missing")


def test_the_rehearsal_sees_that_nothing_holds_where_there_is_no_jail() -> None:
    """Else it could not be believed when it says that a jail holds."""
    assert rehearse(Jail(Level.NONE)) == Rehearsed(
        read_hidden=True, went_out=True, survived=False, reached_gateway=True
    )


@pytest.mark.skipif(detect() is Level.NONE, reason="this machine has no jail")
def test_the_jail_of_this_machine_holds() -> None:
    jail = Jail(detect())
    open_network = jail.containment() is Containment.NONE
    assert rehearse(jail) == Rehearsed(went_out=open_network, reached_gateway=True)


def test_a_rehearsal_that_cannot_be_held_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eop.driver.rehearsal._PROGRAM", "raise SystemExit(3)")
    fault = rehearse(Jail(Level.NONE)).fault
    assert fault is not None
    assert "exit status 3" in fault


def test_the_command_names_keys_and_never_shows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "config", tmp_path / "config")
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\necho codex-cli 0.171.0\n")
    program.chmod(0o755)
    protocol = (ROOT / "config/protocols/minimal.eop.md").read_text()
    assert "scripted" in protocol
    own = tmp_path / "config/protocols/own.eop.md"
    own.write_text(
        protocol.replace("scripted", "codex").replace("tools: [read]", "tools: [read, shell]")
    )
    raw = {**read_raw(ROOT), "protocol": "config/protocols/own.eop.md"}
    given = {"binary": str(program), "model": "m", "key_env": "MODEL_KEY", "url": None}
    raw["agents"] = {"codex": given}
    (tmp_path / "config/config.yaml").write_text(yaml.safe_dump(raw))
    monkeypatch.setenv("MODEL_KEY", "real-key-that-nobody-may-see")
    done = CliRunner().invoke(cli, ["--project", str(tmp_path), "doctor", "--json"])
    assert done.exit_code == 9, done.output
    assert "real-key" not in done.output
    found = {check["name"]: check for check in json.loads(done.output)["checks"]}
    assert found["codex"]["found"].startswith("version 0.171.0, sha256 ")
    assert found["codex: key"]["state"] == "missing"
    assert "no url" in found["codex: key"]["found"]
    assert found["codex: price"]["state"] == "note"
    # The folder is no DVC project.
    missing = sorted(name for name, check in found.items() if check["state"] == "missing")
    assert set(missing) - {"level"} == {"codex: key", "DVC remote"}


def test_judged_is_the_protocol_that_a_run_would_take(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "config", tmp_path / "config")
    own = tmp_path / "config/protocols/own.eop.md"
    text = (ROOT / "config/protocols/minimal.eop.md").read_text().replace("scripted", "codex")
    own.write_text(text.replace("tools: [read]", "tools: [read, shell]"))

    def states_of_agents(*arguments: str) -> dict[str, str]:
        command = ["--project", str(tmp_path), "doctor", "--json", *arguments]
        done = CliRunner().invoke(cli, command)
        found = json.loads(done.output)["checks"]
        return {one["name"]: one["state"] for one in found if one["group"] == "agents"}

    assert set(states_of_agents().values()) == {"ok"}
    chosen = states_of_agents("--config", f"protocol={own.relative_to(tmp_path)}")
    assert chosen == {"codex": "missing"}


def test_a_config_that_is_none_is_a_fault_and_no_crash(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "config", tmp_path / "config")
    command = ["--project", str(tmp_path), "doctor", "--json"]
    done = CliRunner().invoke(cli, [*command, "--config", "agents=codex", "--config", "gates=open"])
    (project,) = [c for c in json.loads(done.output)["checks"] if c["group"] == "project"]
    assert project["state"] == "missing"
