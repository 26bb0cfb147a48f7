"""`map_coordinates` and `spline_filter`: scipy as live oracle, integers, derivatives, errors."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sampling_helpers import check_derivatives, scattered
from scipy import ndimage

from jresample import kernels, map_coordinates, sample, spline_filter
from jresample._scipy import MODES
from jresample._spline import POLES, impulse_response, prefilter_plan

jitted = jax.jit(map_coordinates, static_argnames=("order", "mode", "cval", "prefilter"))


def image_and_points(sizes, count=150, seed=0):
    rng = np.random.default_rng([seed, *sizes])
    return rng.normal(size=sizes), scattered(rng, sizes, count).T


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", range(6))
def test_scipy(order, mode):
    """Near, at and far outside the border, on the grid and half way; short axes and long ones."""
    for sizes, prefilter in (((9, 6), True), ((14, 5), False)):
        image, points = image_and_points(sizes)
        want = ndimage.map_coordinates(image, points, None, order, mode, 0.7, prefilter)
        got = jitted(jnp.asarray(image), jnp.asarray(points), order, mode, 0.7, prefilter)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-10)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sizes", [(1,), (2,), (30,), (4, 3, 5)])
def test_scipy_other_sizes(sizes, mode):
    image, points = image_and_points(sizes)
    for order in (0, 1, 3) if len(sizes) > 1 else (0, 1, 2, 5):
        want = ndimage.map_coordinates(image, points, None, order, mode, -0.3)
        got = jitted(jnp.asarray(image), jnp.asarray(points), order, mode, -0.3)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-10, err_msg=str(order))


@pytest.mark.parametrize("mode", ["constant", "grid-constant", "reflect"])
def test_scipy_complex(mode):
    (image, points), (other, _) = image_and_points((9, 6)), image_and_points((9, 6), seed=1)
    image = image + 1j * other
    want = ndimage.map_coordinates(image, points, None, 3, mode, 1 - 2j)
    got = jitted(jnp.asarray(image), jnp.asarray(points), 3, mode, 1 - 2j)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.uint16])
@pytest.mark.parametrize("order", [0, 1, 3])
def test_scipy_integers(dtype, order):
    """Half away from zero, and kept in range where a spline overshoots."""
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(3)
    extremes = [limits.min, limits.max, 0]
    image = rng.choice(extremes, (8, 7)) if order == 3 else rng.integers(-4, 5, (8, 7))
    image = np.clip(image, limits.min, limits.max).astype(dtype)
    points = np.round(4 * scattered(rng, (8, 7), 200).T) / 4
    for mode in ("constant", "grid-constant", "mirror"):
        want = ndimage.map_coordinates(image, points, None, order, mode, 3)
        got = jitted(jnp.asarray(image), jnp.asarray(points), order, mode, 3)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, want)


def test_integers_as_jax_has_them():
    image, points = np.array([0, 1, 4, 5, -3, -4]), np.array([[0.5, 2.5, 4.5, 1.5, 3.0]])
    got = map_coordinates(jnp.asarray(image), jnp.asarray(points), 1)
    np.testing.assert_array_equal(got, [1, 5, -4, 3, 5])
    with jax.numpy_dtype_promotion("standard"):
        want = jax.scipy.ndimage.map_coordinates(jnp.asarray(image), list(jnp.asarray(points)), 1)
    np.testing.assert_array_equal(got, want)
    large = jnp.asarray([2**31 - 1, 0], jnp.int32)
    assert int(map_coordinates(large, jnp.zeros((1, 1), jnp.float32), 1)[0]) >= 2**31 - 129
    nothing = map_coordinates(large, jnp.full((1, 1), jnp.nan), 1, cval=7)
    assert nothing.tolist() == [7]
    flags = map_coordinates(jnp.asarray([True, False]), jnp.asarray([[0.2, 0.8]]), 1)
    assert flags.tolist() == [True, False]


@pytest.mark.parametrize("order", [1, 3])
def test_an_integer_image_has_no_silent_zero_slope(order):
    image, points = jnp.asarray([0, 10, 20, 30, 90]), jnp.asarray([[1.3, 2.6]])
    total = lambda c, x: map_coordinates(x, c, order, "mirror").astype(jnp.float64).sum()  # noqa: E731
    for derivative in (jax.grad(total), jax.jacfwd(total)):
        with pytest.raises(TypeError, match=r"`input`.*integer.*astype"):
            derivative(points, image)
    assert np.abs(jax.grad(total)(points, image.astype(jnp.float64))).min() > 1
    stopped = jax.grad(lambda c: total(jax.lax.stop_gradient(c), image) + c.sum())(points)
    np.testing.assert_array_equal(stopped, np.ones((1, 2)))
    nearest = jax.grad(lambda c: map_coordinates(image, c, 0).astype(jnp.float64).sum())(points)
    np.testing.assert_array_equal(nearest, np.zeros((1, 2)))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_dtypes(dtype):
    image, points = image_and_points((9, 6))
    image = jnp.asarray(image).astype(dtype)
    want = ndimage.map_coordinates(np.asarray(image, np.float64), points, None, 3, "mirror")
    for coordinates in (jnp.asarray(points), list(jnp.asarray(points, jnp.float32))):
        got = map_coordinates(image, coordinates, 3, "mirror")
        assert got.dtype == dtype
        digits = {"bfloat16": 2**-8, "float16": 2**-10}.get(dtype, 0)
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=digits, atol=3e-5)


def test_shapes_and_kinds_of_coordinates():
    image = jnp.arange(12.0).reshape(3, 4)
    whole = map_coordinates(image, jnp.asarray([[[1, 2]], [[3, 0]]]), 1)
    np.testing.assert_array_equal(whole, [[7, 8]])
    mixed = map_coordinates(image, [jnp.asarray([1]), jnp.asarray([3.0])], 0)
    np.testing.assert_array_equal(mixed, [7])
    assert map_coordinates(image, [jnp.ones(()), jnp.ones(())], 3).shape == ()
    assert map_coordinates(image, jnp.ones((2, 0)), 3, "nearest").shape == (0,)
    crossed = map_coordinates(image, [jnp.ones((3, 1)), jnp.ones((1, 2))], 1)
    np.testing.assert_array_equal(crossed, np.full((3, 2), 5.0))
    batch = jax.vmap(lambda x: map_coordinates(x, jnp.asarray([[0.5], [1.5]]), 3, "reflect"))
    stack = jnp.stack([image, -image])
    want = ndimage.map_coordinates(np.asarray(image), [[0.5], [1.5]], None, 3, "reflect")
    np.testing.assert_allclose(batch(stack), [want, -want], atol=1e-12)


# derivatives --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "mode"),
    [(1, "constant"), (1, "wrap"), (2, "nearest"), (3, "grid-constant"), (5, "grid-wrap")],
)
def test_second_order_both_modes(order, mode):
    rng, sizes = np.random.default_rng(4), (6, 5) if order < 3 else (6,)
    image, points = rng.normal(size=sizes), scattered(rng, sizes, 5, off_knots=True).T
    run = lambda x, c, v: map_coordinates(x, c, order, mode, v)  # noqa: E731
    args = (jnp.asarray(image), jnp.asarray(points), jnp.asarray(0.4))
    check_derivatives(run, args)


@pytest.mark.parametrize("mode", MODES)
def test_slopes_of_order_1_at_samples(mode):
    """One of the two one-sided slopes, and inside ones at both ends where all else is `cval`."""
    image = jnp.asarray([3.0, 5.0, 9.0, 4.0])
    run = lambda c: map_coordinates(image, c[None], 1, mode, 50.0).sum()  # noqa: E731
    for place in range(4):
        c = jnp.asarray([float(place)])
        here, slope = jax.value_and_grad(run)(c)
        sides = [float((run(c + d) - here) / d) for d in (1e-6, -1e-6)]
        assert min(abs(float(slope[0]) - side) for side in sides) < 1e-6
    if mode in ("constant", "wrap"):
        ends = [float(jax.grad(run)(jnp.asarray([v]))[0]) for v in (0.0, 3.0)]
        assert ends == [2.0, -5.0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1, 3])
def test_far_and_non_finite_coordinates(order, mode):
    image = jnp.asarray([6.0, 5.0, 4.0])
    bad = jnp.asarray([[jnp.inf, -jnp.inf, 1e20, -1e20, 3e9, jnp.nan, 1.0]])
    run = functools.partial(map_coordinates, order=order, mode=mode, cval=0.25)
    got, back = jax.vjp(jax.jit(run), image, bad)
    assert np.isnan(got[5])
    assert float(got[6]) == pytest.approx(5)
    if mode in ("constant", "grid-constant"):
        np.testing.assert_allclose(got[:5], np.full(5, 0.25), atol=1e-15)
    elif mode == "nearest":
        np.testing.assert_allclose(got[:5], [4, 6, 4, 6, 4], atol=1e-6)
    else:
        assert ((got[:5] > 3.9) & (got[:5] < 6.1)).all()
    x_bar, c_bar = back(jnp.ones(7))
    assert np.isfinite(x_bar).all()
    assert np.isfinite(np.delete(c_bar[0], 5)).all()
    assert np.isnan(c_bar[0, 5]) or order == 0
    np.testing.assert_array_equal(c_bar[0, :2], [0, 0])


# the prefilter ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_filter_scipy(order, mode):
    """Axes much shorter and much longer than the filter, different ones in one array."""
    for sizes in ((2, 400), (7, 45), (1, 12)):
        image = np.random.default_rng(5).normal(size=sizes)
        want = ndimage.spline_filter(image, order, mode=mode)
        got = spline_filter(jnp.asarray(image), order, mode)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * np.abs(want).max())


@pytest.mark.parametrize("order", [2, 3, 4, 5])
@pytest.mark.parametrize("boundary", ["reflect", "wrap", "symmetric"])
def test_filter_inverts_sampling(order, boundary):
    """The dense filter times the dense B-spline is 1, and the plan's transpose is its transpose."""
    # scipy's own start under "symmetric" is exact only on axes of some length
    size = 60 if boundary == "symmetric" else 9
    eye, places = jnp.eye(size), jnp.arange(float(size))[:, None]
    spline = sample(eye, places, kernels.bspline(order), boundary=boundary)
    plan = prefilter_plan(size, order, boundary, 2**-52)
    np.testing.assert_allclose(plan.dense() @ spline, eye, atol=1e-13)
    np.testing.assert_array_equal(plan.transpose().dense(), plan.dense().T)


