# For users: `make checkup`, `make lab`, `make site`, `make reference`. For developers: `make test`. All set up .venv first, and
# again when what they need has changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Python compiles what it imports; pip would compile all of PyTorch beforehand, on one core, in most of a minute.
INSTALL := $(PIP) install --no-compile -c constraints.txt
ENGINE := $(wildcard engine/*.cc engine/*/*.h engine/*/*.cc)

.DEFAULT_GOAL := help
.PHONY: help checkup lab site reference test pytest attack lint format sanitize aarch64 clean

help:
	@echo "make checkup   set up what is needed and let the doctor train, examine and treat three small models"
	@echo "make lab       set up what is needed and open the course in the browser"
	@echo "make site      set up what is needed and write the course as plain files: build/site/index.html"
	@echo "make reference set up what is needed and build the API reference: build/reference/index.html"
	@echo "make test      all checks: lint, formats, types, tests"
	@echo "make lint      all checks but the tests"
	@echo "make attack    an hour of hostile files, answers, arguments and failures (MINUTES=5 for five minutes)"
	@echo "make sanitize  the kernels' tests with address and undefined-behaviour sanitizers"
	@echo "make aarch64   the kernels' tests on another processor, emulated: needs Debian's cross compiler and qemu"
	@echo "make format    rewrite Python and C++ in the project's format"
	@echo "make clean     remove what make made"

checkup: $(VENV)/.doctor
	$(BIN)/softscope checkup

lab: $(VENV)/.lab
	$(BIN)/softscope lab

# Written beside the last one and then put in its place, so that a failure leaves that one whole.
site: $(VENV)/.lab $(VENV)/.docs
	@rm -rf build/site.new
	$(BIN)/softscope site build/site.new
	@rm -rf build/site && mv build/site.new build/site && echo "Open build/site/index.html in a browser."

reference: $(VENV)/.docs
	$(BIN)/python -m softscope.site.reference

# Lint beside the tests: each of them leaves a core idle at times.
test: $(VENV)/.dev
	@$(MAKE) --no-print-directory -j 2 lint pytest

pytest: $(VENV)/.dev
	$(BIN)/pytest -n 2 --dist loadgroup

# Every attack of tests/hostile with seeds that were never tried. MINUTES is for the random ones, which run two at a time.
MINUTES := 60
ATTACKS = $(shell grep -l 'in attempts' tests/hostile/test_*.py | wc -l)
attack: $(VENV)/.dev
	@seed=$${SOFTSCOPE_ATTACK_SEED:-$$(date +%s)}; \
	echo "Attacking for about $(MINUTES) minutes; again with: make attack SOFTSCOPE_ATTACK_SEED=$$seed"; \
	SOFTSCOPE_ATTACK_SEED=$$seed SOFTSCOPE_ATTACK_SECONDS=$$(($(MINUTES) * 120 / $(ATTACKS))) \
	  $(BIN)/pytest -n 2 -m "slow or not slow" tests/hostile

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $(ENGINE)
	$(BIN)/mypy

# A build of its own in an environment of its own, which borrows the packages of the first.
SANITIZED := build/sanitized
LIBRARY = $(shell $(CXX) -print-file-name=$(1))
sanitize: $(VENV)/.dev
	$(PYTHON) -m venv $(SANITIZED)
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > \
	  $$($(SANITIZED)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/borrowed.pth
	$(SANITIZED)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --no-build-isolation \
	  --force-reinstall -C build-dir=build/sanitized-tree -C cmake.define.SOFTSCOPE_SANITIZE=address,undefined .
	LD_PRELOAD="$(call LIBRARY,libasan.so) $(call LIBRARY,libubsan.so)" ASAN_OPTIONS=detect_leaks=0 \
	  UBSAN_OPTIONS=halt_on_error=1 $(SANITIZED)/bin/python -m pytest -q -x -p no:cacheprovider \
	  -k "not fork" tests/engine tests/fuzz

# Not part of `make test`: it takes half an hour. TESTS chooses some of it, in pytest's words.
aarch64: $(VENV)/.dev
	@sh tests/aarch64/run.sh $(TESTS)

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(ENGINE)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Each stamp is newer than what it was made from; make compares the two.

# Says what is missing in one line, before pip or CMake say it in a hundred.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "Missing: Python 3.11 or newer. Install it, or name it: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Missing: Python's venv module. Install it; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# An editable install knows only the files that were there when it was made, so it is made again when they change.
$(VENV)/.files: FORCE | $(BIN)/python
	@find src -name '*.py' | LC_ALL=C sort | cmp -s - $@ || find src -name '*.py' | LC_ALL=C sort > $@
FORCE:

# Build requirements come from pyproject.toml into .venv, and the build is not isolated: an isolated one
# would fetch them again for each change in engine/, and CMake could not continue where it was.
# CMake and ninja are no requirements there, as the machine may have its own; here they cannot be missing.
$(VENV)/.package: pyproject.toml CMakeLists.txt constraints.txt $(ENGINE) $(VENV)/.files | $(BIN)/python
	@command -v $(firstword $(CXX)) >/dev/null || command -v c++ >/dev/null || \
	  { echo "Missing: a C++ compiler. Install g++ or clang++; on Debian and Ubuntu: apt install g++" >&2; exit 1; }
	@$(BIN)/python -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("include"), "Python.h").stat()' 2>/dev/null || \
	  { echo "Missing: Python's C headers. Install them; on Debian and Ubuntu: apt install python3-dev" >&2; exit 1; }
	@echo "Building softscope into $(VENV); the first time takes a minute or two."
	@$(INSTALL) cmake ninja $$($(BIN)/python -c \
	  'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])')
	@$(INSTALL) --no-build-isolation -e .
	@touch $@

$(VENV)/.doctor: pyproject.toml constraints.txt | $(VENV)/.package
	@echo "Installing PyTorch into $(VENV)."
	@$(INSTALL) --no-build-isolation -e '.[doctor]'
	@touch $@

$(VENV)/.lab: pyproject.toml constraints.txt | $(VENV)/.package
	@echo "Installing the lab's packages and PyTorch into $(VENV)."
	@$(INSTALL) --no-build-isolation -e '.[lab]'
	@touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/.package
	@echo "Installing what builds the API reference and PyTorch into $(VENV)."
	@$(INSTALL) --no-build-isolation -e '.[docs]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.package
	@echo "Installing the developers' tools and PyTorch into $(VENV)."
	@$(INSTALL) --no-build-isolation -e '.[dev]'
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true  # with all cores; tests start many programs at once
	@touch $@
