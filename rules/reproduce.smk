# One entry made again from what was recorded.
#   requires  leaderboard/<entry>/, and the entry's split and snapshot (dvc pull)
#   makes     repro/<entry>/metrics.json, and verdict.json beside it, which stays when it is a no


rule reproduce:
    input:
        entry="leaderboard/{entry}/entry.yaml",
    output:
        metrics="repro/{entry}/metrics.json",
    log:
        "logs/reproduce_{entry}.log",
    benchmark:
        "logs/reproduce_{entry}.tsv"
    threads: flow.project.config.threads
    resources:
        runtime=600,
    params:
        isolation=flow.project.config.isolation,
    message:
        "reproduce ({wildcards.entry})"
    script:
        "../scripts/reproduce.py"
