"""The command line `hstu` for programs: JSON where data is printed, errors too, and no colours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import click
import pytest

from hstu.cli import cli, main
from hstu.data.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator

# Those without --json, and why.
NO_JSON = {
    "data split": "the folder that it makes has a manifest.json",
    "data synthesize": "makes files",
    "data fetch": "makes files, and shows terms of use to a person",
    "train": "the folder that it makes has a checkpoint.json and a curve.tsv",
    "preflight": "--out is JSON",
    "evaluate": "prints JSON as it is, a line for each checkpoint",
    "popularity": "prints JSON as it is",
    "worker": "speaks with `evaluate` in bytes",
}
MISSING = {
    "compare": ["nosuch-a", "nosuch-b"],
    "diagnose overlap": ["--split", "nosuch", "--checkpoint", "nosuch"],
    "diagnose genres": ["--split", "nosuch", "--checkpoint", "nosuch"],
    "diagnose popularity": ["--split", "nosuch", "nosuch"],
    "diagnose preference": ["--log", "nosuch", "--before", "nosuch", "--after", "nosuch"],
}


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        elif command is not None:
            yield path + name, command


COMMANDS = dict(commands(cli))


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def error_in(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    assert found["schema"] == "hstu.error/1"
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_json_or_says_why_not(name: str) -> None:
    has = any("--json" in parameter.opts for parameter in COMMANDS[name].params)
    assert has is (name not in NO_JSON)
    assert NO_JSON.keys() <= COMMANDS.keys()
    assert not has or name == "kernels" or name in MISSING, "its errors are tried here, too"


@pytest.mark.parametrize("name", MISSING)
def test_an_error_is_json_too_and_words_beside_it(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = called(capsys, *name.split(), *MISSING[name], "--json")
    found = error_in(out)
    assert found["status"] == status != 0
    assert found["message"] in err
    assert called(capsys, *name.split(), *MISSING[name])[1] == ""


def test_wrong_use_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["nosuch"], ["compare", "--nosuch"], ["data"]):
        status, out, err = called(capsys, *words, "--json")
        assert status == ExitCode.USAGE
        assert error_in(out)["message"]
        assert err


def test_which_kernels_run(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = called(capsys, "kernels", "--json")
    assert status == 0
    assert json.loads(out)["schema"] == "hstu.kernels/1"
    assert json.loads(out)["kernels"] in ("native", "torch")


@pytest.mark.parametrize("arguments", [["--help"], ["kernels"], ["compare", "a", "b"]])
def test_no_code_goes_into_a_pipe(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hstu", *arguments],
        env={**os.environ, "TERM": "xterm-256color"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "\x1b" not in done.stdout + done.stderr


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "hstu", "--help"], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
