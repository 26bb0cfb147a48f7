"""Faults other sampling libraries had: each one's small case, then its whole kind."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sampling_helpers import sampled

from jresample import affine_grid, grid_sample, map_coordinates, sample, scale_and_translate

PADDINGS = ("zeros", "border", "reflection")
FLAGS = (False, True)


def warped(image, theta, mode="bilinear", padding="zeros", corners=False):
    """An affine warp of one 2-D image onto its own size."""
    image = jnp.asarray(image)[None, None]
    theta = jnp.asarray(theta)[None]
    return grid_sample(image, affine_grid(theta, image.shape, corners), mode, padding, corners)[
        0, 0
    ]


def turn(degrees):
    t = np.deg2rad(degrees)
    return np.array([[np.cos(t), -np.sin(t), 0], [np.sin(t), np.cos(t), 0]])


IDENTITY = np.eye(2, 3)

# warps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_gs_identity(mode):
    image = np.random.default_rng(3).normal(size=(37, 53)).astype(np.float32)
    for corners in FLAGS:
        for padding in PADDINGS:
            got = warped(image, IDENTITY.astype(np.float32), mode, padding, corners)
            np.testing.assert_allclose(got, image, rtol=0, atol=0 if mode == "nearest" else 5e-5)


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_gs_stn(dtype):
    image = np.arange(9).reshape(3, 3).astype(dtype)
    same = warped(image, IDENTITY.astype(np.float32), corners=True)
    assert same.dtype == np.float32
    np.testing.assert_allclose(same, image, atol=1e-6)
    quarter = np.array([[0, 1, 0], [-1, 0, 0]], np.float32)
    want = [[6.0, 3.0, 0.0], [7.0, 4.0, 1.0], [8.0, 5.0, 2.0]]
    np.testing.assert_allclose(warped(image, quarter, corners=True), want, atol=1e-5)


@pytest.mark.parametrize("size", [12, 5, 1])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_warp_rot90(size, mode):
    image = np.arange(float(size * size)).reshape(size, size)
    for corners in FLAGS:
        for k in (1, 2, 3):
            got = warped(image, turn(90 * k), mode, "zeros", corners)
            np.testing.assert_allclose(got, np.rot90(image, k), atol=1e-3)


def test_st_keras_jit():
    """Eager, jit, scan and vmap agree; one trace for all matrices."""
    images = np.moveaxis(np.random.default_rng(4).normal(size=(3, 20, 18, 1)), -1, 1)
    images = jnp.asarray(images)
    thetas = jnp.asarray(np.stack([IDENTITY, turn(90), 0.5 * IDENTITY]))

    def warp(image, theta):
        return grid_sample(image[None], affine_grid(theta[None], (1, *image.shape)))[0]

    eager = jnp.stack([warp(x, t) for x, t in zip(images, thetas, strict=True)])
    jitted = jax.jit(chex.assert_max_traces(lambda x, t: warp(x, t), n=1))
    compiled = jnp.stack([jitted(x, t) for x, t in zip(images, thetas, strict=True)])
    mapped = jax.vmap(warp)(images, thetas)
    scanned = jax.lax.scan(lambda _, xt: (None, warp(*xt)), None, (images, thetas))[1]
    for other in (compiled, mapped, scanned):
        np.testing.assert_allclose(other, eager, atol=1e-12)


def test_lp_mixed():
    """Image and grid of different dtypes: the image's comes back, each gradient in its own."""
    plain = np.arange(16.0).reshape(1, 1, 4, 4)
    for dtype, points, want in (
        ("bfloat16", "float32", "bfloat16"),
        ("float16", "float64", "float16"),
        ("float32", "float64", "float32"),
        ("float64", "bfloat16", "float64"),
        ("uint8", "float32", "float32"),
    ):
        image = jnp.asarray(plain).astype(dtype)
        grid = affine_grid(jnp.asarray(IDENTITY)[None], (1, 1, 4, 4)).astype(points)
        got = grid_sample(image, grid)
        assert got.dtype == want
        np.testing.assert_allclose(
            got.astype(float), plain, atol=0.05 if points == "bfloat16" else 1e-5
        )
        total = lambda x, g: grid_sample(x, g).astype(jnp.float32).sum()  # noqa: E731
        if dtype != "uint8":
            assert jax.grad(total, 0)(image, grid).dtype == dtype
        assert jax.grad(total, 1)(image, grid).dtype == points


