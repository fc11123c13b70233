# make setup       environment in .venv from the pinned CPU lock
# make quickstart  the main job: train a small model here, end to end
# make test        the whole test suite
# make check       formatting, lint, types of the pure core, import rules, shell syntax
# make bench       speed of the allocation core, of answer checking and of a step, side by side

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
TORCH := torch==2.13.0+cpu
# Where the CPU build lives when the configured index does not carry it.
TORCH_INDEX := https://download.pytorch.org/whl/cpu
SCRIPTS := $(shell git ls-files '*.sh' .ci/run)

.PHONY: setup quickstart test check bench clean
setup: $(VENV)/.complete

# The marker comes last: an interrupted installation is begun again.
$(VENV)/.complete: requirements/cpu.txt setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
		{ echo "Python 3.11 is needed; name one with: make setup PYTHON=/path/to/python3.11"; exit 1; }
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-deps $(TORCH) || $(BIN)/pip install --quiet --no-deps --index-url $(TORCH_INDEX) $(TORCH)
	DS_BUILD_OPS=0 $(BIN)/pip install --quiet --no-deps --progress-bar off -r requirements/cpu.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

quickstart: setup
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/scripts/quickstart_cpu.sh

test: setup
	$(BIN)/python -m pytest

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	bash -n $(SCRIPTS)

bench: setup
	$(BIN)/python -m benchmarks.allocation --write
	$(BIN)/python -m benchmarks.verifiers --write
	$(BIN)/python -m benchmarks.step_time --write

clean:
	rm -rf $(VENV) runs build *.egg-info
