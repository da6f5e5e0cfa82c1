"""Stands in for LitGPT's training: what a patch may change, and nothing that trains."""

LEARNING_RATE = 4e-4
