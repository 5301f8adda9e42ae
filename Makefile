# Every target prepares its own virtual environment; nothing has to be installed beforehand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
# One thread per process: the parallelism is over tests and folds, not inside BLAS.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test lint study bench clean

demo: $(VENV)/.core
	$(BIN)/python -m adacos.demo

test: lint
	$(BIN)/python -m pytest -n $(JOBS) -m "not study and not torch" tests

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

study: $(VENV)/.dev
	$(BIN)/python -m benchmarks.study

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