def test_sz_batch0():
    image, grid = jnp.zeros((0, 3, 4, 5)), jnp.zeros((0, 7, 2, 2))
    assert grid_sample(image, grid).shape == (0, 3, 7, 2)
    x_bar = jax.grad(lambda x: grid_sample(x, grid, "bicubic").sum())(image)
    assert x_bar.shape == (0, 3, 4, 5)
    assert affine_grid(jnp.zeros((0, 2, 3)), (0, 3, 7, 2)).shape == (0, 7, 2, 2)
    assert grid_sample(jnp.zeros((2, 0, 4, 5)), jnp.zeros((2, 7, 2, 2))).shape == (2, 0, 7, 2)
    assert grid_sample(jnp.zeros((2, 3, 4, 5)), jnp.zeros((2, 0, 2, 2))).shape == (2, 3, 0, 2)


# far and non-finite places ------------------------------------------------------------------------

FAR = [np.inf, -np.inf, np.nan, 1e20, -1e20, 3e9, 1.0]
WANT = {"zeros": [0, 0, None, 0, 0, 0, 5], "border": [4, 6, None, 4, 6, 4, 5], "reflection": None}


def runs(padding, method):
    """The same sampling of [6, 5, 4] by each function of the library."""
    boundary = {"zeros": "constant", "border": "edge", "reflection": "symmetric"}[padding]
    mode = {"zeros": "grid-constant", "border": "nearest", "reflection": "reflect"}[padding]
    order = {"nearest": 0, "linear": 1}[method]

    def by_grid(x, c):
        points = jnp.stack([(2 * c + 1) / 3 - 1, jnp.zeros_like(c)], -1)[None, None]
        kind = "bilinear" if method == "linear" else "nearest"
        return grid_sample(x[None, None, None], points, kind, padding)[0, 0, 0]

    yield lambda x, c: sample(x, c[:, None], method, boundary=boundary)
    yield lambda x, c: map_coordinates(x, [c], order, mode)
    yield by_grid


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("method", ["nearest", "linear"])
def test_gs_inf(padding, method):
    image, c = jnp.asarray([6.0, 5.0, 4.0]), jnp.asarray(FAR)
    for run in runs(padding, method):
        got, back = jax.vjp(run, image, c)
        assert np.isnan(got[2])
        for value, want in zip(got, WANT[padding] or [None] * 7, strict=True):
            if want is not None:
                assert float(value) == pytest.approx(want, abs=1e-6)
        assert np.nanmin(got) >= 4 or padding == "zeros"
        assert np.nanmax(got) <= 6
        x_bar, _ = back(jnp.zeros(7).at[6].set(1.0))
        np.testing.assert_allclose(x_bar, [0, 1, 0], atol=1e-12)


@pytest.mark.parametrize("corners", FLAGS)
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_gs_reflhuge(mode, corners):
    image = jnp.asarray([[[[3.0, 1.0, 2.0]]]], jnp.float32)
    x = np.array([2.5e38, -2.5e38, 1e9, 5.0], np.float32)
    grid = jnp.asarray(np.stack([x, np.zeros_like(x)], -1)[None, None])
    got = np.asarray(grid_sample(image, grid, mode, "reflection", corners))[0, 0, 0]
    low, high = (1, 3) if mode != "bicubic" else (0.5, 3.5)
    assert ((got >= low) & (got <= high)).all()
    if mode != "bicubic":
        assert got[3] == pytest.approx(2.0, abs=1e-6)


# map_coordinates ----------------------------------------------------------------------------------


