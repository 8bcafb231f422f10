# Every target works from a fresh checkout that has python3, make and a C compiler: .venv is built once from
# requirements.lock and reused until that file or pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Every file but torch's is checked by its hash. Which build of torch is right depends on the machine.
TORCH := torch==2.13.0
INSTALL := -m pip install --quiet --disable-pip-version-check
LOCKED := $(INSTALL) --no-deps --require-hashes -r requirements.lock

.PHONY: demo test bench peers soak coverage audit lint docs lock clean

demo: $(READY)
	$(BIN)/residua demo

# Two workers with one thread each: more threads than cores only wait for one another.
test: export OMP_NUM_THREADS = 1
test: export OPENBLAS_NUM_THREADS = 1
test: export NUMBA_NUM_THREADS = 1
test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist worksteal

bench: $(READY)
	$(BIN)/python -m benchmarks

coverage: $(READY)
	$(BIN)/python -m pytest -q -n 2 --cov=residua.linalg --cov=residua.graph --cov=residua.field \
	    --cov=residua.estimator --cov-fail-under=90

# Hostile files, kills, full disks, nasty numbers: half an hour of them, and what was seen.
soak: export OMP_NUM_THREADS = 1
soak: export OPENBLAS_NUM_THREADS = 1
soak: export NUMBA_NUM_THREADS = 1
soak: $(READY)
	$(BIN)/python -m tests.soak --minutes 30

# Other libraries on the same tasks, in an environment of their own.
peers: .venv-peers/.ready
	.venv-peers/bin/python -m benchmarks.peers

.venv-peers/.ready: requirements.lock benchmarks/peers-requirements.txt pyproject.toml
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python $(LOCKED)
	.venv-peers/bin/python $(INSTALL) $(TORCH) -r benchmarks/peers-requirements.txt
	.venv-peers/bin/python $(INSTALL) --no-deps --no-build-isolation -e .
	touch $@

# Known vulnerabilities of what is pinned; asks PyPI.
audit:
	test -x .venv-audit/bin/pip-audit || ($(PYTHON) -m venv .venv-audit && .venv-audit/bin/python $(INSTALL) pip-audit)
	.venv-audit/bin/pip-audit -r requirements.lock --require-hashes --disable-pip --strict

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: export NO_MKDOCS_2_WARNING = 1
docs: $(READY)
	$(BIN)/mkdocs build --strict

$(READY): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python $(LOCKED)
	$(BIN)/python $(INSTALL) $(TORCH)
	$(BIN)/python $(INSTALL) --no-deps --no-build-isolation -e .
	touch $@

# Resolve pyproject.toml anew, and note the hash of every file that may be installed.
lock:
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python $(INSTALL) $(TORCH)
	.venv-lock/bin/python $(INSTALL) -e '.[dev]'
	.venv-lock/bin/python -m pip freeze --all --exclude-editable --exclude pip > .venv-lock/pins.txt
	.venv-lock/bin/python tools/lock.py .venv-lock/pins.txt > requirements.lock.new && mv requirements.lock.new requirements.lock
	rm -rf .venv-lock

clean:
	rm -rf .venv .venv-audit .venv-lock .venv-peers site build dist
