PYTHON ?= python3
VENV ?= .venv
DEMO_VENV ?= .venv-demo
BIN := $(VENV)/bin
COMPILED := $(shell find span_hpo -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' -o -name '*.h')

# SPAN_HPO_DATA may name a folder of data sets; ../shared/data beside the checkout is found.
export SPAN_HPO_DATA ?= $(abspath $(wildcard ../shared/data))

.PHONY: demo test slow wheel check bench quick clean help

demo: $(DEMO_VENV)/installed ## Tune an SVM on real data, print a table and write demo.png.
	$(DEMO_VENV)/bin/span-hpo demo

test: $(VENV)/built ## Run the tests.
	$(BIN)/python -m pytest -m 'not slow'

slow: $(VENV)/built ## Run the slow tests: sweeps over many problems.
	$(BIN)/python -m pytest -m slow

wheel: ## Run the tests against installed wheels, with and without compiled modules.
	PYTHON=$(PYTHON) .ci/wheel
	PYTHON=$(PYTHON) .ci/wheel plain

check: $(VENV)/installed ## Check style, format and types.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/built ## Run all benchmarks, then write their tables and figures.
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python -m benchmarks all --jobs 2

quick: $(VENV)/built ## Try the benchmarks of the papers on a small part of the data.
	@if [ -n "$(SPAN_HPO_DATA)" ]; then $(BIN)/python -m benchmarks papers --quick; \
	else echo "Set SPAN_HPO_DATA to a folder of data sets to try the benchmarks."; fi

$(DEMO_VENV)/installed: pyproject.toml setup.py $(COMPILED)
	@echo "Installing span_hpo, Optuna and matplotlib in $(DEMO_VENV): about 350 MB."
	$(PYTHON) -m venv $(DEMO_VENV)
	$(DEMO_VENV)/bin/python -m pip install --no-compile --editable '.[optuna,plots]'
	touch $@

$(VENV)/installed: pyproject.toml
	@echo "Installing all that tests and benchmarks need in $(VENV): 3 GB, some minutes."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[flaml,optuna,parquet,plots,ray,test,dev]'
	$(BIN)/python -m pip install --quiet --editable '.[libsvm]' \
	  || echo "libsvm-official needs a C++ compiler: the tests that compare with it are skipped."
	$(BIN)/python -m pip install --quiet 'torch==2.13.0+cpu' 2>/dev/null \
	  || $(BIN)/python -m pip install --quiet --retries 0 torch \
	    --index-url https://download.pytorch.org/whl/cpu \
	  || echo "Without PyTorch the test of Optuna's GPSampler is skipped."
	touch $@

# The installation has compiled the .pyx files; this compiles those that were edited since.
$(VENV)/built: $(VENV)/installed setup.py $(COMPILED)
	$(BIN)/python setup.py --quiet build_ext --inplace
	touch $@

clean: ## Remove the environments, all caches and all compiled files.
	find span_hpo -name '*.so' -delete
	rm -rf $(VENV) $(DEMO_VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' Makefile
