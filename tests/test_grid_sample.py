"""`grid_sample` and `affine_grid`: torch live and recorded, Burn's vectors, warps, errors."""

import itertools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from sampling_helpers import check_derivatives

from jresample import affine_grid, grid_sample

DATA = Path(__file__).parent / "data"
BURN = json.loads((DATA / "sampling_burn.json").read_text())["vectors"]
TORCH = json.loads((DATA / "sampling_torch.json").read_text())
MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
SIZES = {"images": (5, 7), "a row": (1, 4), "volumes": (4, 5, 3)}
# Every mode that torch has for each of them.
CROSS = [
    (name, mode, padding, corners)
    for name, mode, padding, corners in itertools.product(SIZES, MODES, PADDINGS, (False, True))
    if not (name == "volumes" and mode == "bicubic")
]


def example(name, corners):
    """An image, a grid (in, around, far outside, on and half way between pixels), a cotangent."""
    sizes = SIZES[name]
    rng = np.random.default_rng([len(sizes), *sizes, corners])
    out = (4, 5, 3)[: len(sizes)]
    image = rng.normal(size=(2, 3, *sizes))
    grid = rng.uniform(-1.3, 1.3, (2, *out, len(sizes))) * rng.choice([1, 1, 3], (2, *out, 1))
    on_knot = rng.integers(0, 5, grid.shape) == 0
    for axis, n in enumerate(reversed(sizes)):
        pixel = rng.integers(-6, 2 * n + 6, grid.shape[:-1]) / 2
        knot = (2 * pixel / (n - 1) - 1 if n > 1 else pixel) if corners else (2 * pixel + 1) / n - 1
        grid[..., axis] = np.where(on_knot[..., axis], knot, grid[..., axis])
    return image, grid, rng.normal(size=(2, 3, *out)), on_knot.any(-1)


def ours(image, grid, mode, padding, corners, cotangent):
    def run(image, grid):
        return grid_sample(image, grid, mode, padding, corners)

    value, back = jax.vjp(jax.jit(run), jnp.asarray(image), jnp.asarray(grid))
    return value, *back(jnp.asarray(cotangent))


@pytest.mark.peers
@pytest.mark.parametrize(("name", "mode", "padding", "corners"), CROSS)
def test_torch(name, mode, padding, corners):
    """Values and the image's gradient everywhere, the grid's gradient away from knots."""
    torch = pytest.importorskip("torch")
    image, grid, cotangent, on_knot = example(name, corners)
    x, g = (torch.tensor(v, requires_grad=True) for v in (image, grid))
    want = torch.nn.functional.grid_sample(x, g, mode, padding, corners)
    x_bar, g_bar = torch.autograd.grad(want, (x, g), torch.tensor(cotangent))
    got = ours(image, grid, mode, padding, corners, cotangent)
    np.testing.assert_allclose(got[0], want.detach(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(got[1], x_bar, rtol=0, atol=1e-12)
    np.testing.assert_allclose(got[2][~on_knot], g_bar[~on_knot], rtol=0, atol=1e-11)


@pytest.mark.parametrize("case", TORCH["cases"], ids=lambda c: " ".join(map(str, c["options"])))
def test_torch_recorded(case):
    """torch's own numbers, for a clone without torch."""
    image, grid = (np.array(TORCH[f"{key} {case['rank']}"]) for key in ("image", "grid"))
    mode, padding, corners = case["options"]
    got = ours(image, grid, mode, padding, corners, np.ones_like(case["value"]))
    for value, key in zip(got, ("value", "image_gradient", "grid_gradient"), strict=True):
        np.testing.assert_allclose(value, case[key], rtol=0, atol=1e-11, err_msg=key)


@pytest.mark.peers
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (3, 1, 1, 4), (2, 1, 3, 4, 5), (1, 2, 2, 1, 1)])
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
def test_torch_affine_grid(size, corners):
    torch = pytest.importorskip("torch")
    theta = np.random.default_rng(1).normal(size=(size[0], len(size) - 2, len(size) - 1))
    want = torch.nn.functional.affine_grid(torch.tensor(theta), size, corners)
    got = affine_grid(jnp.asarray(theta), size, corners)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-14)


