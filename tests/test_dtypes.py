"""What comes back, and how exactly, in every dtype; with x64 on and off."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import CASE_IDS, CASES, METHODS, Axis, matrix, relative_error

import jresample

LOW = (jnp.bfloat16, jnp.float16)
FLOATS = (*LOW, jnp.float32, jnp.float64)
COMPLEX = (jnp.complex64, jnp.complex128)
INTEGERS = (jnp.uint8, jnp.int8, jnp.int16, jnp.int32, jnp.uint32, jnp.int64, jnp.bool_)
MODES = ("nearest", "linear", "cubic", "cubic-pytorch", "lanczos3", "area", "gaussian")


def image_of(dtype, shape=(7, 3)):
    rng = np.random.default_rng(0)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    if jnp.issubdtype(dtype, jnp.floating):
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(0, 2 if dtype == jnp.bool_ else 100, shape).astype(dtype)


def rounding(dtype):
    """Half a unit in the last place of `dtype` for numbers below 2, doubled for the arithmetic."""
    return {jnp.bfloat16: 2**-8, jnp.float16: 2**-11}.get(dtype, 3e-7)


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX, ids=lambda d: d.__name__)
@pytest.mark.parametrize("mode", MODES)
def test_inexact_come_back_as_they_came(mode, dtype):
    x = image_of(dtype)
    for size in (5, 12):

        def run(x, size=size):
            return jresample.resize(x, (size, 3), mode)

        got = run(x)
        assert got.dtype == dtype
        want = matrix(Axis(7, size, mode)) @ np.asarray(x, np.complex128)
        bound = {jnp.float64: 1e-12, jnp.complex128: 1e-12}.get(dtype, rounding(dtype))
        assert relative_error(got, want, x) <= bound * 1.5
        grad = jax.grad(lambda x, run=run: jnp.abs(run(x)).sum())(x)
        assert grad.dtype == dtype
        assert np.isfinite(np.asarray(grad, np.complex128)).all()


@pytest.mark.parametrize("dtype", LOW, ids=lambda d: d.__name__)
@pytest.mark.parametrize("case", CASES, ids=CASE_IDS)
def test_rounded_once(case, dtype):
    """Two axes, and still within half a unit in the last place of the exact result."""
    x = case.image().astype(dtype)
    got = np.asarray(case.run(jnp.asarray(x)), np.float64)
    want = case.expected(np.asarray(x, np.float64))
    half_ulp = np.spacing(np.abs(want).astype(np.float32)).astype(np.float64) / 2
    half_ulp *= 2.0 ** (23 - {jnp.bfloat16: 7, jnp.float16: 10}[dtype])
    if dtype == jnp.float16:
        half_ulp = np.maximum(half_ulp, 2.0**-25)
    assert (np.abs(got - want) <= half_ulp + 6e-7 * np.abs(np.asarray(x, np.float64)).max()).all()


@pytest.mark.parametrize("dtype", LOW, ids=lambda d: d.__name__)
@pytest.mark.parametrize("mode", METHODS)
def test_a_constant_stays_constant(mode, dtype):
    """To the last bit, up and down, in one and two axes."""
    value = np.asarray(0.4216, np.float32).astype(dtype)
    for sizes_in, sizes_out in [((7, 3), (5, 8)), ((1, 1), (5, 5)), ((33, 20), (7, 61))]:
        got = jresample.resize(np.full(sizes_in, value), sizes_out, mode)
        assert got.dtype == dtype
        np.testing.assert_array_equal(np.asarray(got), np.full(sizes_out, value))


@pytest.mark.parametrize("align", [None, True], ids=["half-pixel", "aligned"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos3"])
def test_a_constant_stays_constant_in_interpolate(mode, align):
    for dtype in LOW:
        value = np.asarray(0.4216, np.float32).astype(dtype)
        x = np.full((1, 1, 1, 1), value)
        got = jresample.interpolate(x, (5, 5), mode=mode, align_corners=align)
        np.testing.assert_array_equal(np.asarray(got), np.full((1, 1, 5, 5), value))


@pytest.mark.parametrize("dtype", LOW, ids=lambda d: d.__name__)
@pytest.mark.parametrize("mode", METHODS)
def test_4096_outputs_on_one_sample(mode, dtype):
    """Accumulated in float32 and rounded once: 4096, not 256 or 2048."""

    def total(x):
        return jresample.resize(x, (4096,), mode).astype(jnp.float32).sum()

    grad = jax.grad(total)(jnp.ones(1, dtype))
    assert grad.dtype == dtype
    np.testing.assert_array_equal(np.asarray(grad, np.float32), [4096])
    three = np.asarray(jax.grad(total)(jnp.ones(3, dtype)), np.float32)
    dense = jresample.resize_matrix(3, 4096, mode).sum(0)
    np.testing.assert_allclose(three, dense, rtol=float(jnp.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", LOW, ids=lambda d: d.__name__)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "bicubic", "lanczos3"])
def test_4096_outputs_on_one_sample_of_interpolate(mode, dtype):
    def total(x):
        return jresample.interpolate(x, 4096, mode=mode).astype(jnp.float32).sum()

    grad = jax.grad(total)(jnp.ones((1, 1, 1), dtype))
    np.testing.assert_array_equal(np.asarray(grad, np.float32), [[[4096]]])


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.__name__)
@pytest.mark.parametrize("mode", MODES)
def test_integers_and_bools(mode, dtype):
    x = image_of(dtype)
    got = jresample.resize(x, (5, 3), mode)
    assert got.dtype == (dtype if mode == "nearest" else jnp.float32)
    want = matrix(Axis(7, 5, mode)) @ x.astype(np.float64)
    assert relative_error(got, want, np.maximum(x, 1)) <= 3e-7


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.__name__)
def test_integers_in_interpolate(dtype):
    x = image_of(dtype, (1, 2, 4, 6))
    for mode in ("nearest", "nearest-exact"):
        assert jresample.interpolate(x, (3, 7), mode=mode).dtype == dtype
    for mode in ("bilinear", "bicubic", "area", "lanczos3"):
        assert jresample.interpolate(x, (3, 7), mode=mode).dtype == jnp.float32


@pytest.mark.parametrize("mode", ["nearest", "nearest-floor"])
def test_nearest_keeps_every_bit(mode):
    """Large integers are moved, not converted."""
    x = np.array([2**62 + 1, -(2**62) - 1, 2**53 + 1], np.int64)
    got = np.asarray(jresample.resize(x, (6,), mode))
    assert set(got.tolist()) == set(x.tolist())


def test_nearest_moves_other_dtypes():
    """Whatever JAX can gather: small floats too."""
    x = jnp.array([1.0, 2.0, 3.0], jnp.float8_e4m3fn)
    got = jresample.resize(x, (6,), "nearest")
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got.astype(jnp.float32), [1, 1, 2, 2, 3, 3])


def test_same_size_follows_the_dtype_rule():
    """An integer image that needs no resizing is still promoted: the rule depends on no size."""
    x = np.array([1, 2, 3], np.uint8)
    assert jresample.resize(x, (3,), "linear").dtype == jnp.float32
    assert jresample.resize(x, (3,), "nearest").dtype == jnp.uint8
    x = np.ones((1, 1, 3), np.int32)
    assert jresample.interpolate(x, 3, mode="linear").dtype == jnp.float32


@pytest.mark.parametrize("mode", METHODS)
def test_x64_off(mode):
    """float32 stays within 3e-7 without a single float64 in the graph; positions lose nothing."""
    enable = getattr(jax, "enable_x64", None)
    if enable is None:
        from jax.experimental import enable_x64 as enable
    x = np.random.default_rng(0).normal(size=(1000, 2)).astype(np.float32)
    size = 1501
    with enable(False):
        got = jresample.resize(x, (size, 2), mode)
        assert got.dtype == jnp.float32
        grad = jax.grad(lambda x: jresample.resize(x, (size, 2), mode).sum())(x)
        text = jax.jit(lambda x: jresample.resize(x, (size, 2), mode)).lower(x).as_text()
        low = jresample.resize(x.astype(jnp.bfloat16), (size, 2), mode)
    assert "f64" not in text
    assert low.dtype == jnp.bfloat16
    dense = jresample.resize_matrix(1000, size, mode)
    assert relative_error(got, dense @ x.astype(np.float64), x) <= 3e-7
    assert relative_error(grad[:, 0], dense.sum(0), [1.0]) <= 6e-7


def test_x64_off_and_on_agree():
    """The same plan serves both, in either order."""
    enable = getattr(jax, "enable_x64", None)
    if enable is None:
        from jax.experimental import enable_x64 as enable
    x = np.random.default_rng(0).normal(size=(9,)).astype(np.float32)
    for first in (False, True):
        outs = []
        for flag in (first, not first):
            with enable(flag):
                outs.append(np.asarray(jresample.resize(x, (14 + first,), "cubic")))
        np.testing.assert_allclose(*outs, rtol=0, atol=3e-7)


def test_shape_may_be_a_list():
    got = jresample.resize(np.arange(4, dtype=np.float32), [2], "linear")
    assert got.shape == (2,)
    assert got.dtype == jnp.float32
