# One door: `make help` lists what there is. Every target sets up what it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test interpreted lint format bench reproduce docs clean

help: ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP) ## create the virtual environment and install everything for development

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(STAMP) ## learn on real molecules, print the table and write a report
	$(BIN)/treelens demo

test: $(STAMP) ## run the tests (set TREELENS_DATA to include those on real data sets)
	$(BIN)/python -m pytest -n 2 --dist loadfile
	$(BIN)/python -m pytest --doctest-modules src/treelens -q
	$(MAKE) interpreted

interpreted: $(STAMP) ## small cases without numba: there, an index out of bounds is an error
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 -m interpreted -q

lint: $(STAMP) ## ruff, mypy, and the layers of the house
	$(BIN)/ruff check src tests benchmarks reproduction examples
	$(BIN)/ruff format --check src tests benchmarks reproduction examples
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## let ruff rewrite the code in one style
	$(BIN)/ruff check --fix src tests benchmarks reproduction examples
	$(BIN)/ruff format src tests benchmarks reproduction examples

bench: $(STAMP) ## measure every speed claim against its rival, side by side
	$(BIN)/python -m benchmarks

reproduce: $(STAMP) ## a small part of every table of the paper, into results/ (minutes)
	$(BIN)/python -m reproduction all --quick --out results

docs: $(STAMP) ## build the documentation, warnings are errors
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean: ## remove the virtual environment and everything that was built
	rm -rf $(VENV) build dist docs/_build .pytest_cache .ruff_cache .mypy_cache
