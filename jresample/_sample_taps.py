"""Traced coordinates -> taps: which samples an output reads along one axis, and their weights.

Axis by axis, an output at coordinate `c` reads the samples `start .. start + taps - 1`, where
`start` is the first sample within the kernel's support, with the weights

    w_k = fn(k - u),   u = c - start,   divided by their sum.

Weights are smooth in `u` between knots, and `start` is constant there, so the derivatives of the
weights with respect to `c` and to the kernel's parameters come from the same formula. Derivatives
are taken inside the cell that lies to the right of a knot: one-sided slopes, never a mixture of
two cells.
"""

import dataclasses
import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ._boundary import sample_index
from .kernels import Kernel

# The operands of an axis, rank 2: its coordinate, then every traced number of its kernel.
Operands = tuple[jax.Array, ...]
# Weights of one axis: an array for each tap, or one array with a leading tap axis.
Weights = list[jax.Array] | jax.Array

# More taps than this on one axis are stacked and scanned: unrolled, they take seconds to compile.
STACKED_TAPS = 24


@dataclasses.dataclass(frozen=True)
class TapAxis:
    """What is known of one axis before tracing: hashable, the key of compiled code.

    Attributes:
        size: Samples of the axis.
        boundary: A key of `_boundary.INDEX_MAPS`.
        taps: Samples read by an output, at most.
        kernel: The kernel; its parameters named in `shapes` are placeholders. None: one sample,
            the one whose index the coordinate is.
        shapes: For each of the kernel's parameters its shape where it is an operand, else None.
        support: Half the support as a function of the kernel's parameters, where those decide
            it; None where it is `kernel.radius`.
        closed: Whether both ends of the support are read, and slopes at knots are those of
            `kernel.fn`'s own formula. Otherwise the left end is not read (its weight is 0),
            which spares a tap, and slopes at knots are those of the cell on the right.
        normalise: Whether weights must be divided by their sum.
        last: The greatest first tap, for coordinates that end at a sample: there the slope is
            that of the cell on the left. None: no such end.
        whole: Whether every output reads the whole axis.
        order: How often to differentiate with respect to each operand; empty for values.
    """

    size: int
    boundary: str | None
    taps: int = 1
    kernel: Kernel | None = None
    shapes: tuple[tuple[int, ...] | None, ...] = ()
    support: Callable[..., jax.Array] | None = None
    closed: bool = False
    normalise: bool = False
    last: int | None = None
    whole: bool = False
    order: tuple[int, ...] = ()

    @property
    def operands(self) -> int:
        """How many operands it takes: the coordinate and every number that is traced."""
        return 1 + sum(math.prod(shape) for shape in self.shapes if shape is not None)

    def derivative(self, operand: int) -> "TapAxis | None":
        """Returns the axis with weights differentiated once more; None where they are constant."""
        if self.kernel is None:
            return None
        order = list(self.order or (0,) * self.operands)
        order[operand] += 1
        return dataclasses.replace(self, order=tuple(order))

    @property
    def limits(self) -> tuple[float, float]:
        """Where coordinates lie once they are `canonical`."""
        n = self.size
        if self.boundary == "reflect" or (self.boundary is None and self.kernel is None):
            return 0.0, n - 1.0
        if self.boundary == "wrap":
            return 0.0, float(n)
        if self.boundary in (None, "symmetric"):
            return -0.5, n - 0.5
        # so far outside that every tap is outside, and whole: there a kernel that interpolates
        # has a single tap, of weight 1
        reach = math.ceil(self.taps / 2)
        return float(-reach), float(n - 1 + reach)

    @property
    def starts(self) -> tuple[int, int]:
        """Bounds of the first tap of outputs at canonical coordinates."""
        if self.whole:
            return 0, 0
        low, high = self.limits
        reach = math.ceil(self.taps / 2)
        return math.floor(low) - reach, math.ceil(high) + 1


def canonical(axis: TapAxis, c: jax.Array) -> jax.Array:
    """Returns coordinates that read the same samples and lie near the axis.

    Whatever is far outside is brought to `axis.limits`, in floating point, so that no cast to an
    index can overflow: clamped where nothing changes out there, folded where the rule repeats.
    Infinite coordinates are taken for the largest finite ones. NaN stays NaN.
    """
    low, high = axis.limits
    if axis.boundary in ("edge", "constant", None):
        return clamp(c, low, high)
    huge = float(jnp.finfo(c.dtype).max) / 4
    far = clamp(c, -huge, huge)
    return jnp.where(
        (c >= low) & (c <= high) | jnp.isnan(c), c, _FOLDS[axis.boundary](far, axis.size)
    )


