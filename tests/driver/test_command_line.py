"""Every command has an example, prints JSON when asked, and refuses in words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from begun import MINIMAL, begun_project
from click.testing import CliRunner
from entry_samples import FILES, REPOSITORY, candidate
from walk import walk

from eop.cli import cli, run
from eop.cli.common import overrides
from eop.core.errors import EopError, ExitCode
from eop.core.files import write_text
from eop.leaderboard import write_entry
from eop.project.config import read_raw, resolve
from eop.protocol.compiler import load

if TYPE_CHECKING:
    from click.testing import Result


COMMANDS = dict(walk(cli))
GROUPS = [(), *(path for path, command in COMMANDS.items() if isinstance(command, click.Group))]


def call(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--project", str(root), *arguments])


@pytest.mark.parametrize("path", list(COMMANDS), ids=" ".join)
def test_every_command_shows_an_example(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, [*path, "--help"])
    assert done.exit_code == 0
    assert f"Example: eop {path[0]}" in done.output
    assert done.output.split("\n\n")[1].strip(), "a sentence says what it does"


@pytest.mark.parametrize("path", GROUPS, ids=" ".join)
def test_no_list_of_commands_cuts_a_sentence(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, [*path, "--help"], env={"COLUMNS": "80"})
    assert done.exit_code == 0
    listed = done.output.partition("\nCommands:\n")[2]
    assert listed.strip(), "a group has commands"
    assert "..." not in listed


@pytest.mark.parametrize("name", [path[0] for path in COMMANDS if len(path) == 1])
def test_the_list_of_commands_says_of_each_what_itself_does(name: str) -> None:
    context = click.Context(cli)
    listed = {item.value: item.help for item in cli.shell_complete(context, name)}
    assert listed[name] == COMMANDS[name,].get_short_help_str(limit=100)
    assert list(COMMANDS) == sorted(COMMANDS)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = begun_project(tmp_path_factory.mktemp("project"))
    write_entry(root, candidate(), FILES)
    return root


@pytest.mark.parametrize(
    "arguments",
    [
        ("status", "--json"),
        ("verify", "--json"),
        ("leaderboard", "--json"),
        ("gate", "list", "--json"),
        ("compile", "--json"),
        ("check", str(REPOSITORY / MINIMAL), "--format", "json"),
    ],
    ids=" ".join,
)
def test_json_is_json(project: Path, arguments: tuple[str, ...]) -> None:
    done = call(project, *arguments)
    assert done.exit_code == 0, done.output
    assert json.loads(done.output) is not None


def test_looking_at_a_run_changes_none_of_its_files(project: Path) -> None:
    def files() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in project.rglob("*") if p.is_file()}

    before = files()
    for arguments in ("status", "verify", "leaderboard", "gate list", "graph"):
        assert call(project, *arguments.split()).exit_code == 0
    assert files() == before


def test_the_graph_is_printed(project: Path) -> None:
    assert call(project, "graph").output.startswith("flowchart LR\n")


def test_a_gate_that_waits_for_nothing(project: Path) -> None:
    done = call(project, "gate", "show", "agree")
    assert isinstance(done.exception, EopError)
    assert "EOP740" in str(done.exception)
    assert "gate 'agree' does not wait for an answer" in str(done.exception)
    wrong = call(project, "gate", "show", "nosuch").exception
    assert "no gate 'nosuch' in run minimal-synthetic (gates: agree)" in str(wrong)


def test_a_run_that_is_not_there(project: Path) -> None:
    done = call(project, "status", "--run", "../elsewhere")
    assert isinstance(done.exception, EopError)
    assert "EOP612" in str(done.exception)
    assert done.exception.exit_code == ExitCode.STATE


def test_reproducing_what_is_not_there(project: Path) -> None:
    done = call(project, "reproduce", "nobody")
    assert isinstance(done.exception, EopError)
    assert "EOP664" in str(done.exception)


def test_values_of_config_options() -> None:
    assert overrides(("threads=2", "run=", "commit=true", "dataset=ml-100k", "a=b=c")) == {
        "threads": 2, "run": None, "commit": True, "dataset": "ml-100k", "a": "b=c",
    }  # fmt: skip
    for bad in ("threads", "threads={"):
        with pytest.raises(click.UsageError, match="--config"):
            overrides((bad,))


def test_a_bare_off_of_yaml_is_off(project: Path) -> None:
    plan = load(project / "config/protocols/minimal.eop.md", root=project)
    for value in (False, "off"):
        raw = read_raw(project, {"isolation": value})
        assert resolve(project, raw, plan).isolation == "off"


@pytest.mark.parametrize("text", ["- a\n- b\n", "just words\n", "a: [\n", "a: \x07\n"])
def test_a_config_file_that_is_no_config(tmp_path: Path, text: str) -> None:
    write_text(tmp_path / "config" / "config.yaml", text)
    with pytest.raises(EopError, match=r"EOP60[24]") as caught:
        read_raw(tmp_path)
    assert caught.value.exit_code == ExitCode.CONFIG


@pytest.mark.parametrize(
    ("typed", "pairs", "extra"),
    [
        ("--config a=1 b=2 -n", {"a": 1, "b": 2}, ["-n"]),
        ("-C a=1 b=2 --cores 3 c=4", {"a": 1, "b": 2}, ["c=4"]),
        ("--config=a=1 b=2 --config c=3", {"a": 1, "b": 2, "c": 3}, []),
        ("--resources gpu=1 mem=2 -U x=2", {}, ["--resources", "gpu=1", "mem=2", "-U", "x=2"]),
        ("--config a=1 --set-threads x=2", {"a": 1}, ["--set-threads", "x=2"]),
        ("--config a=1 some_target b=2", {"a": 1}, ["some_target", "b=2"]),
        ("--config a=1 -- b=2", {"a": 1}, ["b=2"]),
    ],
)
def test_config_of_a_run_takes_the_pairs_that_follow_it_and_no_others(
    typed: str, pairs: dict[str, int], extra: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def called(_: Path, given: dict[str, int], **rest: object) -> None:
        calls.append((given, rest["extra"]))
        raise EopError("EOP820", "enough")

    monkeypatch.setattr(run, "run_until_still", called)
    CliRunner().invoke(cli, ["run", *typed.split()])
    assert calls == [(pairs, tuple(extra))]


@pytest.mark.parametrize(
    "typed", ["--config a=1 -- --config b=2", "-- -C b=2", "--configfile x.yaml", "--config"]
)
def test_config_that_only_snakemake_would_see_is_refused(typed: str) -> None:
    done = CliRunner().invoke(cli, ["run", *typed.split()])
    assert done.exit_code == ExitCode.USAGE
    assert "--config" in done.output


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_nothing_takes_is_an_error_in_words(unbuffered: str) -> None:
    command = [sys.executable, "-m", "eop.cli", "explain", "EOP402"]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False
        )
    assert done.returncode == ExitCode.ENVIRONMENT
    first, hint = done.stderr.splitlines()
    assert first.endswith("error[EOP891] cannot write: No space left on device")
    assert "hint: make room" in hint


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "eop.cli", "explain", "EOP402"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert done.returncode == ExitCode.FAILURE
    assert done.stderr == b""
