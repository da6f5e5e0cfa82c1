"""What the page says of a product's command line is what its adapter makes."""

from __future__ import annotations

import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from test_products import REVIEW, binary, request

from eop.agents.contract import Mode
from eop.agents.products import REAL
from eop.agents.products.program import Settings

__all__ = ["binary"]
PAGE = (Path(__file__).parents[2] / "docs/agents.md").read_text()
SECTIONS = {
    match[1]: match[2]
    for match in re.finditer(r"^## \d+\. [^\n]*\(`([a-z-]+)`\)\n(.*?)(?=^## )", PAGE, re.M | re.S)
}


def test_each_product_has_its_section() -> None:
    assert SECTIONS.keys() == REAL.keys()


@pytest.mark.parametrize("name", REAL)
def test_options_and_variables_are_on_the_page(name: str, tmp_path: Path, binary: Path) -> None:
    product = REAL[name](Settings(str(binary), "m", effort="high"))
    reads = {"mode": Mode.READ_ONLY, "outputs": REVIEW, "capabilities": ("read", "shell")}
    made = [product.command(request(tmp_path)), product.command(request(tmp_path, **reads))]
    words = {word for one in made for word in one.argv}
    options = {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*(=\w+)?", word)}
    options |= {word.partition("=")[0] for word in words if re.match(r"[a-z_]+(\.\w+)?=", word)}
    missing = {option for option in options if option not in SECTIONS[name]}
    told = set(re.findall(r"[\w*]+", SECTIONS[name]))
    variables = {variable for one in made for variable in one.env}
    missing |= {one for one in variables if not any(fnmatchcase(one, known) for known in told)}
    assert missing == set()


def test_what_says_which_jail_there_is() -> None:
    shown = re.search(r"^\$ python (-m eop\.agents\.jail)\n(jail: )", PAGE, re.M)
    assert shown is not None
    done = subprocess.run(
        [sys.executable, *shown[1].split()], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(shown[2])
