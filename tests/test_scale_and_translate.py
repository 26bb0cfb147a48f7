"""`scale_and_translate`: jax.image's numbers and gradients, traced; boundaries, bounds, errors."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sampling_helpers import check_derivatives

from jresample import kernels, sample, scale_and_translate

METHODS = ("linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area")
SHAPE, OUT, DIMS = (9, 3, 7), (11, 3, 8), (0, 2)
# (scale, translation) of both axes: larger, smaller, moved out of sight, exactly on the samples
PLACES = (
    ((1.0, 1.0), (0.0, 0.0)),
    ((0.43, 1.7), (0.3, -1.2)),
    ((2.1, 0.37), (-3.0, 0.5)),
    ((1.0, 1.0), (3.0, -2.0)),
    ((1.0, 0.5), (5.5, -6.0)),
)


def image(seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=SHAPE))


def cotangent():
    return jnp.asarray(np.random.default_rng(1).normal(size=OUT))


def pulled(run, scale, translation):
    value, back = jax.vjp(run, image(), scale, translation)
    return value, *back(cotangent())


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_jax(method, antialias):
    """Values and all three gradients, with a bound of the scale and without one, in one trace."""
    theirs = jax.jit(
        functools.partial(
            pulled,
            lambda x, s, t: jax.image.scale_and_translate(x, OUT, DIMS, s, t, method, antialias),
        )
    )

    def run(x, s, t, bound):
        return scale_and_translate(x, OUT, DIMS, s, t, method, antialias, min_scale=bound)

    bounds = (None, 0.3) if antialias or method == "area" else (None,)
    mine = [jax.jit(functools.partial(pulled, functools.partial(run, bound=b))) for b in bounds]
    for place in PLACES:
        scale, translation = map(jnp.asarray, place)
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            want = theirs(scale, translation)
        for function in mine:
            got = function(scale, translation)
            for value, right in zip(got, want, strict=True):
                np.testing.assert_allclose(value, right, rtol=0, atol=1e-11)


@pytest.mark.parametrize("method", ["linear", "lanczos3", "area"])
def test_known_scales_bound_their_own_taps(method):
    """Plain numbers, also where the image is traced: the same values, by fewer taps."""
    run = jax.jit(lambda x: scale_and_translate(x, OUT, DIMS, (2.1, 0.37), (-3.0, 0.5), method))
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        want = jax.image.scale_and_translate(
            image(), OUT, DIMS, jnp.array([2.1, 0.37]), jnp.array([-3.0, 0.5]), method
        )
    np.testing.assert_allclose(run(image()), want, atol=1e-12)


@pytest.mark.parametrize("boundary", ["edge", "reflect", "symmetric", "wrap", "constant"])
def test_boundary(boundary):
    """Nothing is set to 0: it is `sample` at the same coordinates."""
    scale, translation = (0.8, 1.3), (2.0, -4.0)
    axes = [
        (np.arange(m) + 0.5 - t) / s - 0.5
        for m, s, t in zip((OUT[0], OUT[2]), scale, translation, strict=True)
    ]
    c = jnp.asarray(np.stack(np.meshgrid(*axes, indexing="ij"), -1))
    want = sample(jnp.moveaxis(image(), 1, 2), c, "cubic", boundary=boundary)
    got = scale_and_translate(
        image(), OUT, DIMS, scale, translation, "cubic", False, boundary=boundary
    )
    np.testing.assert_allclose(jnp.moveaxis(got, 1, 2), want, atol=1e-13)


@pytest.mark.parametrize("boundary", ["edge", "wrap", "constant"])
def test_boundary_with_antialias(boundary):
    """A widened kernel, against its dense definition."""
    row, s, t = np.random.default_rng(2).normal(size=6), 0.4, 1.3
    c = (np.arange(5) + 0.5 - t) / s - 0.5
    index = np.arange(-30, 40)
    weights = np.maximum(1 - np.abs(index - c[:, None]) * s, 0)
    weights /= weights.sum(1, keepdims=True)
    extended = {
        "edge": row[np.clip(index, 0, 5)],
        "wrap": row[index % 6],
        "constant": np.where((index >= 0) & (index < 6), row[np.clip(index, 0, 5)], 0),
    }[boundary]
    run = jax.jit(
        lambda s, t: scale_and_translate(
            jnp.asarray(row), (5,), (0,), s, t, "linear", boundary=boundary, min_scale=0.25
        )
    )
    np.testing.assert_allclose(
        run(jnp.asarray([s]), jnp.asarray([t])), weights @ extended, atol=1e-13
    )


@pytest.mark.parametrize(
    ("method", "antialias", "bound"),
    [("cubic", True, 0.3), ("lanczos3", False, None), ("area", True, None)],
)
def test_second_order_both_modes(method, antialias, bound):
    run = jax.jit(
        lambda x, s, t: scale_and_translate(
            x, (4, 2), (0,), s, t, method, antialias, min_scale=bound
        )
    )
    x = jnp.asarray(np.random.default_rng(3).normal(size=(5, 2)))
    args = (x, jnp.asarray([0.71]), jnp.asarray([0.31]))
    check_derivatives(run, args)


def test_vmap_over_scales():
    """Each image with its own scale and translation, and gradients of that."""
    images = jnp.stack([image(seed) for seed in range(3)])
    scales, moves = (
        jnp.asarray([[1.0, 0.7], [0.5, 1.2], [2.0, 1.0]]),
        jnp.asarray([[0.0, 1.3], [0.4, -2.2], [1.0, 0.6]]),
    )
    run = lambda x, s, t: scale_and_translate(x, OUT, DIMS, s, t, "cubic", min_scale=0.4)  # noqa: E731
    grad = jax.grad(lambda *args: (run(*args) ** 2).sum(), (0, 1, 2))
    mapped = jax.jit(jax.vmap(lambda *args: (run(*args), *grad(*args))))(images, scales, moves)
    single = jax.jit(lambda *args: (run(*args), *grad(*args)))
    for i in range(3):
        for value, want in zip(mapped, single(images[i], scales[i], moves[i]), strict=True):
            np.testing.assert_allclose(value[i], want, atol=1e-11)


def test_min_scale_is_checked_as_it_runs():
    """A smaller scale gives NaN, not a kernel cut off in silence; NaN of no other image."""
    run = jax.jit(
        jax.vmap(
            lambda s: scale_and_translate(
                jnp.ones(8), (4,), (0,), s[None], jnp.zeros(1), "linear", min_scale=0.5
            )
        )
    )
    got = run(jnp.asarray([0.5, 0.49, 2.0]))
    assert np.isfinite(got[0]).all()
    assert np.isnan(got[1]).all()
    assert np.isfinite(got[2]).all()


def test_locality_and_dtypes():
    row = jnp.asarray([1.0, 2.0, 4.0, 8.0, 3.0, 5.0]).at[0].set(jnp.nan)
    got = scale_and_translate(row, (6,), (0,), (1.0,), (0.0,), "lanczos3")
    np.testing.assert_array_equal(got, row)
    wide = jax.jit(lambda s: scale_and_translate(row, (3,), (0,), s, jnp.zeros(1), "linear"))
    assert np.isnan(wide(jnp.asarray([0.5]))).tolist() == [True, False, False]
    for dtype in ("bfloat16", "float32", "complex64", "int32", "bool"):
        x = jnp.ones((4, 5)).astype(dtype)
        got = scale_and_translate(x, (4, 3), (1,), jnp.asarray([0.6]), jnp.zeros(1), "linear")
        assert got.dtype == (dtype if dtype in ("bfloat16", "float32", "complex64") else "float32")
        np.testing.assert_array_equal(got.real.astype(float), np.ones((4, 3)))


def test_other_methods():
    """Kernels, traced parameters and the nearest sample, which jax has not."""
    row = jnp.asarray([1.0, 2.0, 4.0, 8.0])
    near = scale_and_translate(row, (8,), (0,), (2.0,), (0.0,), "nearest")
    np.testing.assert_array_equal(near, np.repeat(row, 2))
    run = lambda a: scale_and_translate(  # noqa: E731
        row, (5,), (0,), jnp.asarray([0.9]), jnp.asarray([0.2]), kernels.cubic(a), min_scale=0.5
    )
    ends = [run(-0.5 + d) for d in (1e-6, -1e-6)]
    want = (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose(jax.jacrev(run)(jnp.asarray(-0.5)), want, atol=1e-8)
    np.testing.assert_allclose(jax.jacfwd(run)(jnp.asarray(-0.5)), want, atol=1e-8)


def test_no_axes_and_empty():
    assert scale_and_translate(image(), SHAPE, (), (), (), "linear").shape == SHAPE
    empty = scale_and_translate(jnp.ones((0, 4)), (0, 6), (1,), (1.5,), (0.0,), "cubic")
    assert empty.shape == (0, 6)
    none = scale_and_translate(jnp.ones((3, 4)), (3, 0), (1,), (1.5,), (0.0,), "cubic")
    assert none.shape == (3, 0)


GIVEN = {
    "image": np.zeros((4, 5)),
    "shape": (4, 6),
    "spatial_dims": (1,),
    "scale": np.ones(1),
    "translation": np.zeros(1),
    "method": "linear",
}


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"shape": (4, 6, 1)}, ValueError, "`shape` is (4, 6, 1)"),
        ({"shape": (5, 6)}, ValueError, "`shape` has 5 for axis 0"),
        ({"shape": (4, 6.5)}, TypeError, "`shape`: entry 1"),
        ({"spatial_dims": (2,)}, ValueError, "`spatial_dims` has 2"),
        ({"scale": np.ones(2)}, ValueError, "`scale` has shape (2,)"),
        ({"translation": np.zeros(())}, ValueError, "`translation` has shape ()"),
        ({"scale": np.ones(1, complex)}, TypeError, "`scale` has dtype complex128"),
        ({"method": "nearest-floor"}, ValueError, "`method` is 'nearest-floor'"),
        ({"method": "quintic"}, ValueError, "`method` is 'quintic'"),
        ({"antialias": 1}, TypeError, "`antialias` is 1"),
        ({"boundary": "mirror"}, ValueError, "`boundary` is 'mirror'"),
        ({"min_scale": 0.0}, ValueError, "`min_scale`"),
        ({"min_scale": (1.0, 1.0)}, ValueError, "`min_scale` has 2 entries"),
        ({"image": np.zeros((4, 0))}, ValueError, "`image`: axis 1 is empty"),
    ],
)
def test_errors(arguments, error, words):
    with pytest.raises(error) as caught:
        scale_and_translate(**{**GIVEN, **arguments})
    message = str(caught.value)
    assert message.startswith(words)
    assert "expected" in message
    assert len(message.splitlines()) <= 3


def test_a_boundary_needs_a_bound():
    run = jax.jit(lambda s: scale_and_translate(**{**GIVEN, "scale": s, "boundary": "edge"}))
    with pytest.raises(ValueError, match=r"`boundary`.*`min_scale`"):
        run(jnp.ones(1))
