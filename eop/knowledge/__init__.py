"""Knowledge: a note per entry, a wiki above them, and what a phase is told of both.

What reads them all is imported from its module: most jobs write a note, or nothing.
"""

from eop.knowledge.notes import note_path, write_note

__all__ = ["note_path", "write_note"]
