"""`docs/howto/gates.md` is right: its table is played row by row, its commands are ours."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
import yaml
from research_run import Run
from waiting_gate import at_first_gate, problem, view

from eop.cli import cli
from eop.core.errors import EopError
from eop.core.schema import problems
from eop.runtime.answers import commands
from eop.runtime.gates import gate_file
from eop.runtime.node import Instance
from eop.runtime.signatures import SIGNERS_COPY, statement

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs/howto/gates.md").read_text()
ROWS = dict(re.findall(r"^\| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE))
WAITS, GOES_ON = "requested", "approved"


def status(run: Run) -> str:
    return run.advance().state.gates["it01_confirm"].status


def yes(run: Run) -> None:
    view(run).approve.write_text("as agreed")
    assert status(run) == GOES_ON
    gate = run.trace.state().gates["it01_confirm"]
    (made,) = run.gates.glob("*.approved")
    assert (gate.by, gate.reason) == (made.owner(), "as agreed")


def no_wins(run: Run) -> None:
    gate = view(run)
    gate.approve.touch()
    gate.reject.write_text("not yet")
    assert status(run) == "rejected"
    assert "it01_investigate_r2" in {one.key for one in run.advance().frontier.instances}


def elsewhere(run: Run) -> None:
    right = view(run).approve.name
    digest = view(run).digest
    for wrong in (
        right.replace(digest, "0" * 16),
        right.replace("it01", "it02"),
        right.replace("confirm", "confirm.r2"),
        right.replace("confirm", "approve"),
        right.upper(),
        f"{right}.txt",
    ):
        path = run.gates / wrong
        path.touch()
        assert problem(run).startswith(f"{wrong}: decides nothing, "), wrong
        path.unlink()
    assert status(run) == WAITS


def of_another_run(run: Run) -> None:
    gate = view(run)
    other = gate.approve.parent.with_name("r2") / gate.approve.name
    other.parent.mkdir()
    other.touch()
    assert view(run).problems == ()
    assert status(run) == WAITS


def no_answer(run: Run) -> None:
    gate = view(run)
    (run.root / "file").touch()
    made: list[Callable[[Path], Any]] = [
        lambda path: path.symlink_to(run.root / "file"),
        lambda path: os.link(run.root / "file", path),
        lambda path: path.mkdir(),
        os.mkfifo,
        lambda path: path.write_bytes(b"x" * (16 * 1024 + 1)),
    ]
    for make in made:
        for path in (gate.approve, gate.reject):
            make(path)
            held = "; while it is there no approval counts" if path == gate.reject else ""
            assert problem(run).endswith(f"it decides nothing{held}")
            if path == gate.reject:
                gate.approve.touch()
                assert status(run) == WAITS
                gate.approve.unlink()
            (path.rmdir if path.is_dir() and not path.is_symlink() else path.unlink)()
    assert status(run) == WAITS


def too_early(run: Run) -> None:
    approve, digest = view(run).approve, view(run).digest
    last = max(run.trace.directory.glob("*.json"))
    last.unlink()
    (run.folder / "head.json").unlink()
    again = Run(run.root)
    approve.touch()
    with pytest.raises(EopError, match="EOP743"):
        again.advance()
    approve.unlink()
    assert view(again).digest == digest


def too_late(run: Run) -> None:
    gate = view(run)
    gate.approve.touch()
    assert status(run) == GOES_ON
    gate.reject.touch()
    gate.approve.write_text("another reason")
    assert status(run) == GOES_ON
    assert run.trace.state().gates["it01_confirm"].reason == ""


CASES: dict[str, Callable[[Run], None]] = {
    "`.approved`": yes,
    "`.rejected`": no_wins,
    "another digest, turn, revision, gate, case, ending": elsewhere,
    "another run's folder": of_another_run,
    "a link (hard or symbolic), a folder, a pipe, over 16 KiB, unreadable": no_answer,
    "an answer before its question": too_early,
    "an answer after the recorded one": too_late,
}


def test_the_table_has_no_row_that_nobody_plays() -> None:
    assert ROWS.keys() - {"what is there", "---"} == CASES.keys()


@pytest.mark.parametrize("row", CASES)
def test_what_is_there_does_what_the_table_says(tmp_path: Path, row: str) -> None:
    CASES[row](at_first_gate(tmp_path))


def test_the_commands_of_the_page_are_there() -> None:
    named = re.findall(r"\beop gate (\w+)(?: NAME)?(?: --run RUN)?(?: (--\w+))?", PAGE)
    assert {name for name, _ in named} == {"list", "show", "approve"}
    group = cli.get_command(click.Context(cli), "gate")
    assert isinstance(group, click.Group)
    for name, option in named:
        options = {word for one in group.commands[name].params for word in one.opts}
        assert not option or option in options
    assert group.commands["reject"].help
    assert {"show", "--json"} <= {
        "show",
        *(w for p in group.commands["show"].params for w in p.opts),
    }


def test_the_names_and_the_statement_are_those_that_count(tmp_path: Path) -> None:
    gate = Instance(1, "agree")
    path = gate_file(tmp_path / "gates", "RUN", gate, "0" * 16, "approved").relative_to(tmp_path)
    pattern = "gates/<run>/<iteration>-<gate>.<digest>.approved"
    assert f"touch {pattern}" in PAGE
    form = re.sub(r"\\?<\w+\\?>", "[^/]+", pattern.replace(".", r"\."))
    assert re.fullmatch(form, path.as_posix())
    [line] = re.findall(r"^echo '(.+)' > gates/", PAGE, re.MULTILINE)
    filled = statement("<run>", Instance(1, "gate"), "<digest>", "approved", "").decode().strip()
    assert line == filled.replace("it01_gate", "<gate>")
    assert SIGNERS_COPY in PAGE


def test_what_it_tells_to_type_is_what_the_request_tells(tmp_path: Path) -> None:
    run = at_first_gate(tmp_path)
    gate = view(run)
    typed, _ = commands("r1", "confirm", str(gate.approve), str(gate.reject), signed=False)
    assert typed == f"touch {gate.approve}"
    assert commands("RUN", "NAME", "", "", signed=True)[0] in PAGE
    namespace = re.findall(r"ssh-keygen -Y sign -n (\S+) -f ~/\.ssh/id_ed25519 gates/", PAGE)
    assert namespace == ["rankevolve-gate"]
    assert 'namespaces="rankevolve-gate"' in PAGE


def test_the_config_that_it_shows_is_of_the_schema() -> None:
    schema = yaml.safe_load((REPOSITORY / "config/schemas/config.schema.yaml").read_text())
    raw = yaml.safe_load((REPOSITORY / "config/config.yaml").read_text())
    [shown] = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert problems({**raw, **yaml.safe_load(shown)}, schema) == []


def test_the_codes_that_it_names_mean_what_it_says() -> None:
    table = (REPOSITORY / "docs/errors.md").read_text()
    meanings = dict(re.findall(r"^\| (EOP\d{3}) \| (.+?) \|", table, re.MULTILINE))
    words = {
        "EOP743": "before its gate",
        "EOP734": "not what was committed",
        "EOP745": "ssh-keygen",
        "EOP614": "allowed signers",
        "EOP715": "allowed signers",
    }
    assert set(re.findall(r"EOP\d{3}", PAGE)) == words.keys()
    assert all(word in meanings[code] for code, word in words.items())
