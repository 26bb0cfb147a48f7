"""The numbers promised: long axes, memory, planning time."""

import time
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import Axis, relative_error, row

import jresample


def rows_of(axis, outputs, x):
    """float64: the oracle's value at some outputs of a long axis."""
    return np.array(
        [sum(float(w) * float(x[i]) for i, w in row(axis, int(o)).items()) for o in outputs]
    )


def temporaries(function, *shapes, dtype=jnp.float32):
    arguments = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    return jax.jit(function).lower(*arguments).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize("align", [False, True], ids=["half-pixel", "aligned"])
@pytest.mark.parametrize("method", ["linear", "cubic", "cubic-pytorch", "lanczos3", "area"])
def test_20011_to_24023(method, align):
    """float32 positions are off by 1e-3 here; ours by nothing, forwards and backwards."""
    size_in, size_out = 20011, 24023
    x = np.random.default_rng(0).normal(size=size_in).astype(np.float32)
    y = np.random.default_rng(1).normal(size=size_out).astype(np.float32)
    out, pullback = jax.vjp(
        lambda x: jresample.resize(x, (size_out,), method, align_corners=align), x
    )
    axis = Axis(size_in, size_out, method, align_corners=align)
    some = np.unique(np.r_[:30, size_out - 30 : size_out, 41:size_out:61])
    assert relative_error(np.asarray(out)[some], rows_of(axis, some, x), x) <= 3e-7
    (back,) = pullback(y)
    wide = np.asarray(out, np.float64)
    norm = np.linalg.norm(y) * np.linalg.norm(wide)
    assert (
        abs(np.dot(y.astype(np.float64), wide) - np.dot(np.asarray(back, np.float64), x))
        <= 1e-6 * norm
    )


@pytest.mark.parametrize(
    "sizes", [(24023, 20011), (40_000, 333), (7, 50_021), (65_537, 65_536)], ids=str
)
def test_long_axes(sizes):
    size_in, size_out = sizes
    for method in ("linear", "lanczos3"):
        x = np.random.default_rng(0).normal(size=size_in).astype(np.float32)
        got = np.asarray(jresample.resize(x, (size_out,), method))
        axis = Axis(size_in, size_out, method)
        count = 60 if size_in < 20 * size_out else 8
        some = np.unique(
            np.r_[:3, np.random.default_rng(1).integers(0, size_out, count), size_out - 1]
        )
        assert relative_error(got[some], rows_of(axis, some, x), x) <= 3e-7


