"""The scripts of the page: the chart library, made once for a project, and the page's own."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from eop.core.files import write_text

if TYPE_CHECKING:
    from collections.abc import Mapping

ASSETS = Path(__file__).with_name("assets")


@dataclass(frozen=True)
class Script:
    """A script to stand in a page, and the source expression that lets a browser run it alone."""

    text: Markup

    @property
    def source(self) -> str:
        """For ``script-src``: no other script of the page runs, wherever it comes from."""
        digest = hashlib.sha256(self.text.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"


def own_script() -> Script:
    """What filters, sorts, opens links and draws the charts."""
    return _script((ASSETS / "page.js").read_text())


def chart_script(cache_dir: Path) -> Script:
    """Vega-Embed with Vega and Vega-Lite, about 0.9 MB.

    Making it takes seconds of computing, so that it is kept in ``cache_dir`` by its versions.
    """
    import vl_convert

    versions = vl_convert.get_vega_version(), vl_convert.get_vega_embed_version()
    path = cache_dir / f".vega-{'-'.join(versions)}-{version('vl-convert-python')}.js"
    if not path.is_file():
        write_text(path, _bundle())
    return _script(path.read_text())


@cache
def _bundle() -> str:
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")


def data_block(value: Mapping[str, Any]) -> Markup:
    """JSON that can stand in a page: nothing in it ends its element or begins another."""
    text = json.dumps(value, sort_keys=True, allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _script(text: str) -> Script:
    # An HTML parser looks for these in a script, whatever they mean there.
    for mark in ("</script", "<!--"):
        if mark in text.lower():
            raise ValueError(f"a script of the page may not hold '{mark}'")
    return Script(Markup(text))
