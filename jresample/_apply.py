"""AxisPlan x array -> array, in jnp/lax: one function per strategy, and the choice among them.

Every strategy computes `y[..., o, ...] = sum_k weight[o, k] x[..., index[o, k], ...]` and differs
only in how XLA sees it. `choose` is a pure function; `apply` runs it.
"""

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ._plan import AxisPlan

Passes = tuple[tuple[int, AxisPlan], ...]

# More taps than this are scanned, not unrolled: 384 unrolled taps take 2 s to compile and run
# 9 times slower than the scan.
UNROLLED_TAPS = 24
# Taps per step of the scan.
SCAN_CHUNK = 8


def apply(x: jax.Array, passes: Passes) -> jax.Array:
    """Returns `x` with every `(axis, plan)` applied, in the dtype of `x`.

    Half-precision images are widened to float32 on the way in and rounded once, at the end. The
    order of the passes is chosen for the least work.
    """
    if jnp.iscomplexobj(x):
        return lax.complex(apply(lax.real(x), passes), apply(lax.imag(x), passes))
    copies = all(plan.copies for _, plan in passes)
    y = x if copies else x.astype(accumulator(x.dtype))
    for axis, plan in ordered(x.shape, passes):
        y = _apply_axis(y, axis, plan)
    return y.astype(x.dtype)


def accumulator(dtype: np.dtype) -> np.dtype:
    """Returns the dtype in which weights are applied and sums are kept: float32 at least."""
    return dtype if dtype == jnp.float64 else np.dtype(np.float32)


def ordered(shape: Sequence[int], passes: Passes) -> Passes:
    """Returns the passes in the order of least work, counted in taps and bytes written."""
    if len(passes) < 2:
        return passes
    return min(itertools.permutations(passes), key=lambda order: _cost(shape, order))


def _cost(shape: Sequence[int], order: Passes) -> float:
    # Sizes that no pass changes are common to all orders; so are symbolic ones.
    sizes = {axis: plan.size_in for axis, plan in order}
    cost = 0.0
    for axis, plan in order:
        sizes[axis] = plan.size_out
        minor = 2.0 if axis == len(shape) - 1 else 1.0
        cost += float(np.prod([float(n) for n in sizes.values()])) * (1 + minor * plan.taps)
    return cost


def _apply_axis(x: jax.Array, axis: int, plan: AxisPlan) -> jax.Array:
    if plan.size_out == 0 or plan.size_in == 0:
        shape = (*x.shape[:axis], plan.size_out, *x.shape[axis + 1 :])
        return jnp.zeros(shape, x.dtype)
    strategy = STRATEGIES[choose(plan)]
    y = strategy(x, axis, plan)
    if not plan.reads.all():
        row, _ = plan.rows()
        reads = _along(plan.reads[row], axis, x.ndim)
        y = jnp.where(reads, y, jnp.zeros_like(y))
    return y


def choose(plan: AxisPlan) -> str:
    """Returns the name of the strategy for a plan: a key of `STRATEGIES`."""
    return "gather" if plan.taps <= UNROLLED_TAPS else "scan"


def _gather(x: jax.Array, axis: int, plan: AxisPlan) -> jax.Array:
    index, weight = plan.expand()
    if plan.copies:
        return _take(x, index[:, 0], axis)
    total = None
    for k in range(plan.taps):
        term = _take(x, index[:, k], axis) * _along(weight[:, k].astype(x.dtype), axis, x.ndim)
        total = term if total is None else total + term
    assert total is not None
    return total


def _scan(x: jax.Array, axis: int, plan: AxisPlan) -> jax.Array:
    index, weight = plan.expand()
    missing = -plan.taps % SCAN_CHUNK
    index = np.pad(index, ((0, 0), (0, missing)), mode="edge")
    weight = np.pad(weight, ((0, 0), (0, missing)))
    steps = index.shape[1] // SCAN_CHUNK

    def step(total: jax.Array, chunk: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        for k in range(SCAN_CHUNK):
            term = jnp.take(x, chunk[0][k], axis=axis, mode="clip")
            total = total + term * _along(chunk[1][k], axis, x.ndim)
        return total, None

    chunks = (
        jnp.asarray(index.T.reshape(steps, SCAN_CHUNK, -1).astype(_index_dtype(plan.size_in))),
        jnp.asarray(weight.T.reshape(steps, SCAN_CHUNK, -1).astype(x.dtype)),
    )
    start = _take(x, index[:, 0], axis)
    return lax.scan(step, jnp.zeros_like(start), chunks)[0]


STRATEGIES = {"gather": _gather, "scan": _scan}


def _take(x: jax.Array, index: np.ndarray, axis: int) -> jax.Array:
    index = index.astype(_index_dtype(x.shape[axis]))
    return jnp.take(x, index, axis=axis, mode="clip")


def _index_dtype(size: int) -> type[np.signedinteger]:
    return np.int32 if size < 2**31 else np.int64


def _along(values: np.ndarray | jax.Array, axis: int, ndim: int) -> np.ndarray | jax.Array:
    """Returns a vector laid along an axis, to broadcast against an array of `ndim` dimensions."""
    return values.reshape((1,) * axis + (-1,) + (1,) * (ndim - axis - 1))
