"""Rule reproduce: one entry made again from what it recorded."""

import os

from eop.driver.gpus import devices
from eop.driver.shim import rule
from eop.functions.reproduce import reproduce

with rule(snakemake) as root:
    reproduce(
        root,
        snakemake.wildcards.entry,
        root / "repro" / snakemake.wildcards.entry,
        threads=None,
        isolation=snakemake.params.isolation,
        gpus=len(devices(os.environ)),
    )
