"""Words completed by real shells, as the printed scripts make them; and what is offered."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from begun import begun_project
from click.shell_completion import ShellComplete
from entry_samples import FILES, candidate
from walk import walk

from eop.cli import cli
from eop.leaderboard import write_entry

if TYPE_CHECKING:
    from pathlib import Path

RUN = "minimal-synthetic"
# Typed, and what must be offered for its last word; what must not be.
TYPED = [
    ("eop sta", {"status"}, {"verify"}),
    ("eop gate a", {"approve"}, {"list"}),
    ("eop status --w", {"--watch"}, {"--run"}),
    ("eop status --run m", {RUN}, set()),
    ("eop gate show a", {"agree"}, set()),
    (f"eop gate approve --run {RUN} ", {"agree"}, set()),
    ("eop gate approve --run nosuch a", set(), {"agree"}),
    ("eop evidence show demo-", {"demo-it01-p01", "demo-it01-p02"}, set()),
    ("eop evidence diff demo-it01-p01 demo-", {"demo-it01-p02"}, set()),
    ("eop reproduce demo-it01-p01 --iso", {"--isolation"}, set()),
    ("eop champion show m", {RUN}, set()),
    ("eop leaderboard --run m", {RUN}, set()),
    ("eop check config/protocols/mini", {"config/protocols/minimal.eop.md"}, set()),
    ("eop init f --protocol de", {"demo"}, {"minimal"}),
    ("eop explain eop40", {"EOP402"}, {"EOP501"}),
    ("hstu ev", {"evaluate"}, {"train"}),
    ("hstu train --th", {"--threads"}, {"--seed"}),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = begun_project(tmp_path_factory.mktemp("project"))
    for entry_id in ("demo-it01-p01", "demo-it01-p02"):
        write_entry(root, candidate(entry_id), FILES)
    (root / "runs" / "broken").mkdir()
    (root / "runs" / "broken" / "plan.json").write_text('{"gates": [')
    bin_ = root / "bin"
    bin_.mkdir()
    for name, module in {"eop": "eop.cli", "hstu": "hstu"}.items():
        script = bin_ / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        script.chmod(0o755)
    return root


def shell(root: Path, *argv: str) -> str:
    """What a shell prints that finds the commands of this working tree; no file of a home."""
    program = shutil.which(argv[0])
    if program is None:
        pytest.skip(f"{argv[0]} is not installed here")
    path = f"{root / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HOME": str(root), "TERM": "dumb"}
    done = subprocess.run(
        [program, *argv[1:]],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


BASH = """
eval "$(eop completion bash)"; eval "$(eop completion bash --of hstu)"
while IFS= read -r line; do
    read -ra COMP_WORDS <<<"$line"
    [[ $line == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    "_${COMP_WORDS[0]}_completion" "${COMP_WORDS[0]}"
    echo "$line => ${COMPREPLY[*]}"
done
complete -p eop hstu
"""
# zsh offers words to a line editor: what it would be given is printed instead.
ZSH = """
autoload -Uz compinit; compinit -u
compdef() { :; }; _describe() { local -a all; all=("${(@P)3}"); print -r -- "$all"; }
compadd() { shift $(($# - 1)); print -r -- "${(@P)1}"; }
eval "$(eop completion zsh)"; eval "$(eop completion zsh --of hstu)"
"""


def offered(text: str) -> set[str]:
    return {word.partition(":")[0].partition("\t")[0] for word in text.split()}


def judge(typed: str, got: set[str], wanted: set[str], unwanted: set[str]) -> None:
    assert wanted <= got, typed
    assert not unwanted & got, typed


def test_bash(root: Path) -> None:
    lines = "\n".join(typed for typed, _, _ in TYPED)
    shown = shell(
        root,
        "bash",
        "--norc",
        "-c",
        f"{BASH.strip()} \n".replace("\ndone\n", f"\ndone <<'TYPED'\n{lines}\nTYPED\n"),
    )
    answers = dict(line.split(" => ") for line in shown.splitlines() if " => " in line)
    for typed, wanted, unwanted in TYPED:
        judge(typed, offered(answers[typed]), wanted, unwanted)
    assert "-F _eop_completion eop" in shown


@pytest.mark.parametrize(("typed", "wanted", "unwanted"), TYPED[:8:3])
def test_fish(root: Path, typed: str, wanted: set[str], unwanted: set[str]) -> None:
    program = typed.split()[0]
    script = f'eop completion fish --of {program} | source; complete -C "{typed}"'
    shown = shell(root, "fish", "--no-config", "-c", script)
    judge(typed, {line.split("\t")[0] for line in shown.splitlines()}, wanted, unwanted)


@pytest.mark.parametrize(("typed", "wanted", "unwanted"), TYPED[:8:3])
def test_zsh(root: Path, typed: str, wanted: set[str], unwanted: set[str]) -> None:
    words = " ".join(f"'{word}'" for word in typed.split(" "))
    script = f"{ZSH}words=({words}); CURRENT={len(typed.split(' '))}; _eop_completion"
    judge(typed, offered(shell(root, "zsh", "-f", "-c", script)), wanted, unwanted)


def test_every_run_gate_and_entry_that_is_asked_for_is_offered() -> None:
    """Whoever adds a command that takes one gives it what a shell offers."""
    own = {
        name
        for path, command in walk(cli, groups=False)
        for parameter in command.params
        for name in [" ".join((*path, parameter.name or ""))]
        if parameter.name in ("run", "run_name", "entry", "entries", "one", "other", "code")
        or (path[0] == "gate" and parameter.name == "name")
        if parameter._custom_shell_complete is None
    }
    assert own == set()


def test_what_cannot_be_read_is_no_error(tmp_path: Path) -> None:
    complete = ShellComplete(cli, {}, "eop", "_EOP_COMPLETE")
    at = ["--project", str(tmp_path), "gate", "show"]
    assert complete.get_completions(at, "") == []
    (tmp_path / "runs/r1").mkdir(parents=True)
    for text in ("", "[]", '{"gates": 3}', '{"gates": [{}]}', "\xff"):
        (tmp_path / "runs/r1/plan.json").write_text(text, encoding="latin-1")
        assert complete.get_completions(at, "") == []
    assert [item.value for item in complete.get_completions([*at[:2], "status", "--run"], "")] == [
        "r1"
    ]
    assert isinstance(cli, click.Group)
