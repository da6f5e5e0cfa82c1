"""Rule record: an iteration's bytes into DVC."""

from eop.driver.shim import rule
from eop.functions.record import record

with rule(snakemake) as root:
    record(root, snakemake.params.run, snakemake.wildcards.iteration)
