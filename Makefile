# `make help` lists what there is to do. Each target sets up what it needs: a virtual environment in .venv, the Python
# packages, the npm packages, the browser bundle and, for the tests, Chromium. What is done leaves a stamp in .make/, so
# that a second run starts at once.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo generate docs test landing slow-tests test-all checks lint types mypy tsc imports frontend frontend-checks rule clean

PYTHON ?= python3
# The torch that the tests are known to pass with. It is installed before anything that would pull another one.
TORCH ?= torch==2.13.0
PORT ?= 6006

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
# Python compiles what is imported, which is a small part of torch.
INSTALL := $(PIP) install --no-compile
# What builds the package is in the environment already.
INSTALL_EDITABLE := $(INSTALL) --no-build-isolation --editable
STAMPS := .make
TORCH_APART := $(STAMPS)/site-packages
BUNDLE := tb_dlprof_plugin/static/index.js
# TypeScript that tools/generate.py writes; git ignores it.
GENERATED := $(addprefix frontend/src/,api/columns.ts api/requests.ts api/types.ts format/definitions.ts testing/shapes.ts)
FRONTEND_SOURCES := $(filter-out $(GENERATED),$(shell find frontend -type f -not -path '*/node_modules/*' \
	-not -path '*/dist/*' -not -path '*/coverage/*' 2>/dev/null))
GENERATOR_SOURCES := $(shell find tb_dlprof_plugin tools -name '*.py')

# Tests start some hundred Pythons and TensorBoards: without what the first of them compiled, each compiles it again.
unexport PYTHONDONTWRITEBYTECODE

# Where a Python keeps its packages. A virtual environment made from another one does not see that one's packages by itself.
PRINT_PURELIB := import sysconfig; print(sysconfig.get_paths()["purelib"])

# What each target prints comes in one piece.
PARALLEL := $(MAKE) --jobs=3 --output-sync=target
# One worker runs all tests of a file, or all that read one recording. One more worker than cores where tests often wait for
# a process that they started.
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
PYTEST := --dist loadscope --no-loadscope-reorder -n

step = @printf '\n=== %s\n' "$(1)"

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(STAMPS)/python $(BUNDLE) ## Train two small runs here, then show them beside the recorded ones in TensorBoard
	$(call step,demo: train and serve (Ctrl-C ends it))
	@$(PY) demo/run.py --port $(PORT)

generate: $(STAMPS)/python-test ## Write the files that are made from tables in the code: TypeScript, which editors ask for, and lists in docs/
	$(call step,generate)
	@$(PY) tools/generate.py

docs: $(STAMPS)/python-docs ## Build the documentation as a site, site/index.html, with the pages that are made from the code
	$(call step,docs)
	@$(PY) docs/rule_pages.py
	@$(PY) tools/generate.py --docs
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet --clean
	@echo "open site/index.html"

test: $(STAMPS)/python-test checks ## Check style, imports and the frontend, and run the tests that need neither torch nor a browser
	$(call step,Python tests)
	@$(PY) -m pytest $(PYTEST) $(CORES) -m 'not slow and not long'

# Types are checked by one core, and tests wait for the processes that they start: side by side they take less.
landing: $(STAMPS)/python-dev $(STAMPS)/chromium ## After `make test`: types, and the tests with torch, TensorBoard and a browser
	@$(MAKE) --jobs=3 mypy tsc slow-tests

slow-tests: $(STAMPS)/python-dev $(STAMPS)/chromium
	$(call step,Python tests with torch or a browser)
	@$(PY) -m pytest $(PYTEST) $$(($(CORES) + 1)) -m 'slow and not long'

test-all: checks types $(STAMPS)/python-dev $(STAMPS)/chromium ## Run every check and every test
	$(call step,every Python test)
	@$(PY) -m pytest $(PYTEST) $$(($(CORES) + 1)) --hypothesis-profile long
	$(call step,the pages in a browser without TensorBoard)
	@TB_DLPROF_TESTED_SERVER=view $(PY) -m pytest $(PYTEST) $(CORES) tests/e2e
	$(call step,the oldest and the newest Python and packages)
	@$(PY) tools/environments.py --leave-out

