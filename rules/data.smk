# Data.
#   requires  the raw data set in config `data_dir` (made on the spot for `synthetic`)
#   makes     data/splits/<dataset>/: train, validation, test, items and their manifest
#
# Only the manifest is an edge of the graph: it holds the digests of the big files.


rule split:
    output:
        manifest=f"data/splits/{flow.project.config.dataset}/manifest.json",
    log:
        "logs/split.log",
    benchmark:
        "logs/split.tsv"
    resources:
        runtime=60,
    params:
        dataset=flow.project.config.dataset,
        source=flow.project.config.data_dir,
    message:
        "split ({params.dataset} from {params.source})"
    script:
        "../scripts/split.py"
