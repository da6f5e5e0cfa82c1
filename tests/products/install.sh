#!/usr/bin/env bash
# Installs the pinned command lines of real agent products.
# usage: install.sh FOLDER; ends with status 9 where they cannot run, and says why
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1

unfit() {
    echo "products: $1" >&2
    exit 9
}

[ "$(uname -sm)" = "Linux x86_64" ] || unfit "the versions are pinned for Linux on x86_64, this is $(uname -sm)"
command -v npm >/dev/null || unfit "there is no npm here; install node 20 or newer"

if ! cmp --silent "$here/package-lock.json" "$folder/package-lock.json" || [ ! -f "$folder/.installed" ]; then
    mkdir -p "$folder"
    rm -f "$folder/.installed"
    cp "$here/package.json" "$here/package-lock.json" "$folder/"
    # Node knows its own authorities only; those of the system are what git and pip go by as well.
    if [ -z "${NODE_EXTRA_CA_CERTS:-}" ] && [ -f /etc/ssl/certs/ca-certificates.crt ]; then
        export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
    fi
    # No script of a package is run; what is fetched has the digests of the lock file.
    timeout 600 npm install --prefix "$folder" --ignore-scripts --omit=optional --no-audit --no-fund \
        --loglevel=error --fetch-retries=1 --fetch-timeout=60000 ||
        unfit "npm could not fetch the pinned packages; is its registry within reach?"
    (cd "$folder" && sha256sum --check --quiet) <"$here/programs.sha256"
    touch "$folder/.installed"
fi

# OpenHands is a Python package for 3.12 or newer; a name on PATH may lead to no Python at all.
python=
for candidate in python3.14 python3.13 python3.12 "$HOME"/.pyenv/versions/3.1[2-9]*/bin/python; do
    if "$candidate" -c 'import venv' 2>/dev/null; then
        python=$candidate
        break
    fi
done
locked="$here/requirements-openhands.txt"
if [ -z "$python" ]; then
    echo "products: openhands is left out: it needs Python 3.12 or newer, and there is none here" >&2
elif ! cmp --silent "$locked" "$folder/openhands/.installed"; then
    rm -rf "$folder/openhands"
    "$python" -m venv "$folder/openhands"
    if timeout 600 "$folder/openhands/bin/python" -m pip install --quiet --disable-pip-version-check \
        --no-deps -r "$locked"; then
        cp "$locked" "$folder/openhands/.installed"
    else
        rm -rf "$folder/openhands"
        echo "products: openhands is left out: pip could not fetch its pinned packages" >&2
    fi
fi
