# Doorcard's two commands are `make demo` and `make test`; every target sets up what it needs.
SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
PROTOS := $(shell find protos -name '*.proto')
HANDS ?= 200
SUMMARY ?=
MINUTES ?= 10
SEED ?=
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

test-deep: setup deploy-tools ## everything: more kills, long oracles, sweeps, deployment files by their own tools
	@$(BIN)/python -m pytest $(SHARED) tests

soak: setup deploy-tools ## bots play while everything is killed, cut and emptied at random: make soak MINUTES=10 SEED=1
	@$(BIN)/python -m tests.chaos.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

test-deploy: setup deploy-tools ## dashboards, alerts, image, compose and Kubernetes, by their own tools
	@$(BIN)/python -m pytest $(SHARED) tests/deploy

# program:package of Debian; what is there already, from wherever, is used.
DEPLOY_TOOLS := promtool:prometheus amtool:prometheus-alertmanager docker-compose:docker-compose kubectl:kubernetes-client \
	faketime:faketime redis-check-rdb:redis-tools

deploy-tools: ## install promtool, amtool, docker-compose, kubectl, faketime and Redis' tools where missing (Debian, as root)
	@missing=$$(for tool in $(DEPLOY_TOOLS); do command -v $${tool%%:*} >/dev/null || echo $${tool##*:}; done); \
	if [ -n "$$missing" ]; then \
		echo "== installing" $$missing; \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	fi

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

# What a hand runs through; the errors stay out: mypyc cannot compile classes of exceptions.
HOT := betting boards cards dealing events forking hand pots setup showdown state steps stub wants
compiled: setup ## compile the game with mypyc into build/compiled (needs a C compiler) and run its tests against that
	@rm -rf build/compiled && mkdir -p build/compiled
	@cp -r services tests gen docs build/compiled
	@echo "== compiling: $(HOT)"
	@cd build/compiled && $(abspath $(BIN))/mypyc --config-file= --strict --explicit-package-bases \
		$(HOT:%=services/game/%.py) > mypyc.log 2>&1 || { tail -n 40 mypyc.log; exit 1; }
	@# Only now: before, the build would take it for the description of this package.
	@cp pyproject.toml build/compiled
	@cd build/compiled && $(abspath $(BIN))/python -c 'import importlib, sys; \
		found = [importlib.import_module("services.game." + name).__file__ for name in sys.argv[1:]]; \
		sys.exit([file for file in found if not file.endswith(".so")] or 0)' $(HOT)
	@cd build/compiled && $(abspath $(BIN))/python -m pytest -m "not deep" -n $(JOBS) \
		tests/unit/game tests/unit/showdown tests/property/test_hand.py tests/property/test_forks.py \
		tests/property/test_payouts_against_brute_force.py tests/scenario

clean: ## remove everything that was generated (data folders stay)
	@rm -rf gen build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find services tests bench tools extras -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help setup protos demo test test-deep soak test-deploy deploy-tools lint pages bench compiled clean
