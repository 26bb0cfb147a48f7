"""Values against exact rationals, for every method, boundary, alignment and antialias."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import (
    ALIASES,
    BOUNDARIES,
    CASE_IDS,
    CASES,
    METHODS,
    SMOOTHING,
    Axis,
    applied,
    matrix,
    relative_error,
    sweep,
)

import jresample

PAIRS = [(7, 5), (5, 12), (12, 5), (9, 1), (1, 6), (3, 9), (6, 5), (4, 4)]


def axes_of(method, boundary):
    """Every alignment and antialias of every size pair."""
    for size_in, size_out in PAIRS:
        if boundary == "reflect" and size_in == 1:
            continue  # refused: test_errors.py
        for align in (False, True) if method != "nearest-floor" else (False,):
            for antialias in (False, True):
                yield Axis(size_in, size_out, method, antialias, align, boundary)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("method", METHODS)
def test_resize_matrix_equals_oracle(method, boundary):
    for axis in axes_of(method, boundary):
        got = jresample.resize_matrix(axis.size_in, axis.size_out, method, **axis.options)
        assert isinstance(got, np.ndarray)
        assert got.dtype == np.float64
        assert got.shape == (axis.size_out, axis.size_in)
        np.testing.assert_allclose(got, matrix(axis), rtol=0, atol=1e-13, err_msg=str(axis))
        if boundary != "constant":
            np.testing.assert_allclose(got.sum(1), 1, rtol=0, atol=4e-15, err_msg=str(axis))


@pytest.mark.parametrize("method", METHODS)
def test_exact_zeros(method):
    """A weight that is zero in exact arithmetic is zero, not 1e-17: locality rests on it."""
    for boundary in (None, "edge", "wrap", "constant"):
        for axis in axes_of(method, boundary):
            got = jresample.resize_matrix(axis.size_in, axis.size_out, method, **axis.options)
            np.testing.assert_array_equal(got != 0, matrix(axis) != 0, err_msg=str(axis))


@pytest.mark.parametrize("method", METHODS)
def test_values_of_every_boundary(method):
    cases = sweep(method)
    wide = [case.image() for case in cases]
    narrow = [x.astype(np.float32) for x in wide]

    @jax.jit
    def run(wide, narrow):
        return [[c.run(x) for c, x in zip(cases, xs, strict=True)] for xs in (wide, narrow)]

    got_wide, got_narrow = run(wide, narrow)
    for case, x, y, x32, y32 in zip(cases, wide, got_wide, narrow, got_narrow, strict=True):
        assert y.dtype == jnp.float64
        assert y32.dtype == jnp.float32
        assert relative_error(y, case.expected(x), x) <= 1e-12, case.name
        assert relative_error(y32, case.expected(x32), x32) <= 3e-7, case.name


@pytest.mark.parametrize("case", CASES, ids=CASE_IDS)
def test_case(case):
    """The table itself, eagerly."""
    x = case.image()
    assert relative_error(case.run(jnp.asarray(x)), case.expected(x), x) <= 1e-12


@pytest.mark.parametrize("alias", ALIASES)
def test_alias(alias):
    want = jresample.resize_matrix(7, 5, ALIASES[alias], antialias=False)
    np.testing.assert_array_equal(jresample.resize_matrix(7, 5, alias, antialias=False), want)


@pytest.mark.parametrize("name", ["NEAREST", "LINEAR", "CUBIC", "CUBIC_PYTORCH", "LANCZOS3"])
def test_enum_of_jax(name):
    method = getattr(jax.image.ResizeMethod, name)
    want = jresample.resize_matrix(7, 4, name.lower().replace("_", "-"))
    np.testing.assert_array_equal(jresample.resize_matrix(7, 4, method), want)
    x = np.random.default_rng(0).normal(size=(7, 2))
    got = jresample.resize(x, (4, 2), method)
    assert relative_error(got, want @ x, x) <= 1e-12


def test_whole_shape_and_axes_agree():
    x = np.random.default_rng(0).normal(size=(5, 2, 7))
    whole = jresample.resize(x, (8, 2, 4), "cubic", boundary=("edge", None, "wrap"))
    some = jresample.resize(x, (4, 8), "cubic", axes=(-1, 0), boundary=("wrap", "edge"))
    np.testing.assert_array_equal(whole, some)
    mats = {0: matrix(Axis(5, 8, "cubic", boundary="edge"))}
    mats[2] = matrix(Axis(7, 4, "cubic", boundary="wrap"))
    assert relative_error(whole, applied(mats, x), x) <= 1e-12


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (-1,), (1, 0), (0, 1, 2), ()], ids=str)
def test_any_axes(axes):
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    sizes = tuple(2 * x.shape[a] - 3 for a in axes)
    mats = {a: matrix(Axis(x.shape[a], m, "lanczos3")) for a, m in zip(axes, sizes, strict=True)}
    got = jresample.resize(x, sizes, "lanczos3", axes=axes)
    assert relative_error(got, applied(mats, x), x) <= 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_unchanged_axis(method):
    """Left alone, unless it is named in `axes` and the kernel smooths."""
    x = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_array_equal(jresample.resize(x, (5, 3), method), x)
    named = jresample.resize(x, (5,), method, axes=(0,))
    if method not in SMOOTHING:
        np.testing.assert_array_equal(named, x)
        return
    want = matrix(Axis(5, 5, method)) @ x
    assert np.max(np.abs(want - x)) > 0.05
    assert relative_error(named, want, x) <= 1e-12


@pytest.mark.parametrize("precision", [None, "highest", jax.lax.Precision.DEFAULT], ids=str)
def test_precision_is_taken(precision):
    x = np.random.default_rng(0).normal(size=(5,)).astype(np.float32)
    got = jresample.resize(x, (8,), "linear", True, precision)
    assert relative_error(got, matrix(Axis(5, 8)) @ x, x) <= 3e-7


@pytest.mark.parametrize("method", ["nearest", "linear", "cubic", "lanczos3", "area"])
def test_mirror(method):
    """The mirrored image gives the mirrored result; nearest only where there are no ties."""
    for size_in, size_out in [(4, 3), (4, 7), (4, 9), (9, 5)]:
        for antialias in (True, False):
            dense = jresample.resize_matrix(size_in, size_out, method, antialias)
            ties = method == "nearest" and (dense != dense[::-1, ::-1]).any()
            if ties:
                assert any((2 * o + 1) * size_in % (2 * size_out) == 0 for o in range(size_out))
                continue
            np.testing.assert_allclose(dense, dense[::-1, ::-1], rtol=0, atol=1e-14)


def test_random_pairs_single_precision():
    """3e-7 of max|x| in float32, at sizes drawn at random."""
    rng = np.random.default_rng(7)
    for _ in range(12):
        size_in, size_out = (int(v) for v in rng.integers(1, 400, 2))
        method = METHODS[rng.integers(len(METHODS))]
        x = rng.normal(size=size_in).astype(np.float32)
        got = jresample.resize(x, (size_out,), method)
        want = matrix(Axis(size_in, size_out, method)) @ x.astype(np.float64)
        assert relative_error(got, want, x) <= 3e-7, (size_in, size_out, method)
