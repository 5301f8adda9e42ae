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

# `make test LOCKED=1`, as CI does: exactly the packages of requirements/, checked by their hashes.
LOCKED ?=
COMMA := ,
# Installs this package with extras and by further arguments, or the packages of a lock and it beside them.
INSTALL = $(if $(LOCKED),$(1)/python -m pip install --quiet --require-hashes -r requirements/$(2).txt && \
	$(1)/python -m pip install --quiet --no-deps --no-build-isolation -e .,\
	$(1)/python -m pip install --quiet $(4) -e ".[$(3)]")

.PHONY: demo test test-all test-browser test-lowest golden lint docs wheel study attack bench lock sbom clean

demo: $(VENV)/.core
	$(BIN)/python -m adacos.demo

test: lint
	$(BIN)/python -m pytest -n $(JOBS) -m "not study and not torch and not browser and not wheel" \
		$(if $(COVERAGE),--cov --cov-report=term:skip-covered) \
		--doctest-modules --doctest-ignore-import-errors tests src/adacos
	@echo "Left out: tests that need torch, lightgbm or a browser (make test-all), simulations (make study)."

test-all: test $(VENV)/.all test-browser
	$(BIN)/python -m pytest -n $(JOBS) -m "not study" tests/rivals tests/kernels/test_tensors.py

test-browser: $(VENV)/.browser
	ADACOS_AXE=$(VENV)/node_modules/axe-core/axe.min.js $(BIN)/python -m pytest -m browser tests/browser

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_docstrings.py
	$(BIN)/python tools/check_words.py

# The site under build/docs: examples and blocks executed, outputs compared; a warning or a broken link is an error.
docs: $(VENV)/.dev $(VENV)/.docs
	$(BIN)/python -m pytest -n $(JOBS) tests/test_docs.py tests/service/test_tutorial.py
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

# Every policy decides as tests/golden/decisions.json says; UPDATE=1 writes the file.
golden: $(VENV)/.dev
	$(BIN)/python -m tests.golden $(if $(UPDATE),--update)

study: $(VENV)/.dev
	$(BIN)/python -m benchmarks.study
	$(BIN)/python -m pytest -m study tests

# Odd and hostile files, models, settings and corrections; then attacks over raw sockets and mixed traffic. All
# with their counts; takes about an hour.
attack: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) -rP -m "study or not study" tests/attack/test_csv.py \
		tests/attack/test_files.py tests/attack/test_models.py tests/attack/test_mutants.py \
		tests/test_random_configurations.py tests/service/test_history.py
	$(BIN)/python -m tests.attack

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.speed --install --write docs/benchmarks.md

# The newest packages, with their hashes: for the image, to build with, for CI, for the browser; the lowest ones
# for test-lowest; and uv, which makes these files, for the next time.
UV = $(BIN)/uv pip compile --quiet --no-config --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-emit-package adacos --custom-compile-command "make lock"
lock: $(BIN)/python
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/lock.txt
	$(UV) --extra service pyproject.toml requirements/service.in -o requirements/service.txt
	$(UV) requirements/build.in -o requirements/build.txt
	$(UV) --extra dev --extra docs pyproject.toml requirements/build.in -o requirements/dev.txt
	$(UV) --extra rivals --extra gpu --overrides requirements/overrides.txt -c requirements/dev.txt \
		pyproject.toml -o requirements/all.txt
	$(BIN)/python tools/lowest_versions.py > $(VENV)/constraints.txt
	$(UV) --extra dev --extra parquet -c $(VENV)/constraints.txt pyproject.toml requirements/build.in \
		-o requirements/lowest.txt
	$(UV) requirements/lock.in -o requirements/lock.txt
	cd requirements && npm install --silent --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved
	$(UV) requirements/browser.in -o requirements/browser.txt
	$(UV) requirements/release.in -o requirements/release.txt

# What the image is made of, as CycloneDX, under build/sbom.
sbom: $(BIN)/python
	$(PYTHON) -m venv --clear $(VENV)-release
	$(VENV)-release/bin/python -m pip install --quiet --require-hashes -r requirements/release.txt
	mkdir -p build/sbom
	$(VENV)-release/bin/cyclonedx-py requirements --output-reproducible \
		--output-file build/sbom/adacos.cdx.json requirements/service.txt

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-release build dist docs/generated docs/gallery docs/sg_execution_times.rst

$(BIN)/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "adacos needs Python >= 3.11; set PYTHON=..."'
	$(PYTHON) -m venv $(VENV)
	$(if $(LOCKED),,$(BIN)/python -m pip install --quiet --upgrade pip)

$(VENV)/.core: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(call INSTALL,$(BIN),dev,dev)
	touch $@ $(VENV)/.core

$(VENV)/.docs: $(BIN)/python pyproject.toml
	$(call INSTALL,$(BIN),dev,docs)
	touch $@ $(VENV)/.core

$(VENV)-lowest/.done: pyproject.toml tools/lowest_versions.py
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(VENV)-lowest/bin/python tools/lowest_versions.py > $(VENV)-lowest/constraints.txt
	$(call INSTALL,$(VENV)-lowest/bin,lowest,dev$(COMMA)parquet,-c $(VENV)-lowest/constraints.txt)
	touch $@

$(VENV)/.all: $(VENV)/.dev
	$(call INSTALL,$(BIN),all,dev$(COMMA)rivals$(COMMA)gpu,"$(TORCH)")
	$(if $(LOCKED),$(BIN)/python -m pip install --quiet "$(TORCH)")
	touch $@

# The page is tested in the system's Chromium, with the checks of axe-core where npm can fetch it;
# npm compares it with the digest in package-lock.json.
$(VENV)/.browser: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/browser.txt
	cp requirements/package.json requirements/package-lock.json $(VENV)
	-npm ci --silent --ignore-scripts --prefix $(VENV)
	touch $@
