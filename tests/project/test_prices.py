"""A budget in dollars needs the price of the model that the workflow config gives a product."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from eop.cli import cli
from eop.driver.workflow import load_project
from eop.project.config import read_raw
from eop.project.prices import PRICES_FILE, unpriced
from eop.protocol.diagnostics import ProtocolErrors

ROOT = Path(__file__).parents[2]
DOCUMENT = """---
{eop: 1, name: some, version: 0.1.0, target: hstu, budget: {actions: 9, wall: 1h, usd: 2}}
---
```eop
phase: look
pattern: linear
nodes: {reader: codex}
tools: [read, shell]
budget: {actions: 9, wall: 1h, usd: 2}
outputs: {report: {file: report.md}}
```
Say what you see.
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "config", tmp_path / "config")
    (tmp_path / "some.eop.md").write_text(DOCUMENT)
    set_model(tmp_path, "house-model")
    return tmp_path


def set_model(project: Path, model: str) -> None:
    raw = {**read_raw(ROOT), "protocol": "some.eop.md"}
    raw["agents"] = {"codex": {"binary": "codex", "model": model}}
    (project / "config/config.yaml").write_text(yaml.safe_dump(raw))


def checked(project: Path) -> tuple[int, str]:
    arguments = ["--project", str(project), "check", str(project / "some.eop.md")]
    done = CliRunner().invoke(cli, arguments)
    return done.exit_code, done.output


def test_a_model_without_a_price_is_refused_until_it_has_one(project: Path) -> None:
    status, said = checked(project)
    assert status == 4
    assert said.count("error[EOP523] 'codex' has the model 'house-model'") == 2
    with pytest.raises(ProtocolErrors, match="EOP523"):
        load_project(project, read_raw(project))
    table = project / PRICES_FILE
    own = '  house-model: {input: "0.10", output: "0.20"}\n'
    table.write_text(table.read_text().rstrip() + "\n" + own)
    assert checked(project)[0] == 0
    assert load_project(project, read_raw(project)).plan.name == "some"


def test_a_model_of_the_table_needs_nothing(project: Path) -> None:
    set_model(project, "gpt-5.3-codex")
    assert checked(project)[0] == 0


def test_what_the_config_does_not_say_is_not_known(tmp_path: Path) -> None:
    for raw in ({}, {"agents": None}, {"agents": {"codex": None, "scripted": {"playbook": None}}}):
        assert unpriced(tmp_path, raw) == {}
