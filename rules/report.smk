# What people look at.
#   requires  the published entries of the run
#   makes     runs/<run>/report.html, one file that needs nothing else


rule report:
    input:
        list(PUBLISHED.values()),
    output:
        report=f"runs/{flow.project.run}/report.html",
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
