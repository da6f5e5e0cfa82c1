"""Rule report: the run's page and figures."""

from eop.driver.shim import rule
from eop.report import write_report, write_run_figures

with rule(snakemake) as root:
    write_report(root, snakemake.params.run)
    write_run_figures(root, snakemake.params.run)