@pytest.mark.parametrize("vector", BURN, ids=[v["id"] for v in BURN])
def test_burn(vector):
    image = np.array(vector["input"], np.float64)
    corners = vector["align_corners"]
    if vector["op"] == "affine_grid_2d":
        got = affine_grid(jnp.asarray(image), vector["dims"], corners)
    else:
        if "theta" in vector:
            theta = jnp.asarray(vector["theta"])
            grid = affine_grid(theta, (*image.shape[:2], *vector["output_size"]), corners)
        else:
            points = [float(str(v).replace("Infinity", "inf")) for v in np.ravel(vector["grid"])]
            grid = jnp.asarray(points).reshape(*np.shape(vector["grid"]))
        got = grid_sample(
            jnp.asarray(image), grid, vector["mode"].lower(), vector["padding_mode"], corners
        )
    if vector["expected_kind"] == "shape":
        assert got.shape == tuple(vector["expected"])
        return
    tolerance = {"rtol": vector["tolerance"]["relative"], "atol": vector["tolerance"]["absolute"]}
    np.testing.assert_allclose(got, vector["expected"], **tolerance)


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("corners", [False, True])
def test_tricubic(padding, corners):
    """One axis after the other, it is bicubic: here on a volume that is a product."""
    rng = np.random.default_rng(2)
    plane, line = rng.normal(size=(1, 1, 5, 6)), rng.normal(size=4)
    volume = line[None, None, :, None, None] * plane[:, :, None]
    grid = rng.uniform(-1.4, 1.4, (1, 3, 3, 3, 3))
    got = grid_sample(jnp.asarray(volume), jnp.asarray(grid), "tricubic", padding, corners)
    flat = jnp.asarray(grid.reshape(1, 9, 3, 3))
    across = grid_sample(jnp.asarray(plane), flat[..., :2], "bicubic", padding, corners)
    tall = jnp.asarray(np.tile(line[:, None], (1, 3))[None, None])
    down = jnp.stack([jnp.zeros_like(flat[..., 2]), flat[..., 2]], -1)
    along = grid_sample(
        tall, down, "bicubic", "border" if padding == "border" else padding, corners
    )
    if padding == "zeros":  # the flat direction of `tall` must not be blended with zeros
        tall = jnp.asarray(np.tile(line[:, None], (1, 9))[None, None])
        along = grid_sample(tall, down, "bicubic", padding, corners)
    np.testing.assert_allclose(got.reshape(1, 1, 9, 3), across * along, atol=1e-12)


@pytest.mark.parametrize(
    ("mode", "padding", "corners", "sizes"),
    [
        ("bilinear", "reflection", False, (4, 5)),
        ("bilinear", "zeros", True, (3, 4, 2)),
        ("bicubic", "border", True, (4, 5)),
        ("tricubic", "zeros", False, (3, 4, 2)),
    ],
)
def test_derivatives_in_both_modes(mode, padding, corners, sizes):
    """To second order where that takes seconds; the cubic kernel's are in test_sample's part."""
    rng = np.random.default_rng(3)
    image = jnp.asarray(rng.normal(size=(1, 2, *sizes)))
    pixel = rng.integers(-2, 6, (1, 2, *(1,) * (len(sizes) - 1), len(sizes))) + 0.3
    n = np.array(sizes[::-1])
    grid = jnp.asarray(2 * pixel / (n - 1) - 1 if corners else (2 * pixel + 1) / n - 1)
    run = jax.jit(lambda x, g: grid_sample(x, g, mode, padding, corners))
    check_derivatives(run, (image, grid), rtol=1e-4)


def test_vmap_and_batch_agree():
    rng = np.random.default_rng(4)
    images, grids = rng.normal(size=(3, 2, 5, 4)), rng.uniform(-1.2, 1.2, (3, 6, 3, 2))
    images, grids = jnp.asarray(images), jnp.asarray(grids)
    whole = grid_sample(images, grids, "bicubic", "border")
    single = jax.vmap(lambda x, g: grid_sample(x[None], g[None], "bicubic", "border")[0])
    np.testing.assert_allclose(single(images, grids), whole, atol=1e-14)
    moved = jax.vmap(lambda x, g: grid_sample(x, g, "bicubic", "border"), (2, None), 1)
    stack = jnp.stack([images, 2 * images], 2)
    np.testing.assert_allclose(moved(stack, grids)[:, 1], 2 * whole, atol=1e-14)


# errors -------------------------------------------------------------------------------------------

IMAGE, GRID = np.zeros((2, 3, 4, 5)), np.zeros((2, 6, 7, 2))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"mode": "linear"}, ValueError, "`mode` is 'linear'"),
        ({"mode": "tricubic"}, ValueError, "`mode` is 'tricubic'"),
        ({"mode": 0}, TypeError, "`mode` is 0"),
        ({"padding_mode": "reflect"}, ValueError, "`padding_mode` is 'reflect'"),
        ({"align_corners": 1}, TypeError, "`align_corners` is 1"),
        ({"input": np.zeros((3, 4, 5))}, ValueError, "`input` has shape (3, 4, 5)"),
        ({"grid": np.zeros((2, 6, 7, 3))}, ValueError, "`grid` has shape (2, 6, 7, 3)"),
        ({"grid": np.zeros((2, 6, 2))}, ValueError, "`grid` has shape (2, 6, 2)"),
        ({"grid": np.zeros((1, 6, 7, 2))}, ValueError, "`grid` has batch size 1"),
        ({"grid": GRID.astype(complex)}, TypeError, "`grid` has dtype complex128"),
        ({"input": np.zeros((2, 3, 0, 5))}, ValueError, "`input`: axis 2 is empty"),
        ({"input": [[1.0]]}, TypeError, "`input` is a list"),
    ],
)
def test_errors(arguments, error, words):
    with pytest.raises(error) as caught:
        grid_sample(**{"input": IMAGE, "grid": GRID, **arguments})
    message = str(caught.value)
    assert message.startswith(words)
    assert "expected" in message
    assert len(message.splitlines()) <= 3


