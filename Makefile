# Every target prepares its own virtual environment; nothing has to be installed beforehand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
# `make test COVERAGE=1` measures branch coverage as well, and fails below its limit; it takes half as long again.
COVERAGE ?=
# One thread per process: the parallelism is over tests and folds, not inside BLAS.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
# This release is built for CPUs; the open range of the extra may bring gigabytes for GPUs.
TORCH := torch==2.13.0

.PHONY: demo test test-all test-browser test-lowest lint docs wheel study attack bench clean

demo: $(VENV)/.core
	$(BIN)/python -m adacos.demo

test: lint
	$(BIN)/python -m pytest -n $(JOBS) -m "not study and not torch and not browser and not wheel" \
		$(if $(COVERAGE),--cov --cov-report=term:skip-covered) \
		--doctest-modules --doctest-ignore-import-errors tests src/adacos
	@echo "Left out: tests that need torch, lightgbm or a browser (make test-all), simulations (make study)."

test-all: test $(VENV)/.all test-browser
	$(BIN)/python -m pytest -n $(JOBS) -m "not study" tests/rivals tests/test_tensors.py

test-browser: $(VENV)/.browser
	ADACOS_AXE=$(VENV)/node_modules/axe-core/axe.min.js $(BIN)/python -m pytest -m browser tests/browser

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_docstrings.py

# The site under build/docs: examples executed, a warning or a broken link is an error.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -d build/doctrees docs build/docs
	$(BIN)/python tools/check_links.py build/docs

# Wheel and sdist under dist/, then each installed in an environment of its own and tried.
wheel: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m pytest -m wheel tests/test_packaging.py tests/service/test_container.py

# The lowest versions that pyproject.toml declares, in an environment of their own.
test-lowest: $(VENV)-lowest/.done
	$(VENV)-lowest/bin/python -m pytest -n $(JOBS) -m "not study and not torch and not browser and not wheel" tests

study: $(VENV)/.dev
	$(BIN)/python -m benchmarks.study
	$(BIN)/python -m pytest -m study tests

# Hostile files and models, then attacks over raw sockets with their counts and mixed traffic.
attack: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) tests/attack/test_files.py tests/attack/test_models.py
	$(BIN)/python -m tests.attack

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.speed --install --write docs/benchmarks.md

clean:
	rm -rf $(VENV) $(VENV)-lowest build dist docs/generated docs/gallery docs/sg_execution_times.rst

$(BIN)/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "adacos needs Python >= 3.11; set PYTHON=..."'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.core: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	touch $@ $(VENV)/.core

$(VENV)/.docs: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	touch $@ $(VENV)/.core

$(VENV)-lowest/.done: pyproject.toml tools/lowest_versions.py
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(VENV)-lowest/bin/python tools/lowest_versions.py > $(VENV)-lowest/constraints.txt
	$(VENV)-lowest/bin/python -m pip install --quiet -c $(VENV)-lowest/constraints.txt \
		-e ".[dev,parquet]"
	touch $@

$(VENV)/.all: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet -e ".[dev,rivals,gpu]" "$(TORCH)"
	touch $@

# The page is tested in the system's Chromium, with the checks of axe-core where npm can fetch it.
$(VENV)/.browser: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet playwright
	-npm install --silent --no-save --prefix $(VENV) axe-core
	touch $@
