"""What README shows is what the commands print."""

from __future__ import annotations

import itertools
import re
import shutil
from pathlib import Path

import click
from click.testing import CliRunner

from eop.agents.products import REAL
from eop.cli import cli
from eop.compile.graph import mermaid
from eop.protocol.compiler import check, load
from eop.protocol.diagnostics import render
from eop.protocol.products import VENDORS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
MINIMAL = "config/protocols/minimal.eop.md"


def test_the_first_protocol_is_the_one_that_ships() -> None:
    text = (ROOT / MINIMAL).read_text()
    assert len(text.splitlines()) == 15
    assert text in README
    done = CliRunner().invoke(cli, ["--project", str(ROOT), "check", str(ROOT / MINIMAL)])
    assert done.output.strip().removeprefix(f"{ROOT}/") in README


def test_the_mistakes_are_shown_as_they_are(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "config", tmp_path / "config")
    text = (ROOT / MINIMAL).read_text()
    text = text.replace("needs: [agree]", "needs: [agreee]")
    assert text.count("tools: [read]") == 2
    text = text.replace("tools: [read]", "tool: [read]", 1)
    wrong = tmp_path / "wrong.eop.md"
    wrong.write_text(text)
    shown = render(check(wrong, root=tmp_path)).replace(f"{tmp_path}/", "")
    assert shown in README


def test_the_picture_has_the_demo_s_arrows() -> None:
    plan = load(ROOT / "config/protocols/demo.eop.md", root=ROOT)
    picture = README.split("```mermaid")[1].split("```")[0]
    words = re.findall(r"[a-z]+(?:_[a-z]+)*", picture)
    assert set(plan.steps) <= set(words)
    drawn = set()
    for line in re.sub(r"[\[{]+[^\]}]*[\]}]+", "", picture).splitlines():
        chain = [part.strip() for part in line.split("-->")]
        drawn |= set(itertools.pairwise(chain))
    wanted = {
        tuple(part.strip() for part in line.split("-->"))
        for line in mermaid(plan).splitlines()
        if "-->" in line
    }
    assert drawn == wanted
    ways_back = {line for line in mermaid(plan).splitlines() if ".->" in line or "==>" in line}
    assert len(ways_back) == 3
    assert ways_back <= set(picture.splitlines()), "with how often each may be taken"


def test_every_command_that_is_named_exists() -> None:
    named = set(re.findall(r"^\| `eop ([a-z-]+)", README, re.MULTILINE))
    assert named == set(cli.list_commands(click.Context(cli)))
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"^make (\w+)", README, re.MULTILINE)) <= targets


def test_the_agent_products_are_those_that_are_tested() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| [^|]+ \| ([a-z]+) \| ([\d.]+) \|", README, re.MULTILINE)
    assert {name: vendor for name, vendor, _ in rows} == {name: VENDORS[name] for name in REAL}
    pinned = (ROOT / "tests/products/package.json").read_text()
    locked = (ROOT / "tests/products/requirements-openhands.txt").read_text()
    known = re.findall(r'": "(?:npm:@openai/codex@)?(\d[\d.]+)', pinned)
    known += re.findall(r"^openhands-sdk==(\S+)", locked, re.MULTILINE)
    assert sorted(version for *_, version in rows) == sorted(known)
