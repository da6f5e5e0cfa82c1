"""The pages: they build without a warning, and what a tutorial has a reader type works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted(path.stem for path in (ROOT / "docs" / "tutorials").glob("*.md"))
_BLOCK = re.compile(r"^(`{3,})sh\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
_COMMANDS = {"eop": "eop.cli", "hstu": "hstu", "snakemake": "snakemake"}


def test_the_pages_build_without_a_warning(tmp_path: Path) -> None:
    built = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-W",
            "--keep-going",
            "-q",
            "-b",
            "html",
            "docs",
            tmp_path,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert built.returncode == 0, built.stderr
    commands = (tmp_path / "reference" / "commands.html").read_text()
    assert "eop gate approve" in re.sub(r"<[^>]+>", "", commands)
    python = (tmp_path / "reference" / "python.html").read_text()
    source = (ROOT / "docs" / "reference" / "python.md").read_text()
    named = re.findall(r"^\.\. auto(?:class|function):: (\S+)$", source, re.MULTILINE)
    expected = {*named, "eop.runtime.trace.Trace.append", "hstu.models.hstu.Hstu.forward"}
    assert len(expected) > 2
    assert expected - set(re.findall(r'<dt [^>]*\bid="([^"]+)"', python)) == set()


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A folder with the commands of this very interpreter and working tree."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, module in _COMMANDS.items():
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
        path.chmod(0o755)
    return folder


@pytest.mark.parametrize("name", TUTORIALS)
def test_what_a_tutorial_has_a_reader_type_works(name: str, commands: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tutorials" / f"{name}.md").read_text()
    typed = "\n".join(block for _, block in _BLOCK.findall(page))
    assert "eop init" in typed

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", typed],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{commands}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
