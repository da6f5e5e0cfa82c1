"""Compiled rules of gates: the audit record of an approved gate."""

from eop.driver.node import record_gate
from eop.driver.shim import rule

with rule(snakemake) as root:
    record_gate(root, snakemake.params.run, snakemake.params.node)
