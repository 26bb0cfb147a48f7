"""map_coordinates: scipy.ndimage's, orders 0 to 5, all modes. Arguments are translated here."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from . import _check, _sample_spec, kernels
from ._apply import accumulator
from ._resize import as_image
from ._sample import Axis, as_coordinates, as_fill, half_up, nearest_axis, sample_axes, tap_axis
from ._sample_taps import clamp, period
from ._spline import FILTER_BOUNDARIES, prefilter

# Samples that scipy adds on each side before it filters, where its filter knows no boundary
# like the mode's.
PADDING = 12


@dataclasses.dataclass(frozen=True)
class Mode:
    """What one of scipy's modes means here.

    Attributes:
        boundary: The rule for the taps, in `numpy.pad`'s words.
        padding: How the image is padded before a prefilter, if it is.
        blanks: Whether everything outside [0, n - 1] is `cval`.
        turns: Whether coordinates repeat with the period n - 1.
    """

    boundary: str
    padding: str | None = None
    blanks: bool = False
    turns: bool = False


MODES = {
    "reflect": Mode("symmetric"),
    "grid-mirror": Mode("symmetric"),
    "constant": Mode("reflect", blanks=True),
    "grid-constant": Mode("constant", padding="constant"),
    "nearest": Mode("edge", padding="edge"),
    "mirror": Mode("reflect"),
    "grid-wrap": Mode("wrap"),
    "wrap": Mode("reflect", turns=True),
}


# What to do with channels, which `map_coordinates` would read as space.
CHANNELS = "jax.vmap over it, or use `sample`: there is no `channel_axis` here"


def map_coordinates(
    input: ArrayLike,
    coordinates: ArrayLike | Sequence[ArrayLike],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> jax.Array:
    """Returns an image at coordinates, by spline interpolation: `scipy.ndimage.map_coordinates`.

    The numbers are scipy's, for all orders and modes; derivatives with respect to image,
    coordinates and `cval` exist in both modes, to any order. Where `jax.scipy.ndimage` means
    something else by a mode, scipy's meaning holds: `"constant"` gives `cval` everywhere outside
    [0, n - 1] and blends nothing (`"grid-constant"` blends), and `"wrap"` has the period n - 1
    (`"grid-wrap"`: n).

    Order 0 takes sample `floor(c + 1/2)` and has slope 0. Order 1 has, at a sample, the slope of
    the cell on the right (on the left at the last sample, where everything outside is `cval`).
    NaN coordinates spoil their own output and gradient only; infinite ones are far outside.

    Args:
        input: `[*sizes]`; real, complex, integer or bool.
        coordinates: One array of coordinates `[*out]` for each axis of `input`, or one array
            `[ndim, *out]`, in input samples; computed with in float32 at least.
        order: Degree of the spline, 0 to 5; static.
        mode: What lies outside, in scipy's words: `"reflect"` (= `"grid-mirror"`), `"constant"`,
            `"grid-constant"`, `"nearest"`, `"mirror"`, `"grid-wrap"`, `"wrap"`.
        cval: The value outside under the two constant modes: a scalar.
        prefilter: Whether orders 2 to 5 first turn the image into spline coefficients; False
            where it holds coefficients already (`spline_filter`).

    Returns:
        `[*out]` in the dtype of `input`. Integers are rounded, half away from zero as in scipy
        and `jax.scipy.ndimage`, and kept within their range. Rounding has no slope: to
        differentiate an integer image's result with respect to coordinates is an error, not 0
        (except in order 0, whose slope is 0); convert the image first.

    Raises:
        TypeError: An argument is of the wrong kind, or a rounded result is differentiated.
        ValueError: `order`, `mode` or a shape is not possible.

    Example:
        >>> import jax.numpy as jnp, jresample
        >>> squares = jnp.arange(6.0) ** 2
        >>> spline = jresample.map_coordinates(squares, [jnp.array([2.5, 0.3])], 3, mode="mirror")
        >>> [round(float(value), 4) for value in spline]
        [6.3636, 0.093]
    """
    image = as_image("input", input)
    every = range(image.ndim)
    with _check.layout("input", image.shape, every, every, CHANNELS):
        degree = _sample_spec.order("order", order, 0)
        rule = MODES[_sample_spec.choice("mode", mode, tuple(MODES))]
        filtered = _check.flag("prefilter", prefilter) and degree > 1
        given = _coordinates(coordinates, image.ndim)
        _sample_spec.not_empty("input", image.shape, 0, given[0].size)
        fill = as_fill("cval", cval, image.dtype)
    dtype, x = image.dtype, image
    if degree > 0:
        x = _computed(image, given[0].dtype)
        if filtered:
            x, given, rule = _filtered(x, given, degree, mode, fill)
    flat = [c.reshape(1, c.size) for c in given]
    y = _sampled(x, flat, degree, rule, fill).reshape(given[0].shape)
    return y.astype(dtype) if jnp.issubdtype(dtype, jnp.inexact) else _rounded(y, dtype, fill)


def _coordinates(value: ArrayLike | Sequence[ArrayLike], axes: int) -> list[jax.Array]:
    if not isinstance(value, Sequence):
        value = as_image("coordinates", value)
    if len(value) != axes or axes == 0:
        raise ValueError(
            f"`coordinates` has {_check.counted(len(value), 'entry', 'entries')}; expected {axes}: "
            "an array for each axis of `input`, or one array with the axes first"
        )
    arrays = [as_coordinates("coordinates", c) for c in value]
    if jnp.float64 in [c.dtype for c in arrays]:
        arrays = [c.astype(jnp.float64) for c in arrays]
    try:
        shape = np.broadcast_shapes(*(c.shape for c in arrays))
    except ValueError:
        shapes = ", ".join(str(c.shape) for c in arrays)
        raise ValueError(
            f"`coordinates` has arrays of shapes {shapes}; expected shapes that broadcast"
        ) from None
    return [jnp.broadcast_to(c, shape) for c in arrays]


def _computed(image: jax.Array, precision: np.dtype) -> jax.Array:
    """Returns the image in the dtype to compute in: an integer one in the coordinates' own."""
    if jnp.iscomplexobj(image):
        return image
    if jnp.issubdtype(image.dtype, jnp.floating):
        return image.astype(accumulator(image.dtype))
    return image.astype(precision)


