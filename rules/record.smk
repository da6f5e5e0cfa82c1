# Bytes into DVC: the only place that calls it, one writer at a time.
#   requires  the published entries of an iteration
#   makes     .dvc files of the split, the pinned snapshot and the checkpoints, and the token
#             runs/<run>/<iteration>/recorded.json


rule record:
    input:
        lambda wildcards: PUBLISHED[wildcards.iteration],
    output:
        token=f"runs/{flow.project.run}/{{iteration}}/recorded.json",
    log:
        f"runs/{flow.project.run}/logs/{{iteration}}_record.log",
    benchmark:
        f"runs/{flow.project.run}/benchmarks/{{iteration}}_record.tsv"
    localrule: True
    resources:
        dvc=1,
    params:
        run=flow.project.run,
    message:
        "record ({wildcards.iteration})"
    script:
        "../scripts/record.py"
