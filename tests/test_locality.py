"""A NaN or an Inf reaches only what its weight is not zero for, forwards and backwards."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import CASE_IDS, CASES, METHODS, Axis, matrix

import jresample

BAD = (np.nan, np.inf, -np.inf)


def touched(case, place, transpose=False):
    """bool: which entries of the result a sample at `place` has a weight for."""
    i, channel, j = place
    first, last = (d.T if transpose else d for d in case.dense)
    hit = np.zeros((first.shape[0], case.channels, last.shape[0]), bool)
    hit[:, channel] = np.outer(first[:, i] != 0, last[:, j] != 0)
    return hit


def places(shape):
    """Corners, and one in the middle."""
    a, c, b = (s - 1 for s in shape)
    return [(0, 0, 0), (a, c, b), (0, c, b), (a // 2, 0, b // 2)]


@pytest.mark.parametrize("case", CASES, ids=CASE_IDS)
def test_forward(case):
    run, x = jax.jit(case.run), case.image()
    clean = np.asarray(run(x))
    for k, place in enumerate(places(case.shape)):
        dirty = x.copy()
        dirty[place] = BAD[k % 3]
        got = np.asarray(run(dirty))
        hit = touched(case, place)
        np.testing.assert_array_equal(~np.isfinite(got), hit, err_msg=str(place))
        np.testing.assert_array_equal(got[~hit], clean[~hit], err_msg=str(place))


@pytest.mark.parametrize("case", CASES, ids=CASE_IDS)
def test_backward(case):
    """In the cotangent. An image that is not finite spoils no gradient: the map is linear."""
    x, y = case.image(), case.cotangent()
    back = jax.jit(lambda x, y: jax.vjp(case.run, x)[1](y)[0])
    clean = np.asarray(back(x, y))
    np.testing.assert_array_equal(back(np.full_like(x, np.nan), y), clean)
    for k, place in enumerate(places(case.shape_out)):
        dirty = y.copy()
        dirty[place] = BAD[k % 3]
        got = np.asarray(back(x, dirty))
        hit = touched(case, place, transpose=True)
        np.testing.assert_array_equal(~np.isfinite(got), hit, err_msg=str(place))
        np.testing.assert_array_equal(got[~hit], clean[~hit], err_msg=str(place))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sizes", [(12, 12), (6, 12), (12, 6), (3, 9), (40, 4), (300, 3)], ids=str)
def test_ratios_with_taps_at_whole_distances(method, sizes):
    """Where kernels are sampled at their zeros, and where a widened one has many taps."""
    size_in, size_out = sizes
    for antialias in (True, False):
        dense = matrix(Axis(size_in, size_out, method, antialias))
        bad = sorted({0, size_in // 2, size_in - 1})
        x = np.ones((size_in, len(bad)))
        x[bad, np.arange(len(bad))] = np.nan
        got = jresample.resize(x, (size_out,), method, antialias, axes=(0,))
        np.testing.assert_array_equal(np.isnan(got), dense[:, bad] != 0)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32, jnp.complex64])
def test_other_dtypes(dtype):
    x = np.ones((9,)).astype(dtype)
    x[0] = np.nan
    for method in ("linear", "cubic", "lanczos3", "area"):
        for size in (18, 5):
            got = np.asarray(jresample.resize(x, (size,), method)).astype(np.complex64)
            want = jresample.resize_matrix(9, size, method)[:, 0] != 0
            np.testing.assert_array_equal(np.isnan(got), want)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "bicubic", "area"])
def test_interpolate(mode):
    """Identity images make the weights visible; then the NaN must be where they are."""
    for size in (3, 13):
        weights = np.asarray(jresample.interpolate(np.eye(7)[None], size, mode=mode))[0].T
        x = np.ones((1, 1, 7))
        x[..., 2] = np.nan
        got = np.isnan(np.asarray(jresample.interpolate(x, size, mode=mode))[0, 0])
        np.testing.assert_array_equal(got, weights[:, 2] != 0)


def test_traced_kernel():
    """Weights computed in the graph keep to the same rule, in the image and in the parameter."""
    x = np.ones(9)
    x[0] = np.nan

    def run(x, a):
        return jresample.resize(x, (4,), jresample.kernels.cubic(a), antialias=False)

    got = jax.jit(run)(x, -0.6)
    dense = jresample.resize_matrix(9, 4, jresample.kernels.cubic(-0.6), antialias=False)
    np.testing.assert_array_equal(np.isnan(got), dense[:, 0] != 0)
    slopes = jax.jacfwd(run, argnums=1)(x, -0.6)
    assert np.isfinite(slopes[1:]).all()
