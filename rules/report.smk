# What people look at.
#   requires  the published entries of the run
#   makes     runs/<run>/report.html, one file that needs nothing else, and two figures beside it
#
# `snakemake --report` shows these, and from the Snakefile what each iteration left.


report: "captions/workflow.rst"


rule report:
    input:
        lambda wildcards: flow.there(PUBLISHED.values()),
    output:
        page=report(
            f"runs/{flow.project.run}/report.html",
            caption="captions/page.rst",
            category="All iterations",
            labels={"result": "the page of the run"},
        ),
        scores=report(
            f"runs/{flow.project.run}/leaderboard.svg",
            caption="captions/scores.rst",
            category="All iterations",
            labels={"result": "scores with their intervals"},
        ),
        gains=report(
            f"runs/{flow.project.run}/noise.svg",
            caption="captions/gains.rst",
            category="All iterations",
            labels={"result": "gains beside the noise"},
        ),
    log:
        f"runs/{flow.project.run}/logs/report.log",
    benchmark:
        f"runs/{flow.project.run}/benchmarks/report.tsv"
    localrule: True
    resources:
        runtime=10,
    params:
        run=flow.project.run,
        standing=STANDING,
    message:
        "report ({params.run})"
    script:
        "../scripts/report.py"
