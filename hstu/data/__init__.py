"""Data sets: readers of raw files, frozen splits, the synthetic set, items, and the error type."""
