"""Plans x array -> array: dtypes, the order of the passes, and keeping them apart.

What one pass does is a strategy's business (`_strategies.py`); what is decided here concerns
all passes of a call.
"""

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import _strategies
from ._plan import AxisPlan

# Up to as many passes all orders are compared; beyond, those that shrink most go first.
PERMUTED_PASSES = 4

Passes = tuple[tuple[int, AxisPlan], ...]


def apply(x: jax.Array, passes: Passes, platform: str = "default") -> jax.Array:
    """Returns `x` with every `(axis, plan)` applied, in the dtype of `x`.

    Half-precision images are widened to float32 on the way in and rounded once, at the end.

    Args:
        x: Real or complex array.
        passes: The axes and their plans.
        platform: What it is lowered for: "cpu", "tpu" or "default", which is every other.
    """
    if jnp.iscomplexobj(x):
        parts = (apply(part, passes, platform) for part in (lax.real(x), lax.imag(x)))
        return lax.complex(*parts)
    if any(0 in (plan.size_in, plan.size_out) for _, plan in passes):
        return outline(x, passes)
    copies = all(plan.copies for _, plan in passes)
    wide = x.dtype if copies else accumulator(x.dtype)
    return _LOWERINGS[platform](x, ordered(x.shape, passes), wide).astype(x.dtype)


def _fused(x: jax.Array, order: Passes, wide: np.dtype) -> jax.Array:
    """Every pass as it comes: XLA decides what to fuse."""
    x = x.astype(wide)
    for axis, plan in order:
        x = _apply_pass(x, axis, plan)
    return x


def _each_apart(x: jax.Array, order: Passes, wide: np.dtype) -> jax.Array:
    """Every pass written out before the next reads it: what XLA:CPU needs to be told."""
    for axis, plan in order[:-1]:
        x = _apart(x, axis, plan, wide)
    return _apply_pass(x.astype(wide), *order[-1])


def _by_matrices(x: jax.Array, order: Passes, wide: np.dtype) -> jax.Array:
    """Dense matrices, where the matrix unit outruns gathers many times: TPU.

    A matrix spreads one NaN or Inf over a whole axis, which the table of taps does not. It shows
    in the result: only then are the taps gathered.
    """
    if not all(_strategies.fits_matrix(plan) for _, plan in order):
        return _fused(x, order, wide)
    y = x.astype(wide)
    for axis, plan in order:
        y = _strategies.matrix(y, axis, plan)
    return lax.cond(
        jnp.isfinite(y).all(), lambda x, y: y, lambda x, y: _fused(x, order, wide), x, y
    )


_LOWERINGS = {"cpu": _each_apart, "tpu": _by_matrices, "default": _fused}
PLATFORMS = tuple(_LOWERINGS)


def outline(x: jax.Array, passes: Passes) -> jax.Array:
    """Returns zeros of the shape, dtype and sharding of `apply`'s result, by the cheapest means."""
    for axis, plan in passes:
        first = lax.slice_in_dim(x, 0, min(1, plan.size_in), axis=axis)
        room = [(0, 0, 0)] * x.ndim
        room[axis] = (0, plan.size_out - first.shape[axis], 0)
        x = lax.pad(first, np.zeros((), x.dtype), room)
    return jnp.zeros_like(x)


def accumulator(dtype: np.dtype) -> np.dtype:
    """Returns the dtype in which weights are applied and sums are kept: 32 bits at least."""
    return dtype if jnp.finfo(dtype).bits >= 32 else np.dtype(np.float32)


def ordered(shape: Sequence[int], passes: Passes) -> Passes:
    """Returns the passes in the order of least work, counted in taps and elements written."""
    if len(passes) > PERMUTED_PASSES:
        return tuple(sorted(passes, key=lambda p: p[1].size_out / p[1].size_in))
    return min(itertools.permutations(passes), key=lambda order: _cost(shape, order))


def _cost(shape: Sequence[int], order: Passes) -> float:
    # Sizes that no pass changes are common to all orders.
    sizes = {axis: float(plan.size_in) for axis, plan in order}
    cost = 0.0
    for axis, plan in order:
        sizes[axis] = float(plan.size_out)
        minor = 2.0 if axis == len(shape) - 1 else 1.0
        cost += float(np.prod(list(sizes.values()))) * (1 + minor * plan.taps)
    return cost


def _apart(x: jax.Array, axis: int, plan: AxisPlan, wide: np.dtype) -> jax.Array:
    """Returns one pass, written out before the next one reads it.

    XLA:CPU fuses the passes into one loop and recomputes the first for each tap of the second:
    (8, 256, 256, 3) -> 512, lanczos3, takes 35 ms fused and 7 ms apart. Fusion does not reach
    into a conditional; the barrier hides that its predicate is always true.
    """
    certain = lax.optimization_barrier(jnp.asarray(True))
    written = outline(x, ((axis, plan),)).astype(wide)
    return lax.cond(
        certain,
        lambda x: _apply_pass(x.astype(wide), axis, plan),
        lambda x: jnp.zeros_like(written),
        x,
    )


def _apply_pass(x: jax.Array, axis: int, plan: AxisPlan) -> jax.Array:
    trailing = _static_size(x.shape[axis + 1 :])
    y = _strategies.STRATEGIES[_strategies.choose(plan, trailing)](x, axis, plan)
    reads = plan.reads
    if reads.all():
        return y
    # rows without a tap are 0 whatever sample their padding points at
    reads = _strategies.spread(plan, reads)
    return jnp.where(_strategies.along(reads, axis, x.ndim), y, jnp.zeros_like(y))


def _static_size(shape: Sequence[int]) -> int:
    """Returns the number of elements, a symbolic dimension counted as many."""
    return int(np.prod([n if isinstance(n, int) else 1 << 20 for n in shape]))
