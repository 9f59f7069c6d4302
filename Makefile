# Everything runs in .venv, which is made from constraints.txt: nothing needs to be installed by hand but Python, Java and make.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Versions come from constraints.txt alone, so nothing has to be resolved anew.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# Python compiles what is really imported, once; compiling everything at installation takes a minute more.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test slow check unit lint docs lock bench clean java
.DEFAULT_GOAL := help

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

java:
	@bash tools/java.sh

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.11 …"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: constraints.txt pyproject.toml | $(BIN)/python
	@echo "Installing into $(VENV) (a few minutes the first time) …"
	@$(PIP) -e '.[demo]'
	@touch $@

$(VENV)/.dev: constraints.txt pyproject.toml | $(BIN)/python
	@echo "Installing into $(VENV) (a few minutes the first time) …"
	@$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.demo

demo: java $(VENV)/.demo ## Run the example DAG on an embedded Spark, and show what came out
	@$(BIN)/python tools/demo.py

test: java $(VENV)/.dev ## All tests that this machine can run but the slow ones; the others say why they are skipped
	@$(BIN)/python -m pytest

slow: java $(VENV)/.dev ## The tests of a minute and more each: lines on clusters, kills, a planted password, S3, a firewall, MLflow
	@$(BIN)/python -m pytest -m slow

unit: $(VENV)/.dev ## The tests that need no Java, under a minute
	@$(BIN)/python -m pytest tests/unit tests/architecture

lint: $(VENV)/.dev ## Lint, format, types, import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

check: lint unit ## Lint, format, types, import contracts, and the unit tier

docs: $(VENV)/.dev ## Write anew what the documentation takes from the code
	@$(BIN)/python -m tools.docs

lock: ## Resolve constraints.txt anew, all extras together
	@$(PYTHON) tools/lock.py

CASES ?= $(basename $(notdir $(wildcard benchmarks/cases/*_*.py)))
bench: java $(VENV)/.demo ## Measure each case against its baseline (CASES=partition_rows for one, ARGS=--smoke for a try)
	@for case in $(CASES); do $(BIN)/python -m benchmarks.run $$case $(ARGS) || exit 1; done

clean: ## Remove what the targets made
	@rm -rf $(VENV) .demo dist build