def clamp(c: jax.Array, low: float, high: float) -> jax.Array:
    """Returns `c` within [low, high]; its derivative is 1 at the ends, 0 beyond; NaN stays."""
    c = jnp.where(c < low, jnp.full_like(c, low), c)
    return jnp.where(c > high, jnp.full_like(c, high), c)


def period(c: jax.Array, n: float) -> jax.Array:
    """Returns c modulo n, in [0, n]: the remainder of a floating-point division is exact."""
    remainder = jax.lax.rem(c, jnp.full_like(c, n))
    return jnp.where(remainder < 0, remainder + n, remainder)


def _mirror(c: jax.Array, first: float, turn: float) -> jax.Array:
    """Returns c reflected about `first` and about `first + turn / 2`, again and again."""
    # the distance, not c itself, is reduced: it keeps every bit
    place = period(jnp.abs(c - first), turn)
    return jnp.where(place > turn / 2, turn - place, place) + first


def _fold_reflect(c: jax.Array, n: int) -> jax.Array:
    return _mirror(c, 0.0, 2.0 * (n - 1)) if n > 1 else jnp.zeros_like(c)


def _fold_symmetric(c: jax.Array, n: int) -> jax.Array:
    return _mirror(c, -0.5, 2.0 * n)


def _fold_wrap(c: jax.Array, n: int) -> jax.Array:
    return period(c, float(n))


_FOLDS = {"reflect": _fold_reflect, "symmetric": _fold_symmetric, "wrap": _fold_wrap}


def exists(axis: TapAxis, index: jax.Array) -> jax.Array | None:
    """Returns which indices have a sample under the axis's boundary; None where all have."""
    return sample_index(index, axis.size, axis.boundary)[1]


def taps(axis: TapAxis, z: Operands, dtype: np.dtype) -> tuple[jax.Array, Weights | None]:
    """Returns each output's first tap and the weights of its taps.

    Args:
        axis: The axis.
        z: Its operands, broadcastable against each other; `z[0]` is canonical and not NaN.
        dtype: Of the weights.

    Returns:
        `(start, weights)`: int32 and, for each tap, weights of the same shape, differentiated
        `axis.order` times; None for the weights of an axis without kernel.
    """
    c, theta = z[0], tuple(t.astype(dtype) for t in z[1:])
    if axis.kernel is None:
        return c.astype(jnp.int32), None
    start = jax.lax.stop_gradient(_start(axis, c, theta))
    u = (c - start).astype(dtype)
    if any(axis.order) and not axis.closed:
        u = _into_cell(u, axis.kernel.radius - 1)
    start = start.astype(jnp.int32)
    function = functools.partial(_weights, axis, start)
    for operand, times in enumerate(axis.order):
        for _ in range(times):
            function = _partial(function, operand)
    return start, function(u, *theta)


def _start(axis: TapAxis, c: jax.Array, theta: Operands) -> jax.Array:
    assert axis.kernel is not None
    half = axis.kernel.radius
    if axis.whole:
        return jnp.zeros_like(c)
    if axis.last is not None:
        return jnp.minimum(jnp.floor(c) + 1 - half, axis.last)
    if axis.support is not None:
        half = axis.support(*_params(axis, theta)).astype(c.dtype)
    elif half.is_integer():
        # no rounding error in c - start: floor(c) is near c
        return (jnp.ceil(c) if axis.closed else jnp.floor(c) + 1) - half
    return jnp.ceil(c - half) if axis.closed else jnp.floor(c - half) + 1


def _into_cell(u: jax.Array, low: float) -> jax.Array:
    """Returns `u` moved off the knots at both ends of its cell [low, low + 1] by a few ulps."""
    step = float(jnp.finfo(u.dtype).eps) * 2.0 ** math.ceil(math.log2(abs(low) + 2))
    return jnp.minimum(jnp.maximum(u, low + step), low + 1 - step)


def _partial(function: Callable[..., Weights], operand: int) -> Callable[..., Weights]:
    """Returns the partial derivative of a function of elementwise operands."""

    def derivative(*args: jax.Array) -> Weights:
        def along(value: jax.Array) -> Weights:
            return function(*args[:operand], value, *args[operand + 1 :])

        return jax.jvp(along, (args[operand],), (jnp.ones_like(args[operand]),))[1]

    return derivative


