"""`sample`: values against the double-loop oracle, exactness, dtypes, far and non-finite places."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sampling_helpers import CASE_IDS, CASES, SampleCase, sampled

from jresample import _sample_read, kernels, resize, spline_filter
from jresample import sample as sample_eager

WAYS = {True: _sample_read._windows, False: _sample_read._samples}
sample = jax.jit(sample_eager, static_argnames=("method", "boundary", "fill_value"))

INTERPOLATING = ("nearest", "linear", "cubic", "cubic-pytorch", "lanczos3", "hamming")
# Every boundary, on one axis of two.
PAIRS = (("edge", "reflect"), ("symmetric", "constant"), ("wrap", None))
BOUNDARIES = ("edge", "reflect", "symmetric", "wrap", "constant", None)


@pytest.mark.parametrize("case", CASES, ids=CASE_IDS)
def test_oracle(case):
    image, c = case.image(), case.coordinates()
    got = sample(jnp.asarray(image), jnp.asarray(c), **case.options)
    np.testing.assert_allclose(got, case.expected(image, c), rtol=0, atol=2e-14)


# At most 16 taps, so that windows of an extended copy may be read; every boundary on some axis.
WINDOWED = [CASES[i] for i in (5, 6, 7, 9, 11, 22, 24, 26)]


@pytest.mark.parametrize("case", WINDOWED, ids=[case.name for case in WINDOWED])
def test_windows_and_single_samples_agree(case, monkeypatch):
    """Values with the oracle, and both gradients with one another, whichever way taps are read."""
    image, c = case.image(), case.coordinates()
    args = jnp.asarray(image), jnp.asarray(c)
    taken = []

    def results(windows):
        def locate(*given):
            taken.append(windows)
            return (WAYS[windows])(*given)

        for name in ("_windows", "_samples"):
            monkeypatch.setattr(_sample_read, name, locate)
        jax.clear_caches()
        value, pullback = jax.vjp(partial(sample_eager, **case.options), *args)
        return value, *pullback(jnp.cos(jnp.arange(value.size)).reshape(value.shape))

    one, other = results(True), results(False)
    assert set(taken) == {True, False}
    np.testing.assert_allclose(one[0], case.expected(image, c), rtol=0, atol=2e-14)
    for got, want in zip(one, other, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-13 * (1 + np.abs(want).max()))


@pytest.mark.parametrize("n", [1, 3, 4])
def test_other_numbers_of_axes(n):
    rng = np.random.default_rng(n)
    image, c = rng.normal(size=(5, 3, 4, 2)[:n]), rng.uniform(-3, 6, (2, 4, n))
    methods = ("linear", "cubic", "nearest", "linear")[:n]
    rules = ("constant", "wrap", "edge", "symmetric")[:n]
    got = sample(jnp.asarray(image), jnp.asarray(c), methods, boundary=rules, fill_value=2.0)
    np.testing.assert_allclose(got, sampled(image, c, methods, rules, 2.0), rtol=0, atol=1e-14)


def test_shapes():
    """[*out, n] and [*spatial, *channels] give [*out, *channels], scalars and empties too."""
    image = jnp.ones((4, 5, 2, 3))
    assert sample(image, jnp.ones((7, 1, 2))).shape == (7, 1, 2, 3)
    assert sample(image, jnp.ones(2)).shape == (2, 3)
    assert sample(image, jnp.ones(4)).shape == ()
    assert sample(image, jnp.ones((6, 1))).shape == (6, 5, 2, 3)
    assert sample(image, jnp.ones((0, 2)), "cubic").shape == (0, 2, 3)
    assert sample(jnp.ones((0, 4)), jnp.ones((0, 2))).shape == (0,)
    assert sample(jnp.ones((4, 0)), jnp.ones((3, 1))).shape == (3, 0)


@pytest.mark.parametrize("method", INTERPOLATING)
def test_on_the_grid_it_is_plain_indexing(method):
    """Bit for bit, NaN and Inf neighbours or not, under every boundary and in float32 as well."""
    rng = np.random.default_rng(1)
    image = rng.normal(size=(9, 8, 2)).astype(np.float32)
    image[3, 4], image[0, 0], image[8, 7, 1] = np.nan, np.inf, -np.inf
    places = np.stack(np.meshgrid(np.arange(9), np.arange(8), indexing="ij"), -1)
    for boundary, dtype in zip(PAIRS, (np.float32, np.float64, np.int32), strict=True):
        got = sample(jnp.asarray(image), jnp.asarray(places, dtype), method, boundary=boundary)
        np.testing.assert_array_equal(got, image)
    outside = jnp.asarray(places[:2] - np.array([2, 0]))
    filled = sample(jnp.asarray(image), outside, method, boundary="constant", fill_value=0.1)
    np.testing.assert_array_equal(filled, np.full_like(filled, np.float32(0.1)))


@pytest.mark.parametrize("method", ["linear", "cubic", "cubic-pytorch", "lanczos3", "gaussian"])
@pytest.mark.parametrize("boundary", PAIRS)
def test_regular_coordinates_are_resize(method, boundary):
    image = np.random.default_rng(2).normal(size=(7, 5))
    places = [(np.arange(m) + 0.5) * n / m - 0.5 for n, m in zip((7, 5), (16, 4), strict=True)]
    c = jnp.asarray(np.stack(np.meshgrid(*places, indexing="ij"), -1))
    want = resize(jnp.asarray(image), (16, 4), method, False, boundary=boundary)
    if method == "cubic-pytorch":  # resize's default for it
        boundary = tuple(rule or "edge" for rule in boundary)
    got = sample(jnp.asarray(image), c, method, boundary=boundary)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-13)


def test_locality_of_values():
    """A bad pixel reaches exactly the outputs whose weight on it is not 0."""
    rng = np.random.default_rng(3)
    c = np.concatenate([rng.uniform(-2, 8, (40, 2)), rng.integers(-2, 8, (20, 2))])
    for method in ("linear", "cubic", "lanczos3", "bspline2", ("linear", "nearest")):
        for boundary in PAIRS:
            one = np.zeros((6, 7))
            one[2, 3] = 1.0
            images = [one, *(np.where(one == 1, bad, 1.0) for bad in (np.nan, np.inf))]
            runs = [
                sample(jnp.asarray(x), jnp.asarray(c), method, boundary=boundary) for x in images
            ]
            for got in runs[1:]:
                np.testing.assert_array_equal(np.isfinite(got), np.asarray(runs[0]) == 0)


FAR = [np.inf, -np.inf, 1e20, -1e20, 3e9, -2.5e38]


@pytest.mark.parametrize("method", ["nearest", "linear", "cubic", "bspline2"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_outside(method, dtype):
    image = jnp.asarray([6.0, 5.0, 4.0], dtype)
    c = jnp.asarray(FAR, dtype)[:, None]
    low, high = FAR[1::2], FAR[::2]
    for boundary, want in (("edge", (6, 4)), ("constant", (0.25, 0.25)), (None, (6, 4))):
        got = sample(image, c, method, boundary=boundary, fill_value=0.25)
        got = dict(zip(FAR, np.asarray(got), strict=True))
        if method in ("cubic", "bspline2") and boundary is None:
            continue  # half a sample outside these are not the edge itself
        np.testing.assert_allclose([got[v] for v in low], want[0], rtol=1e-6)
        np.testing.assert_allclose([got[v] for v in high], want[1], rtol=1e-6)
    for boundary in ("reflect", "symmetric", "wrap"):
        got = np.asarray(sample(image, c, method, boundary=boundary))
        assert ((got > 3.4) & (got < 6.6)).all(), boundary
        # a whole number of turns away, as long as the coordinate is exact
        turn = {"reflect": 4, "symmetric": 6, "wrap": 3}[boundary]
        near = np.linspace(-1, 3, 9).astype(dtype)[:, None]
        moved = sample(image, jnp.asarray(near + 100 * turn), method, boundary=boundary)
        here = sample(image, jnp.asarray(near), method, boundary=boundary)
        np.testing.assert_allclose(moved, here, atol=1e-4 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("method", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("boundary", PAIRS)
def test_nan_and_infinite_coordinates_spoil_only_themselves(method, boundary):
    rng = np.random.default_rng(4)
    image, good = rng.normal(size=(5, 4)), rng.uniform(0, 3, (6, 2))
    bad = np.array([[np.nan, 1.0], [2.0, np.nan], [np.inf, 1.0], [0.0, -np.inf]])
    run = jax.jit(lambda x, c: sample(x, c, method, boundary=boundary))
    got, back = jax.vjp(run, jnp.asarray(image), jnp.asarray(np.concatenate([bad, good])))
    alone, alone_back = jax.vjp(run, jnp.asarray(image), jnp.asarray(good))
    np.testing.assert_array_equal(got[4:], alone)
    assert np.isnan(got[:2]).all()
    assert np.isfinite(got[2:4]).all()
    # cotangents on the NaN outputs reach neither the image nor the other coordinates
    y_bar = jnp.asarray([1.0, 1.0, 0, 0, *rng.normal(size=6)])
    x_bar, c_bar = back(y_bar)
    want = alone_back(y_bar[4:])
    np.testing.assert_allclose(x_bar, want[0], atol=1e-15)
    np.testing.assert_array_equal(c_bar[4:], want[1])
    if method != "nearest":
        assert np.isnan(c_bar[0, 0])
        assert np.isnan(c_bar[1, 1])
    # an infinite coordinate has slope 0
    _, c_bar = back(jnp.ones(10))
    assert c_bar[2, 0] == 0
    assert c_bar[3, 1] == 0
    assert np.isfinite(back(jnp.ones(10))[0]).all()


# dtypes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64", "complex64"])
def test_dtype_of_the_image_comes_back(dtype):
    case = SampleCase("cubic", ("edge", "constant"), 0.5)
    image = jnp.asarray(case.image()).astype(dtype)
    c = case.coordinates()
    for coordinates in (jnp.asarray(c), jnp.asarray(c, jnp.float32)):
        got = sample(image, coordinates, **case.options)
        assert got.dtype == dtype
        wide = np.asarray(image).astype(np.complex128 if dtype == "complex64" else np.float64)
        digits = {"bfloat16": 2**-8, "float16": 2**-10, "float64": 1e-5}.get(dtype, 1e-5)
        want = case.expected(wide, coordinates)
        np.testing.assert_allclose(got.astype(want.dtype), want, rtol=digits, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.bool_])
def test_integers(dtype):
    """Nearest keeps the dtype, everything else gives float32; the coordinates have a slope."""
    image = np.random.default_rng(5).integers(0, 2, (6, 5)).astype(dtype)
    c = np.random.default_rng(6).uniform(-1, 6, (30, 2))
    got = sample(jnp.asarray(image), jnp.asarray(c), "nearest", boundary="constant", fill_value=1)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, sampled(image, c, "nearest", "constant", 1).astype(dtype))
    soft = sample(jnp.asarray(image), jnp.asarray(c), "linear")
    assert soft.dtype == np.float32
    np.testing.assert_allclose(soft, sampled(image, c, "linear"), atol=1e-6)
    slope = jax.grad(lambda c: sample(jnp.asarray(image), c, "linear").sum())(jnp.asarray(c))
    want = jax.grad(lambda c: sample(jnp.asarray(image, float), c, "linear").sum())(jnp.asarray(c))
    np.testing.assert_allclose(slope, want, atol=1e-6)
    assert np.abs(want).max() > 0.1
    nan = sample(jnp.asarray(image), jnp.full((1, 2), np.nan), "nearest", fill_value=1)
    assert nan.dtype == dtype
    assert int(nan[0]) == 1


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_low_precision(dtype):
    """Coordinates are not rounded to the image's dtype, constants stay constant, sums are wide."""
    ramp = jnp.arange(200.0).astype(dtype)
    c = jnp.asarray([[100.25], [150.75]], jnp.float32)
    np.testing.assert_array_equal(
        sample(ramp, c).astype(float), np.float32([100.25, 150.75]).astype(ramp.dtype).astype(float)
    )
    value = jnp.asarray(0.4216, dtype)
    rng = np.random.default_rng(7)
    for method in ("linear", "cubic", "lanczos3"):
        got = sample(jnp.full((7, 5), value), jnp.asarray(rng.uniform(0, 9, (50, 2))), method)
        assert (got == value).all(), method
    # 4096 outputs on one sample: a sum in the image's dtype stops at 256, or 2048
    for method in ("nearest", "linear", "cubic"):
        zeros = jnp.zeros((4096, 1), jnp.float32)
        grad = jax.grad(lambda x: sample(x, zeros, method).astype(jnp.float32).sum())  # noqa: B023
        assert grad(jnp.ones(1, dtype))[0] == 4096


