"""What a person sees: whole renderings, character by character."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from eop.core.errors import EopError, ExitCode
from eop.protocol.compiler import check, load
from eop.protocol.diagnostics import ProtocolErrors, render

if TYPE_CHECKING:
    from pathlib import Path

FAULTY = """\
---
eop: 1
name: faulty
version: 1.0
target: hstu
budget: {actions: 10, wall: 1h}
---

# Faulty

```eop
phase: look
pattern: lineer
nodes: {reader: scripted}
tools: [read, wirte]
budget: {actions: 20, wall: 5m}
outputs: {report: {file: report.md}}
```

Look around.

  ```eop
  gate: agree
  after: [lok]
  shows: [report]
  on_rejct: {goto: look, max: 2}
  ```
"""

RENDERED = """\
config/protocols/faulty.eop.md:4:10: error[EOP301] expected a text, found the number '1.0'
  4 | version: 1.0
    |          ^^^
  hint: put it in quotes

config/protocols/faulty.eop.md:13:10: error[EOP206] unknown pattern 'lineer'
  13 | pattern: lineer
     |          ^^^^^^
  hint: did you mean 'linear'?

config/protocols/faulty.eop.md:15:15: error[EOP302] unknown tool 'wirte'
  15 | tools: [read, wirte]
     |               ^^^^^
  hint: known: read, edit, shell

config/protocols/faulty.eop.md:16:19: error[EOP501] actions 20 does not fit into the run's 10
  16 | budget: {actions: 20, wall: 5m}
     |                   ^^
  hint: lower it, or raise the budget in the front matter

config/protocols/faulty.eop.md:23:9: error[EOP113] a gate needs the key 'on_reject'
  23 |   gate: agree
     |         ^^^^^
  hint: add 'on_reject: ...'

config/protocols/faulty.eop.md:24:11: error[EOP201] no step is named 'lok'
  24 |   after: [lok]
     |           ^^^
  hint: did you mean 'look'?

config/protocols/faulty.eop.md:26:3: error[EOP112] unknown key 'on_rejct' in a gate
  26 |   on_rejct: {goto: look, max: 2}
     |   ^^^^^^^^
  hint: did you mean 'on_reject'?"""


@pytest.fixture
def faulty(project: Path) -> Path:
    path = project / "config" / "protocols" / "faulty.eop.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(FAULTY)
    return path


def test_all_faults_rendered(project: Path, faulty: Path) -> None:
    assert render(check(faulty, root=project)) == RENDERED


def test_load_raises_them_all(project: Path, faulty: Path) -> None:
    with pytest.raises(ProtocolErrors) as raised:
        load(faulty, root=project)
    error = raised.value
    assert isinstance(error, EopError)
    assert error.exit_code is ExitCode.PROTOCOL
    assert str(error) == RENDERED
    assert error.message == "7 errors in config/protocols/faulty.eop.md"
    assert error.diagnostics == check(faulty, root=project)


def test_the_caret_stands_under_wide_characters_and_tabs(project: Path) -> None:
    path = project / "wide.eop.md"
    path.write_text('---\n{name: "項目",\teop: 3}\n---\n')
    found = next(d for d in check(path, root=project) if d.code == "EOP306")
    assert render([found]).split("\n")[1:3] == [
        '  2 | {name: "項目",\teop: 3}',
        "    |               \t     ^",
    ]


def test_a_path_outside_the_project_is_shown_as_given(project: Path, tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.eop.md"
    path.write_text("")
    [only] = check(path, root=project)
    assert render([only]) == (
        f"{path}:1:1: error[EOP103] the file is empty\n"
        "  1 | \n"
        "    | ^\n"
        "  hint: start with front matter"
    )
