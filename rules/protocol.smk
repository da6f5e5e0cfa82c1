# The protocol's rules.
#   requires  runs/<run>/rules/*.smk, compiled by the main process while the Snakefile is parsed
#   makes     one rule per phase, gate and proposal step of the live iteration, and TARGETS

for path in flow.compiled:

    include: path