checks: $(STAMPS)/python-test $(BUNDLE)
	@$(PARALLEL) lint imports frontend-checks

lint: $(STAMPS)/python-test $(STAMPS)/npm ## Check style: ruff check, ruff format, words of texts, biome
	$(call step,ruff check)
	@$(PY) -m ruff check .
	$(call step,ruff format --check)
	@$(PY) -m ruff format --check .
	$(call step,words that docs/style.md rules out)
	@$(PY) tools/check_words.py
	@$(PY) tools/page_words.py
	$(call step,npm run lint)
	@cd frontend && npm run lint

types: mypy tsc ## Check types: mypy, tsc

mypy: $(STAMPS)/python-dev
	$(call step,mypy)
	@$(PY) -m mypy

tsc: $(STAMPS)/npm $(GENERATED)
	$(call step,npm run typecheck)
	@cd frontend && npm run typecheck

imports: $(STAMPS)/python-test ## Check that packages import only from those below them
	$(call step,lint-imports)
	@$(VENV)/bin/lint-imports

frontend: $(BUNDLE) ## Build the browser bundle

frontend-checks: $(STAMPS)/npm $(GENERATED) ## Run the frontend's unit tests
	$(call step,npm test)
	@cd frontend && npm test </dev/null

rule: $(STAMPS)/python-test ## Start a rule of the advice, with its test: make rule TOPIC=layers NAME=slow_softmax
	@$(PY) tools/new_rule.py $(or $(TOPIC),--help) $(NAME)

clean: ## Remove what the targets made, the virtual environment too
	rm -rf $(VENV) $(STAMPS) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .import_linter_cache \
		.hypothesis test-results tb_dlprof_plugin/static frontend/node_modules frontend/dist frontend/coverage demo/runs \
		docs/rules docs/definitions.md site $(GENERATED)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- what the targets above need

$(STAMPS)/venv:
	$(call step,virtual environment)
	@mkdir -p $(STAMPS)
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.10 or newer is missing: $(PYTHON) was not found." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "Python 3.10 or newer is missing: $(PYTHON) is older; name another with make PYTHON=..." >&2; exit 1; }
	@if [ ! -x $(PY) ]; then \
		$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
			|| { echo "Python's venv is missing: install it (on Debian: apt-get install -y python3-venv)." >&2; exit 1; }; \
		if $(PYTHON) -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then \
			echo "using the torch of $(PYTHON), which sees a GPU"; \
			$(PYTHON) -m venv --system-site-packages $(VENV); \
			$(PYTHON) -c '$(PRINT_PURELIB)' >"$$($(PY) -c '$(PRINT_PURELIB)')/torch_of_the_system.pth"; \
		else \
			$(PYTHON) -m venv $(VENV); \
		fi; \
	fi
	@touch $@

# CI: uv takes an eighth of pip's time for what pip then finds in place. Where uv cannot, or torch is the system's, pip does
# it all.
UV_INSTALL = $(PY) -c 'import torch' 2>/dev/null || { $(INSTALL) uv && $(PY) -m uv pip install --python $(PY) \
	--requirement pyproject.toml --extra $(1); } || true

$(STAMPS)/unpacked-%: pyproject.toml $(STAMPS)/venv
	$(call step,what the extra $* asks for)
	@$(call UV_INSTALL,$*)
	@touch $@

$(STAMPS)/build-requires: pyproject.toml $(STAMPS)/venv
	$(call step,what builds the package)
	@$(INSTALL) $$(sed -n '/^requires = \[/,/^\]/ s/^ *"\(.*\)".*/\1/p' pyproject.toml)
	@touch $@

