"""grid_sample and affine_grid: torch's. Normalised coordinates are translated to samples here."""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from . import _check, _sample_spec, kernels
from ._resize import as_image
from ._sample import Axis, along_last, as_coordinates, nearest_axis, sample_axes, tap_axis
from ._sample_taps import clamp
from .kernels import Kernel

# What a mode reads with (None: the nearest sample), and for how many spatial axes.
MODES = {
    "bilinear": (kernels.triangle, (2, 3)),
    "nearest": (None, (2, 3)),
    "bicubic": (kernels.cubic(-0.75), (2,)),
    "tricubic": (kernels.cubic(-0.75), (3,)),
}

# Boundary rules without and with `align_corners`: a reflection goes about the outer edges of the
# border pixels, or about their centres.
PADDINGS = {
    "zeros": ("constant", "constant"),
    "border": ("edge", "edge"),
    "reflection": ("symmetric", "reflect"),
}


def grid_sample(
    input: ArrayLike,
    grid: ArrayLike,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = False,
) -> jax.Array:
    """Returns images sampled at a grid of points: `torch.nn.functional.grid_sample`.

    A point's entry `g` for an axis of n pixels lies at `((g + 1) n - 1) / 2` pixels, or at
    `(g + 1)(n - 1) / 2` with `align_corners`: -1 and 1 are the outer edges of the border pixels,
    or their centres. The numbers are torch's, and torch has neither forward mode nor second
    derivatives here. On pixel centres the slope of "bilinear" is that of the cell on the right,
    or below; `"nearest"` has slope 0. Where outputs share pixels, the order in which a GPU adds up
    their gradients is not fixed.

    NaN in the grid makes its own output NaN (torch: a pixel or 0, by padding), and its own
    gradient; infinite entries are far outside. A pixel of weight 0 is not read.

    Args:
        input: Images `[N, C, H, W]` or volumes `[N, C, D, H, W]`, any dtype.
        grid: Points `[N, *out, 2]` or `[N, *out, 3]`, the last axis (x, y) or (x, y, z),
            normalised; any real dtype, computed with in float32 at least. `out` has as many axes
            as the image.
        mode: `"bilinear"` (in volumes: trilinear), `"nearest"` (half to even), `"bicubic"`
            (Keys, a = -3/4; images) or `"tricubic"` (the same for volumes, not in torch).
        padding_mode: `"zeros"`; `"border"`: the border pixel, tap by tap; `"reflection"`: about
            the pixels' outer edges, or with `align_corners` about the border pixels' centres.
        align_corners: See above; None is False.

    Returns:
        `[N, C, *out]`, in the dtype of `input` if that is floating-point or complex. Other
        dtypes stay under `"nearest"` and give float32 otherwise (torch refuses them).

    Raises:
        TypeError: An argument is of the wrong kind.
        ValueError: A name or shape is not possible.

    Example:
        >>> import jax.numpy as jnp, jresample
        >>> image = jnp.arange(9.0).reshape(1, 1, 3, 3)
        >>> points = jnp.array([[[[0.0, 0.0], [-1.0, 0.25]]]])
        >>> jresample.grid_sample(image, points, padding_mode="border", align_corners=True)
        Array([[[[4.  , 3.75]]]], dtype=float32)
    """
    image = as_image("input", input)
    points = as_coordinates("grid", grid)
    corners = align_corners is not None and _check.flag("align_corners", align_corners)
    with _layout("input", image.shape):
        kernel, rule = _names(mode, padding_mode, corners, image.ndim - 2)
        _shapes(image, points)
        _sample_spec.not_empty("input", image.shape[2:], 2, points.size)
    sizes, out = image.shape[2:], points.shape[1:-1]
    axes: list[Axis] = []
    for i, size in enumerate(sizes):
        # the last axis of the grid counts the image's axes from the innermost one
        g = along_last(points, len(sizes) - 1 - i).reshape(points.shape[0], math.prod(out))
        c = _pixels(g, size, corners)
        if kernel is None:
            axes.append(nearest_axis(size, c, rule, jnp.round, fold=True))
        else:
            axes.append(tap_axis(size, c, kernel, rule))
    y = sample_axes(image, axes, channels_first=True)
    return y.reshape(*image.shape[:2], *out)


def _layout(name: str, shape: Sequence[object]) -> AbstractContextManager[None]:
    return _check.layout(
        name,
        shape,
        range(2, len(shape)),
        range(1, min(2, len(shape))),
        "move them to axis 1, as with jnp.moveaxis(input, -1, 1): there is no `channel_axis` here",
    )


def _names(
    mode: object, padding_mode: object, corners: bool, axes: int
) -> tuple[Kernel | None, str]:
    """Returns the kernel, None for nearest, and the boundary rule."""
    kernel, ranks = MODES[_sample_spec.choice("mode", mode, tuple(MODES))]
    rules = PADDINGS[_sample_spec.choice("padding_mode", padding_mode, tuple(PADDINGS))]
    if axes in (2, 3) and axes not in ranks:
        other = "'tricubic' for volumes" if mode == "bicubic" else "'bicubic' for images"
        raise ValueError(
            f"`mode` is {mode!r} and `input` has {axes} spatial axes; expected {other}"
        )
    return kernel, rules[corners]


