"""A project on disk: its workflow config and the names of its files."""