# kernels ------------------------------------------------------------------------------------------


def tent(x):
    xp = x.__array_namespace__()
    return xp.maximum(2 - xp.abs(x), xp.zeros_like(x))


def test_users_kernel():
    """A kernel that neither sums to 1 nor interpolates: divided by the sum."""
    kernel = kernels.Kernel("tent", 2.0, tent)
    image, c = np.random.default_rng(8).normal(size=7), np.linspace(0, 6, 25)
    weights = np.maximum(2 - np.abs(np.arange(-4, 11) - c[:, None]), 0)
    want = weights @ image[np.clip(np.arange(-4, 11), 0, 6)] / weights.sum(1)
    got = sample(jnp.asarray(image), jnp.asarray(c)[:, None], kernel)
    np.testing.assert_allclose(got, want, atol=1e-14)


def bent(x, knots):
    xp = x.__array_namespace__()
    return knots[0] * (1 - xp.abs(x)) ** 2 + knots[1] * (1 - xp.abs(x)) + knots[2]


@pytest.mark.parametrize(
    ("make", "params"),
    [
        (kernels.cubic, (-0.6,)),
        (kernels.mitchell, (0.2, 0.4)),
        (kernels.gaussian, (0.7,)),
        (lambda k: kernels.Kernel("bent", 1.0, bent, (k,)), (np.array([0.3, 0.7, 0.1]),)),
    ],
    ids=["cubic", "mitchell", "gaussian", "array parameter"],
)
def test_traced_parameters(make, params):
    """Values as with plain numbers; gradients with respect to the parameters, and through vmap."""
    rng = np.random.default_rng(9)
    image, c = jnp.asarray(rng.normal(size=(6, 5, 2))), jnp.asarray(rng.uniform(-1, 6, (9, 2)))
    params = tuple(jnp.asarray(p) for p in params)

    def run(*params):
        return sample_eager(image, c, (make(*params), "linear"), boundary=("wrap", "edge"))

    static = tuple(float(p) if p.ndim == 0 else np.asarray(p) for p in params)
    np.testing.assert_allclose(jax.jit(run)(*params), run(*static), atol=1e-14)
    which = tuple(range(len(params)))
    slope = jax.jit(jax.jacrev(run, which))(*params)
    forward = jax.jit(jax.jacfwd(run, which))(*params)
    for i, p in enumerate(params):
        flat = p.reshape(-1)
        for j in range(flat.size):
            ends = [flat.at[j].add(d).reshape(p.shape) for d in (1e-6, -1e-6)]
            high, low = (run(*params[:i], end, *params[i + 1 :]) for end in ends)
            for got in (slope[i], forward[i]):
                got = got.reshape(*high.shape, -1)[..., j]
                np.testing.assert_allclose(got, (high - low) / 2e-6, atol=1e-8)
    batch = tuple(jnp.stack([p, 1.5 * p]) for p in params)
    mapped = jax.vmap(run)(*batch)
    np.testing.assert_allclose(mapped[1], run(*(1.5 * p for p in params)), atol=1e-13)


