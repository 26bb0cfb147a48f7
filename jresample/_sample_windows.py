"""Windows: where an output's taps lie in an array that is padded so that no window is cut.

An output reads `taps` successive samples along each axis. In an array extended at both ends
(`extend`) they are neighbours in memory, at the same distances for all outputs: one index names
the whole window. `fold` is the adjoint of `extend`.
"""

import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ._boundary import sample_index
from ._sample_taps import TapAxis


def split(axes: Sequence[TapAxis], z: Sequence) -> list[tuple]:
    """Returns what is given for each operand as one tuple per axis."""
    ends = list(itertools.accumulate(axis.operands for axis in axes))
    return [tuple(z[end - axis.operands : end]) for axis, end in zip(axes, ends, strict=True)]


def extents(axes: Sequence[TapAxis]) -> list[int]:
    """Returns the sizes of the extended array along the axes."""
    return [high - low + axis.taps for axis in axes for low, high in [axis.starts]]


def strides(sizes: Sequence[int]) -> list[int]:
    """Returns the distances between neighbours along axes of these sizes, laid out in order."""
    return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]


def index_dtype(size: int) -> np.dtype:
    """Returns the integer dtype that indices into so many elements need.

    A symbolic size of jax.export is taken for a small one.
    """
    return np.dtype(np.int64 if isinstance(size, int) and size >= 2**31 else np.int32)


def window(axis: TapAxis, start: jax.Array) -> jax.Array:
    """Returns where the window of a first tap begins in the extended axis."""
    low, high = axis.starts
    return jnp.clip(start, low, high) - low


def extend(x: jax.Array, dim: int, axis: TapAxis) -> jax.Array:
    """Returns `x` with the samples that stand for those before and after a dimension."""
    before, after = _outside(axis)
    index, there = sample_index(np.concatenate([before, after]), axis.size, axis.boundary)
    if there is not None:
        room = [(0, 0, 0)] * x.ndim
        room[dim] = (len(before), len(after), 0)
        return lax.pad(x, np.zeros((), x.dtype), room)
    ends = np.split(index, [len(before)])
    first, last = (jnp.take(x, end, axis=dim, mode="clip") for end in ends)
    return jnp.concatenate([first, x, last], axis=dim)


def fold(x: jax.Array, dim: int, axis: TapAxis) -> jax.Array:
    """Adds what stands before and after a dimension to the samples it stands for."""
    before, after = _outside(axis)
    inner = lax.slice_in_dim(x, len(before), len(before) + axis.size, axis=dim)
    outside = np.concatenate([before, after])
    index, there = sample_index(outside, axis.size, axis.boundary)
    if there is not None:
        return inner
    ends = jnp.take(x, outside + len(before), axis=dim, mode="clip")
    where = (slice(None),) * dim + (index,)
    return inner.at[where].add(ends, mode="promise_in_bounds")


def _outside(axis: TapAxis) -> tuple[np.ndarray, np.ndarray]:
    low, high = axis.starts
    return np.arange(low, 0), np.arange(axis.size, high + axis.taps)
