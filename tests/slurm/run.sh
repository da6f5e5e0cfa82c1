#!/usr/bin/env bash
# Runs the tests that need Slurm, after installing Debian's packages where root may.
# usage: run.sh PYTHON [arguments of pytest]
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$1
shift

skip() {
    echo "test-slurm: SKIPPED, nothing was run on Slurm: $1" >&2
    exit 0
}

if ! PATH=$PATH:/usr/sbin command -v slurmctld >/dev/null; then
    [ "$(id -u)" = 0 ] || skip "slurmctld is not installed, and only root could install it"
    command -v apt-get >/dev/null || skip "slurmctld is not installed, and there is no apt-get"
    export DEBIAN_FRONTEND=noninteractive
    install="apt-get install -y --no-install-recommends slurm-wlm munge"
    timeout 240 sh -c "$install || { apt-get update && $install; }" >/dev/null 2>&1 ||
        skip "the packages slurm-wlm and munge could not be installed"
fi
exec "$python" -m pytest -m slurm tests/workflow/test_slurm.py "$@"
