# The judgement of one experiment by hand.
#   requires  its checkpoint and the split
#   makes     metrics.json beside the checkpoint: validation target, all users, full corpus


rule evaluate:
    input:
        split=rules.split.output.manifest,
        checkpoint=rules.train.output.checkpoint,
    output:
        metrics=f"runs/experiments/{flow.project.config.dataset}/{{experiment}}/metrics.json",
    log:
        f"runs/experiments/{flow.project.config.dataset}/{{experiment}}/evaluate.log",
    benchmark:
        f"runs/experiments/{flow.project.config.dataset}/{{experiment}}/evaluate.tsv"
    threads: flow.project.config.threads
    resources:
        runtime=120,
    params:
        code=lambda wildcards: flow.code,
    message:
        "evaluate ({wildcards.experiment})"
    script:
        "../scripts/evaluate.py"