def _filtered(
    x: jax.Array, given: list[jax.Array], degree: int, mode: str, fill: jax.Array | complex
) -> tuple[jax.Array, list[jax.Array], Mode]:
    """Returns coefficients, and coordinates and mode to read them with, as scipy prepares them."""
    rule = MODES[mode]
    if rule.padding == "edge":
        x = jnp.pad(x, PADDING, mode="edge")
    elif rule.padding == "constant":
        value = fill if jnp.iscomplexobj(x) else fill.real
        x = jnp.pad(x, PADDING, constant_values=jnp.asarray(value).astype(x.dtype))
    if rule.padding is not None:
        given = [c + PADDING for c in given]
    return prefilter(x, degree, FILTER_BOUNDARIES[mode], range(x.ndim)), given, rule


def _sampled(
    x: jax.Array, given: list[jax.Array], degree: int, rule: Mode, fill: jax.Array | complex
) -> jax.Array:
    axes: list[Axis] = []
    outside = jnp.zeros((1, 1), bool)
    for c, size in zip(given, x.shape, strict=True):
        if rule.blanks:
            outside = outside | (c < 0) | (c > size - 1)
            c = clamp(c, 0.0, size - 1.0)
        elif rule.turns:
            c = _turned(c, size)
        if degree == 0:
            late = rule.boundary == "reflect" and not (rule.blanks or rule.turns)
            c = _mirrored_late(c, size) if late else c
            axes.append(nearest_axis(size, c, rule.boundary, half_up, fold=not late))
            continue
        ends = (rule.blanks or rule.turns) and degree == 1
        kernel = kernels.triangle if degree == 1 else kernels.bspline(degree)
        last = max(size - 2, 0) if ends else None
        axes.append(tap_axis(size, c, kernel, rule.boundary, last=last))
    y = sample_axes(x[None, ..., None], axes, fill)[..., 0]
    if not rule.blanks:
        return y
    fill = fill if jnp.iscomplexobj(y) else fill.real
    return jnp.where(outside, jnp.asarray(fill).astype(y.dtype), y)


def _turned(c: jax.Array, size: int) -> jax.Array:
    """Returns coordinates modulo n - 1 where they are outside: in [0, n - 1), or (0, n - 1]."""
    if size == 1:
        return jnp.where(jnp.isnan(c), c, jnp.zeros_like(c))
    far, turn = _finite(c), size - 1.0
    below, above = turn - period(-far, turn), period(far, turn)
    return jnp.where(c < 0, below, jnp.where(c > turn, above, c))


def _mirrored_late(c: jax.Array, size: int) -> jax.Array:
    """Returns coordinates folded as scipy folds them before it rounds.

    From above, those between n - 1 and n stay: n - 1/2 rounds to n, whose mirror is n - 2.
    """
    turn = 2.0 * max(size - 1, 1)
    place = period(jnp.abs(_finite(c)), turn)
    turns = jnp.where(c < 0, place >= size - 1, place >= size)
    return jnp.where(turns, turn - place, place)


def _finite(c: jax.Array) -> jax.Array:
    huge = float(jnp.finfo(c.dtype).max) / 4
    return clamp(c, -huge, huge)


def _rounded(y: jax.Array, dtype: np.dtype, fill: jax.Array | complex) -> jax.Array:
    """Returns the result in an integer dtype or bool."""
    if y.dtype == dtype:
        return y
    if jnp.issubdtype(dtype, jnp.bool_):
        return _round(y) != 0
    limits = jnp.iinfo(dtype)
    low, high = (np.asarray(v).astype(y.dtype) for v in (limits.min, limits.max))
    if int(high) > limits.max:  # not a number of the dtype computed in
        high = np.nextafter(high, np.zeros_like(high))
    fill = jnp.asarray(fill.real).astype(y.dtype)
    return jnp.clip(_round(jnp.where(jnp.isnan(y), fill, y)), low, high).astype(dtype)


@jax.custom_jvp
def _round(y: jax.Array) -> jax.Array:
    """Returns `y` rounded half away from zero; refuses to be differentiated."""
    return jax.lax.round(y, jax.lax.RoundingMethod.AWAY_FROM_ZERO)


@_round.defjvp
def _round_jvp(primals, tangents):
    raise TypeError(
        "`input` of map_coordinates has an integer dtype, so its result is rounded and has no "
        "slope; expected a floating-point image to differentiate: `input.astype(jnp.float32)`, "
        "or stop the gradient of `coordinates`"
    )