def check_nearest(method, size_in, size_out):
    got = jresample.resize(np.arange(size_in, dtype=np.int32), (size_out,), method)
    o, shift = np.arange(size_out, dtype=np.int64), int(method == "nearest")
    assert np.array_equal(got, (2 * o + shift) * size_in // (2 * size_out))


@pytest.mark.parametrize("method", ["nearest", "nearest-floor"])
def test_nearest_of_a_million(method):
    check_nearest(method, 1_000_003, 1_500_001)
    check_nearest(method, 1_500_001, 1_000_003)


@pytest.mark.slow
def test_nearest_of_twenty_million():
    """Exactly right at every one of 30,000,001 outputs."""
    check_nearest("nearest", 20_000_003, 30_000_001)


@pytest.mark.slow
def test_constants_of_a_long_axis_stay_small():
    """Ten million samples by a plain ratio bake one period into the executable, not the axis."""
    size = 10_000_000
    for method in ("nearest", "linear", "lanczos3"):
        lowered = jax.jit(lambda x, m=method: jresample.resize(x, (2 * size,), m)).lower(
            jax.ShapeDtypeStruct((size,), jnp.float32)
        )
        assert len(lowered.as_text()) < 1_000_000
        assert len(zlib.compress(lowered.as_text().encode())) < 100_000


def test_memory_of_a_long_gradient():
    """1-D 40,000 -> 20,000, lanczos3: under 10 MB where a dense matrix takes 3 GB."""

    def loss(x):
        return (jresample.resize(x, (20_000,), "lanczos3") ** 2).sum()

    assert temporaries(jax.value_and_grad(loss), (40_000,)) < 10e6
    assert temporaries(loss, (40_000,)) < 10e6


@pytest.mark.parametrize("method", ["nearest", "linear", "cubic", "lanczos3", "area"])
@pytest.mark.parametrize(
    ("shape", "new"),
    [
        ((512, 384, 3), (1024, 200, 3)),
        ((256, 256, 8), (512, 512, 8)),
        ((2, 3, 400, 640), (2, 3, 90, 120)),
    ],
    ids=str,
)
def test_memory_in_two_dimensions(method, shape, new):
    """At most input + output + one intermediate, forwards and backwards."""

    def run(x):
        return jresample.resize(x, new, method)

    changed = [axis for axis in range(len(shape)) if shape[axis] != new[axis]]
    halfway = []
    for axis in changed:
        middle = list(shape)
        middle[axis] = new[axis]
        halfway.append(np.prod(middle))
    bound = 4 * (np.prod(shape) + np.prod(new) + max(halfway)) + 2**16
    assert temporaries(run, shape) <= bound
    assert temporaries(lambda x, y: jax.vjp(run, x)[1](y)[0], shape, new) <= bound


def shortest(function, repeats):
    """Seconds of this process's time, the least of several, so that a busy machine counts less."""
    times = []
    for k in range(repeats):
        start = time.process_time()
        function(k)
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize("method", ["linear", "lanczos3", "area"])
def test_planning_is_fast_and_cached(method):
    """A 10,000-sample axis in under 50 ms; the second time, in next to nothing."""

    def plan(size_in, size_out):
        x = jax.ShapeDtypeStruct((size_in,), jnp.float32)
        return jax.eval_shape(lambda x: jresample.resize(x, (size_out,), method), x)

    plan(10_000, 7_001)  # imports and first-time costs
    for size_out in (6_011, 13_007):
        fresh = shortest(lambda k, m=size_out: plan(10_000 + k, m), 5)
        again = shortest(lambda k, m=size_out: plan(10_000, m), 5)
        assert fresh < 0.05, fresh
        assert again < 0.02, again


@pytest.mark.parametrize("method", ["cubic", "lanczos5"])
def test_lowering_is_fast(method):
    """Plan, trace and lower, forwards and backwards, of a fresh 10,000-sample axis."""

    def grad(x, size_out):
        return jax.grad(lambda x: (jresample.resize(x, (size_out,), method) ** 2).sum())(x)

    def lower(k):
        x = jax.ShapeDtypeStruct((10_000 + k,), jnp.float32)
        jax.jit(grad, static_argnums=1).lower(x, 7_003 + k)

    lower(100)
    assert shortest(lower, 4) < 0.5


def test_huge_enlargement_of_a_tiny_axis():
    got = np.asarray(jresample.resize(np.array([1.0, 3.0], np.float32), (200_003,), "cubic"))
    axis = Axis(2, 200_003, "cubic")
    some = np.r_[:5, 100_000:100_005, 199_998:200_003]
    assert relative_error(got[some], rows_of(axis, some, [1.0, 3.0]), [3.0]) <= 3e-7


def test_many_axes():
    """Six axes, all resized, each its own way."""
    shape, new = (3, 2, 4, 2, 3, 5), (2, 3, 3, 4, 5, 3)
    methods = ("linear", "nearest", "cubic", "lanczos3", "area", "mitchell")
    x = np.random.default_rng(0).normal(size=shape)
    want = x
    for axis, method in enumerate(methods):
        dense = jresample.resize_matrix(shape[axis], new[axis], method)
        want = np.moveaxis(np.tensordot(dense, want, (1, axis)), 0, axis)
    got = jresample.resize(x, new, methods)
    assert relative_error(got, want, x) <= 1e-12