def _weights(axis: TapAxis, start: jax.Array, u: jax.Array, *theta: jax.Array) -> Weights:
    """Returns the weights of all taps, the first of them `u` samples before the output."""
    if axis.taps <= STACKED_TAPS and not _divides(axis):
        return [_kernel(axis, k - u, theta) for k in range(axis.taps)]
    # One expression for all taps: as many expressions, each with the sum of all in it, would
    # take XLA minutes to compile. The tap axis comes in front of every operand's own.
    k = jnp.arange(axis.taps, dtype=jnp.int32).reshape(-1, 1, 1)
    weights = _kernel(axis, k.astype(u.dtype) - u[None], tuple(t[None] for t in theta))
    if axis.boundary is None:
        # a tap outside is dropped before the sum is taken
        index = start[None] + k
        there = (index >= 0) & (index < axis.size)
        weights = jnp.where(there, weights, jnp.zeros_like(weights))
    if not _divides(axis):
        return weights
    total = weights.sum(axis=0, keepdims=True)
    # an output without any tap is 0, not 0/0
    return weights / jnp.where(total == 0, jnp.ones_like(total), total)


def _divides(axis: TapAxis) -> bool:
    return axis.normalise or axis.boundary is None


def _kernel(axis: TapAxis, x: jax.Array, theta: Operands) -> jax.Array:
    kernel = axis.kernel
    assert kernel is not None
    params = _params(axis, theta)
    if any(isinstance(p, list) for p in params):
        weight = _one_by_one(axis, x, params)
    else:
        weight = kernel.fn(x, *params)
    if axis.support is None and axis.closed:
        weight = jnp.where(jnp.abs(x) <= kernel.radius, weight, jnp.zeros_like(weight))
    return jnp.asarray(weight).astype(x.dtype)


def _params(axis: TapAxis, theta: Operands) -> list[object]:
    """Returns the kernel's parameters, the traced ones put together from their numbers.

    An array whose numbers differ between outputs (under vmap) stays a list of them.
    """
    assert axis.kernel is not None
    params: list[object] = []
    for shape, static in zip(axis.shapes, axis.kernel.params, strict=True):
        if shape is None:
            params.append(static)
        elif shape == ():
            params.append(theta[0])  # keeps its rank, to broadcast against the outputs
            theta = theta[1:]
        else:
            numbers, theta = theta[: math.prod(shape)], theta[math.prod(shape) :]
            whole = all(number.size == 1 for number in numbers)
            flat = [number.reshape(1) for number in numbers] if whole else list(numbers)
            params.append(jnp.concatenate(flat).reshape(shape) if whole else flat)
    return params


def _one_by_one(axis: TapAxis, x: jax.Array, params: list[object]) -> jax.Array:
    """Returns the kernel's weights where each output has its own parameters."""
    assert axis.kernel is not None
    # numbers that differ between outputs, or a scalar; an array that is one for all stays whole
    numbers = [
        [jnp.asarray(v) for v in p]
        if isinstance(p, list)
        else [jnp.asarray(p)]
        if s == ()
        else None
        for s, p in zip(axis.shapes, params, strict=True)
    ]
    out = np.broadcast_shapes(x.shape, *(v.shape for own in numbers for v in own or ()))
    columns: list[object] = []
    for shape, param, own in zip(axis.shapes, params, numbers, strict=True):
        if own is None or shape is None:
            columns.append(param)
        else:
            spread = [jnp.broadcast_to(v, out).reshape(-1) for v in own]
            columns.append(jnp.stack(spread, -1).reshape(-1, *shape))
    which = [None if own is None else 0 for own in numbers]
    flat = jnp.broadcast_to(x, out).reshape(-1)
    weights = jax.vmap(axis.kernel.fn, (0, *which))(flat, *columns)
    return jnp.asarray(weights).reshape(out)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def missing(axis: TapAxis, *z: jax.Array) -> jax.Array:
    """Returns the weight of the taps that have no sample, in the dtype of the coordinate.

    Exactly 0 where every tap has one and exactly 1 where none has.
    """
    start, weights = taps(axis, z, z[0].dtype)
    if weights is None:
        return (exists(axis, start) == jnp.bool_(False)).astype(z[0].dtype)
    total, anything = jnp.zeros_like(z[0]), jnp.zeros_like(start, dtype=bool)
    for k in range(axis.taps):
        there = exists(axis, start + k)
        assert there is not None
        total = total + jnp.where(there, jnp.zeros_like(total), weights[k])
        anything = anything | there
    return jnp.where(anything, total, jnp.full_like(total, 0.0 if any(axis.order) else 1.0))


@missing.defjvp
def _missing_jvp(axis: TapAxis, z: Operands, dz: Operands) -> tuple[jax.Array, jax.Array]:
    value = missing(axis, *z)
    tangent = jnp.zeros_like(value)
    for operand, d in enumerate(dz):
        slope = axis.derivative(operand)
        if slope is not None:
            tangent = tangent + missing(slope, *z) * d.astype(value.dtype)
    return value, tangent
