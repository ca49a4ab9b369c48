# Bare `make` prints this help. Every target makes its own virtual environment in .venv and needs Python 3.11+ and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help install fmt lint types test cov docs docs-check check bench demo clean
.DEFAULT_GOAL := help

help: ## this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(READY)

install: $(READY) ## make .venv and install Toolcrib with what the tests need

fmt: $(READY) ## format the code
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lint: $(READY) ## ruff
	$(BIN)/ruff format --check . && $(BIN)/ruff check .

types: $(READY) ## mypy, strict
	$(BIN)/mypy

test: $(READY) ## the tests
	$(BIN)/python -m pytest

cov: $(READY) ## the tests with branch coverage
	$(BIN)/python -m pip install --quiet --disable-pip-version-check coverage
	$(BIN)/coverage run --branch --source src/toolcrib -m pytest && $(BIN)/coverage report --skip-covered --sort cover

docs: $(READY) ## rebuild the generated pages
	$(BIN)/python scripts/pages.py

docs-check: $(READY) ## generated pages fresh, links whole
	$(BIN)/python scripts/docs_check.py

check: lint types test docs-check ## what must pass before a commit

bench: $(READY) ## the benchmarks; with DATA=folder also those over real catalogs
	$(BIN)/python benchmarks/run.py $(if $(DATA),--data $(DATA))

demo: $(READY) ## real servers, three requests, two callers, one call, one refusal
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python scripts/demo.py

clean: ## remove what the targets made
	rm -rf $(VENV) .demo .mypy_cache .ruff_cache .pytest_cache
