"""`eop check`: several files at once, for people, for programs and for GitHub's checks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner
from planted_faults import FAULTS, SOUND

from eop.cli import cli
from eop.core.errors import EopError, ExitCode
from eop.protocol.compiler import check
from eop.protocol.formats import as_data, as_github

if TYPE_CHECKING:
    from click.testing import Result

    from eop.protocol.diagnostics import Diagnostic

LINE = SOUND[: SOUND.index("needs: [base]")].count("\n") + 1
SCHEMAS = Path(__file__).parents[2] / "config" / "schemas"


def called(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--project", str(root), "check", *arguments])


@pytest.fixture
def written(project: Path) -> tuple[str, str]:
    """A sound protocol and a faulty one."""
    sound, faulty = project / "sound.eop.md", project / "faulty.eop.md"
    sound.write_text(SOUND)
    faulty.write_text(SOUND.replace("needs: [base]", "needs: [bas]"))
    return str(sound), str(faulty)


def as_checked(root: Path, *arguments: str) -> Any:
    done = called(root, "--format", "json", *arguments)
    found = json.loads(done.stdout)
    jsonschema.validate(found, yaml.safe_load((SCHEMAS / "diagnostics.schema.yaml").read_text()))
    assert bool(done.exit_code) == any(one["diagnostics"] for one in found["files"])
    return found["files"]


def test_every_file_is_checked_and_one_fault_is_enough(
    project: Path, written: tuple[str, str]
) -> None:
    sound, faulty = written
    done = called(project, faulty, sound)
    assert done.exit_code == ExitCode.PROTOCOL
    assert f"faulty.eop.md:{LINE}:9: error[EOP201]" in done.stderr
    assert done.stdout.startswith(f"{sound}: ok (")
    assert called(project, sound, sound).exit_code == 0


def test_json_has_the_published_shape(project: Path, written: tuple[str, str]) -> None:
    sound, faulty = as_checked(project, *written, "--coverage")
    assert sound["plan"]
    assert sound["coverage"][0]["marker"] == "eop"
    [only] = faulty["diagnostics"]
    assert (faulty["plan"], only["code"], only["hint"]) == (None, "EOP201", "did you mean 'base'?")
    span = only["span"]
    assert only["source"][span["column"] - 1 : span["end_column"] - 1] == "bas"


@pytest.mark.parametrize("fault", FAULTS[:40], ids=lambda f: f"{f.code}-{f.caret[:12].strip()}")
def test_json_of_any_fault(project: Path, fault: Any) -> None:
    path = project / "some.eop.md"
    path.write_text(fault.text)
    [one] = as_checked(project, str(path))
    assert fault.code in {found["code"] for found in one["diagnostics"]}


def test_a_file_that_cannot_be_read_has_no_span(project: Path) -> None:
    [found] = check(project / "nowhere.eop.md", root=project)
    assert as_data(found)["span"] is None
    assert as_github([found]).startswith("::error file=nowhere.eop.md,title=EOP101::cannot read")


def decoded(text: str) -> str:
    for escape, char in (("%0A", "\n"), ("%0D", "\r"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escape, char)
    return text


def parsed(line: str) -> tuple[dict[str, str], str]:
    """A workflow command as GitHub reads it: everything up to the second ``::`` are properties."""
    match = re.fullmatch(r"::error (.*?)::(.*)", line)
    assert match is not None, line
    pairs = (pair.split("=", 1) for pair in match[1].split(","))
    return {key: decoded(value) for key, value in pairs}, decoded(match[2])


def test_github_shows_each_fault_at_its_place(project: Path, written: tuple[str, str]) -> None:
    done = called(project, "--format", "github", *written)
    assert done.exit_code == ExitCode.PROTOCOL
    [line] = done.stdout.splitlines()
    properties, message = parsed(line)
    assert properties == {
        "file": "faulty.eop.md",
        "line": str(LINE),
        "col": "9",
        "endColumn": "12",
        "title": "EOP201",
    }
    assert message == "no step is named 'bas'\nhint: did you mean 'base'?"


def test_what_an_author_wrote_cannot_end_an_annotation(project: Path) -> None:
    path = project / "100%, a::b.eop.md"
    path.write_text(SOUND.replace("needs: [base]", 'needs: ["%0A::error ::x"]'))
    found: list[Diagnostic] = check(path, root=project)
    lines = as_github(found).splitlines()
    assert len(lines) == len(found)
    properties, message = parsed(lines[0])
    assert properties["file"] == path.name
    assert found[0].message in message


def test_outside_of_a_project_it_says_so_and_nothing_else(written: tuple[str, str]) -> None:
    elsewhere = Path(written[0]).parent / "elsewhere"
    elsewhere.mkdir()
    done = called(elsewhere, *written)
    assert isinstance(done.exception, EopError)
    assert (done.exception.code, done.exception.exit_code) == ("EOP601", ExitCode.CONFIG)
    assert done.output == ""
