"""Rule evaluate: the judgement of one experiment by hand."""

from eop.driver.shim import rule
from eop.functions.standalone import evaluate

with rule(snakemake) as root:
    evaluate(
        root,
        split=snakemake.input.split,
        checkpoint=snakemake.input.checkpoint,
        metrics=snakemake.output.metrics,
        threads=snakemake.threads,
    )
