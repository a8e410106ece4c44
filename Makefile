PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Real data sets for benchmarks and some tests: a folder of .npz files, used only if it is there.
export SPAN_HPO_DATA ?= $(abspath $(wildcard ../shared/data))

.PHONY: demo test slow check bench quick clean

demo: $(VENV)/installed
	$(BIN)/span-hpo demo

test: $(VENV)/installed
	$(BIN)/python -m pytest -m 'not slow'

slow: $(VENV)/installed
	$(BIN)/python -m pytest -m slow

check: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/installed
	$(BIN)/python -m benchmarks speed
	$(BIN)/python -m benchmarks exact
	$(BIN)/python -m benchmarks growth
	$(BIN)/python -m benchmarks large
	$(BIN)/python -m benchmarks classes
	$(BIN)/python -m benchmarks startup
	$(BIN)/python -m benchmarks search
	$(BIN)/python -m benchmarks pruning
	$(BIN)/python -m benchmarks overhead
	$(BIN)/python -m benchmarks calibration
	$(BIN)/python -m benchmarks cluster
	$(BIN)/python -m benchmarks scale
	$(BIN)/python -m benchmarks nodes
	$(BIN)/python -m benchmarks papers --jobs 2
	$(BIN)/python -m benchmarks tables
	$(BIN)/python -m benchmarks figures

# Every benchmark of the papers and peers, on a small part of the data; its CSVs are not kept.
quick: $(VENV)/installed
	@if [ -n "$(SPAN_HPO_DATA)" ]; then $(BIN)/python -m benchmarks papers --quick; \
	else echo "Set SPAN_HPO_DATA to a folder of data sets to try the benchmarks."; fi

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[fast,flaml,optuna,parquet,plots,ray,test,dev]'
	$(BIN)/python -m pip install --quiet --editable '.[libsvm]' \
	  || echo "libsvm-official needs a C++ compiler: the tests that compare with it are skipped."
	$(BIN)/python -m pip install --quiet 'torch==2.13.0+cpu' 2>/dev/null \
	  || $(BIN)/python -m pip install --quiet --retries 0 torch \
	    --index-url https://download.pytorch.org/whl/cpu \
	  || echo "Without PyTorch the test of Optuna's GPSampler is skipped."
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache
