"""Times grid_sample and map_coordinates against torch, jax and scipy, for `make bench`.

Images in torch's layout, a smooth flow of a few pixels, border padding; forward, and forward
with the gradient to both inputs. Timed as `bench.py` does.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import scipy.ndimage
from tables import geometric_mean, markdown
from timing import Thunk, compiled, race, ratio

import jresample

try:
    import torch
except ImportError:
    torch = None

EXPLAINED = """`grid_sample` against torch's and against jax's `map_coordinates`; the last row is
`map_coordinates` of a volume at 100,000 points, prefilter included, against scipy. `ms` is the
least time; ratios are the rival's over ours, medians of rounds: above 1 jresample is faster."""

SHAPES = ((4, 3, 256, 256), (4, 32, 128, 128), (1, 1, 1024, 1024))
MODES = ("nearest", "bilinear", "bicubic")


def flow(batch: int, height: int, width: int) -> np.ndarray:
    """Returns pixel coordinates (y, x), moved by a smooth flow of up to 3 pixels."""
    y, x = np.mgrid[:height, :width].astype(np.float64)
    phase = np.random.default_rng(0).uniform(0, 2 * np.pi, (batch, 2, 1, 1))
    down = y + 3 * np.sin(4 * np.pi * x / width + phase[:, 0])
    right = x + 3 * np.cos(4 * np.pi * y / height + phase[:, 1])
    return np.stack([down, right], -1).astype(np.float32)


def normalised(pixels: np.ndarray) -> np.ndarray:
    """Returns the grid of pixel coordinates, as (x, y), corners not aligned."""
    height, width = pixels.shape[1:3]
    return ((2 * pixels[..., ::-1] + 1) / np.float32([width, height]) - 1).astype(np.float32)


def ours(mode: str):
    """Returns forward, and forward with both gradients, as functions of image, grid, cotangent."""

    def forward(image, grid, _):
        return jresample.grid_sample(image, grid, mode, "border")

    def both(image, grid, cotangent):
        value, pull = jax.vjp(lambda x, g: forward(x, g, None), image, grid)
        return value, *pull(cotangent)

    return forward, both


def torchs(mode: str, image: np.ndarray, grid: np.ndarray, cotangent: np.ndarray):
    """Returns thunks of torch's forward, and forward with both gradients."""
    x, g, y = (torch.tensor(v) for v in (image, grid, cotangent))
    sample = torch.nn.functional.grid_sample

    def forward():
        with torch.no_grad():
            return sample(x, g, mode, "border", False).numpy()

    def both():
        xs, gs = x.requires_grad_(), g.requires_grad_()
        value = sample(xs, gs, mode, "border", False)
        return [v.numpy() for v in torch.autograd.grad(value, (xs, gs), y)]

    return forward, both


def jaxs(mode: str):
    """The same for jax.scipy.ndimage.map_coordinates, on coordinates in pixels."""
    order = ("nearest", "bilinear").index(mode)

    def one(image, pixels):
        return jax.scipy.ndimage.map_coordinates(
            image, [pixels[..., 0], pixels[..., 1]], order, "nearest"
        )

    def forward(images, pixels, _):
        return jax.vmap(lambda x, p: jax.vmap(lambda c: one(c, p))(x))(images, pixels)

    def both(images, pixels, cotangent):
        value, pull = jax.vjp(lambda x, p: forward(x, p, None), images, pixels)
        return value, *pull(cotangent)

    return forward, both


def row(image: str, mode: str, kind: str, program: tuple, rivals: dict[str, Thunk]) -> list[str]:
    """Returns a row: our program, as `compiled` returned it, called, against its rivals."""
    run, seconds, temporaries = program
    times = race({"ours": run, **rivals})
    ratios = {name: f"{ratio(times, name, 'ours'):.2f}" for name in rivals}
    if "scipy" in ratios:
        ratios["torch"] = f"{ratios['scipy']} (scipy)"
    shown = [ratios.get("torch", ""), ratios.get("jax", "")]
    best = f"{min(times['ours']) * 1e3:.2f}"
    return [image, mode, kind, best, *shown, f"{seconds:.2f}", f"{temporaries / 2**20:.0f}"]


def bound(fn: Callable, *args: jax.Array) -> tuple[Thunk, float, int]:
    """Returns what `compiled` does, with a function of no arguments."""
    run, seconds, temporaries = compiled(fn, *args)
    return lambda: run(*args), seconds, temporaries


def cell(shape: tuple[int, ...], mode: str) -> list[list[str]]:
    """Returns the rows of one image and mode."""
    rng = np.random.default_rng(1)
    image, cotangent = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
    pixels = flow(shape[0], *shape[2:])
    grid = normalised(pixels)
    given, places, wanted, normal = map(jnp.asarray, (image, pixels, cotangent, grid))
    rows = []
    for i, kind in enumerate(("forward", "with gradients")):
        rivals: dict[str, Thunk] = {}
        if torch is not None:
            rivals["torch"] = torchs(mode, image, grid, cotangent)[i]
        if mode != "bicubic":
            rivals["jax"] = bound(jaxs(mode)[i], given, places, wanted)[0]
        program = bound(ours(mode)[i], given, normal, wanted)
        rows.append(row("x".join(map(str, shape)), mode, kind, program, rivals))
    return rows


def spline_cell() -> list[str]:
    """A 128^3 volume at 100,000 points, cubic spline, prefilter included, against scipy."""
    rng = np.random.default_rng(2)
    volume = rng.normal(size=(128,) * 3).astype(np.float32)
    points = rng.uniform(0, 127, (3, 100_000)).astype(np.float32)
    spline = {"order": 3, "mode": "mirror"}
    program = bound(
        lambda x, c: jresample.map_coordinates(x, c, **spline), *map(jnp.asarray, (volume, points))
    )
    scipys = {"scipy": lambda: scipy.ndimage.map_coordinates(volume, points, **spline)}
    return row("128^3", "spline 3", "forward", program, scipys)


def report(only: str = "") -> str:
    """Returns the tables of the cells whose shape or mode contains `only`."""
    rows: list[list[str]] = []
    for shape in SHAPES:
        for mode in MODES:
            if only in f"{'x'.join(map(str, shape))} {mode}":
                rows += cell(shape, mode)
                print(*rows[-2:], sep="\n", flush=True)
    means = []
    for column, rival in ((4, "torch"), (5, "jax")):
        values = [float(line[column]) for line in rows if line[column]]
        if values:
            mean = f"{geometric_mean(values):.2f} times {rival}"
            means.append(f"{mean} (least {min(values):.2f})")
    if only in "128^3 spline":
        rows.append(spline_cell())
    head = ("image", "mode", "pass", "ms", "torch", "jax", "compile s", "temp MiB")
    told = f"Geometric means: {' and '.join(means)}." if means else ""
    return "\n\n".join([EXPLAINED, markdown(head, rows), told])
