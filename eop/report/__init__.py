"""Reports: status, leaderboard table and HTML page, all from one view of the run."""

from eop.report.console import console
from eop.report.doing import Beat
from eop.report.figure_files import FIGURES, write_figure, write_run_figures
from eop.report.progress import Follower
from eop.report.render import (
    gains_text,
    graph_text,
    leaderboard_csv,
    leaderboard_json,
    leaderboard_text,
    live_text,
    page_text,
    status_json,
    status_text,
    summary_text,
    working_nodes,
    write_pages,
    write_report,
)

__all__ = [
    "FIGURES",
    "Beat",
    "Follower",
    "console",
    "gains_text",
    "graph_text",
    "leaderboard_csv",
    "leaderboard_json",
    "leaderboard_text",
    "live_text",
    "page_text",
    "status_json",
    "status_text",
    "summary_text",
    "working_nodes",
    "write_figure",
    "write_pages",
    "write_report",
    "write_run_figures",
]
