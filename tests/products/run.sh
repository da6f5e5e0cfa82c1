#!/usr/bin/env bash
# Installs the pinned command lines of real agent products and runs the tests that need them.
# usage: run.sh PYTHON [arguments of pytest]; RANKEVOLVE_PRODUCTS names another folder than .products
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$1
shift
export RANKEVOLVE_PRODUCTS=${RANKEVOLVE_PRODUCTS:-$PWD/.products}
here=tests/products

skipped() {
    echo "test-products: SKIPPED, no real product was run: $1" >&2
    exit 0
}

[ "$(uname -sm)" = "Linux x86_64" ] || skipped "the versions are pinned for Linux on x86_64, this is $(uname -sm)"
command -v npm >/dev/null || skipped "there is no npm here; install node 20 or newer"

lock="$RANKEVOLVE_PRODUCTS/package-lock.json"
if ! cmp --silent "$here/package-lock.json" "$lock" || [ ! -f "$RANKEVOLVE_PRODUCTS/.installed" ]; then
    mkdir -p "$RANKEVOLVE_PRODUCTS"
    rm -f "$RANKEVOLVE_PRODUCTS/.installed"
    cp "$here/package.json" "$here/package-lock.json" "$RANKEVOLVE_PRODUCTS/"
    # No script of a package is run; what is fetched has the digests of the lock file.
    npm install --prefix "$RANKEVOLVE_PRODUCTS" \
        --ignore-scripts --omit=optional --no-audit --no-fund --loglevel=error
    (cd "$RANKEVOLVE_PRODUCTS" && sha256sum --check --quiet) <"$here/programs.sha256"
    touch "$RANKEVOLVE_PRODUCTS/.installed"
fi

exec "$python" -m pytest -m products -n 2 "$here" "$@"