@pytest.mark.parametrize("sizes", [(4, 5), (3, 4, 5)], ids=["images", "volumes"])
def test_symbolic_batch(sizes):
    """One exported warp, and its gradient, for every batch."""
    n = len(sizes)

    def warp(theta, image):
        return grid_sample(image, affine_grid(theta, image.shape))

    def gradient(theta, image):
        return jax.grad(lambda *given: jnp.sum(warp(*given) ** 2), (0, 1))(theta, image)

    (batch,) = export.symbolic_shape("batch")
    shapes = (batch, n, n + 1), (batch, 2, *sizes)
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes]
    for run in (warp, gradient):
        exported = export.export(jax.jit(run))(*shapes)
        for count in (1, 3):
            rng = np.random.default_rng(count)
            theta = rng.normal(size=(count, n, n + 1))
            image = rng.normal(size=(count, 2, *sizes))
            ours, want = exported.call(theta, image), run(theta, image)
            jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-12), ours, want)


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_symbolic_channels(mode):
    """One exported warp, and its gradient, for every batch and number of channels."""
    batch, channels = export.symbolic_shape("batch, channels")

    def gradient(image, grid):
        run = lambda *given: jnp.sum(grid_sample(*given, mode, "border") ** 2)  # noqa: E731
        return jax.grad(run, (0, 1))(image, grid)

    shapes = (batch, channels, 4, 5), (batch, 6, 7, 2)
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes]
    exported = export.export(jax.jit(gradient))(*shapes)
    for sizes in ((1, 1), (3, 11)):
        rng = np.random.default_rng(sizes)
        image, grid = rng.normal(size=(*sizes, 4, 5)), rng.uniform(-1.2, 1.2, (sizes[0], 6, 7, 2))
        for got, want in zip(exported.call(image, grid), gradient(image, grid), strict=True):
            np.testing.assert_allclose(got, want, atol=1e-12)


def test_channels_of_affine_grid_are_not_used():
    """So they may be symbolic."""
    batch, channels = export.symbolic_shape("batch, channels")

    def grid(theta, image):
        return affine_grid(theta, image.shape)

    shapes = [jax.ShapeDtypeStruct(s, float) for s in ((batch, 2, 3), (batch, channels, 4, 5))]
    exported = export.export(jax.jit(grid))(*shapes)
    theta, image = np.random.default_rng(0).normal(size=(3, 2, 3)), np.zeros((3, 2, 4, 5))
    np.testing.assert_allclose(exported.call(theta, image), grid(theta, image), atol=1e-14)


@pytest.mark.parametrize(
    ("shape", "size", "words"),
    [
        ("b, 2, 3", "b, 1, h, 5", "`size`: entry 2 is the symbolic size h"),
        ("b, 2, 3", "c, 1, 4, 5", "`theta` has shape (b, 2, 3); expected (c, 2, 3)"),
        ("b, 2, 3", "1, 1, 4, 5", "`theta` has shape (b, 2, 3); expected (1, 2, 3)"),
        ("1, 2, 3", "b, 1, 4, 5", "`theta` has shape (1, 2, 3); expected (b, 2, 3)"),
    ],
)
def test_symbolic_errors(shape, size, words):
    symbols = export.SymbolicScope()
    shape, size = (export.symbolic_shape(text, scope=symbols) for text in (shape, size))
    theta = jax.ShapeDtypeStruct(shape, jnp.float64)
    with pytest.raises(ValueError, match=r"expected|static") as caught:
        export.export(jax.jit(lambda theta: affine_grid(theta, size)))(theta)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("theta", "size", "error", "words"),
    [
        (np.zeros((2, 2, 3)), (2, 3, 4), ValueError, "`size` has 3 entries"),
        (np.zeros((2, 2, 3)), 4, TypeError, "`size` is 4"),
        (np.zeros((2, 2, 3)), (2, 3, 4, 5.5), TypeError, "`size`: entry 3"),
        (np.zeros((2, 2, 3)), (3, 3, 4, 5), ValueError, "`theta` has shape (2, 2, 3)"),
        (np.zeros((2, 2, 3)), (2, 3, 4, 5, 6), ValueError, "`theta` has shape (2, 2, 3)"),
        (np.zeros((2, 2, 3), complex), (2, 3, 4, 5), TypeError, "`theta` has dtype complex128"),
    ],
)
def test_affine_errors(theta, size, error, words):
    with pytest.raises(error) as caught:
        affine_grid(theta, size)
    assert str(caught.value).startswith(words)
    assert "expected" in str(caught.value)