def test_long_axes_share_the_rows_of_their_middle():
    plan = prefilter_plan(10_000, 3, "reflect", 2**-52)
    assert plan.index.shape[0] < 300
    image = np.random.default_rng(6).normal(size=10_000)
    want = ndimage.spline_filter1d(image)
    np.testing.assert_allclose(spline_filter(jnp.asarray(image)), want, atol=1e-13)
    grad = jax.grad(lambda x: (spline_filter(x) ** 2).sum() / 2)(jnp.asarray(image))
    np.testing.assert_allclose(grad[200:-200], ndimage.spline_filter1d(want)[200:-200], atol=1e-12)


@pytest.mark.parametrize("order", POLES)
def test_impulse_response(order):
    """It sums to 1 and undoes the sampled B-spline."""
    taps = impulse_response(order, 2**-52)
    assert taps.sum() == pytest.approx(1, abs=1e-14)
    b = np.asarray(kernels.bspline(order)(np.arange(-3.0, 4.0)))
    delta = np.convolve(taps, b)
    middle = len(delta) // 2
    assert delta[middle] == pytest.approx(1, abs=1e-14)
    assert np.abs(np.delete(delta, middle)).max() < 1e-14


def test_filter_dtypes_and_linearity():
    x = jnp.asarray(np.random.default_rng(7).normal(size=(40, 30)), jnp.float32)
    want = ndimage.spline_filter(np.asarray(x, np.float64))
    for dtype, digits in (("float32", 3e-6), ("bfloat16", 0.1)):
        got = spline_filter(x.astype(dtype))
        assert got.dtype == dtype
        np.testing.assert_allclose(got.astype(np.float64), want, atol=digits)
    assert spline_filter(jnp.arange(12)).dtype == np.float32
    z = jax.lax.complex(x, x[::-1])
    np.testing.assert_allclose(spline_filter(z).imag, spline_filter(z.imag), atol=1e-6)
    y = jnp.ones_like(x)
    back = jax.vjp(spline_filter, x)[1](y)[0]
    assert float(jnp.vdot(back, x)) == pytest.approx(float(spline_filter(x).sum()), rel=1e-4)


