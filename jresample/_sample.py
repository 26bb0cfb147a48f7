"""sample: an image at coordinates that the program computes."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from . import _check, _sample_spec, kernels
from ._apply import accumulator
from ._resize import Boundary, Method, as_image
from ._sample_linear import SampleOp, apply_taps
from ._sample_taps import TapAxis, canonical, missing
from .kernels import Kernel

# What to do with channels that `sample` would read as space.
LAST = "move them last, as with jnp.moveaxis(image, 0, -1): there is no `channel_axis` here"


class Axis(NamedTuple):
    """One spatial axis of a call: what is static, and its operands `[B or 1, P or 1]`."""

    tap: TapAxis
    operands: tuple[jax.Array, ...]


def sample(
    image: ArrayLike,
    coordinates: ArrayLike,
    method: Method | Sequence[Method] = "linear",
    *,
    boundary: Boundary | Sequence[Boundary] = "edge",
    fill_value: ArrayLike = 0.0,
) -> jax.Array:
    """Returns an image sampled at coordinates, differentiable in both.

    An output at `c` is the sum of the samples around `c`, weighted by the method's kernel at
    their distances and divided by the sum of the weights; the axes are separable. On the grid
    (`c` whole) a kernel that interpolates gives the sample itself. Coordinates are in input
    samples: the first lies at 0, the last at n - 1.

    Derivatives exist in both modes to any order, with respect to the image, the coordinates,
    `fill_value` and a kernel's traced parameters. At a knot (for the linear kernel: at a sample)
    the slope is that of the cell on the right, where `c` grows; `"nearest"` has slope 0. The
    gradient with respect to the image is one scatter-add; on a GPU its order of addition is
    not fixed.

    A tap of weight 0 is not read, so NaN and Inf reach only outputs whose weight on them is not
    0. A NaN coordinate makes its own output NaN (`fill_value`, for a dtype without NaN) and its
    own gradient, nothing else; an infinite one is far outside, with slope 0.

    Args:
        image: `[*spatial, *channels]`, any dtype: as many spatial axes as `coordinates` has
            entries in its last axis, then any number of channels.
        coordinates: `[*out, n]`, in input samples, for the n leading axes of the image; half
            precisions and integers are computed with in float32.
        method: `"nearest"` (sample `floor(c + 1/2)`), `"linear"`, `"cubic"` (Keys, a = -1/2),
            `"cubic-pytorch"` (a = -3/4), `"lanczos3"`, another of `resize`'s names for kernels,
            or a `kernels.Kernel`; one, or one for each axis. Kernels of B-splines smooth unless
            the image went through `spline_filter` before.
        boundary: What lies outside: `"edge"`, `"reflect"`, `"symmetric"`, `"wrap"` as in
            `numpy.pad`, `"constant"` (`fill_value`, blended by the kernel), or None: taps outside
            are dropped and the rest divided by their sum, as `resize` does (further out than half
            a sample, the value at that place). One, or one for each axis. Kernels are taken to
            be even where the image is mirrored.
        fill_value: The value outside under `"constant"`: a scalar.

    Returns:
        `[*out, *channels]`. Floating-point and complex dtypes come back as they came, summed in
        float32 at least; integers and bools keep their dtype under `"nearest"` and give float32
        otherwise.

    Raises:
        TypeError: An argument is of the wrong kind.
        ValueError: A name, shape or number of entries is not possible.

    Example:
        >>> import jax, jax.numpy as jnp, jresample
        >>> ramp = jnp.array([0.0, 2.0, 4.0, 10.0])
        >>> jresample.sample(ramp, jnp.array([[0.5], [2.0], [9.0]]))
        Array([ 1.,  4., 10.], dtype=float32)
        >>> photo = jnp.ones((32, 48, 3))
        >>> jresample.sample(photo, jnp.full((5, 7, 2), 11.3), "lanczos3").shape
        (5, 7, 3)
        >>> jax.grad(lambda c: jresample.sample(ramp, c[None], "linear")[0])(jnp.array([2.25]))
        Array([6.], dtype=float32)
    """
    image = as_image("image", image)
    coordinates = as_coordinates("coordinates", coordinates)
    if coordinates.ndim == 0 or not 1 <= coordinates.shape[-1] <= image.ndim:
        raise ValueError(
            f"`coordinates` has shape {coordinates.shape} and `image` {image.shape}; expected "
            "[*out, n], n being how many leading axes of the image are sampled: "
            "for one axis, add a last axis of length 1"
        )
    axes = coordinates.shape[-1]
    sizes, channels = image.shape[:axes], image.shape[axes:]
    out = coordinates.shape[:-1]
    with _check.layout("image", image.shape, range(axes), range(axes, image.ndim), LAST):
        methods = _sample_spec.sample_methods(method, axes)
        rules = _sample_spec.boundaries("boundary", boundary, axes)
        _sample_spec.not_empty("image", sizes, 0, math.prod(out))
        fill = as_fill("fill_value", fill_value, image.dtype)
    flat = image.reshape(1, *sizes, math.prod(channels))
    entries = []
    for i, ((kernel, _), rule) in enumerate(zip(methods, rules, strict=True)):
        c = along_last(coordinates, i).reshape(1, math.prod(out))
        if kernel is None:
            entries.append(nearest_axis(sizes[i], c, rule, half_up, fold=False))
        else:
            entries.append(tap_axis(sizes[i], c, kernel, rule))
    return sample_axes(flat, entries, fill).reshape(*out, *channels)


def along_last(array: jax.Array, i: int) -> jax.Array:
    """Returns entry `i` of the last axis. Indexing would do, but its adjoint is a scatter."""
    return jax.lax.index_in_dim(array, i, -1, keepdims=False)


def as_coordinates(name: str, value: ArrayLike) -> jax.Array:
    """Returns coordinates as a jax array of float32 or float64."""
    array = as_image(name, value)
    _sample_spec.real(name, array.dtype, jnp.issubdtype)
    return array if array.dtype == jnp.float64 else array.astype(jnp.float32)


def as_fill(name: str, value: ArrayLike, dtype: np.dtype) -> jax.Array | complex:
    """Returns a fill value: a Python number where it is one, else a scalar array.

    Args:
        name: The argument's name.
        value: The argument.
        dtype: Of the image.
    """
    if isinstance(value, bool | int | float | complex | np.number | np.bool_):
        fill = complex(value)
        imaginary = fill.imag != 0
    else:
        fill = as_image(name, value)
        if fill.ndim != 0:
            raise ValueError(f"`{name}` has shape {fill.shape}; expected a scalar")
        imaginary = jnp.iscomplexobj(fill)
    if imaginary and not jnp.issubdtype(dtype, jnp.complexfloating):
        raise TypeError(
            f"`{name}` is complex and the image has dtype {dtype}; expected a real number"
        )
    return fill


def tap_axis(
    size: int, c: jax.Array, kernel: Kernel, boundary: str | None, *, last: int | None = None
) -> Axis:
    """Returns an axis read by a kernel at its own width.

    Args:
        size: Samples of the axis.
        c: Coordinates `[B or 1, P]`, float32 or float64.
        kernel: The kernel.
        boundary: A key of `INDEX_MAPS`.
        last: `TapAxis.last`.
    """
    taps, closed, normalise = _sample_spec.kernel_taps(kernel)
    static, shapes, leaves = operands(kernel)
    tap = TapAxis(size, boundary, taps, static, shapes, None, closed, normalise, last)
    return Axis(tap, (c, *leaves))


def operands(
    kernel: Kernel,
) -> tuple[Kernel, tuple[tuple[int, ...] | None, ...], list[jax.Array]]:
    """Returns a kernel without its traced parameters, their shapes, and their numbers."""
    traced = [not isinstance(p, int | float | np.number | np.ndarray) for p in kernel.params]
    pairs = list(zip(kernel.params, traced, strict=True))
    static = dataclasses.replace(kernel, params=tuple(0.0 if t else p for p, t in pairs))
    shapes = tuple(np.shape(p) if t else None for p, t in pairs)  # pyright: ignore
    arrays = [jnp.asarray(p).reshape(-1) for p, t in pairs if t]  # pyright: ignore
    return static, shapes, [number.reshape(1, 1) for array in arrays for number in array]


def nearest_axis(
    size: int,
    c: jax.Array,
    boundary: str | None,
    rounding: Callable[[jax.Array], jax.Array],
    *,
    fold: bool,
) -> Axis:
    """Returns an axis read at one sample, the nearest.

    Args:
        size: Samples of the axis.
        c: Coordinates `[B or 1, P]`, float32 or float64.
        boundary: A key of `INDEX_MAPS`.
        rounding: Which sample is the nearest: `half_up` or `jnp.round` (half to even).
        fold: Whether `boundary` is applied to the coordinate, before it is rounded: that decides
            halfway between two samples. Otherwise it is applied to the sample's index.
    """
    c = jax.lax.stop_gradient(c)
    c = canonical(TapAxis(size, boundary, taps=2, kernel=kernels.triangle), c) if fold else c
    return Axis(TapAxis(size, boundary), (rounding(c),))


def half_up(c: jax.Array) -> jax.Array:
    """Returns `floor(c + 1/2)`, right also for the number just below 1/2."""
    whole = jnp.floor(c)
    return whole + (c - whole >= 0.5).astype(c.dtype)


def sample_axes(
    x: jax.Array,
    axes: Sequence[Axis],
    fill: jax.Array | complex = 0.0,
    *,
    channels_first: bool = False,
) -> jax.Array:
    """Returns an array sampled along its spatial axes: what every sampling function calls.

    Args:
        x: `[B, *spatial, C]`, or `[B, C, *spatial]` with `channels_first`; any dtype.
        axes: One for each spatial axis.
        fill: What lies outside along axes of boundary "constant".
        channels_first: Where the channels lie.

    Returns:
        `[B, P, C]` or `[B, C, P]`, in the dtype that `sample` documents.
    """
    if jnp.iscomplexobj(x):
        known = isinstance(fill, complex)
        fills = (complex(fill.real), complex(fill.imag)) if known else (fill.real, fill.imag)
        parts = [
            sample_axes(part, axes, own, channels_first=channels_first)
            for part, own in zip((x.real, x.imag), fills, strict=True)
        ]
        return jax.lax.complex(*parts)
    dtype = x.dtype
    if jnp.issubdtype(dtype, jnp.floating):
        x = x.astype(accumulator(dtype))  # for the sums, and those of the adjoint
    elif any(axis.tap.kernel is not None for axis in axes):
        x, dtype = x.astype(jnp.float32), np.dtype(np.float32)
    return _evaluate(x, axes, fill, channels_first).astype(dtype)


def _evaluate(
    x: jax.Array, axes: Sequence[Axis], fill: jax.Array | complex, channels_first: bool
) -> jax.Array:
    channel = 1 if channels_first else 2
    given = [axis.operands[0] for axis in axes]
    rows, points = given[0].shape
    op = SampleOp(tuple(axis.tap for axis in axes), channels_first)
    if points == 0 or x.size == 0:
        channels = x.shape[1 if channels_first else -1]
        shape = (max(rows, x.shape[0]) if x.shape[0] else 0, points)
        return jnp.zeros((*shape[:channel], channels, *shape[channel:]), x.dtype)
    z = [(_near(axis.tap, axis.operands[0]), *axis.operands[1:]) for axis in axes]
    y = apply_taps(x, tuple(v for own in z for v in own), op)
    y = _filled(y, op, z, fill, channel)
    bad = functools.reduce(jnp.logical_or, map(jnp.isnan, given))
    value = jnp.nan if jnp.issubdtype(y.dtype, jnp.inexact) else fill
    return jnp.where(jnp.expand_dims(bad, channel), _scalar(value, y), y)


def _scalar(value: jax.Array | complex, like: jax.Array) -> jax.Array:
    if isinstance(value, complex):
        value = value.real
    return jnp.asarray(value).astype(like.dtype)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _near(axis: TapAxis, c: jax.Array) -> jax.Array:
    """Returns canonical coordinates with 0 for NaN, where the derivative stays NaN."""
    return canonical(axis, jnp.where(jnp.isnan(c), jnp.zeros_like(c), c))


@_near.defjvp
def _near_jvp(axis: TapAxis, primals, tangents):
    # the slope is piecewise constant; from `c` again, so that nothing else is kept
    (c,), (dc,) = primals, tangents
    return _near(axis, c), jax.checkpoint(
        lambda c, dc: dc * _near_slope(axis, c), prevent_cse=False
    )(c, dc)


def _near_slope(axis: TapAxis, c: jax.Array) -> jax.Array:
    c = jax.lax.stop_gradient(c)
    slope = jax.jvp(functools.partial(canonical, axis), (c,), (jnp.ones_like(c),))[1]
    return jnp.where(jnp.isnan(c), jnp.full_like(c, jnp.nan), slope)


def _filled(
    y: jax.Array,
    op: SampleOp,
    z: Sequence[tuple[jax.Array, ...]],
    fill: jax.Array | complex,
    channel: int,
) -> jax.Array:
    """Returns outputs with the fill value in place of what the taps outside would have read."""
    outside = [(a, own) for a, own in zip(op.axes, z, strict=True) if a.boundary == "constant"]
    if not outside or (isinstance(fill, complex) and fill == 0):
        return y
    # the weight of all taps that miss a sample on any axis
    lost = [missing(axis, *own) for axis, own in outside]
    lost = 1 - functools.reduce(jnp.multiply, [1 - m for m in lost])
    lost, fill = jnp.expand_dims(lost, channel), _scalar(fill, y)
    if all(axis.kernel is None for axis in op.axes):
        return jnp.where(lost > 0, fill, y)
    lost = lost.astype(y.dtype)
    # 0 * Inf is NaN; a finite value stays, for the slope where nothing is lost yet
    unread = (lost == 0) & ~jnp.isfinite(fill)
    return y + lost * jnp.where(unread, jnp.zeros_like(fill), fill)
