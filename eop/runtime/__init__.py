"""The state machine: what may run now, what happened, and what gates say."""
