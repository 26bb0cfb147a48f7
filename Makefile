# Every command makes the virtual environment it needs, with plain venv and pip. The second call
# finds the stamp file of the first and starts at once.
#
#   make demo         every mode on a photograph, and an image recovered by gradient descent
#   make test         the whole suite, and the examples in the docstrings
#   make check        every check, fastest first: run this before you send a change
#
#   make lint         ruff, rules and format (make format: let ruff rewrite the files)
#   make types        pyright
#   make test-peers   the tests against torch and OpenCV
#   make test-ecosystem  resampling inside flax, equinox and optax, sharded and exported
#   make notebooks    run every notebook, each to its closing assertions
#   make bench        time against jax.image.resize and torch, and write benchmarks/RESULTS.md
#   make bench-aot    compile for TPU and GPU, neither needed, and write benchmarks/AOT.md: an hour
#   make test-oldest  the quick tests on the oldest JAX and numpy that pyproject.toml allows
#   make test-newest  the quick tests on the newest JAX, under the newest Python found here
#   make wheel-check  build the wheel, install it in an empty environment, use it from elsewhere
#   make clean        remove environments and build products
#
# Variables: PYTHON, NEWEST_PYTHON, TORCH, and ARGS for pytest: make test ARGS="-k lanczos"

PYTHON ?= python3
# pip takes whichever build of this version it is shown. The build for Linux that pip takes unless
# told otherwise brings CUDA, gigabytes of it; any other version or build serves as well.
TORCH ?= torch==2.13.0
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
# What depends on JAX most: its transformations, dtypes and lowering, and all of README.md.
QUICK := -m "not slow" $(addprefix tests/test_,$(addsuffix .py,transforms derivatives dtypes jax_image readme))

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: bench bench-aot demo test check lint format types test-peers test-ecosystem notebooks \
    test-oldest test-newest wheel-check clean
.NOTPARALLEL:
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/python notebooks/demo.py

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 $(ARGS)
	$(BIN)/python -m pytest --doctest-modules jresample

check: lint types demo wheel-check test test-peers test-ecosystem notebooks

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev $(VENV)/.demo
	$(BIN)/pyright --pythonpath $(BIN)/python

test-peers: $(VENV)/.peers
	$(BIN)/python -c "import cv2, torch"
	$(BIN)/python -m pytest -n 2 -m peers $(ARGS)

# The imports first: without them the tests would be skipped, and pass for nothing.
test-ecosystem: $(VENV)/.notebooks
	$(BIN)/python -c "import equinox, flatbuffers, flax, optax, sklearn"
	$(BIN)/python -m pytest -n 2 tests/test_ecosystem.py $(ARGS)

notebooks: $(VENV)/.notebooks
	$(BIN)/python -m pytest --nbmake --nbmake-timeout=600 --durations=0 --durations-min=1 \
	    notebooks $(ARGS)

bench: $(VENV)/.peers
	$(BIN)/python benchmarks/bench.py --write benchmarks/RESULTS.md $(ARGS)

bench-aot: .venv-aot/.aot
	.venv-aot/bin/python benchmarks/aot.py --write benchmarks/AOT.md $(ARGS)

test-oldest: .venv-oldest/.test
	.venv-oldest/bin/python -c "import jax, numpy; print('jax', jax.__version__, 'numpy', numpy.__version__)"
	.venv-oldest/bin/python -m pytest -n 2 $(QUICK) $(ARGS)

# The newest JAX needs a newer Python than the oldest that we support.
NEWEST_PYTHON ?= $(shell for minor in 14 13 12; do \
    for python in python3.$$minor $${PYENV_ROOT:-$$HOME/.pyenv}/versions/3.$$minor.*/bin/python; do \
    $$python -c "import ensurepip, venv" 2> /dev/null && echo $$python && exit; done; done)

test-newest:
	@if [ -z "$(NEWEST_PYTHON)" ]; then \
	    echo "SKIPPED: no Python 3.12 or later was found here, so the newest JAX tested is the one" \
	        "that $(PYTHON) can install. Set NEWEST_PYTHON to name an interpreter."; \
	else \
	    $(MAKE) --no-print-directory test-newest-found; \
	fi

.PHONY: test-newest-found
test-newest-found: .venv-newest/.test
	.venv-newest/bin/python -c "import jax, sys; print('jax', jax.__version__, 'Python', sys.version)"
	.venv-newest/bin/python -m pytest -n 2 $(QUICK) $(ARGS)

wheel-check: $(VENV)/.made
	rm -rf build/wheel
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip install --quiet build/wheel/jresample-*.whl
	cd build/wheel && venv/bin/python -W error -c "$$WHEEL_CHECK" jresample-*.whl

define WHEEL_CHECK
import sys, zipfile
from pathlib import Path
import jax, jax.numpy as jnp, jresample
home = Path(jresample.__file__).parent
assert "site-packages" in home.parts, home
assert (home / "py.typed").is_file(), "py.typed is missing from the wheel"
tops = {name.split("/")[0].split("-")[0] for name in zipfile.ZipFile(sys.argv[1]).namelist()}
assert tops == {"jresample"}, tops
gradient = jax.grad(lambda x: jresample.resize(x, (2, 3), "lanczos3").sum())(jnp.ones((8, 9)))
assert abs(float(gradient.sum()) - 6) < 1e-5, gradient.sum()
print(sys.argv[1], "works from", home)
endef
export WHEEL_CHECK

clean:
	rm -rf .venv .venv-oldest .venv-newest .venv-aot build dist .pytest_cache .ruff_cache .hypothesis

# --- environments ---------------------------------------------------------------------------------

MAKE_VENV = -c "import sys; sys.exit('jresample needs Python 3.11 or later; set PYTHON to name one' \
    if sys.version_info < (3, 11) else 0)"

$(VENV)/.made:
	$(PYTHON) $(MAKE_VENV)
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.made
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.made
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

$(VENV)/.peers: pyproject.toml $(VENV)/.made
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python -m pip install --quiet --editable ".[test,peers]"
	touch $@

$(VENV)/.notebooks: pyproject.toml $(VENV)/.made
	$(BIN)/python -m pip install --quiet --editable ".[test,notebooks,ecosystem]"
	touch $@

# The demonstration needs less than the extra `notebooks`, which brings the whole of Jupyter.
$(VENV)/.demo: pyproject.toml $(VENV)/.made
	$(BIN)/python -m pip install --quiet --editable . matplotlib pillow
	touch $@

# `jax>=0.7.0` in pyproject.toml is read as `jax==0.7.0` here, so that the bound is what is tested.
OLDEST = $(shell sed -nE 's/^ +"(jax|jaxlib|numpy)>=([0-9.]+)",$$/\1==\2/p' pyproject.toml)

.venv-oldest/.test: pyproject.toml
	$(PYTHON) $(MAKE_VENV)
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --editable ".[test]" $(OLDEST)
	touch $@

.venv-newest/.test: pyproject.toml
	$(NEWEST_PYTHON) -m venv --clear .venv-newest
	.venv-newest/bin/python -m pip install --quiet --editable ".[test]"
	touch $@

.venv-aot/.aot: pyproject.toml
	$(PYTHON) $(MAKE_VENV)
	$(PYTHON) -m venv --clear .venv-aot
	.venv-aot/bin/python -m pip install --quiet --editable ".[aot]"
	touch $@
