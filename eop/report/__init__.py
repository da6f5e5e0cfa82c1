"""Reports: status, leaderboard table and HTML page, all from one view of the run."""

from eop.report.render import (
    leaderboard_json,
    leaderboard_text,
    status_json,
    status_text,
    write_report,
)

__all__ = [
    "leaderboard_json",
    "leaderboard_text",
    "status_json",
    "status_text",
    "write_report",
]
