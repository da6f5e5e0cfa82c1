# setup · demo · data · test · products · test-products · test-slurm · docs · lint · bench · event-schema · block-schema · error-pages
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo data test products test-products test-slurm docs lint mutants bench event-schema block-schema error-pages clean-demo

setup: $(STAMP)
	@$(BIN)/python -m eop.agents.jail

$(STAMP): constraints.txt pyproject.toml
	@command -v git >/dev/null || { echo "setup: git is missing; install it first"; exit 9; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "setup: Python 3.11 or newer is needed (found $$($(PYTHON) -V)); run: make setup PYTHON=python3.11"; exit 9; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@$(BIN)/hstu kernels
	@$(BIN)/eop store index
	@touch $@

demo: setup
	@$(BIN)/eop demo .demo

# make data DATASET=ml-100k
data: setup
	@$(BIN)/hstu data fetch $(or $(DATASET),ml-100k) --to data/raw

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadgroup

# The pinned programs, into .products (docs/howto/real-agents.md)
products:
	@tests/products/install.sh .products

# Claude Code, Codex and others as they are, against a model that plays a script: minutes, no key
test-products: setup
	@tests/products/run.sh $(BIN)/python

# A run with trainings on a Slurm of this machine alone: minutes, root (docs/howto/cluster.md)
test-slurm: setup
	@tests/slurm/run.sh $(BIN)/python

# The pages as a web site, into .docs/
docs: setup
	$(BIN)/python -m sphinx -W -q -b html docs .docs
	@echo "open .docs/index.html"

# Hours: changes the checks and the state machine, and lists what no test noticed (docs/testing.md).
# make mutants ARGS="eop.runtime.joins*"
mutants: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[mutation]'
	$(BIN)/mutmut run $(ARGS)
	$(BIN)/mutmut results

# make bench ARGS="--peer rectools"
bench: setup
	$(BIN)/python -m benchmarks $(ARGS)

# After a change of eop/runtime/events.py
event-schema: setup
	$(BIN)/python -c "import json, yaml; from eop.runtime.events import event_schema; print(yaml.safe_dump(json.loads(json.dumps(event_schema())), sort_keys=False), end='')" > config/schemas/event.schema.yaml

# After a change of eop/protocol/markers.py
block-schema: setup
	$(BIN)/python -c "import json; from eop.protocol.block_schema import block_schema; print(json.dumps(block_schema(), indent=1))" > config/schemas/eop-block.schema.json

# After a change of what a diagnostic says: the messages in docs/errors
error-pages: setup
	$(BIN)/python tests/protocol/error_pages.py
