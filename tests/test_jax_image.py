"""`resize` is a drop-in for `jax.image.resize`: its numbers, its dtypes, its arguments."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import relative_error

import jresample

STRINGS = (
    "nearest", "linear", "bilinear", "trilinear", "triangle", "cubic", "bicubic", "tricubic",
    "lanczos3", "lanczos5", "cubic-pytorch", "bicubic-pytorch", "area",
)  # fmt: skip
SHAPES = [((6, 8, 3), (12, 5, 3)), ((7, 16, 1), (3, 16, 4))]


def theirs_takes(method):
    """An older JAX has fewer names."""
    try:
        return jax.image.ResizeMethod.from_string(method)
    except ValueError:
        return None


@pytest.mark.parametrize("method", STRINGS)
def test_values(method):
    if theirs_takes(method) is None:
        pytest.skip("this JAX lacks the method")
    rng = np.random.default_rng(0)
    for shape, new in SHAPES:
        x = rng.normal(size=shape)
        for antialias in (True, False):
            want = np.asarray(jax.image.resize(x, new, method, antialias))
            got = jresample.resize(x, new, method, antialias)
            # Their lanczos takes 1 for its value within 1e-3 of the centre.
            assert relative_error(got, want, x) <= (5e-6 if "lanczos" in method else 1e-12)


@pytest.mark.parametrize("member", list(jax.image.ResizeMethod), ids=lambda m: m.name)
def test_enum(member):
    x = np.random.default_rng(0).normal(size=(7, 2))
    want = np.asarray(jax.image.resize(x, (4, 5), member))
    assert relative_error(jresample.resize(x, (4, 5), member), want, x) <= 1e-12


@pytest.mark.parametrize("method", ["nearest", "linear", "cubic", "lanczos3"])
def test_gradient(method):
    x = np.random.default_rng(0).normal(size=(6, 8))

    def grad(resize):
        return jax.grad(lambda x: (resize(x, (9, 5), method) ** 3).sum())(x)

    assert relative_error(grad(jresample.resize), grad(jax.image.resize), x) <= 1e-10


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "complex64", "uint8", "bool"])
@pytest.mark.parametrize("method", ["nearest", "linear", "cubic"])
def test_dtypes(method, dtype):
    x = (np.arange(12).reshape(4, 3) % 2).astype(jnp.dtype(dtype))
    with jax.numpy_dtype_promotion("standard"):
        want = jax.image.resize(x, (7, 3), method)
    got = jresample.resize(x, (7, 3), method)
    if jnp.issubdtype(x.dtype, jnp.inexact) or method == "nearest":
        assert got.dtype == want.dtype
    else:
        assert got.dtype == jnp.float32
    a, b = (np.asarray(v).astype(np.complex128) for v in (got, want))
    np.testing.assert_allclose(a, b, rtol=0, atol=0.02)


def test_leading_parameters():
    ours, theirs = (inspect.signature(f).parameters for f in (jresample.resize, jax.image.resize))
    assert list(ours)[: len(theirs)] == list(theirs)
    assert ours["antialias"].default is theirs["antialias"].default is True


def test_nearest_at_every_small_pair():
    """Exact ties go up; float32 positions, theirs, agree wherever there is no tie."""
    for size_in in range(1, 41):
        for size_out in range(1, 41):
            got = jresample.resize_matrix(size_in, size_out, "nearest").argmax(1)
            want = (2 * np.arange(size_out) + 1) * size_in // (2 * size_out)
            np.testing.assert_array_equal(got, want)


def test_theirs_drifts_where_ours_does_not():
    """224 -> 160 in float32: positions off by 5e-6 of a sample there, none here."""
    x = np.random.default_rng(0).normal(size=224).astype(np.float32)
    exact = jresample.resize_matrix(224, 160, "cubic") @ x.astype(np.float64)
    assert relative_error(jresample.resize(x, (160,), "cubic"), exact, x) <= 3e-7
