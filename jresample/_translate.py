"""scale_and_translate: jax.image's, with traced scales, by taps instead of a dense matrix.

Along an axis, output `o` lies at `c = (o + 1/2 - translation) / scale - 1/2` input samples. Each
axis is one-dimensional sampling at those coordinates, all other axes being batch and channels.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from . import _check, _sample_spec, _spec
from ._apply import accumulator
from ._resize import Boundary, Method, as_image, resize_layout
from ._sample import Axis, as_coordinates, half_up, nearest_axis, operands, sample_axes
from ._sample_taps import TapAxis, canonical, missing
from .kernels import Kernel

# jax.image sets an output to 0 where its weights sum to less than this: 1000 float32 epsilons.
LEAST_SUM = 1000 * float(np.finfo(np.float32).eps)


@dataclasses.dataclass(frozen=True)
class Widened:
    """A kernel with the width as its first parameter: what `antialias` makes of it."""

    kernel: Kernel

    def __call__(self, x: jax.Array, width: jax.Array, *params: jax.Array) -> jax.Array:
        """Returns the weights at distances `x`, in input samples."""
        kernel, scaled = self.kernel, x / width
        weight = kernel.fn(scaled, *params)
        return jnp.where(jnp.abs(scaled) <= kernel.radius, weight, jnp.zeros_like(weight))

    def half(self, width: jax.Array, *params: jax.Array) -> jax.Array:
        """Returns half the support, in input samples."""
        return self.kernel.radius * width


@dataclasses.dataclass(frozen=True)
class Cell:
    """The overlap of an input sample's cell with an output's, as a kernel with parameter `step`."""

    def __call__(self, x: jax.Array, step: jax.Array) -> jax.Array:
        """Returns the overlap of unit cells at distance `x` from the centre of a cell of `step`."""
        overlap = jnp.minimum((1 + step) / 2 - jnp.abs(x), jnp.minimum(step, jnp.ones_like(step)))
        return jnp.maximum(overlap, jnp.zeros_like(overlap))

    def half(self, step: jax.Array) -> jax.Array:
        """Returns half the support, in input samples."""
        return (1 + jnp.maximum(step, jnp.zeros_like(step))) / 2


_AREA = Kernel("area", 1.0, Cell(), (0.0,))


def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: Method,
    antialias: bool = True,
    precision: jax.lax.PrecisionLike = None,
    *,
    boundary: Boundary = None,
    min_scale: float | Sequence[float] | None = None,
) -> jax.Array:
    """Returns an image scaled and moved: `jax.image.scale_and_translate`.

    The sample at `i` goes to `(i + 1/2) scale + translation - 1/2`; the output at `o` reads the
    image at `c = (o + 1/2 - translation)/scale - 1/2`, axis by axis. Derivatives with respect to
    image, scale and translation exist in both modes, to any order; at knots of the kernel they
    are jax's, the mean of both sides. With `boundary=None` an output whose centre lies outside
    the image, c < -1/2 or c > n - 1/2, is 0, as in jax.

    **Cost.** Without `antialias` an output reads the kernel's own taps. With it the kernel is as
    wide as 1/scale, so the number of taps has a bound only where that has one: from the scales
    themselves where they are not traced, else from `min_scale`. Without either, every output
    reads the whole axis, as in jax: the work of a dense matrix, one input sample at a time.
    `"area"` is as wide as 1/scale too, with `antialias` or without.

    Args:
        image: `[...]`; real, complex, integer or bool.
        shape: The output's shape, as long as the image's; static. Other than along
            `spatial_dims` it is the image's.
        spatial_dims: The K axes to resample.
        scale: `[K]`, output samples per input sample; may be traced.
        translation: `[K]`, in output samples; may be traced.
        method: As for `resize`, without `"nearest-floor"`; a name or a `kernels.Kernel`.
        antialias: Whether the kernel is widened where scale is below 1.
        precision: Accepted for jax's sake: sums are kept in float32 or better.
        boundary: What lies outside: None for jax's rule (taps outside are dropped, the rest
            divided by their sum; `"cubic-pytorch"` without antialias repeats the edge), or
            `"edge"`, `"reflect"`, `"symmetric"`, `"wrap"`, `"constant"` (zeros, blended), which
            then hold for outputs at any distance.
        min_scale: A lower bound of traced scales, one number or one for each of `spatial_dims`;
            static. Where a scale is below it, the result is NaN.

    Returns:
        The image of shape `shape`: floating-point and complex dtypes come back as they came,
        others give float32.

    Raises:
        TypeError: An argument is of the wrong kind.
        ValueError: A shape or name is not possible, or `boundary` needs a `min_scale`.

    Example:
        >>> import jax, jax.numpy as jnp, jresample
        >>> row = jnp.array([1.0, 2.0, 4.0, 8.0])
        >>> def moved(t):
        ...     one = jnp.ones(1)
        ...     return jresample.scale_and_translate(row, (4,), (0,), one, t * one, "linear")
        >>> moved(-0.25)
        Array([1.25, 2.5 , 5.  , 8.  ], dtype=float32)
        >>> jax.jacfwd(moved)(-0.25)
        Array([-1., -2., -4., -0.], dtype=float32)
    """
    image = as_image("image", image)
    with resize_layout(image.shape, shape, spatial_dims, "spatial_dims"):
        axes = _check.axes("spatial_dims", spatial_dims, image.ndim)
        sizes = _sizes(shape, image.shape, axes)
        widen = _check.flag("antialias", antialias)
        scales = _numbers("scale", scale, len(axes))
        bounds = _bounds(scale, min_scale, len(axes))
        moves = _numbers("translation", translation, len(axes))
        rule, default = _spec.method(method).resolve(widen)
        if rule == _spec.FLOOR:
            raise ValueError("`method` is 'nearest-floor'; expected 'nearest' or a kernel's name")
        own = _check.boundary("boundary", boundary)
    if scales.dtype != moves.dtype:
        scales, moves = scales.astype(jnp.float64), moves.astype(jnp.float64)
    if not jnp.issubdtype(image.dtype, jnp.inexact):
        image = image.astype(jnp.float32)
    dtype = image.dtype
    if jnp.issubdtype(dtype, jnp.floating):
        image = image.astype(accumulator(dtype))
    for i, axis in enumerate(axes):
        _sample_spec.not_empty("image", image.shape[axis : axis + 1], axis, sizes[axis])
        kept = default if own is None else own
        line = _Line(axis, image.shape[axis], sizes[axis], rule, widen, kept, bounds[i])
        image = _resampled(image, line, scales[i], moves[i], zeros=own is None)
    return image.astype(dtype)


def _sizes(shape: Sequence[int], shape_in: Sequence[int], axes: tuple[int, ...]) -> list[int]:
    if _check.is_traced(shape):
        raise TypeError(f"`shape` is traced; {_check.TRACED_WAY_OUT}")
    if not _check.is_sequence(shape) or len(shape) != len(shape_in):
        raise ValueError(
            f"`shape` is {_check.describe(shape)}; expected {len(shape_in)} sizes, the whole "
            f"output shape for an image of shape {tuple(shape_in)}"
        )
    sizes = []
    for axis, (target, size) in enumerate(zip(shape, shape_in, strict=True)):
        if axis in axes or not _check.is_symbolic(size):
            target = _check.size("shape", target, f"entry {axis}")
        if axis not in axes and target != size:
            raise ValueError(
                f"`shape` has {target} for axis {axis} of size {size}, which is not among "
                f"`spatial_dims` {axes}; expected {size}, or the axis in `spatial_dims`"
            )
        sizes.append(target)
    return sizes


def _numbers(name: str, value: ArrayLike | Sequence[ArrayLike], count: int) -> jax.Array:
    array = as_coordinates(name, value if hasattr(value, "dtype") else jnp.asarray(value))  # pyright: ignore
    if array.shape != (count,):
        raise ValueError(
            f"`{name}` has shape {array.shape}; expected ({count},): one number for each of "
            "`spatial_dims`"
        )
    return array


def _bounds(scale: ArrayLike, min_scale: object, count: int) -> list[float | None]:
    """Returns for each axis the least scale that is known before tracing, if any."""
    if min_scale is not None:
        entries = _check.entries("min_scale", min_scale, count, "per entry of `spatial_dims`")
        return [_check.scale("min_scale", v, f"entry {i}") for i, v in enumerate(entries)]
    given = list(scale) if isinstance(scale, list | tuple) else [scale]
    if any(map(_check.is_traced, given)):
        return [None] * count
    known = np.asarray(scale, np.float64).reshape(-1)
    return [float(v) if 0 < v < math.inf else None for v in known]


@dataclasses.dataclass(frozen=True)
class _Line:
    """The static part of one axis; `bound` is the least scale, if known."""

    axis: int
    size: int
    size_out: int
    rule: Kernel | str
    antialias: bool
    boundary: Boundary
    bound: float | None

    @property
    def widens(self) -> bool:
        """Whether the support depends on the scale."""
        if not isinstance(self.rule, Kernel):
            return self.rule == _spec.AREA
        return self.antialias and (self.bound is None or self.bound < 1)

    def taps(self, radius: float) -> tuple[int, bool]:
        """Returns how many samples an output reads, and whether that is the whole axis.

        Args:
            radius: Half the support at the least scale, infinite where that is not known.
        """
        if self.boundary is not None and radius == math.inf:
            raise ValueError(
                f"`boundary` is {self.boundary!r} and the scale of axis {self.axis} is traced, so "
                "the antialiased kernel has no bound; expected a static `min_scale`, or "
                "boundary=None, or antialias=False"
            )
        # both ends of the support count; a rounding error of the width must not cost a tap
        taps = math.inf if radius == math.inf else math.floor(2 * radius * (1 + 1e-6)) + 1
        whole = self.boundary is None and taps >= self.size
        return (self.size, True) if whole else (int(taps), False)


def _axis(line: _Line, c: jax.Array, scale: jax.Array) -> Axis:
    """Returns the axis read at coordinates `[1, P]`."""
    if line.rule == _spec.NEAREST:
        return nearest_axis(line.size, c, line.boundary, half_up, fold=False)
    kernel = line.rule if isinstance(line.rule, Kernel) else _AREA
    static, shapes, leaves = operands(kernel)
    tap_axis = functools.partial(TapAxis, line.size, line.boundary, normalise=True, closed=True)
    if not line.widens:
        taps, whole = line.taps(kernel.radius)
        tap = tap_axis(taps=taps, kernel=static, shapes=shapes, whole=whole)
        return Axis(tap, (c, *leaves))
    step = 1 / scale.reshape(1, 1)
    greatest = math.inf if line.bound is None else 1 / line.bound
    if kernel is _AREA:
        taps, whole = line.taps((1 + greatest) / 2)
        fn, params, leaves = Cell(), (0.0,), [step]
        half, shapes = fn.half, ((),)
    else:
        taps, whole = line.taps(kernel.radius * max(1.0, greatest))
        fn, params = Widened(static), (0.0, *static.params)
        half, shapes = fn.half, ((), *shapes)
        leaves = [jnp.maximum(step, jnp.ones_like(step)), *leaves]
    wide = Kernel(kernel.name, kernel.radius, fn, params)
    tap = tap_axis(taps=taps, kernel=wide, shapes=shapes, support=half, whole=whole)
    return Axis(tap, (c, *leaves))


def _resampled(
    x: jax.Array, line: _Line, scale: jax.Array, translation: jax.Array, *, zeros: bool
) -> jax.Array:
    """Returns `x` with one axis resampled, 0 where jax says so if `zeros`."""
    inverse = 1 / scale
    o = jnp.arange(line.size_out, dtype=scale.dtype)
    c = ((o + 0.5) * inverse - translation * inverse - 0.5).reshape(1, line.size_out)
    if line.bound is not None:
        c = jnp.where(scale < line.bound * (1 - 1e-6), jnp.full_like(c, jnp.nan), c)
    entry = _axis(line, c, scale)
    before, after = x.shape[: line.axis], x.shape[line.axis + 1 :]
    lead, trail = math.prod(before), math.prod(after)
    if trail == 1:  # the innermost axis: everything before it is channels
        y = sample_axes(x.reshape(1, lead, line.size), [entry], channels_first=True)
        y = y.reshape(lead, line.size_out, 1)
    else:
        y = sample_axes(x.reshape(lead, line.size, trail), [entry])
    if zeros:
        keep = (_inside(line, c) | jnp.isnan(c)).reshape(1, line.size_out, 1)
        y = jnp.where(keep, y, jnp.zeros_like(y))
    return y.reshape(*before, line.size_out, *after)


def _inside(line: _Line, c: jax.Array) -> jax.Array:
    """Returns which outputs jax does not set to 0."""
    if line.boundary is None:
        return (c >= -0.5) & (c <= line.size - 0.5)
    # jax pads such an axis by the radius and looks at the sum of the weights on it
    assert isinstance(line.rule, Kernel)
    reach = math.ceil(line.rule.radius)
    taps = 2 * reach + 1
    padded = TapAxis(line.size + 2 * reach, "constant", taps, line.rule, (None,), closed=True)
    total = 1 - missing(padded, canonical(padded, jax.lax.stop_gradient(c) + reach))
    return jnp.abs(total) > LEAST_SUM
