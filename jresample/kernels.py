"""Interpolation kernels: even functions of the distance to a tap, in input samples.

A kernel is written once, over the array namespace of its argument, so that one line serves the
host planner (numpy float64) and traced code (jax.numpy). `Kernel` is the type; the names below
are its usual values, and the functions make the families that have parameters.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ._kernel import Kernel, number, whole

if TYPE_CHECKING:  # for the annotations only: this module runs on the host, without jax
    import jax

    Array = np.ndarray | jax.Array

__all__ = [
    "Kernel",
    "box",
    "bspline",
    "cubic",
    "gaussian",
    "hamming",
    "lanczos",
    "mitchell",
    "triangle",
]


def _sinc(x: Array) -> Array:
    """Returns sin(pi x) / (pi x), exactly 0 at non-zero integers and smooth at 0.

    The sine is reduced to half a period first, so its zeros are exact. Near 0 the series takes
    over: the quotient would lose the derivatives there to cancellation, and 0/0 at 0.
    """
    xp = x.__array_namespace__()
    near = xp.abs(x) < 0.05
    safe = xp.where(near, xp.ones_like(x), x)
    whole = xp.round(safe)
    sign = 1 - 2 * (whole - 2 * xp.floor(whole / 2))
    quotient = sign * xp.sin(math.pi * (safe - whole)) / (math.pi * safe)
    # sum of (-1)^k t^k / (2k + 1)!, t = (pi x)^2; the next term is below 2e-16 at 0.05
    t = xp.where(near, (math.pi * x) ** 2, xp.zeros_like(x))
    series = 1 - t / 6 * (1 - t / 20 * (1 - t / 42 * (1 - t / 72)))
    return xp.where(near, series, quotient)


def _box(x: Array) -> Array:
    xp = x.__array_namespace__()
    return xp.where((x > -0.5) & (x <= 0.5), xp.ones_like(x), xp.zeros_like(x))


def _triangle(x: Array) -> Array:
    xp = x.__array_namespace__()
    return xp.maximum(1 - xp.abs(x), xp.zeros_like(x))


def _cubic(x: Array, a: Array | float) -> Array:
    # Keys 1981, eq. 4 with a free coefficient: w(1) = w(2) = 0, slopes agree at both knots.
    xp = x.__array_namespace__()
    d = xp.abs(x)
    inner = ((a + 2) * d - (a + 3)) * d * d + 1
    # ((a d - 5a) d + 8a) d - 4a, factored so that the zeros at 1 and 2 are exact
    outer = a * (d - 1) * (d - 2) * (d - 2)
    return xp.where(d < 1, inner, xp.where(d < 2, outer, xp.zeros_like(d)))


def _mitchell(x: Array, b: Array | float, c: Array | float) -> Array:
    # Mitchell and Netravali 1988, eq. 8.
    xp = x.__array_namespace__()
    d = xp.abs(x)
    inner = ((12 - 9 * b - 6 * c) * d + (-18 + 12 * b + 6 * c)) * d * d + (6 - 2 * b)
    outer = (((-b - 6 * c) * d + (6 * b + 30 * c)) * d + (-12 * b - 48 * c)) * d + 8 * b + 24 * c
    return xp.where(d < 1, inner, xp.where(d < 2, outer, xp.zeros_like(d))) / 6


def _lanczos(x: Array, n: int) -> Array:
    xp = x.__array_namespace__()
    return xp.where(xp.abs(x) < n, _sinc(x) * _sinc(x / n), xp.zeros_like(x))


def _hamming(x: Array) -> Array:
    xp = x.__array_namespace__()
    window = 0.54 + 0.46 * xp.cos(math.pi * x)
    return xp.where(xp.abs(x) < 1, _sinc(x) * window, xp.zeros_like(x))


def _gaussian(x: Array, sigma: Array | float) -> Array:
    xp = x.__array_namespace__()
    return xp.exp(-0.5 * (x / sigma) ** 2)


def _bspline(x: Array, degree: int) -> Array:
    # Unser 1999, eq. 6: sum_k (-1)^k C(n+1, k) (t - k)_+^n / n!, taken from the near end of the
    # support, where the sum has the fewest terms and cancels least.
    xp = x.__array_namespace__()
    half = (degree + 1) / 2
    t = half - xp.abs(x)
    total = xp.zeros_like(t)
    for k in range(math.ceil(half)):
        coefficient = (-1) ** k * math.comb(degree + 1, k) / math.factorial(degree)
        total = total + coefficient * xp.maximum(t - k, xp.zeros_like(t)) ** degree
    return total


box = Kernel("box", 0.5, _box, interpolates=True)
"""1 on (-1/2, 1/2]: Pillow's BOX. Half-open, so that every output has a tap."""

