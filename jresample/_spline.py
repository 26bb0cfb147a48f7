"""B-spline prefilters: from samples to the coefficients of the spline through them.

A cardinal B-spline of degree 2 to 5, sampled at the integers, is a symmetric filter whose inverse
has the poles z and 1/z, |z| < 1 (Unser 1999, Table 1). The inverse of one pair is

    h[k] = (1 - z)/(1 + z) z^|k|,      sum_k h[k] = 1,

and that of two pairs is the two in turn. It decays so fast that a few dozen taps hold it to the
last bit, so an axis is filtered by a table of taps like any other: no recursion, and the adjoint
is the transposed table. At the borders the filter runs on the extended signal, and its taps fall
back onto the axis: exact for every extension.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from . import _plan, _sample_spec
from ._apply import accumulator
from ._boundary import sample_index
from ._linear import resample
from ._plan import AxisPlan, Repeat
from ._resize import as_image

# The poles inside the unit circle, by degree (Unser 1999, Table 1).
POLES = {
    2: (math.sqrt(8) - 3,),
    3: (math.sqrt(3) - 2,),
    4: (
        math.sqrt(664 - math.sqrt(438976)) + math.sqrt(304) - 19,
        math.sqrt(664 + math.sqrt(438976)) - math.sqrt(304) - 19,
    ),
    5: (
        math.sqrt(67.5 - math.sqrt(4436.25)) + math.sqrt(26.25) - 6.5,
        math.sqrt(67.5 + math.sqrt(4436.25)) - math.sqrt(26.25) - 6.5,
    ),
}

# scipy's words -> how it extends the signal for the filter (numpy.pad's words).
FILTER_BOUNDARIES = {
    "mirror": "reflect",
    "constant": "reflect",
    "grid-constant": "reflect",
    "wrap": "reflect",
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "nearest": "symmetric",
    "grid-wrap": "wrap",
}


def spline_filter(input: ArrayLike, order: int = 3, mode: str = "mirror") -> jax.Array:
    """Returns the B-spline coefficients of an image: `scipy.ndimage.spline_filter`.

    Sampling the result with `kernels.bspline(order)` gives the spline through the image's
    samples: `sample(spline_filter(image), c, kernels.bspline(3), boundary="reflect")` is a cubic
    spline. The result is linear in the image, and its gradient is a filter too. Source: Unser,
    "Splines: a perfect fit for signal and image processing", IEEE Signal Processing Magazine
    16(6), 1999.

    Args:
        input: `[...]`, filtered along every axis; real, complex, integer or bool.
        order: Degree of the spline, 2 to 5.
        mode: How the signal goes on outside, in scipy's words: `"mirror"` (numpy's reflect),
            `"reflect"` or `"grid-mirror"` (numpy's symmetric), `"grid-wrap"`. scipy filters
            `"constant"`, `"grid-constant"` and `"wrap"` as `"mirror"`, `"nearest"` as
            `"reflect"`.

    Returns:
        Coefficients of the same shape: floating-point and complex dtypes come back as they came,
        filtered in float32 at least; others give float32 (scipy: float64).

    Raises:
        TypeError: An argument is of the wrong kind.
        ValueError: `order` or `mode` is not possible.

    Example:
        >>> import jax.numpy as jnp, jresample
        >>> coefficients = jresample.spline_filter(jnp.array([0.0, 0.0, 6.0, 0.0, 0.0]))
        >>> [round(float(c), 3) for c in coefficients]
        [1.5, -3.0, 10.5, -3.0, 1.5]
    """
    image = as_image("input", input)
    order = _sample_spec.order("order", order, 2)
    mode = _sample_spec.choice("mode", mode, tuple(FILTER_BOUNDARIES))
    if not jnp.issubdtype(image.dtype, jnp.inexact):
        image = image.astype(jnp.float32)
    return prefilter(image, order, FILTER_BOUNDARIES[mode], range(image.ndim))


def prefilter(x: jax.Array, order: int, boundary: str, axes: range) -> jax.Array:
    """Returns the coefficients of a float or complex array along the given axes."""
    wide = x.real.dtype if jnp.iscomplexobj(x) else x.dtype
    digits = float(jnp.finfo(accumulator(np.dtype(wide))).eps)
    passes = tuple(
        (axis, prefilter_plan(x.shape[axis], order, boundary, digits))
        for axis in axes
        if x.shape[axis] > 1
    )
    return resample(x, passes)


@functools.lru_cache(maxsize=256)
def prefilter_plan(size: int, order: int, boundary: str, digits: float) -> AxisPlan:
    """Returns the prefilter of an axis onto itself as a plan.

    Args:
        size: Samples of the axis, at least 2.
        order: Degree of the spline, 2 to 5.
        boundary: How the signal goes on: `"reflect"`, `"symmetric"` or `"wrap"`.
        digits: Relative size of the taps that are left out, all together.
    """
    key = ("bspline prefilter", size, order, boundary, digits)
    taps = impulse_response(order, digits)
    reach = len(taps) // 2
    # a long axis repeats in its middle; a wrapped one reads across its seam
    short = size if boundary == "wrap" else min(size, 4 * reach + 8)
    index = np.arange(short)[:, None] + np.arange(-reach, reach + 1)
    folded, _ = sample_index(index, short, boundary)
    if short <= 2 * len(taps):
        if boundary == "symmetric":
            dense = _symmetric_matrix(short, order)
        else:
            dense = np.zeros((short, short))
            np.add.at(dense, (np.arange(short)[:, None], folded), taps)
        index, weight = np.tile(np.arange(short), (short, 1)), dense
    else:
        weight = np.tile(taps, (short, 1))
        index, weight = _plan._merged(folded, weight, (folded != index).any(axis=1))
    repeat = Repeat(short // 2, 1, 1, size - short) if size > short else None
    return AxisPlan(key, size, size, *_plan.compact(index, weight), repeat)


def impulse_response(order: int, digits: float) -> np.ndarray:
    """Returns the taps of the filter on an endless signal, odd in number, the middle one at 0."""
    response = np.ones(1)
    for z in POLES[order]:
        reach = math.ceil(math.log(digits * (1 - abs(z))) / math.log(abs(z)))
        k = np.arange(-reach, reach + 1)
        response = np.convolve(response, (1 - z) / (1 + z) * z ** np.abs(k).astype(np.float64))
    # the far ends of two responses in turn are below `digits`
    used = np.abs(response) > digits * np.abs(response).max() * 0.1
    first = int(np.argmax(used))
    return response[first : len(response) - first]


def _symmetric_matrix(size: int, order: int) -> np.ndarray:
    """Returns the filter of a short axis under "symmetric", as scipy has it.

    scipy runs the two recursions of each pole, and sums the start of the first one,

        c[0] = x[0] + z / (1 - z^2n) sum_j (z^j + z^(2n-1-j)) x[j],

    in place of x[0], which the last term then reads. Its error, z^(2n-1) relative to the sum, is
    visible on short axes and is part of scipy's numbers: 1e-7 at n = 5, order 3.
    """
    c = np.eye(size)
    for z in POLES[order]:
        c *= (1 - z) ** 2 / -z  # (1 - z) (1 - 1/z)
        first, total = c[0].copy(), c[0] + z**size * c[-1]
        for j in range(1, size):
            mirrored = c[size - 1 - j] if j < size - 1 else total
            total = total + z**j * (c[j] + z**size * mirrored)
        c[0] = first + z / (1 - z ** (2 * size)) * total
        for i in range(1, size):
            c[i] += z * c[i - 1]
        c[-1] *= z / (z - 1)
        for i in range(size - 2, -1, -1):
            c[i] = z * (c[i + 1] - c[i])
    return c
