"""Plan and state to Snakemake rules: literal, deterministic text with the protocol's lines."""
