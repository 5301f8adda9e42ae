# Every target prepares its own virtual environment; nothing has to be installed beforehand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
# One thread per process: the parallelism is over tests and folds, not inside BLAS.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
# This release is built for CPUs; the open range of the extra may bring gigabytes for GPUs.
TORCH := torch==2.13.0

.PHONY: demo test test-all test-browser lint study attack bench clean

demo: $(VENV)/.core
	$(BIN)/python -m adacos.demo

test: lint
	$(BIN)/python -m pytest -n $(JOBS) -m "not study and not torch and not browser" \
		--doctest-modules --doctest-ignore-import-errors tests src/adacos
	@echo "Left out: tests that need torch, lightgbm or a browser (make test-all), simulations (make study)."

test-all: test $(VENV)/.all test-browser
	$(BIN)/python -m pytest -n $(JOBS) -m "not study" tests/rivals

test-browser: $(VENV)/.browser
	ADACOS_AXE=$(VENV)/node_modules/axe-core/axe.min.js $(BIN)/python -m pytest -m browser tests/browser

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

study: $(VENV)/.dev
	$(BIN)/python -m adacos.bench.study
	$(BIN)/python -m pytest -m study tests

attack: $(VENV)/.dev
	$(BIN)/python -m tests.attack

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.speed

clean:
	rm -rf $(VENV) build dist

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

$(VENV)/.all: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet -e ".[dev,rivals]" "$(TORCH)"
	touch $@

# The page is tested in the system's Chromium, with the checks of axe-core where npm can fetch it.
$(VENV)/.browser: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet playwright
	-npm install --silent --no-save --prefix $(VENV) axe-core
	touch $@
