"""For programs and for people: every command's JSON and its colours, on terminals and in pipes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from begun import MINIMAL, begun_project
from called import Called, in_a_pipe, on_a_terminal
from entry_samples import FILES, REPOSITORY, candidate
from walk import walk

from eop.cli import cli
from eop.core.errors import ExitCode
from eop.leaderboard import write_entry

if TYPE_CHECKING:
    from pathlib import Path

    import click

ENTRY, OTHER, RUN = "demo-it01-p01", "demo-it01-p02", "minimal-synthetic"
# What each command is given here, and how it then ends.
GIVEN: dict[str, tuple[str, int]] = {
    "check": (MINIMAL, 0),
    "explain": ("EOP402", 0),
    "graph": ("", 0),
    "compile": ("", 0),
    "pause": ("--reason lunch", 0),
    "resume": ("", 0),
    "cancel": (f"--run {RUN}-2", ExitCode.STATE),
    "migrate": ("", 0),
    "status": ("", 0),
    "report": ("", 0),
    "gate list": ("", 0),
    "gate show": ("agree", ExitCode.STATE),
    "gate approve": ("agree", ExitCode.STATE),
    "gate reject": ("agree", ExitCode.STATE),
    "verify": ("", 0),
    "leaderboard": ("", 0),
    "plot": ("leaderboard scores.svg", 0),
    "compare-runs": ("demo demo", 0),
    "champion show": ("demo", ExitCode.STATE),
    "champion export": ("demo", ExitCode.STATE),
    "champion gains": ("", 0),
    "evidence show": (ENTRY, ExitCode.DATA),
    "evidence verify": ("", 0),
    "evidence restore": ("", 0),
    "evidence diff": (f"{ENTRY} {OTHER}", ExitCode.DATA),
    "knowledge check": ("", 0),
    "knowledge summarize": ("", 0),
    "knowledge recall": ("dropout", 0),
    "knowledge graph": ("graph-of-knowledge", 0),
    "reproduce": ("nobody", ExitCode.STATE),
    "store check": ("", ExitCode.ENVIRONMENT),
    "store index": ("", 0),
    "doctor": ("", ExitCode.ENVIRONMENT),
    "completion": ("bash", 0),
}
# Those that are not called here, and why.
NOT_CALLED = {
    "init": "makes a project and a git repository; tests/packaging",
    "run": "calls Snakemake; below",
    "demo": "a whole run; tests/workflow",
}
NO_JSON = {
    "init": "prints what to type next; what it makes are files",
    "run": "what it prints is Snakemake's; `eop status --json` says how the run stands",
    "demo": "the same",
    "graph": "prints a picture, in a format of its own",
    "gate approve": "asks a person at a terminal",
    "gate reject": "asks a person at a terminal",
    "completion": "prints a program for a shell",
}
ESCAPE = "\x1b"
COLOUR = re.compile(r"\x1b\[[\d;]*m")


COMMANDS = {" ".join(path): command for path, command in walk(cli, groups=False)}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = begun_project(tmp_path_factory.mktemp("project"))
    for entry_id in (ENTRY, OTHER):
        write_entry(root, candidate(entry_id), FILES)
    return root


def arguments(name: str) -> list[str]:
    return [*name.split(), *GIVEN[name][0].split()]


def before(root: Path, name: str) -> None:
    """A run is paused before it is resumed, and the other way round."""
    other = {"pause": "resume", "resume": "pause"}.get(name)
    if other:
        in_a_pipe(root, [other])


def data(called: Called) -> Any:
    assert ESCAPE not in called.stdout
    return json.loads(called.stdout)


def test_every_command_is_called_here_or_has_a_reason() -> None:
    assert COMMANDS.keys() == GIVEN.keys() | NOT_CALLED.keys()
    assert not GIVEN.keys() & NOT_CALLED.keys()
    assert NO_JSON.keys() <= COMMANDS.keys()


@pytest.mark.parametrize(("name", "command"), list(COMMANDS.items()))
def test_a_command_prints_json_or_says_why_not(name: str, command: click.Command) -> None:
    has = any("--json" in parameter.opts for parameter in command.params)
    assert has is (name not in NO_JSON)


@pytest.mark.parametrize("name", sorted(GIVEN.keys() - NO_JSON.keys()))
def test_json_is_one_object_that_says_what_it_is(root: Path, name: str) -> None:
    before(root, name)
    done = in_a_pipe(root, [*arguments(name), "--json"], FORCE_COLOR="1")
    assert done.status == GIVEN[name][1], done.stderr
    found = data(done)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*/\d+", found["schema"])
    if found["schema"] == "error/1":
        assert found["status"] == done.status != 0
        assert f"error[{found['code']}] {found['message']}" in done.stderr


def test_the_page_for_programs_lists_every_schema(root: Path) -> None:
    page = (REPOSITORY / "docs/howto/terminal.md").read_text()
    for name in sorted(GIVEN.keys() - NO_JSON.keys()):
        before(root, name)
        schema = data(in_a_pipe(root, [*arguments(name), "--json"]))["schema"]
        if schema != "error/1":
            assert re.search(rf"`eop {name}`.*`{schema}`", page), (name, schema)


@pytest.mark.parametrize(
    ("given", "status", "code"),
    [
        ("status --run nosuch", ExitCode.STATE, "EOP612"),
        ("status --nosuch", ExitCode.USAGE, None),
        ("status --watch", ExitCode.USAGE, None),
        ("nosuch", ExitCode.USAGE, None),
        ("leaderboard --csv", ExitCode.USAGE, None),
        ("report --watch", ExitCode.USAGE, None),
    ],
)
def test_an_error_is_json_too_and_words_beside_it(
    root: Path, given: str, status: int, code: str | None
) -> None:
    done = in_a_pipe(root, [*given.split(), "--json"])
    assert done.status == status
    found = data(done)
    assert (found["schema"], found["code"], found["status"]) == ("error/1", code, status)
    assert found["message"] in " ".join(done.stderr.split())
    without = in_a_pipe(root, given.split()) if "nosuch" in given else None
    assert without is None or (without.stdout == "" and without.status == status)


@pytest.mark.parametrize("name", sorted(GIVEN))
def test_no_code_goes_into_a_pipe_or_under_no_color(root: Path, name: str) -> None:
    before(root, name)
    piped = in_a_pipe(root, arguments(name))
    assert piped.status == GIVEN[name][1], piped.stderr
    assert ESCAPE not in piped.stdout + piped.stderr
    before(root, name)
    plain = on_a_terminal(root, arguments(name), NO_COLOR="1", FORCE_COLOR="1")
    assert ESCAPE not in plain.stdout
    assert plain.status == piped.status


@pytest.mark.parametrize("name", ["status", "leaderboard", "doctor"])
def test_a_terminal_is_coloured_and_a_pipe_where_it_is_asked_for(root: Path, name: str) -> None:
    assert COLOUR.search(on_a_terminal(root, arguments(name)).stdout)
    assert COLOUR.search(in_a_pipe(root, arguments(name), FORCE_COLOR="1").stdout)
    assert not COLOUR.search(in_a_pipe(root, arguments(name), FORCE_COLOR="").stdout)


@pytest.mark.parametrize("columns", [80, 120])
def test_what_a_terminal_shows_fits(root: Path, columns: int) -> None:
    for name in ("status", "leaderboard"):
        shown = COLOUR.sub("", on_a_terminal(root, arguments(name), columns).stdout)
        long = [line for line in shown.splitlines() if len(line) > columns]
        assert not [line for line in long if "gates/" not in line], long


def test_help_and_a_wrong_config_are_plain_in_a_pipe(root: Path) -> None:
    for given in ([], ["--help"], ["gate"], ["gate", "--help"], ["nosuch"]):
        done = in_a_pipe(root, given)
        assert ESCAPE not in done.stdout + done.stderr
    config = root / "config/config.yaml"
    text = config.read_text()
    config.write_text(yaml.safe_dump({"nosuch": 1}))
    try:
        assert data(in_a_pipe(root, ["compile", "--json"]))["code"] == "EOP603"
    finally:
        config.write_text(text)