# errors -------------------------------------------------------------------------------------------

IMAGE, POINTS = np.zeros((4, 5)), np.zeros((2, 3))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"order": -1}, ValueError, "`order` is -1"),
        ({"order": 6}, ValueError, "`order` is 6"),
        ({"order": 1.5}, TypeError, "`order` is 1.5"),
        ({"order": True}, TypeError, "`order` is True"),
        ({"mode": "edge"}, ValueError, "`mode` is 'edge'"),
        ({"mode": None}, TypeError, "`mode` is None"),
        ({"prefilter": 1}, TypeError, "`prefilter` is 1"),
        ({"cval": 1j}, TypeError, "`cval` is complex"),
        ({"cval": np.zeros(3)}, ValueError, "`cval` has shape (3,)"),
        ({"input": 3.0}, TypeError, "`input` is a float"),
        ({"input": np.zeros((0, 5))}, ValueError, "`input`: axis 0 is empty"),
        ({"coordinates": np.zeros((3, 3))}, ValueError, "`coordinates` has 3 entries"),
        ({"coordinates": [np.zeros(2)]}, ValueError, "`coordinates` has 1 entry"),
        ({"coordinates": [np.zeros(2), np.zeros(3)]}, ValueError, "`coordinates` has arrays of"),
        ({"coordinates": POINTS.astype(complex)}, TypeError, "`coordinates` has dtype complex128"),
    ],
)
def test_errors(arguments, error, words):
    given = {"input": IMAGE, "coordinates": POINTS, "order": 1, **arguments}
    with pytest.raises(error) as caught:
        map_coordinates(**given)
    message = str(caught.value)
    assert message.startswith(words)
    assert "expected" in message
    assert len(message.splitlines()) <= 3


@pytest.mark.parametrize(
    ("order", "mode", "error", "words"),
    [
        (1, "mirror", ValueError, "`order` is 1"),
        (6, "mirror", ValueError, "`order` is 6"),
        ("3", "mirror", TypeError, "`order` is '3'"),
        (3, "edge", ValueError, "`mode` is 'edge'"),
    ],
)
def test_filter_errors(order, mode, error, words):
    with pytest.raises(error) as caught:
        spline_filter(IMAGE, order, mode)
    assert str(caught.value).startswith(words)


def test_traced_order():
    with pytest.raises(TypeError, match=r"`order`.*static"):
        jax.jit(map_coordinates)(jnp.asarray(IMAGE), jnp.asarray(POINTS), 1)
