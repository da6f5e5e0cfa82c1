"""`eop explain`: what an error code means."""

from __future__ import annotations

import re
from pathlib import Path

import click

import eop
from eop.cli.output import json_option, print_json
from eop.core.errors import did_you_mean

# A wheel carries the pages of errors within the package.
_PACKED = Path(eop.__file__).parent / "pages"
_PAGES = _PACKED if _PACKED.is_dir() else Path(eop.__file__).parents[1] / "docs"
_ROW = re.compile(r"^\| (EOP\d{3}) \| (.+) \| `(.+)` \|$", re.MULTILINE)


def _codes(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Those that have a page: what a shell offers."""
    names = sorted(path.stem for path in (_PAGES / "errors").glob("EOP*.md"))
    return [name for name in names if name.startswith(incomplete.upper())]


@click.command(
    short_help="Say what an error code means and how it is mended.",
    epilog="Example: eop explain EOP402",
)
@click.argument("code", shell_complete=_codes)
@json_option
def explain(code: str, as_json: bool) -> None:
    """Say what an error code means, with an example that is wrong and how it is mended.

    Pages are in docs/errors; what the commands raise (EOP6xx and above) is in docs/errors.md.
    """
    pages = {path.stem: path for path in sorted((_PAGES / "errors").glob("EOP*.md"))}
    rows = {row[0]: row[1:] for row in _ROW.findall((_PAGES / "errors.md").read_text())}
    asked = code.upper()
    if asked in pages:
        text = pages[asked].read_text()
    elif asked in rows:
        meaning, module = rows[asked]
        text = f"{asked}: {meaning}\nraised in {module}\n"
    else:
        hint = did_you_mean(asked, [*pages, *rows]) or "docs/errors.md lists them"
        raise click.UsageError(f"no error has the code '{code}'; {hint}")
    if as_json:
        print_json({"schema": "explanation/1", "code": asked, "text": text})
    else:
        click.echo(text, nl=False)
