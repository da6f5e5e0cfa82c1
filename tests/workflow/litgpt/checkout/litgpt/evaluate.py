"""Stands in for LitGPT's evaluation, which no patch may touch."""

VALIDATION_BATCHES = 100
