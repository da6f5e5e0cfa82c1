"""What a tutorial has a reader type works, and prints what it says."""

from __future__ import annotations

import shutil
import socket
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from doc_pages import PAGES, ROOT, Block, blocks
from snippet_table import FIRST, IDEAS, REPRODUCE, ways
from snippet_table import Typed as TypedAfter
from typed_pages import Typed, type_blocks, type_page

from eop.agents.jail import Level, detect
from eop.driver.create import TEMPLATE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow
PRODUCT, CLUSTER = "docs/tutorials/product.md", "docs/tutorials/cluster.md"
FLAG = "--profile profiles/slurm"
ALONE = [
    page
    for page in PAGES
    if page.startswith("docs/tutorials/")
    and page not in (FIRST, IDEAS, PRODUCT, REPRODUCE, CLUSTER)
]


@pytest.mark.parametrize("page", ALONE)
def test_what_a_tutorial_has_a_reader_type_works(page: str, tmp_path: Path) -> None:
    type_page(page, tmp_path).check()


def typed_after(page: str) -> list[Any]:
    """What other pages have typed, or run by Python, in the project of a tutorial."""
    every = [(one, way) for name in PAGES for one in blocks(name) for way in ways(one)]
    here = [(one, way) for one, way in every if isinstance(way, TypedAfter) and way.after == page]
    if page == IDEAS:
        python = TypedAfter(IDEAS, {"ml-1m": "synthetic"})
        here += [(one, python) for one, _ in every if one.info == "python"]
    return [pytest.param(*pair, id=f"{pair[0].page}:{pair[0].line}") for pair in here]


def type_after(block: Block, way: TypedAfter, project: Path) -> None:
    text = block.text
    for old, new in way.instead.items():
        text = text.replace(old, new)
    if block.info == "python":
        (project / "shown.py").write_text(text)
        text = "python shown.py"
    type_blocks([replace(block, info="sh", text=text)], project).check()


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Typed, Path]:
    """What came of typing the first tutorial, and the folder with its project."""
    folder = tmp_path_factory.mktemp("first-run")
    return type_page(FIRST, folder), folder


@pytest.mark.xdist_group("first-run")
def test_the_first_run(first_run: tuple[Typed, Path]) -> None:
    first_run[0].check()


@pytest.mark.xdist_group("first-run")
@pytest.mark.parametrize(("block", "way"), typed_after(FIRST))
def test_what_pages_type_after_the_first_run(
    first_run: tuple[Typed, Path], block: Block, way: TypedAfter
) -> None:
    type_after(block, way, first_run[1] / "my-model")


@pytest.fixture(scope="module")
def reproduced(first_run: tuple[Typed, Path]) -> tuple[Typed, Path]:
    """What came of typing the tutorial on reproduction, after the first one; both projects."""
    return type_page(REPRODUCE, first_run[1]), first_run[1]


@pytest.mark.xdist_group("first-run")
def test_its_rows_are_reproduced_elsewhere(reproduced: tuple[Typed, Path]) -> None:
    reproduced[0].check()


@pytest.mark.xdist_group("first-run")
@pytest.mark.parametrize(("block", "way"), typed_after(REPRODUCE))
def test_what_pages_type_after_the_reproduction(
    reproduced: tuple[Typed, Path], block: Block, way: TypedAfter
) -> None:
    type_after(block, way, reproduced[1] / "my-model")


@pytest.fixture(scope="module")
def ideas(tmp_path_factory: pytest.TempPathFactory) -> tuple[Typed, Path]:
    """What came of typing the tutorial on interventions, and the folder with its project."""
    folder = tmp_path_factory.mktemp("ideas")
    return type_page(IDEAS, folder), folder


@pytest.mark.xdist_group("ideas")
def test_the_ideas(ideas: tuple[Typed, Path]) -> None:
    ideas[0].check()


@pytest.mark.xdist_group("ideas")
@pytest.mark.parametrize(("block", "way"), typed_after(IDEAS))
def test_what_pages_type_after_the_ideas(
    ideas: tuple[Typed, Path], block: Block, way: TypedAfter
) -> None:
    type_after(block, way, ideas[1] / "ideas")


@pytest.mark.skipif(detect() is Level.NONE, reason="no jail: an untrusted product is refused")
def test_a_product_is_added_in_a_checkout(tmp_path: Path) -> None:
    checkout = tmp_path / "rankevolve"
    for name in (*TEMPLATE, "eop", "hstu", "tests/agents", "tests/fixtures", "pyproject.toml"):
        if (ROOT / name).is_dir():
            left_out = shutil.ignore_patterns("__pycache__", "cache", "tmp", "config.local")
            shutil.copytree(ROOT / name, checkout / name, ignore=left_out)
        else:
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, checkout / name)
    subprocess.run(["git", "init", "--quiet"], cwd=checkout, check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    home = tmp_path / "home"
    home.mkdir()

    typed = type_page(
        PRODUCT, checkout, instead={"8765": port}, PYTHONPATH=str(checkout), HOME=str(home)
    )

    typed.check()


def test_the_cluster_s_commands_plan(tmp_path: Path) -> None:
    """On a machine without Slurm; ``tests/workflow/test_slurm.py`` types them with one."""
    planned = [
        replace(block, text=block.text.replace(FLAG, f"{FLAG} -n"))
        for block in blocks(CLUSTER)
        if block.info == "sh" and not block.text.startswith(("squeue", "request="))
    ]
    assert sum(block.text.count(FLAG) for block in planned) == 3

    typed = type_blocks(planned, tmp_path)

    typed.check()
