"""The backward is the transpose of the forward: <A x, y> = <x, A^T y>, and it is A^T itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import CASE_IDS, CASES, METHODS, relative_error, sweep

import jresample


@pytest.mark.parametrize("method", METHODS)
def test_every_boundary(method):
    cases = sweep(method)
    xs, ys = [c.image() for c in cases], [c.cotangent() for c in cases]

    @jax.jit
    def run(xs, ys):
        pairs = []
        for case, x, y in zip(cases, xs, ys, strict=True):
            out, pullback = jax.vjp(case.run, x)
            pairs.append((out, *pullback(y)))
        return pairs

    for case, x, y, (ax, aty) in zip(cases, xs, ys, run(xs, ys), strict=True):
        left, right = np.vdot(y, ax), np.vdot(aty, x)
        scale = np.linalg.norm(y) * np.linalg.norm(ax)
        assert abs(left - right) <= 1e-12 * scale, case.name
        assert relative_error(aty, case.adjoint(y), y) <= 1e-12, case.name


@pytest.mark.parametrize("case", CASES, ids=CASE_IDS)
def test_single_precision(case):
    x, y = case.image(np.float32), case.cotangent(np.float32)
    (got,) = jax.vjp(case.run, x)[1](y)
    assert got.dtype == jnp.float32
    want = case.adjoint(y)
    # Bound by what a row of A^T can sum to, not by max|y|: an enlargement adds many outputs.
    mass = max(1.0, np.abs(case.dense[0]).sum(0).max() * np.abs(case.dense[1]).sum(0).max())
    assert relative_error(got, want, y) <= 3e-7 * mass


@pytest.mark.parametrize("method", ["nearest", "linear", "cubic", "lanczos3", "area", "bspline3"])
@pytest.mark.parametrize("sizes", [(31, 100), (100, 31), (40, 20), (17, 51)], ids=str)
def test_gradient_of_sum_is_the_column_sums(method, sizes):
    size_in, size_out = sizes
    grad = jax.grad(lambda x: jresample.resize(x, (size_out,), method).sum())(jnp.zeros(size_in))
    want = jresample.resize_matrix(size_in, size_out, method).sum(0)
    np.testing.assert_allclose(grad, want, rtol=0, atol=1e-13)
    np.testing.assert_allclose(grad.sum(), size_out, rtol=1e-14)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_interpolate(mode):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3, 5, 7)), rng.normal(size=(2, 3, 8, 4))
    out, pullback = jax.vjp(lambda x: jresample.interpolate(x, (8, 4), mode=mode), x)
    (back,) = pullback(y)
    scale = np.linalg.norm(y) * np.linalg.norm(out)
    assert abs(np.vdot(y, out) - np.vdot(back, x)) <= 1e-12 * scale


def test_repeated_gradients_are_bit_identical():
    x = np.random.default_rng(2).normal(size=(2, 8, 33, 47)).astype(np.float32)
    y = np.random.default_rng(3).normal(size=(2, 8, 65, 91)).astype(np.float32)
    grad = jax.jit(
        lambda x, y: jax.vjp(lambda x: jresample.interpolate(x, (65, 91), mode="bilinear"), x)[1](
            y
        )[0]
    )
    first = np.asarray(grad(x, y))
    assert all(np.array_equal(first, grad(x, y)) for _ in range(9))
