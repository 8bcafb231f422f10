# Every target works from a fresh checkout that has python3, make and a C compiler: .venv is built once from
# requirements.lock and reused until that file or pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test bench peers soak lint docs lock clean

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

# Other libraries on the same tasks, in an environment of their own.
peers: .venv-peers/.ready
	.venv-peers/bin/python -m benchmarks.peers

.venv-peers/.ready: requirements.lock benchmarks/peers-requirements.txt pyproject.toml
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/peers-requirements.txt
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: export NO_MKDOCS_2_WARNING = 1
docs: $(READY)
	$(BIN)/mkdocs build --strict

$(READY): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# Resolve pyproject.toml anew. A local build tag such as +cpu is dropped: the pin has to name the public version.
lock:
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet torch==2.13.0
	.venv-lock/bin/python -m pip install --quiet -e '.[dev]'
	.venv-lock/bin/python -m pip freeze --exclude-editable --exclude pip --exclude setuptools | sed 's/+cpu//' > requirements.lock
	rm -rf .venv-lock

clean:
	rm -rf .venv .venv-lock .venv-peers site build dist
