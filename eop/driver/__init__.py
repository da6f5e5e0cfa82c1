"""From frontier to Snakemake and back: preparing a run, executing nodes, the run loop."""
