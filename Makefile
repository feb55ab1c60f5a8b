# Doorcard's two commands are `make demo` and `make test`; every target sets up what it needs.
SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
PROTOS := $(shell find protos -name '*.proto')
HANDS ?= 200
SUMMARY ?=
# Two workers suit two cores; unit and property tests share them, tests with servers of their own run one by one.
JOBS ?= 2
SHARED := -n $(JOBS) --dist loadfile --no-loadscope-reorder

help: ## show this list
	@grep -hE '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | awk -F ':.*?## ' '{printf "  %-12s %s\n", $$1, $$2}'

setup: $(VENV)/.installed gen/.made ## install the pinned dependencies into .venv and generate the protocol code

$(VENV)/.installed: requirements/dev.lock pyproject.toml
	@echo "== installing pinned dependencies into $(VENV) (about a minute the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

protos: gen/.made ## generate Python and .pyi from protos/ into gen/ (git-ignored)

gen/.made: $(PROTOS) | $(VENV)/.installed
	@echo "== generating protocol code"
	@rm -rf gen && mkdir -p gen
	@$(BIN)/python -m grpc_tools.protoc -I protos --python_out=gen --grpc_python_out=gen \
		--plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy --plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc \
		--mypy_out=quiet:gen --mypy_grpc_out=quiet:gen $(PROTOS)
	@find gen/doorcard -type d -exec touch {}/__init__.py \;
	@touch $@

demo: setup ## run the whole room with bots: make demo HANDS=50 SUMMARY=build/summary.json
	@$(BIN)/doorcard demo --hands $(HANDS) $(if $(SUMMARY),--summary $(SUMMARY))

test: setup ## unit and property tests, then contract and integration tests
	@$(BIN)/python -m pytest -m "not deep" $(SHARED) tests

test-deep: setup ## everything: chaos, long oracles, sweeps
	@$(BIN)/python -m pytest $(SHARED) tests

lint: setup ## ruff, mypy --strict, import layers, buf
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/buf lint protos

pages: setup ## write the files that are generated from the code: docs/METRICS.md, docs/SETTINGS.md, dashboards
	@$(BIN)/python -m tools

bench: setup ## measure against floors in the same run; prints a table and writes build/bench.json
	@mkdir -p build
	@$(BIN)/python -m bench

clean: ## remove everything that was generated (data folders stay)
	@rm -rf gen build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find services tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help setup protos demo test test-deep lint pages bench clean
