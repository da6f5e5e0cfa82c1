"""Errors, canonical JSON and digests, atomic files, locks and processes. Imports nothing of eop."""
