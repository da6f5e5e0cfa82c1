"""RankEvolve: evolve a ranking model by auto-research that can be trusted.

`snakemake --cores 2` runs the protocol of config/config.yaml up to the next human gate and says
what to read and what to touch. The same command goes on from there.
"""

from eop.driver.workflow import open_flow


configfile: "config/config.yaml"


# In the main process: check config and protocol, take the run lock, turn what people decided into
# events, compile the frontier. In job processes: include what the main process compiled.
flow = open_flow(workflow, config)


include: "rules/data.smk"
include: "rules/protocol.smk"
include: "rules/train.smk"
include: "rules/evaluate.smk"
include: "rules/record.smk"
include: "rules/reproduce.smk"
include: "rules/report.smk"


def frontier_targets(wildcards):
    return flow.targets(workflow, TARGETS, write_pages)


def write_page(root, run):
    # Every job parses this file, and none needs what pages are made with.
    from eop.report import write_report

    write_report(root, run)


def write_pages(root, run):
    from eop.report import write_pages

    return write_pages(root, run, bool(PUBLISHED))


rule all:
    default_target: True
    input:
        frontier_targets,
    message:
        "all that may run now has run"


onsuccess:
    flow.close(write_page)


onerror:
    flow.close(write_page)
