"""Rule split: the data set's train, validation and test files."""

from eop.driver.shim import rule
from eop.functions.split import make_split

with rule(snakemake) as root:
    make_split(root, snakemake.params.dataset, snakemake.params.source)