def _shapes(image: jax.Array, points: jax.Array) -> None:
    if image.ndim not in (4, 5):
        raise ValueError(
            f"`input` has shape {image.shape}; expected [N, C, H, W] or [N, C, D, H, W]: "
            "add axes of length 1 for a missing batch or channel"
        )
    n = image.ndim - 2
    if points.ndim != image.ndim or points.shape[-1] != n:
        raise ValueError(
            f"`grid` has shape {points.shape}; expected [N, {'D, ' if n == 3 else ''}H, W, {n}] "
            f"for an `input` of shape {image.shape}"
        )
    if points.shape[0] != image.shape[0]:
        raise ValueError(
            f"`grid` has batch size {points.shape[0]} and `input` {image.shape[0]}; expected the "
            "same: repeat one with jnp.broadcast_to, or use jax.vmap"
        )


def _pixels(g: jax.Array, size: int, corners: bool) -> jax.Array:
    """Returns normalised coordinates in pixels: torch's formula, without overflow."""
    # (g + 1) n stays finite: infinity times 0 is no place
    huge = float(jnp.finfo(g.dtype).max) / (4 * max(size, 1))
    g = clamp(g, -huge, huge)
    return (g + 1) / 2 * (size - 1) if corners else ((g + 1) * size - 1) / 2


def affine_grid(
    theta: ArrayLike, size: Sequence[int], align_corners: bool | None = False
) -> jax.Array:
    """Returns the grid of an affine warp, for `grid_sample`: `torch.nn.functional.affine_grid`.

    A point is `theta @ (x, y, 1)`, or `theta @ (x, y, z, 1)`, where (x, y[, z]) are the
    normalised coordinates of the output's pixels. With `theta = [[cos t, -sin t, 0],
    [sin t, cos t, 0]]` and a square image, `grid_sample` turns the image by the angle t,
    counter-clockwise: `numpy.rot90` at t = 90 degrees.

    Args:
        theta: Matrices `[N, 2, 3]` or `[N, 3, 4]`; half precisions are computed with in float32.
        size: The output's shape, `(N, C, H, W)` or `(N, C, D, H, W)`. Static, but N may be a
            symbolic size of `jax.export`. C is not used.
        align_corners: Whether -1 and 1 are the centres of the border pixels, not their outer
            edges; None is False. The same here as in `grid_sample`.

    Returns:
        `[N, H, W, 2]` or `[N, D, H, W, 3]`, float32 or float64.

    Raises:
        TypeError: An argument is of the wrong kind, or a size is traced.
        ValueError: A shape is not possible.

    Example:
        >>> import jax.numpy as jnp, jresample
        >>> flip = jnp.array([[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
        >>> jresample.affine_grid(flip, (1, 1, 1, 2))
        Array([[[[ 0.5,  0. ],
                 [-0.5,  0. ]]]], dtype=float32)
    """
    matrix = as_coordinates("theta", theta)
    corners = align_corners is not None and _check.flag("align_corners", align_corners)
    if not _check.is_sequence(size):
        raise TypeError(f"`size` is {_check.describe(size)}; expected (N, C, H, W)")
    wanted = _check.items(size)
    with _layout("size", wanted):
        pixels = _pixel_counts(wanted, matrix.shape)
    n = len(pixels)
    points = along_last(matrix, n).reshape(-1, *(1,) * n, n)
    for i, count in enumerate(pixels):
        along = jnp.asarray(_normalised(count, corners), matrix.dtype)
        along = along.reshape(1, *(1,) * i, -1, *(1,) * (n - i))
        # the columns of theta count the axes from the innermost one
        points = points + along * along_last(matrix, n - 1 - i).reshape(-1, *(1,) * n, n)
    return points


def _pixel_counts(size: Sequence[object], theta: tuple[int, ...]) -> list[int]:
    """Returns the sizes of the spatial axes, after checks of all sizes and of `theta`'s shape."""
    wanted: list = [
        n if i < 2 and _check.is_symbolic(n) else _check.size("size", n, f"entry {i}")
        for i, n in enumerate(size)
    ]
    n = len(wanted) - 2
    if n not in (2, 3):
        raise ValueError(
            f"`size` has {_check.counted(len(size), 'entry', 'entries')}; expected 4, "
            "(N, C, H, W), or 5, (N, C, D, H, W)"
        )
    if theta != (wanted[0], n, n + 1):
        raise ValueError(
            f"`theta` has shape {theta}; expected {(wanted[0], n, n + 1)} for `size` "
            f"{tuple(wanted)}: one matrix for each image, [N, 2, 3] or [N, 3, 4]"
        )
    return wanted[2:]


def _normalised(size: int, corners: bool) -> np.ndarray:
    """Returns the normalised coordinates of an axis's pixels, float64 `[size]`."""
    o = np.arange(size)
    if not corners:
        return (2 * o + 1 - size) / max(size, 1)
    return (2 * o + 1 - size) / (size - 1) if size > 1 else np.zeros(size)
