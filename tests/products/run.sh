#!/usr/bin/env bash
# Runs the tests that need real agent products, after installing them.
# usage: run.sh PYTHON [arguments of pytest]; RANKEVOLVE_PRODUCTS names another folder than .products
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$1
shift
export RANKEVOLVE_PRODUCTS=${RANKEVOLVE_PRODUCTS:-$PWD/.products}

if tests/products/install.sh "$RANKEVOLVE_PRODUCTS"; then
    exec "$python" -m pytest -m products -n 2 --dist loadfile tests/products "$@"
elif [ $? -eq 9 ]; then
    echo "test-products: SKIPPED, no real product was run: see above" >&2
else
    exit 1
fi
