"""The pages build without a warning, and the reference holds what it names."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

from doc_pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def test_the_pages_build_without_a_warning(tmp_path: Path) -> None:
    build = ["-W", "--keep-going", "-q", "-b", "html", "docs"]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *build, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert built.returncode == 0, built.stderr
    commands = (tmp_path / "reference" / "commands.html").read_text()
    assert "eop gate approve" in re.sub(r"<[^>]+>", "", commands)
    assert "mailto:" not in commands, "a metric is no address"
    raw = [path.name for path in tmp_path.rglob("*.html") if "<p>.. " in path.read_text()]
    assert raw == [], "a directive stands in the text"
    python = (tmp_path / "reference" / "python.html").read_text()
    source = (ROOT / "docs" / "reference" / "python.md").read_text()
    named = re.findall(r"^\.\. auto(?:class|function):: (\S+)$", source, re.MULTILINE)
    expected = {*named, "eop.runtime.trace.Trace.append", "hstu.models.hstu.Hstu.forward"}
    assert len(expected) > 2
    assert expected - set(re.findall(r'<dt [^>]*\bid="([^"]+)"', python)) == set()
