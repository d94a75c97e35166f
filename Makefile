# `make round` and `make test` set up what they need. Everything made here lies under .venv and .ratchet.
.PHONY: help setup browser vllm base round \
	test test-slow test-apps example-app test-android test-vllm check hooks \
	browsergym test-browsergym peers lock clean

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
IN_TWO := -n 2 --dist loadfile --no-loadscope-reorder
READY := $(VENV)/.ready
# Where .venv was made, if that is elsewhere: it has that path in it, and would run the code of that checkout.
MADE_FOR := $(filter-out $(realpath $(VENV)),$(shell sed -n 's/^command = .* //p' $(VENV)/pyvenv.cfg 2>/dev/null))
APP := .ratchet/example-app
VLLM := .ratchet/vllm
TRL := .ratchet/trl
VLLM_KIND := $(if $(shell command -v nvidia-smi),cuda,cpu)
# uv reads no pip configuration: a folder of wheels that pip knows is handed on.
export UV_FIND_LINKS ?= $(shell $(BIN)/pip config get global.find-links 2>/dev/null)
export PATH := $(CURDIR)/$(BIN):$(PATH)

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) browser .ratchet/downloads/SmolLM2-135M-Instruct.Q4_1.gguf ## Virtual environment, Chromium, text weights

.PHONY: $(if $(MADE_FOR),$(READY))
$(READY): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found; install Python 3.11, or: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 2; }
	@$(if $(MADE_FOR),echo "setup: $(VENV) was made for $(MADE_FOR): making it anew" && rm -rf $(VENV))
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@echo "setup: installing the locked packages into $(VENV)"
	@$(BIN)/pip install -qq --disable-pip-version-check 'uv>=0.9'
	@UV_FIND_LINKS="$${UV_FIND_LINKS:-$$($(BIN)/pip config get global.find-links 2>/dev/null)}" \
		$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $(READY)

browser: $(READY)
	@sh infra/chromium.sh

.ratchet/downloads/SmolLM2-135M-Instruct.Q4_1.gguf: | $(READY)
	@echo "setup: fetching the text weights"
	@$(BIN)/python -m models.weights

vllm: $(VLLM)/.ready-$(VLLM_KIND) ## vLLM in an environment of its own, for engine.kind: vllm (docs/vllm.md)

$(VLLM)/.ready-$(VLLM_KIND): infra/vllm/$(VLLM_KIND).lock | $(READY)
	@test -e $@ || $(PYTHON) -m venv --clear $(VLLM)  # nothing of the other kind is to stay
	@echo "vllm: installing the locked packages for $(VLLM_KIND) into $(VLLM)"
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(VLLM)/bin/python --no-deps -r infra/vllm/$(VLLM_KIND).lock
ifeq ($(VLLM_KIND),cpu)
	@# PyPI's torchvision is built for CUDA: its operators do not load, which only this module of it minds.
	@for file in $(VLLM)/lib/python*/site-packages/torchvision/_meta_registrations.py; do rm "$$file" && touch "$$file"; done
endif
	@touch $@

base: setup ## The eyes of the embedded base, made again from nothing into data/base (docs/decisions/0013-eyes.md)
	@GOMP_SPINCOUNT=200000 $(BIN)/python -m models.eyes

round: setup ## One round: seeds the models first where there are none
	@$(BIN)/ratchet round

test: setup ## The default tests
	@$(BIN)/pytest $(IN_TWO)

test-slow: setup ## Whole rounds: kill and resume, reproduce from a clone
	@$(BIN)/pytest $(IN_TWO) -m slow

test-apps: setup example-app ## The example web application, judged by its own database
	@$(BIN)/pytest -m apps

example-app: $(APP)/.ready ## Trac, the example web application, and its data

$(APP)/.ready: examples/trac/requirements.txt examples/trac/seed.py
	@echo "example-app: installing Trac into $(APP)"
	@rm -rf $(APP) && $(PYTHON) -m venv $(APP)
	@$(APP)/bin/pip install -qq --disable-pip-version-check -r examples/trac/requirements.txt
	@$(APP)/bin/trac-admin $(APP)/project initenv Greenhouse sqlite:db/trac.db >/dev/null
	@$(APP)/bin/python examples/trac/seed.py $(APP)/project
	@touch $(APP)/.ready

test-android: setup ## The Android driver with the real adb, installed where it is missing
	@sh infra/adb.sh
	@RATCHET_ADB="$${RATCHET_ADB:-$$(command -v adb)}" $(BIN)/pytest -m android

test-vllm: setup vllm ## A real vLLM server against the engine in this process
	@$(BIN)/pytest -m vllm

check: $(READY) ## Lint, types, layers
	@$(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/mypy && $(BIN)/lint-imports

hooks: $(READY) ## Run the checks before each commit
	@$(BIN)/pre-commit install

browsergym: browser .ratchet/browsergym/.ready ## BrowserGym, in an environment of its own

.ratchet/browsergym/.ready: infra/browsergym.sh $(READY)
	@PYTHON=$(PYTHON) sh infra/browsergym.sh

test-browsergym: setup browsergym ## BrowserGym environments as worlds
	@$(BIN)/pytest -m browsergym

peers: browsergym $(TRL)/.ready ## What `python -m benchmarks.worlds` and `benchmarks.training` compare with
	@command -v chromedriver >/dev/null || sh infra/apt.sh chromium-driver 'put a chromedriver and its chromium on PATH'

$(TRL)/.ready: requirements.lock | $(READY)
	@$(BIN)/uv venv --quiet --clear --python $(PYTHON) $(TRL)
	@echo "peers: installing TRL into $(TRL)"
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(TRL)/bin/python -r requirements.lock trl==1.16.0
	@touch $@

LOCK_VLLM := --quiet --upgrade --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-header --no-annotate

lock: $(READY) ## Resolve pyproject.toml into requirements.lock, and vLLM's environments into infra/vllm
	@$(BIN)/uv pip compile --quiet --upgrade pyproject.toml --group dev --no-emit-index-url --no-emit-find-links --no-header \
		--no-annotate -o requirements.lock
	@sed -i 's/^\(torch==[0-9.]*\)+cpu$$/\1/' requirements.lock  # a local build's label says nothing elsewhere
	@$(BIN)/uv pip compile $(LOCK_VLLM) infra/vllm/cpu.in --override infra/vllm/cpu.overrides -o infra/vllm/cpu.lock
	@sed -i 's/^\(torch==[0-9.]*\)+cpu$$/\1/' infra/vllm/cpu.lock
	@env -u UV_FIND_LINKS $(BIN)/uv pip compile $(LOCK_VLLM) infra/vllm/cuda.in -o infra/vllm/cuda.lock

clean: ## Delete working files; data/ and git history stay
	rm -rf .ratchet/work .ratchet/logs .mypy_cache .ruff_cache .pytest_cache
