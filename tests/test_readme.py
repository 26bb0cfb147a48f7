"""README.md keeps its word: its code runs as a reader would run it, and its table is true."""

import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import ALIASES, METHODS, Axis, along, matrix

import jresample

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")

# One namespace for all blocks, as for a reader who types them in turn. Empty lines stand in for the
# text around a block, so that a traceback names README.md's own line.
RUN_BLOCKS = r"""
import re
from pathlib import Path
text = Path("README.md").read_text(encoding="utf-8")
namespace = {"__name__": "readme"}
for block in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S):
    above = text[: block.start(1)].count("\n")
    exec(compile("\n" * above + block.group(1), "README.md", "exec"), namespace)
    print("ran the block at line", above + 1)
"""


def test_every_python_block_runs():
    # In a process of its own: the strict settings of this suite are not the reader's.
    blocks = README.count("\n```python\n")
    assert blocks >= 4
    reader = {key: os.environ[key] for key in os.environ if not key.startswith(("JAX_", "XLA_"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN_BLOCKS],
        cwd=ROOT,
        env=reader | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ran the block at line") == blocks


def test_every_file_that_is_linked_exists():
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert "notebooks/images/modes.png" in links
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_pictures_are_small():
    images = list((ROOT / "notebooks" / "images").iterdir())
    assert [image.name for image in images if image.stat().st_size > 200_000] == []


def table_rows():
    """{method: (its other names, the cells forward, grad, jvp, vmap)} of README.md's table."""
    _, table = README.split("| method of `resize` |")
    rows = {}
    for line in table.split("\n\n")[0].splitlines()[2:]:
        names, _, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        first, *others = re.findall(r"`([^`]+)`", names)
        rows[first] = (others, cells)
    return rows


def test_table_has_every_method_by_every_name():
    rows = table_rows()
    assert sorted(rows) == sorted(METHODS)
    assert {other: name for name, (others, _) in rows.items() for other in others} == ALIASES
    assert {cell for _, cells in rows.values() for cell in cells} == {"yes"}


@pytest.mark.parametrize("method", METHODS)
def test_table_row(method):
    """Forward, grad, jvp and vmap of one method, up along one axis and down along the other."""
    dense = matrix(Axis(5, 8, method)), matrix(Axis(9, 4, method))
    rng = np.random.default_rng(METHODS.index(method))
    images, cotangent = rng.normal(size=(3, 5, 9)), rng.normal(size=(8, 4))

    def forward(x):
        return jresample.resize(x, (8, 4), method)

    def loss(x):
        return jnp.vdot(forward(x), cotangent)

    want = [along(dense[1], along(dense[0], x, 0), 1) for x in images]
    adjoint = along(dense[1].T, along(dense[0].T, cotangent, 0), 1)
    close = {"rtol": 0, "atol": 1e-12}
    np.testing.assert_allclose(forward(images[0]), want[0], **close)
    np.testing.assert_allclose(jax.grad(loss)(jnp.asarray(images[0])), adjoint, **close)
    value, tangent = jax.jvp(forward, (jnp.asarray(images[0]),), (jnp.asarray(images[1]),))
    np.testing.assert_allclose(value, want[0], **close)
    np.testing.assert_allclose(tangent, want[1], **close)
    np.testing.assert_allclose(jax.vmap(forward)(images), want, **close)
