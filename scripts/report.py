"""Rule report: the run's page."""

from eop.driver.shim import rule
from eop.report import write_report

with rule(snakemake) as root:
    write_report(root, snakemake.params.run)
