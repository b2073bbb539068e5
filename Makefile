# Everything runs from a fresh clone on a machine with Python 3.11 or later and make.
# Another interpreter or another place for the environment: make test PYTHON=python3.13 VENV=.venv313

PYTHON ?= python3
VENV ?= .venv
# Extra flags of `pip install`, e.g. PIP_FLAGS="-c .github/oldest.txt" for the oldest supported versions.
PIP_FLAGS ?=
# pytest processes; each gets one thread, or the boosters would fight over the cores.
WORKERS ?= 2
# What `make unit` runs; nothing is all of it.
TESTS ?=

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test test-newest test-oldest lint types unit docs docs-check bench-quick fuzz clean distclean

help:
	@echo "make demo         Figure 1 of the paper on both boosters: a table and demo.png"
	@echo "make test         lint, types, unit and docs: all that has to pass"
	@echo "make test-newest  what touches a booster, frames or scikit-learn, on the newest Python and the newest releases"
	@echo "make test-oldest  all tests on the oldest releases that are supported"
	@echo "make lint         ruff check and ruff format --check"
	@echo "make types        mypy"
	@echo "make unit         doctests and tests"
	@echo "make docs         the site, strictly, in docs/_build/html"
	@echo "make docs-check   open every page of the built site in headless chromium at two widths, and keep screenshots"
	@echo "make bench-quick  every benchmark on small data, in less than five minutes"
	@echo "make fuzz         new mutated files and random models for a minute (FUZZ_SECONDS=60), against the readers and load"
	@echo "make clean        remove what the targets made, except $(VENV)"
	@echo "make distclean    remove the environments too"

demo: $(INSTALLED)
	$(BIN)/python -m benchmarks.figure1

test: lint types unit docs

# Releases come without a change here, so the newest are looked up each time.
test-newest:
	@python="$$(.ci/newest-python)" && rm -f .venv-newest/.installed && $(MAKE) unit VENV=.venv-newest PYTHON="$$python" \
		PIP_FLAGS="--upgrade --upgrade-strategy eager" TESTS="adapters grbb_ext $(addprefix tests/,adapters estimators \
		forest graph model_selection objective ondemand persistence plotting table test_readme.py)"

test-oldest:
	$(MAKE) unit VENV=.venv-oldest PIP_FLAGS="-c .github/oldest.txt"

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# In build/types the adapters lie where they are once installed, so that mypy sees through them.
types: $(INSTALLED)
	rm -rf build/types && mkdir -p build/types/grbb_ext
	ln -s ../../../adapters $(patsubst %,../../../%,$(wildcard grbb_ext/*)) build/types/grbb_ext/
	ln -s ../../benchmarks build/types/
	cd build/types && $(abspath $(BIN))/mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache

# loadgroup keeps the tests that share a built wheel in one process.
unit: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup $(TESTS)

# Always from scratch: Sphinx does not repeat the warnings of pages it has cached, so a second run would pass.
docs: $(INSTALLED)
	rm -rf docs/_build docs/auto_*
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W -n --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# For another browser, or as root: DOCS_CHECK="--browser google-chrome --no-sandbox"
docs-check: $(INSTALLED)
	$(BIN)/python docs/check_pages.py $(DOCS_CHECK)

bench-quick: $(INSTALLED)
	rm -rf docs/_build/quick
	$(BIN)/python -m benchmarks all --quick --jobs $(WORKERS)

FUZZ_SECONDS ?= 60
fuzz: $(INSTALLED)
	$(BIN)/python -m benchmarks.attack --seconds $(FUZZ_SECONDS)

clean:
	rm -rf build dist *.egg-info docs/_build docs/auto_* docs/sg_execution_times.rst .hypothesis .mypy_cache .ruff_cache demo.png demo.csv
	find . -name __pycache__ -type d -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean
	for venv in $(VENV) .venv-newest .venv-oldest; do if [ -f $$venv/pyvenv.cfg ]; then rm -rf $$venv; fi; done

# The stamp is written last, so an interrupted installation is taken up again. An environment in which pip does not run
# is a broken one and is made anew; one that works keeps what else was installed in it.
$(INSTALLED): pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { \
		echo "grbb_ext needs Python 3.11 or later, but there is no '$(PYTHON)'. Name one, e.g. make PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "grbb_ext needs Python 3.11 or later, but '$(PYTHON)' is $$("$(PYTHON)" --version 2>&1). Name a newer one, e.g. make PYTHON=python3.12" >&2; exit 1; }
	@rm -f $@
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
		if [ -f $(VENV)/pyvenv.cfg ]; then rm -rf $(VENV); fi; "$(PYTHON)" -m venv $(VENV); }
	@echo "Installing grbb_ext and its tools into $(VENV), which takes about a minute."
	$(BIN)/python -m pip install -q $(PIP_FLAGS) -e '.[dev]'
	@touch $@
