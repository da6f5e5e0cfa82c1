"""Knowledge: a note per entry, a wiki above them, and what a phase is told of both."""

from eop.knowledge.notes import note_path, write_note
from eop.knowledge.tried import Tried, tried, tried_text

__all__ = ["Tried", "note_path", "tried", "tried_text", "write_note"]