$(STAMPS)/generated: $(STAMPS)/build-requires $(GENERATOR_SOURCES)
	$(call step,TypeScript from tables in the code)
	@PYTHONPATH=. $(PY) tools/generate.py --frontend
	@touch $@

# The generator leaves a file as it is whose text has not changed, so that the bundle is not built again.
$(GENERATED): $(STAMPS)/generated
	@test -f $@ || PYTHONPATH=. $(PY) tools/generate.py --frontend

# CI downloads and unpacks torch while tests run that must not see half of it: it joins the environment by a path.
$(STAMPS)/torch-apart: $(STAMPS)/venv
	$(call step,torch beside the environment)
	@$(PY) -c 'import torch' 2>/dev/null || $(INSTALL) --target $(TORCH_APART) "$(TORCH)"
	@touch $@

$(STAMPS)/torch: $(STAMPS)/venv
	$(call step,torch)
	@if $(PY) -c 'import torch' 2>/dev/null; then \
		$(PY) -c 'import torch; print("torch", torch.__version__, "is here already")'; \
	elif [ -f $(STAMPS)/torch-apart ]; then \
		echo "$(CURDIR)/$(TORCH_APART)" >"$$($(PY) -c '$(PRINT_PURELIB)')/torch_apart.pth"; \
	else \
		$(INSTALL) "$(TORCH)"; \
	fi
	@touch $@

$(STAMPS)/python: pyproject.toml setup.py $(STAMPS)/torch | $(BUNDLE)
	$(call step,tb_dlprof_plugin and the PyTorch Profiler tab beside it)
	@$(INSTALL_EDITABLE) '.[pytorch-views]'
	@touch $@

$(STAMPS)/python-test: pyproject.toml setup.py $(STAMPS)/venv | $(BUNDLE)
	$(call step,tb_dlprof_plugin and what its tests need without torch)
	@$(INSTALL_EDITABLE) '.[test]'
	@touch $@

$(STAMPS)/python-dev: pyproject.toml setup.py $(STAMPS)/torch | $(BUNDLE)
	$(call step,tb_dlprof_plugin and what all its tests need)
	@$(INSTALL_EDITABLE) '.[dev]'
	@touch $@ $(STAMPS)/python $(STAMPS)/python-test

$(STAMPS)/python-docs: pyproject.toml setup.py $(STAMPS)/venv | $(BUNDLE)
	$(call step,tb_dlprof_plugin and what its documentation needs)
	@$(INSTALL_EDITABLE) '.[docs]'
	@touch $@

$(STAMPS)/npm: frontend/package.json frontend/package-lock.json
	$(call step,npm ci)
	@mkdir -p $(STAMPS)
	@command -v node >/dev/null && command -v npm >/dev/null \
		|| { echo "Node.js is missing: install Node.js 20 or newer with npm (https://nodejs.org)." >&2; exit 1; }
	@node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' \
		|| { echo "Node.js 20 or newer is missing: this is $$(node --version)." >&2; exit 1; }
	@cd frontend && npm ci --no-audit --no-fund
	@touch $@

$(BUNDLE): $(STAMPS)/npm $(FRONTEND_SOURCES) $(GENERATED)
	$(call step,browser bundle)
	@cd frontend && npm run build
	@test -f $@ || { echo "npm run build wrote no $@." >&2; exit 1; }
	@touch $@

$(STAMPS)/chromium:
	$(call step,Chromium)
	@mkdir -p $(STAMPS)
	@found() { command -v chromium || command -v chromium-browser || command -v google-chrome; }; \
	if found; then :; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium; \
	elif command -v apt-get >/dev/null && sudo -n true 2>/dev/null; then \
		sudo apt-get update && sudo DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium; \
	fi; \
	found >/dev/null \
		|| { echo "Chromium is missing, which the browser tests drive: install it (on Debian: apt-get install -y chromium)." >&2; exit 1; }
	@touch $@
