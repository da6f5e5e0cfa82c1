"""What a tutorial has a reader type works, and prints what it says."""

from __future__ import annotations

import shutil
import socket
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from doc_pages import PAGES, ROOT, blocks
from typed_pages import Typed, type_blocks, type_page

from eop.driver.create import TEMPLATE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow
FIRST, PRODUCT, REPRODUCE, CLUSTER = (
    f"docs/tutorials/{name}.md" for name in ("first-run", "product", "reproduce", "cluster")
)
FLAG = "--profile profiles/slurm"
ALONE = [
    page
    for page in PAGES
    if page.startswith("docs/tutorials/") and page not in (FIRST, PRODUCT, REPRODUCE, CLUSTER)
]


@pytest.mark.parametrize("page", ALONE)
def test_what_a_tutorial_has_a_reader_type_works(page: str, tmp_path: Path) -> None:
    type_page(page, tmp_path).check()


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Typed, Path]:
    """What came of typing the first tutorial, and the folder with its project."""
    folder = tmp_path_factory.mktemp("first-run")
    return type_page(FIRST, folder), folder


@pytest.mark.xdist_group("first-run")
def test_the_first_run(first_run: tuple[Typed, Path]) -> None:
    first_run[0].check()


@pytest.mark.xdist_group("first-run")
def test_its_rows_are_reproduced_elsewhere(first_run: tuple[Typed, Path]) -> None:
    type_page(REPRODUCE, first_run[1]).check()


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
