"""Leaderboard: entries with their evidence. The table is in ``rows``, the rule in ``promotion``.

Those two load numpy and pandas, which most jobs of a run never need; so they are imported from
their modules.
"""

from eop.leaderboard.entry import Comparison, Cost, Decision, Entry, Proposal, Scores
from eop.leaderboard.files import entry_folder, metrics_agree, read_entries, read_entry, write_entry
from eop.leaderboard.stage import stage_text

__all__ = [
    "Comparison",
    "Cost",
    "Decision",
    "Entry",
    "Proposal",
    "Scores",
    "entry_folder",
    "metrics_agree",
    "read_entries",
    "read_entry",
    "stage_text",
    "write_entry",
]
