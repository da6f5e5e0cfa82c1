# One experiment by hand, outside any protocol.
#   requires  config/experiments/<experiment>.yaml and the split
#   makes     runs/experiments/<dataset>/<experiment>/checkpoint.json, from the working tree's hstu/


rule train:
    input:
        split=rules.split.output.manifest,
        experiment="config/experiments/{experiment}.yaml",
    output:
        checkpoint=f"runs/experiments/{flow.project.config.dataset}/{{experiment}}/checkpoint.json",
    log:
        f"runs/experiments/{flow.project.config.dataset}/{{experiment}}/train.log",
    benchmark:
        f"runs/experiments/{flow.project.config.dataset}/{{experiment}}/train.tsv"
    threads: flow.project.config.threads
    resources:
        runtime=600,
    params:
        code=lambda wildcards: flow.code,
    message:
        "train ({wildcards.experiment})"
    script:
        "../scripts/train.py"
