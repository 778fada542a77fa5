# Two commands: `make up` runs Muster, `make test` tests it. The rest is for those who change it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MLFLOW := .venv-mlflow

.DEFAULT_GOAL := help
.PHONY: help up demo test test-slurm check bench pictures clean $(MLFLOW)

help:  ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-10s %s\n", $$1, $$2}'

$(BIN)/muster: pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "Muster needs Python 3.11 or newer: apt-get install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Muster needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "No venv module: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@$(BIN)/python -m compileall -q src/muster
	@touch $@

$(VENV)/.dev: $(BIN)/muster
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

up: $(BIN)/muster  ## install into .venv and run Muster here: queue, scheduler, local engine
	$(BIN)/muster up

demo: $(BIN)/muster  ## install into .venv and show a simulated site with a week behind it
	$(BIN)/muster demo

test: $(VENV)/.dev  ## install what the tests need and run them
	$(BIN)/python -m pytest -n auto
	$(BIN)/python -m pytest -n auto tests/browser # apart: a browser keeps its process's event loop

test-slurm: $(VENV)/.dev  ## install Debian's Slurm if there is none (as root) and test against a real cluster
	tests/slurm/install
	MUSTER_TEST_SLURM=1 $(BIN)/python -m pytest -n 3 --dist worksteal tests/slurm # they wait more than they work

check: $(VENV)/.dev  ## style, types and the layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(MLFLOW): $(MLFLOW)/.made

$(MLFLOW)/.made: constraints-mlflow.txt
	$(PYTHON) -m venv $(MLFLOW)
	$(MLFLOW)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints-mlflow.txt mlflow
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	@touch $@

bench: $(VENV)/.bench  ## measure everything and rewrite docs/benchmarks.md (MUSTER_TRACES=folder of public traces)
	$(BIN)/python -m bench all --write docs/benchmarks.md

pictures: $(VENV)/.dev  ## take the documentation's pictures anew, from the demonstration
	$(BIN)/python docs/images/pictures.py

clean:  ## remove what was installed and cached
	rm -rf $(VENV) $(MLFLOW) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
