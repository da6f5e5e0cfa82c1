"""The deterministic phases: what the runtime does itself, and no agent can talk it out of."""
