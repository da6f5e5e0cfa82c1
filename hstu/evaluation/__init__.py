"""Sealed evaluation: histories go to a worker, scores come back, ranks are made here."""
