"""Leaderboard: entries with their evidence, the rows of the table, the promotion rule."""

from eop.leaderboard.entry import Cost, Decision, Entry, Proposal, Scores
from eop.leaderboard.files import entry_folder, read_entries, read_entry, write_entry
from eop.leaderboard.promotion import Candidate, Champion, decide
from eop.leaderboard.recipe import recipe
from eop.leaderboard.rows import ranked, rows

__all__ = [
    "Candidate",
    "Champion",
    "Cost",
    "Decision",
    "Entry",
    "Proposal",
    "Scores",
    "decide",
    "entry_folder",
    "ranked",
    "read_entries",
    "read_entry",
    "recipe",
    "rows",
    "write_entry",
]
