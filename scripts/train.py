"""Rule train: one experiment by hand."""

from eop.driver.shim import rule
from eop.functions.standalone import train

with rule(snakemake) as root:
    train(
        root,
        split=snakemake.input.split,
        experiment=snakemake.input.experiment,
        checkpoint=snakemake.output.checkpoint,
        threads=snakemake.threads,
    )
