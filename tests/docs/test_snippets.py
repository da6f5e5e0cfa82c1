"""Every fenced block of a page is tested in one way, and those that are data are what they say."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml
from command_lines import options_of
from doc_pages import PAGES, ROOT, blocks
from snippet_table import FENCES, TABLE, Played, names, ways
from typed_pages import type_blocks

from eop.core.schema import problems
from eop.driver.create import create
from eop.knowledge.pages import parse_page
from eop.protocol.block_schema import block_schema
from eop.protocol.compiler import check
from eop.protocol.diagnostics import render
from eop.protocol.markers import KINDS

if TYPE_CHECKING:
    from pathlib import Path

    from doc_pages import Block

BLOCKS = [block for page in PAGES for block in blocks(page)]


def test_every_block_is_tested_in_one_way() -> None:
    wrong = [
        f"{one.where}: {one.first}"
        for one in BLOCKS
        if len(ways(one)) != 1 or not (one.info in FENCES or one.info.startswith("{"))
    ]
    assert not wrong, (
        "say on the fence what it is (sh, console, text, yaml, python, ...), or name its test in "
        "tests/docs/snippet_table.py:\n" + "\n".join(wrong)
    )


def test_the_table_names_blocks_and_tests_that_are_there() -> None:
    named = {key: sum(names(key, block) for block in BLOCKS) for key in TABLE}
    assert {key: times for key, times in named.items() if times != 1} == {}
    for key, way in TABLE.items():
        if isinstance(way, Played):
            assert (ROOT / way.by).is_file(), key


def of(*infos: str) -> list[Any]:
    return [
        pytest.param(block, id=f"{block.page}:{block.line}")
        for block in BLOCKS
        if block.info in infos
        and not (block.info == "console" and block.page.startswith("docs/tutorials/"))
        and not any(names(key, block) for key in TABLE)
    ]


@pytest.mark.parametrize("block", of("yaml"))
def test_yaml_is_of_a_schema(block: Block) -> None:
    """A whole file, keys of the config, a block of the language, or markers of one."""
    data = yaml.safe_load(block.text) if not _fragment(block) else None
    if data is None:
        assert [line for line in block.text.splitlines() if not _marker(line)] == []
    elif next(iter(data)) in KINDS:
        jsonschema.validate(data, block_schema())
    elif "steps" in data:
        assert problems(data, _schema("playbook")) == []
    else:
        shipped = yaml.safe_load((ROOT / "config/config.yaml").read_text())
        assert problems({**shipped, **data}, _schema("config")) == []


def _fragment(block: Block) -> bool:
    """Markers one below the other, of which one may stand twice."""
    keys = [line.split(":")[0] for line in block.text.splitlines() if line[:1].isalpha()]
    markers = {
        key for kind in block_schema()["$defs"].values() for key in kind.get("properties", {})
    }
    return keys[0] not in KINDS and set(keys) <= markers


def _marker(line: str) -> bool:
    [(marker, value)] = yaml.safe_load(line).items()
    kinds = [block_schema()["$defs"][kind]["properties"].get(marker) for kind in KINDS]
    return any(jsonschema.Draft202012Validator(one).is_valid(value) for one in kinds if one)


def _schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(
        (ROOT / f"config/schemas/{name}.schema.yaml").read_text()
    )
    return found


@pytest.mark.parametrize("block", of("markdown"))
def test_markdown_is_a_protocol_or_a_page_of_the_wiki(block: Block, tmp_path: Path) -> None:
    if not block.text.startswith("---"):
        claims, found = parse_page(ROOT, "knowledge/wiki/page.md", block.text)
        assert claims
        assert found == []
        return
    shutil.copytree(ROOT / "config", tmp_path / "config")
    path = tmp_path / "shown.eop.md"
    path.write_text(block.text + "\n")
    assert render(check(path, root=tmp_path)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("block", of("console"))
def test_a_console_shows_what_is_printed(block: Block, tmp_path: Path) -> None:
    create(tmp_path / "project", protocol="minimal")
    type_blocks([block], tmp_path / "project").check()


def test_the_synopsis_of_the_recommender_names_its_options() -> None:
    [block] = [b for b in BLOCKS if b.first.startswith("python -m hstu data split  ")]
    lines = re.sub(r"\n +", " ", block.text).splitlines()
    assert len(lines) >= 6
    for line in lines:
        words = line.removeprefix("python -m hstu ").split("--")[0].split()
        shown = set(re.findall(r"--[a-z-]+", line))
        assert shown <= options_of("hstu", words), line
