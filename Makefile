# One door: `make help` lists what there is. Every target sets up what it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LOWEST ?= build/lowest
LOWEST_PYTHON ?= 3.10

.DEFAULT_GOAL := help
.PHONY: help install demo test interpreted coverage lowest lint format bench reproduce docs wheel clean

help: ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# What a user, a run of the tests and development need; each is installed when it is first asked for.
USER := $(VENV)/.user
TEST := $(VENV)/.test
DEV := $(VENV)/.dev

install: $(DEV) ## create the virtual environment and install everything for development

$(VENV)/.created:
	@echo "Creating the virtual environment $(VENV)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

$(USER): pyproject.toml | $(VENV)/.created
	@echo "Installing treelens with RDKit (some 200 MB to download on a new machine)"
	$(BIN)/python -m pip install --quiet --editable '.[chem,draw]'
	@touch $@

$(TEST): pyproject.toml | $(VENV)/.created
	@echo "Installing treelens, and what its tests need (some 350 MB to download on a new machine)"
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@ $(USER)

$(DEV): pyproject.toml | $(VENV)/.created
	@echo "Installing treelens, its tests, linters and the tools of the documentation"
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(TEST) $(USER)

demo: $(USER) ## set up, learn on real molecules, print the scores and write a report
	$(BIN)/treelens demo

test: $(TEST) ## set up, run the tests (set TREELENS_DATA to include those on real data sets)
	$(BIN)/python -m pytest -n 2 --dist loadfile --disable-warnings
	@echo "The examples in docstrings:"
	$(BIN)/python -m pytest --doctest-modules src/treelens -q
	@echo "Small cases without numba, a simulated GPU among them:"
	$(MAKE) interpreted

interpreted: $(TEST) ## small cases without numba, a simulated GPU among them: there, an index out of bounds is an error
	NUMBA_DISABLE_JIT=1 NUMBA_ENABLE_CUDASIM=1 $(BIN)/python -m pytest -n 2 -m interpreted -q --disable-warnings

coverage: $(TEST) ## run the tests and count the lines they reach; below the floor is an error
	$(BIN)/python -m pytest -n 2 --dist loadfile --cov --cov-report term:skip-covered --cov-report html

lowest: ## run the tests at the lowest versions that pyproject.toml allows (needs uv)
	uv venv --quiet --clear --python $(LOWEST_PYTHON) $(LOWEST)
	uv pip install --quiet --python $(LOWEST) --resolution lowest-direct -e '.[chem,distributed,draw,excel,networkx]'
	uv pip install --quiet --python $(LOWEST) pytest pytest-xdist hypothesis POT grakel
	$(LOWEST)/bin/python -m pytest -n 2 --dist loadfile --ignore tests/reproduction --ignore tests/docs

lint: $(DEV) ## ruff, mypy, the layers of rooms and the limits of the structure
	$(BIN)/ruff check src tests benchmarks reproduction examples .github/scripts hatch_build.py
	$(BIN)/ruff format --check src tests benchmarks reproduction examples .github/scripts hatch_build.py
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m benchmarks.structure --check

format: $(DEV) ## let ruff rewrite the code in one style
	$(BIN)/ruff check --fix src tests benchmarks reproduction examples .github/scripts hatch_build.py
	$(BIN)/ruff format src tests benchmarks reproduction examples .github/scripts hatch_build.py

bench: $(DEV) ## measure every speed claim against its rival, side by side
	$(BIN)/python -m benchmarks

reproduce: $(DEV) ## a small part of every table of the paper, into results/ (minutes)
	$(BIN)/python -m reproduction all --quick --out results

docs: $(DEV) ## run the examples and build the documentation, warnings are errors
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

wheel: $(DEV) ## build the package, look into it, install it elsewhere and try it
	rm -rf dist build/smoke
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python .github/scripts/check_wheel.py dist/*.whl
	$(BIN)/python -m venv build/smoke
	build/smoke/bin/python -m pip install --quiet dist/*.whl
	cd build/smoke && bin/python -I ../../.github/scripts/smoke_test.py

clean: ## remove the virtual environment and everything that was built
	rm -rf $(VENV) build dist docs/_build docs/gallery docs/api/generated .pytest_cache .ruff_cache .mypy_cache