triangle = Kernel("triangle", 1.0, _triangle, interpolates=True)
"""1 - |x|: linear interpolation."""

hamming = Kernel("hamming", 1.0, _hamming, interpolates=True)
"""sinc(x) (0.54 + 0.46 cos(pi x)) on (-1, 1): Pillow's HAMMING."""


def cubic(a: Array | float = -0.5) -> Kernel:
    """Returns Keys' cubic convolution kernel with slope `a` at distance 1.

    `a = -1/2` is Keys' own choice (jax.image, Pillow, Matlab) and the only one exact on
    quadratics; `a = -3/4` is OpenCV's and torch's. Source: Keys, "Cubic convolution
    interpolation for digital image processing", IEEE ASSP 29(6), 1981.

    Args:
        a: The coefficient: a number, or a scalar jax array to differentiate with respect to.

    Example:
        >>> import jax, jax.numpy as jnp, jresample
        >>> row = jnp.array([0.0, 1.0, 0.0, 0.0])
        >>> def peak(a):
        ...     return jresample.resize(row, (8,), cubic(a))[3]
        >>> print(round(float(jax.grad(peak)(-0.5)), 4))
        -0.0469
    """
    return Kernel("cubic", 2.0, _cubic, (number("a", a),), interpolates=True)


def mitchell(b: Array | float = 1 / 3, c: Array | float = 1 / 3) -> Kernel:
    """Returns the Mitchell-Netravali kernel, the two-parameter family of cubic filters.

    (1/3, 1/3) is the paper's recommendation, (0, 1/2) Catmull-Rom, (1, 0) the cubic B-spline.
    It interpolates only where `b = 0`. Source: Mitchell and Netravali, "Reconstruction filters
    in computer graphics", SIGGRAPH 1988.

    Args:
        b: Blur: a number, or a scalar jax array to differentiate with respect to.
        c: Ringing, likewise.

    Example:
        >>> import numpy as np
        >>> mitchell()(np.array([0.0, 1.0])).round(4)
        array([0.8889, 0.0556])
    """
    interpolates = isinstance(b, int | float) and b == 0
    return Kernel(
        "mitchell", 2.0, _mitchell, (number("b", b), number("c", c)), interpolates=interpolates
    )


def lanczos(n: int) -> Kernel:
    """Returns the Lanczos kernel sinc(x) sinc(x / n) on (-n, n).

    Its weights do not sum to 1 and are divided by their sum, as in jax.image and Pillow.
    Source: Duchon, "Lanczos filtering in one and two dimensions", J. Appl. Meteor. 18(8), 1979.

    Args:
        n: Lobes on each side, the radius: a positive integer.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: `n` is below 1.

    Example:
        >>> lanczos(3).radius
        3.0
    """
    return Kernel(f"lanczos{whole('n', n, 1)}", float(n), _lanczos, (int(n),), interpolates=True)


def gaussian(sigma: Array | float = 0.5, radius: float = 2.0) -> Kernel:
    """Returns exp(-x^2 / (2 sigma^2)), cut off at `radius`.

    Args:
        sigma: Standard deviation in input samples: a positive number, or a scalar jax array to
            differentiate with respect to.
        radius: Where it is cut off, in input samples; known before tracing.

    Raises:
        ValueError: `sigma` or `radius` is not positive.

    Example:
        >>> import jresample
        >>> jresample.resize_matrix(3, 3, gaussian(1.0)).round(3)
        array([[0.574, 0.348, 0.078],
               [0.274, 0.452, 0.274],
               [0.078, 0.348, 0.574]])
    """
    number("sigma", sigma)
    if isinstance(sigma, int | float | np.number | np.ndarray) and not sigma > 0:
        raise ValueError(f"`sigma` is {sigma}; expected a positive number of input samples")
    return Kernel("gaussian", radius, _gaussian, (number("sigma", sigma),))


def bspline(degree: int) -> Kernel:
    """Returns the centred cardinal B-spline of a degree, radius (degree + 1) / 2.

    From degree 2 on it smooths: it interpolates only after a prefilter has been applied to the
    image. Source: Unser, "Splines: a perfect fit for signal and image processing", IEEE Signal
    Processing Magazine 16(6), 1999.

    Args:
        degree: Of the pieces, from 1 to 7.

    Raises:
        TypeError: `degree` is not an integer.
        ValueError: `degree` is out of range.

    Example:
        >>> import numpy as np
        >>> (6 * bspline(3)(np.array([-1.0, 0.0, 1.0]))).round(12)
        array([1., 4., 1.])
    """
    degree = whole("degree", degree, 1)
    if degree > 7:
        raise ValueError(f"`degree` is {degree}; expected 1 to 7")
    half = (degree + 1) / 2
    return Kernel(f"bspline{degree}", half, _bspline, (degree,), interpolates=degree == 1)
