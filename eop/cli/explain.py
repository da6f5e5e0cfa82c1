"""`eop explain`: what an error code means."""

from __future__ import annotations

import re
from pathlib import Path

import click

import eop
from eop.core.errors import did_you_mean

_DOCS = Path(eop.__file__).parents[1] / "docs"
_ROW = re.compile(r"^\| (EOP\d{3}) \| (.+) \| `(.+)` \|$", re.MULTILINE)


@click.command(
    short_help="Say what an error code means and how it is mended.",
    epilog="Example: eop explain EOP402",
)
@click.argument("code")
def explain(code: str) -> None:
    """Say what an error code means, with an example that is wrong and how it is mended.

    Pages are in docs/errors; what the commands raise (EOP6xx and above) is in docs/errors.md.
    """
    pages = {path.stem: path for path in sorted((_DOCS / "errors").glob("EOP*.md"))}
    rows = {row[0]: row[1:] for row in _ROW.findall((_DOCS / "errors.md").read_text())}
    asked = code.upper()
    if asked in pages:
        click.echo(pages[asked].read_text(), nl=False)
    elif asked in rows:
        meaning, module = rows[asked]
        click.echo(f"{asked}: {meaning}\nraised in {module}")
    else:
        hint = did_you_mean(asked, [*pages, *rows]) or "docs/errors.md lists them"
        raise click.UsageError(f"no error has the code '{code}'; {hint}")
