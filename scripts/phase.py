"""Compiled rules of phases: one node of a run, through the state machine's door."""

from eop.driver.node import run_node
from eop.driver.shim import rule

with rule(snakemake) as root:
    run_node(root, snakemake.params.run, snakemake.params.node)
