"""Plans x array -> array: dtypes, the order of the passes, and keeping them apart.

What one pass does is a strategy's business (`_strategies.py`); what is decided here concerns
all passes of a call.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import _strategies
from ._plan import AxisPlan

# Up to as many passes all orders are compared; beyond, those that shrink most go first.
PERMUTED_PASSES = 4
# Elements behind an axis from which a gather along it copies runs that are worth the name.
SHORT_RUN = 64

Passes = tuple[tuple[int, AxisPlan], ...]


def apply(x: jax.Array, passes: Passes, platform: str = "default") -> jax.Array:
    """Returns `x` with every `(axis, plan)` applied, in the dtype of `x`.

    Half-precision images are widened to float32 on the way in and rounded once, at the end.

    Args:
        x: Real or complex array.
        passes: The axes and their plans.
        platform: What it is lowered for: a key of `PLATFORMS`; "default" is every other.
    """
    if jnp.iscomplexobj(x):
        parts = (apply(part, passes, platform) for part in (lax.real(x), lax.imag(x)))
        return lax.complex(*parts)
    if any(0 in (plan.size_in, plan.size_out) for _, plan in passes):
        return outline(x, passes)
    copies = all(plan.copies for _, plan in passes)
    wide = x.dtype if copies else accumulator(x.dtype)
    order = ordered(x.shape, passes, platform, wide != x.dtype)
    return _LOWERINGS[platform](x, order, wide).astype(x.dtype)


def _fused(x: jax.Array, order: Passes, wide: np.dtype, platform: str = "default") -> jax.Array:
    """Every pass as it comes: XLA decides what to fuse.

    XLA:GPU makes each pass one kernel, with nothing between them but what the first writes.
    """
    x = x.astype(wide)
    for axis, plan in order:
        x = _apply_pass(x, axis, plan, platform)
    return x


def _each_apart(x: jax.Array, order: Passes, wide: np.dtype) -> jax.Array:
    """Every pass written out before the next reads it: what XLA:CPU needs to be told."""
    for axis, plan in order[:-1]:
        x = _apart(x, axis, plan, wide)
    return _apply_pass(x.astype(wide), *order[-1], "cpu", x.dtype != wide)


def _by_matrices(x: jax.Array, order: Passes, wide: np.dtype) -> jax.Array:
    """Dense matrices, where the matrix unit outruns gathers many times: TPU.

    A matrix spreads one NaN or Inf over a whole axis, which the table of taps does not. So it
    shows on one edge of what follows, which costs next to nothing to look at; only then are the
    products taken again, with care. A loop that runs once or not at all carries the result in
    place, where a conditional would copy it.
    """
    dense = tuple(one for one in order if _strategies.fits_matrix(one[1]))
    x = _fused(x, tuple(one for one in order if one not in dense), wide)
    if not dense:
        return x
    *first, last = dense = by_products(dense)
    z = x
    for axis, plan in first:
        z = _strategies.matrix(z, axis, plan)
    y = _strategies.matrix(z, *last)
    if first:
        seen = lax.slice_in_dim(z, 0, 1, axis=first[-1][0])
    else:
        shrinks = last[1].size_out < last[1].size_in
        seen = lax.slice_in_dim(y, 0, 1, axis=last[0]) if shrinks else x
    spoilt = ~jnp.isfinite(seen).all()
    return lax.while_loop(
        lambda state: state[0],
        lambda state: (jnp.zeros_like(state[0]), _strategies.careful(x, dense)),
        (spoilt, y),
    )[1]


def by_products(passes: Passes) -> Passes:
    """Returns passes in the order for matrices: as the axes come, unless that costs a tenth more.

    As they come, XLA:TPU lays out each product the way the next one and the result want it; the
    other order adds a copy: (8, 256, 256, 3) -> 512, lanczos3, 0.115 ms against 0.184.
    """
    orders = [tuple(sorted(passes, key=lambda p: p[0]))]
    if len(passes) <= PERMUTED_PASSES:
        orders += itertools.permutations(passes)

    def multiplications(order: Passes) -> float:
        sizes = {axis: float(plan.size_in) for axis, plan in order}
        total = 0.0
        for axis, plan in order:
            total += math.prod(sizes.values()) * plan.size_out
            sizes[axis] = plan.size_out
        return total * (0.9 if order == orders[0] else 1.0)

    return min(orders, key=multiplications)


_LOWERINGS = {
    "cpu": _each_apart,
    "cuda": functools.partial(_fused, platform="cuda"),
    "rocm": functools.partial(_fused, platform="rocm"),
    "tpu": _by_matrices,
    "default": _fused,
}
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


def ordered(
    shape: Sequence[int], passes: Passes, platform: str = "default", widens: bool = False
) -> Passes:
    """Returns the passes in the order of least work, as `_cost` counts it."""
    if len(passes) > PERMUTED_PASSES:
        return tuple(sorted(passes, key=lambda p: p[1].size_out / p[1].size_in))
    orders = itertools.permutations(passes)
    return min(orders, key=lambda order: _cost(shape, order, platform, widens))


def _cost(shape: Sequence[int], order: Passes, platform: str, widens: bool) -> float:
    """Returns the work of all passes, counted in taps and elements written.

    Along an axis with nothing behind it a tap costs twice as much as one of long runs. Gathering
    short runs costs four times as much, unless it comes last; slices of them are the dearer then,
    if only just. On 2 cores, (1, 1080, 1920, 3) -> 224, cubic, takes 3.3 ms with the rows first
    and 11.5 with the columns first; (8, 256, 256, 3) -> 512, lanczos3, 3.8 and 3.2.
    """
    # sizes that no pass changes are common to all orders
    sizes = {axis: float(plan.size_in) for axis, plan in order}
    cost = 0.0
    for place, (axis, plan) in enumerate(order, 1):
        sizes[axis] = float(plan.size_out)
        run = _static_size(shape[axis + 1 :])
        last = place == len(order)
        tap = 2.0 if run == 1 else 1.0
        if run < SHORT_RUN:
            strategy = _strategies.choose(plan, run, platform, widens and place == 1)
            slices = strategy == "polyphase"
            tap = (1.05 * tap if last else tap) if slices else (1.5 if last else 4.0)
        cost += math.prod(sizes.values()) * (1 + tap * plan.taps)
    return cost


def _apart(x: jax.Array, axis: int, plan: AxisPlan, wide: np.dtype) -> jax.Array:
    """Returns one pass, written out before the next one reads it.

    XLA:CPU fuses the passes into one loop and recomputes the first for each tap of the second:
    (8, 256, 256, 3) -> 512, lanczos3, takes 35 ms fused and 7 ms apart.
    """
    shape = outline(x, ((axis, plan),)).astype(wide)
    return written_out(
        lambda x: _apply_pass(x.astype(wide), axis, plan, "cpu", x.dtype != wide),
        lambda x: jnp.zeros_like(shape),
        x,
    )


def written_out(
    function: Callable[..., jax.Array], zeros: Callable[..., jax.Array], *args: jax.Array
) -> jax.Array:
    """Returns `function(*args)`, in memory before anything reads it, on a CPU.

    Fusion does not reach into a conditional; the barrier hides that its predicate is always true.

    Args:
        function: Of `args`.
        zeros: The other branch, never run: zeros of the same shape, dtype and sharding.
        args: Arrays.
    """
    return lax.cond(lax.optimization_barrier(jnp.asarray(True)), function, zeros, *args)


def _apply_pass(
    x: jax.Array, axis: int, plan: AxisPlan, platform: str = "default", widens: bool = False
) -> jax.Array:
    trailing = _static_size(x.shape[axis + 1 :])
    strategy = _strategies.choose(plan, trailing, platform, widens)
    y = _strategies.STRATEGIES[strategy](x, axis, plan)
    reads = plan.reads
    if reads.all():
        return y
    # rows without a tap are 0 whatever sample their padding points at
    reads = _strategies.spread(plan, reads)
    return jnp.where(_strategies.along(reads, axis, x.ndim), y, jnp.zeros_like(y))


def _static_size(shape: Sequence[int]) -> int:
    """Returns the number of elements, a symbolic dimension counted as many."""
    return int(np.prod([n if isinstance(n, int) else 1 << 20 for n in shape]))