def test_splines_after_a_prefilter():
    """The spline goes through the samples, and a cubic polynomial is its own cubic spline."""
    image = np.random.default_rng(10).normal(size=(30, 9))
    places = np.stack(np.meshgrid(np.arange(30), np.arange(9), indexing="ij"), -1)
    for degree in (2, 3, 4, 5):
        coefficients = spline_filter(jnp.asarray(image), degree)
        kernel = kernels.bspline(degree)
        got = sample(coefficients, jnp.asarray(places), kernel, boundary="reflect")
        np.testing.assert_allclose(got, image, atol=1e-13)
    x = np.arange(60.0)
    coefficients = spline_filter(jnp.asarray(x**3))
    c = np.linspace(25, 35, 21)
    got = sample(coefficients, jnp.asarray(c)[:, None], kernels.bspline(3), boundary="reflect")
    np.testing.assert_allclose(got, c**3, rtol=1e-10)


# errors -------------------------------------------------------------------------------------------

IMAGE = np.zeros((4, 5))
POINTS = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"image": [1.0, 2.0]}, TypeError, "`image` is a list"),
        ({"image": np.array(["a"])}, TypeError, "`image` has dtype"),
        ({"coordinates": np.zeros((3, 3))}, ValueError, "`coordinates` has shape (3, 3)"),
        ({"coordinates": np.zeros(())}, ValueError, "`coordinates` has shape ()"),
        ({"coordinates": POINTS.astype(complex)}, TypeError, "`coordinates` has dtype complex128"),
        ({"coordinates": POINTS.astype(bool)}, TypeError, "`coordinates` has dtype bool"),
        ({"method": "quintic"}, ValueError, "`method` is 'quintic'"),
        ({"method": "area"}, ValueError, "`method` is 'area'"),
        ({"method": 3}, TypeError, "`method` is 3"),
        ({"method": ("linear",)}, ValueError, "`method` has 1 entry"),
        ({"boundary": "mirror"}, ValueError, "`boundary` is 'mirror'"),
        ({"boundary": 0}, TypeError, "`boundary` is 0"),
        ({"boundary": ["edge"] * 3}, ValueError, "`boundary` has 3 entries"),
        ({"fill_value": np.zeros(2)}, ValueError, "`fill_value` has shape (2,)"),
        ({"fill_value": "black"}, TypeError, "`fill_value` is a str"),
        ({"fill_value": 1j}, TypeError, "`fill_value` is complex"),
        ({"image": np.zeros((4, 0))}, ValueError, "`image`: axis 1 is empty"),
    ],
)
def test_errors(arguments, error, words):
    """The same in eager and under jit, where the image or the coordinates are traced."""
    given = {"image": IMAGE, "coordinates": POINTS, **arguments}
    traced = {k: v for k, v in given.items() if getattr(v, "dtype", np.dtype("U")).kind in "fcb"}
    rest = {k: v for k, v in given.items() if k not in traced}
    runs = [lambda: sample_eager(**given), lambda: jax.jit(partial(sample_eager, **rest))(**traced)]
    for run in runs:
        with pytest.raises(error) as caught:
            run()
        message = str(caught.value)
        assert message.startswith(words)
        assert "expected" in message
        assert len(message.splitlines()) <= 3
