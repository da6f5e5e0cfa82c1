"""The page that `dvc plots` draws into: scripts inside, so that it shows without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.report.scripts import chart_script

if TYPE_CHECKING:
    from pathlib import Path

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
{{refresh_tag}}
<title>Leaderboard: dvc plots</title>
<link rel="icon" href="data:,">
<style>
body {{ font: 15px/1.4 system-ui, sans-serif; margin: 1.5rem }}
table {{ border-spacing: 15px }}
</style>
<script>{script}</script>
</head>
<body>
{{plot_divs}}
</body>
</html>
"""


def dvc_page(cache_dir: Path) -> str:
    """The page with DVC's marks for what goes in; DVC's own loads three scripts from a CDN."""
    return _PAGE.format(script=chart_script(cache_dir).text)