def test_mc_quant():
    """Positions are not rounded to a table of fractions."""
    image = jnp.asarray([255.0, 0.0, 128.0, 64.0])
    got = map_coordinates(image, jnp.asarray([[0.518317, 1.03, 2.999]]), 1, "nearest")
    np.testing.assert_allclose(got, [122.829165, 3.84, 64.064], atol=1e-6)
    fine = jnp.linspace(0, 1, 4097)
    for dtype in (jnp.float32, jnp.float64):
        steps = jnp.diff(sample(image.astype(dtype), fine[:, None]))
        np.testing.assert_allclose(steps, -255 / 4096, rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_mc_ties(dtype):
    image, c = jnp.asarray([10, 11, 12, 13, 14], dtype), jnp.asarray([0.5, 1.5, 2.5, 3.5])
    np.testing.assert_array_equal(map_coordinates(image, [c], 0), [11, 12, 13, 14])
    np.testing.assert_array_equal(sample(image, c[:, None], "nearest"), [11, 12, 13, 14])
    grid = jnp.stack([c / 2 - 1, jnp.zeros(4)], -1)[None, None]
    even = grid_sample(image[None, None, None], grid, "nearest", "zeros", True)
    np.testing.assert_array_equal(even[0, 0, 0], [10, 12, 12, 14])
    below = jnp.nextafter(jnp.float32(0.5), jnp.float32(0))
    assert int(sample(image, below[None], "nearest")) == 10


def test_mc_const_int():
    """An integer image: `map_coordinates` rounds as scipy does; `sample` gives the fractions."""
    image, c = jnp.asarray([5, 1, 6], jnp.int32), jnp.asarray([2.0, 3.0, 2.9])
    for mode, want in (("constant", [6, 0, 0]), ("grid-constant", [6, 0, 1])):
        np.testing.assert_array_equal(map_coordinates(image, [c], 1, mode), want)
        soft = [6, 0, 0] if mode == "constant" else [6, 0, 0.6]
        plain = map_coordinates(image.astype(jnp.float32), [c], 1, mode)
        np.testing.assert_allclose(plain, soft, atol=1e-6)
    blended = sample(image, c[:, None], boundary="constant")
    assert blended.dtype == np.float32
    np.testing.assert_allclose(blended, [6, 0, 0.6], atol=1e-6)


def test_mc_order3():
    image, c = jnp.arange(6.0) ** 2, jnp.asarray([[2.5, 0.3]])
    known = {
        2: [6.293103, 0.090378],
        3: [6.363636, 0.093014],
        4: [6.461742, 0.098131],
        5: [6.533228, 0.104618],
    }
    for order, want in known.items():
        np.testing.assert_allclose(map_coordinates(image, c, order, "mirror"), want, atol=1e-5)
    assert float(sample(image, c[0, :1], "cubic")) == pytest.approx(6.25)
    for order in (-1, 6, 1.5):
        with pytest.raises((ValueError, TypeError), match="`order`"):
            map_coordinates(image, c, order)


def test_mc_oob_fill():
    c = jnp.asarray(np.linspace(-2, 7, 10))
    want = [-1, -1, 1, 2, 3, 4, 5, 6, -1, -1]
    for dtype in (jnp.float64, jnp.int32):
        image = jnp.arange(1, 7).astype(dtype)
        for mode in ("constant", "grid-constant"):
            np.testing.assert_array_equal(map_coordinates(image, [c], 0, mode, -1), want)
        filled = sample(image, c[:, None], "nearest", boundary="constant", fill_value=-1)
        np.testing.assert_array_equal(filled, want)


def test_cplx():
    image, c = jnp.asarray([1 + 2j, 3 - 4j, -2 + 1j], jnp.complex64), jnp.asarray([0.75])
    for got in (sample(image, c[:, None]), map_coordinates(image, [c], 1)):
        assert got.dtype == np.complex64
        np.testing.assert_allclose(got, [2.5 - 2.5j], atol=1e-6)
    for method in ("nearest", "cubic", "lanczos3"):
        run = lambda x: sample(x, c[:, None], method)  # noqa: B023, E731
        parts = jax.lax.complex(run(image.real), run(image.imag))
        np.testing.assert_allclose(run(image), parts, atol=1e-6)
        slope = jax.grad(lambda x: (jnp.abs(run(x)) ** 2).sum())(image)  # noqa: B023
        assert np.isfinite(slope).all()
        assert slope.dtype == np.complex64


# gradients ----------------------------------------------------------------------------------------


def test_lp_gradacc():
    """4096 points on one pixel, in half precisions: every one of them counts."""
    for dtype in ("float16", "bfloat16"):
        zeros = jnp.zeros((1, 4096), jnp.float32)
        grid = jnp.zeros((1, 1, 4096, 2), jnp.float32)
        for order in (0, 1, 3):
            total = lambda x: map_coordinates(x, zeros, order, "nearest").astype(jnp.float32).sum()  # noqa: B023, E731
            slope = jax.grad(total)(jnp.ones(1, dtype))
            assert slope.dtype == dtype
            assert float(slope[0]) == 4096
        for mode in ("nearest", "bilinear", "bicubic"):
            total = lambda x: grid_sample(x, grid, mode, "border").astype(jnp.float32).sum()  # noqa: B023, E731
            assert float(jax.grad(total)(jnp.ones((1, 1, 1, 1), dtype))[0, 0, 0, 0]) == 4096


def test_gr_ramp():
    """The slope at whole positions, by both functions and in both modes."""
    c = jnp.asarray([0.0, 1.0, 2.0])
    for run in (
        lambda x, c: map_coordinates(x, [c], 1, "nearest"),
        lambda x, c: sample(x, c[:, None], boundary="edge"),
    ):
        for jacobian in (jax.jacfwd, jax.jacrev):
            slopes = jnp.diag(jacobian(lambda c: run(jnp.asarray([3.0, 5, 7, 9]), c))(c))  # noqa: B023
            np.testing.assert_array_equal(slopes, [2, 2, 2])
            squares = jnp.diag(jacobian(lambda c: run(jnp.asarray([0.0, 1, 4, 9]), c))(c))  # noqa: B023
            assert 3 <= float(squares[2]) <= 5


@pytest.mark.parametrize("padding", ["border", "reflection"])
def test_gr_border(padding):
    image = jnp.tile(jnp.asarray([1.0, 2, 4, 7, 11]), (5, 1))[None, None]
    grid = affine_grid(jnp.asarray(IDENTITY)[None], (1, 1, 5, 5), True)
    slope = jax.grad(lambda g: grid_sample(image, g, "bilinear", padding, True).sum())(grid)
    bounds = [[0, 2], [2, 4], [4, 6], [6, 8], [0, 8]]
    if padding == "reflection":
        bounds[0], bounds[4] = [-2, 2], [-8, 8]
    for column, (low, high) in enumerate(bounds):
        assert ((slope[0, :, column, 0] >= low) & (slope[0, :, column, 0] <= high)).all()
    np.testing.assert_allclose(slope[..., 1], 0, atol=1e-12)
    # the cubic kernel's slopes there are those of the function on either side
    one = lambda t: grid_sample(  # noqa: E731
        image, jnp.stack([t, jnp.zeros_like(t)], -1)[None, None], "bicubic", padding, True
    ).ravel()
    ends = jnp.asarray([-1.0, 1.0])
    sides = [(one(ends + d) - one(ends)) / d for d in (1e-6, -1e-6)]
    cubic = jax.grad(lambda t: one(t).sum())(ends)
    off = [np.abs(cubic - side) for side in sides]
    assert np.minimum(*off).max() < 1e-4


def test_gr_nn_image():
    """A nearest warp passes the gradient to the pixels, and none to the grid."""
    image = jnp.ones((4, 1, 2, 2))
    grid = affine_grid(jnp.tile(jnp.asarray(IDENTITY), (4, 1, 1)), (4, 1, 2, 2))
    total = lambda x, g: grid_sample(x, g, "nearest").mean()  # noqa: E731
    x_bar, g_bar = jax.grad(total, (0, 1))(image, grid)
    np.testing.assert_array_equal(x_bar, np.full((4, 1, 2, 2), 1 / 16))
    np.testing.assert_array_equal(g_bar, np.zeros((4, 2, 2, 2)))


def test_gr_hess_grid():
    """Second derivatives through grid sampling, in samples and in normalised units."""
    image = jnp.asarray([[[[1.0, 4.0], [2.0, 9.0]]]])
    run = lambda g: grid_sample(image, g[None, None, None], align_corners=True)[0, 0, 0, 0]  # noqa: E731
    point = jnp.asarray([2 * 0.6 - 1, 2 * 0.3 - 1])
    assert float(run(point)) == pytest.approx(3.82)
    for hessian in (jax.jacfwd(jax.grad(run)), jax.jacrev(jax.grad(run))):
        np.testing.assert_allclose(hessian(point), np.array([[0, 4], [4, 0]]) / 4, atol=1e-12)


def test_gr_determ():
    rng = np.random.default_rng(2)
    image = jnp.asarray(rng.normal(size=(2, 8, 33, 47)), jnp.float32)
    grid = jnp.asarray(rng.uniform(-1, 1, (2, 100, 50, 2)), jnp.float32)
    weight = jnp.asarray(rng.normal(size=(2, 8, 100, 50)), jnp.float32)
    slope = jax.jit(jax.grad(lambda x: (grid_sample(x, grid) * weight).sum()))
    first = slope(image)
    for _ in range(9):
        np.testing.assert_array_equal(slope(image), first)


# scale_and_translate ------------------------------------------------------------------------------


def test_st_outside():
    row = jnp.asarray([4.0, 8.0, 6.0])
    c = jnp.arange(4.0)[:, None] / 0.9
    np.testing.assert_allclose(sample(row, c, boundary="edge"), [4, 7.777778, 6, 6], atol=1e-5)
    zeros = sample(row, c, boundary="constant")
    np.testing.assert_allclose(zeros, [4, 7.777778, 4.666667, 0], atol=1e-5)
    args = (row, (4,), (0,), (0.9,), (0.5 - 0.45,), "linear", False)
    np.testing.assert_allclose(scale_and_translate(*args), [4, 7.777778, 6, 0], atol=1e-5)
    edge = scale_and_translate(*args, boundary="edge")
    np.testing.assert_allclose(edge, [4, 7.777778, 6, 6], atol=1e-5)


def test_st_traced():
    row, places = jnp.asarray([1.0, 2, 4, 8]), jnp.arange(4.0)
    by_sample = lambda t: sample(row, (places + t)[:, None])  # noqa: E731
    moved = lambda t, boundary: scale_and_translate(  # noqa: E731
        row, (4,), (0,), jnp.ones(1), -t[None], "linear", min_scale=1.0, boundary=boundary
    )
    t = jnp.asarray([0.0, 0.25, 1.0])
    want = [[1, 2, 4, 8], [1.25, 2.5, 5, 8], [2, 4, 8, 8]]
    for run in (by_sample, lambda t: moved(t, "edge")):
        np.testing.assert_allclose(jax.jit(jax.vmap(run))(t), want, atol=1e-12)
        for jacobian in (jax.jacfwd, jax.jacrev):
            np.testing.assert_allclose(jacobian(run)(t[1]), [1, 2, 4, 0], atol=1e-12)
    jaxs = jax.jit(jax.vmap(lambda t: moved(t, None)))(t)
    np.testing.assert_allclose(jaxs, [*want[:2], [2, 4, 8, 0]], atol=1e-12)
    # at whole shifts jax's slope is the mean of both sides
    np.testing.assert_allclose(jax.jacrev(lambda t: moved(t, None))(t[0]), [0.5, 1.5, 3, 2])


def test_every_kind_over_random_images():
    """The functions agree with the oracle, and so with one another, on the same question."""
    rng = np.random.default_rng(5)
    image, pixel = rng.normal(size=(6, 5)), rng.uniform(-3, 8, (40, 2))
    grid = jnp.asarray(((2 * pixel + 1) / [6, 5] - 1)[:, ::-1].reshape(1, 8, 5, 2))
    for padding, boundary in (
        ("zeros", "constant"),
        ("border", "edge"),
        ("reflection", "symmetric"),
    ):
        for mode, method in (("bilinear", "linear"), ("bicubic", "cubic-pytorch")):
            want = sampled(image, pixel, method, boundary)
            got = grid_sample(jnp.asarray(image)[None, None], grid, mode, padding)
            np.testing.assert_allclose(got.ravel(), want, atol=1e-12)
            direct = sample(jnp.asarray(image), jnp.asarray(pixel), method, boundary=boundary)
            np.testing.assert_allclose(direct, want, atol=1e-13)
