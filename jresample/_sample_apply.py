"""Sampling and its adjoint in jnp/lax: gather taps, or splat onto them.

    read    y[b, p, c] = sum_k  w_0[k_0, b, p] ... w_n[k_n, b, p]  x[b, i_0(k_0), ..., i_n(k_n), c]
    splat   the transposed sum: x from y

`read` gathers tap by tap, unrolled, which XLA fuses into one loop over the outputs. `splat` adds
to each output's window of `taps_0 x ... x taps_n` samples at once, in an image padded so that
windows are never cut; the padding is folded back at the end. It goes through the outputs in
chunks, so that the updates stay in the cache and never reach the size of all taps.
"""

import functools
import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ._boundary import sample_index
from ._sample_taps import Operands, TapAxis, Weights, taps

# Taps over all axes that are unrolled into one expression; beyond, the outer axes are scanned.
UNROLLED_TAPS = 16
# Numbers in the updates of one chunk of the splat (2 MB in float32).
CHUNK_NUMBERS = 2**19


def split(axes: Sequence[TapAxis], z: Sequence[jax.Array]) -> list[Operands]:
    """Returns the flat operands as one tuple per axis."""
    ends = list(itertools.accumulate(axis.operands for axis in axes))
    return [tuple(z[end - axis.operands : end]) for axis, end in zip(axes, ends, strict=True)]


# ------------------------------------------------------------------ read


def read(x: jax.Array, *z: jax.Array, axes: tuple[TapAxis, ...], channels_first: bool) -> jax.Array:
    """Returns the samples read, `[B, P, C]`, or `[B, C, P]` with `channels_first`.

    Args:
        x: `[B, *sizes, C]`, or `[B, C, *sizes]` with `channels_first`.
        z: Operands of all axes in turn, each `[B or 1, P or 1]`; coordinates canonical.
        axes: One for each spatial axis.
        channels_first: Where the channels lie.
    """
    size = math.prod(axis.size for axis in axes)
    batch, channels = x.shape[0], x.shape[1 if channels_first else -1]
    flat = x.reshape((batch, channels, size) if channels_first else (batch, size, channels))
    columns, strides, stride = [], [], size
    for axis, own in zip(axes, split(axes, z), strict=True):
        stride //= axis.size
        strides.append(stride)
        columns.append(_columns(axis, own, x.dtype, _index_dtype(size)))
    take = functools.partial(_take, flat, channels_first=channels_first)
    return _nest(take, axes, columns, strides, None, channels_first)


def _index_dtype(size: int) -> np.dtype:
    return np.dtype(np.int32 if size < 2**31 else np.int64)


def _columns(
    axis: TapAxis, z: Operands, dtype: np.dtype, index_dtype: np.dtype
) -> tuple[Weights, Weights | list[jax.Array | None]]:
    """Returns each tap's sample and weight, 0 where there is no sample; None is a weight of 1."""
    start, weights = taps(axis, z, dtype)
    if weights is None or isinstance(weights, list):
        index = [start + k for k in range(axis.taps)]
        pairs = [sample_index(i, axis.size, axis.boundary) for i in index]
        there = [pair[1] for pair in pairs]
        if weights is None:  # a weight of None is 1, True is 1 and False is 0
            weights = there
        else:
            weights = [_masked(w, t) for w, t in zip(weights, there, strict=True)]
        return [pair[0].astype(index_dtype) for pair in pairs], weights
    index = start[None] + jnp.arange(axis.taps, dtype=start.dtype).reshape(-1, 1, 1)
    index, there = sample_index(index, axis.size, axis.boundary)
    return index.astype(index_dtype), _masked(weights, there)


def _masked(weight: jax.Array, there: jax.Array | None) -> jax.Array:
    return weight if there is None else jnp.where(there, weight, jnp.zeros_like(weight))


def _take(flat: jax.Array, index: jax.Array, *, channels_first: bool) -> jax.Array:
    """Returns samples `[B, C, P]` or `[B, P, C]` at flat indices `[B or 1, P]`, all valid."""

    def one(image: jax.Array, i: jax.Array) -> jax.Array:
        place = image.at[:, i] if channels_first else image.at[i]
        return place.get(mode="promise_in_bounds")

    if index.shape[0] == 1:
        return jax.vmap(one, (0, None))(flat, index[0])
    return jax.vmap(one)(flat, index)


def _nest(take, axes, columns, strides, offset, channels_first):
    """Returns the weighted sum over the taps of all axes, the last one innermost."""
    if not axes:
        return take(offset)
    index, weights = columns[0]

    def term(i: jax.Array, w: jax.Array | None) -> jax.Array:
        place = i * np.array(strides[0], i.dtype) if strides[0] != 1 else i
        place = place if offset is None else offset + place
        inner = _nest(take, axes[1:], columns[1:], strides[1:], place, channels_first)
        return _weighted(inner, w, channels_first)

    inner_taps = math.prod(axis.taps for axis in axes)
    if inner_taps <= UNROLLED_TAPS or axes[0].taps == 1:
        return functools.reduce(jnp.add, map(term, index, weights))
    if isinstance(index, list):
        index = jnp.stack(jnp.broadcast_arrays(*index))
        weights = jnp.stack(jnp.broadcast_arrays(*weights))

    def step(total: jax.Array, tap: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        return total + term(*tap), None

    # the first term gives the sum its shape, and its manual axes under shard_map
    first = term(index[0], weights[0])
    return lax.scan(step, first, (index[1:], weights[1:]))[0]


def _weighted(value: jax.Array, weight: jax.Array | None, channels_first: bool) -> jax.Array:
    """Returns weight * value, 0 where the weight is 0, whatever the value."""
    if weight is None:
        return value
    weight = jnp.expand_dims(weight, 1 if channels_first else -1)
    if weight.dtype == bool:
        return jnp.where(weight, value, jnp.zeros_like(value))
    return jnp.where(weight == 0, jnp.zeros_like(value), weight * value)


# ------------------------------------------------------------------ splat


def splat(
    y: jax.Array, *z: jax.Array, axes: tuple[TapAxis, ...], channels_first: bool
) -> jax.Array:
    """Returns the adjoint of `read` applied to `y`: arguments and layout as there."""
    y = jnp.moveaxis(y, 1, -1) if channels_first else y
    batch, points, channels = y.shape
    # what differs between outputs goes through the chunks, the rest stands by; the batch stays an
    # axis of its own, so that devices which share it out exchange nothing
    each = [jnp.broadcast_to(v, (batch, points)) for v in z if v.size != 1]

    def add(image: jax.Array, part: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        y, *rest = part
        values = iter(rest)
        own = [v if v.size == 1 else next(values) for v in z]
        return _add_windows(image, y, split(axes, own), axes), None

    extent = [high - low + axis.taps for axis in axes for low, high in [axis.starts]]
    parts = (y, *each)
    image = jnp.broadcast_to(varying(jnp.zeros((), y.dtype), parts), (batch, *extent, channels))
    chunks = _chunks(batch * points, channels * math.prod(axis.taps for axis in axes))
    if chunks == 1:
        image, _ = add(image, parts)
    else:
        image, _ = lax.scan(add, image, tuple(_chunked(part, chunks) for part in parts))
    for i, axis in enumerate(axes):
        image = _fold(image, i + 1, axis)
    return jnp.moveaxis(image, -1, 1) if channels_first else image


def _chunks(outputs: int, numbers_each: int) -> int:
    if not isinstance(outputs, int):  # a symbolic size of jax.export
        return 1
    return max(1, -(-outputs * numbers_each // CHUNK_NUMBERS))


def _chunked(part: jax.Array, chunks: int) -> jax.Array:
    """Returns the outputs `[B, P, ...]` in equal chunks `[chunks, B, p, ...]`, zeros at the end."""
    chunks = min(chunks, part.shape[1])
    fill = -part.shape[1] % chunks
    part = jnp.pad(part, ((0, 0), (0, fill), *((0, 0),) * (part.ndim - 2)))
    part = part.reshape(part.shape[0], chunks, -1, *part.shape[2:])
    return jnp.moveaxis(part, 1, 0)


def varying(x: jax.Array, like: Sequence[jax.Array]) -> jax.Array:
    """Returns `x`, varying over the manual axes (shard_map) of the given arrays, none empty.

    jnp operations see to that by themselves: the adjoint of an array that all devices read at
    points of their own sums over the devices. A primitive, and a loop's carry, need it said.
    """
    never = jnp.zeros((), bool)
    for array in like:
        first = lax.stop_gradient(array)[(0,) * array.ndim]
        x = jnp.where(never, first.astype(x.dtype), x)
    return x


def _add_windows(
    image: jax.Array, y: jax.Array, z: Sequence[Operands], axes: tuple[TapAxis, ...]
) -> jax.Array:
    """Adds outputs `[B, P, C]`, weighted, to their windows of padded images `[B, *sizes, C]`."""
    place: list[jax.Array] = []
    update = y
    for axis, own in reversed(list(zip(axes, z, strict=True))):
        start, weights = taps(axis, own, y.dtype)
        low, high = axis.starts
        place.insert(0, jnp.clip(start, low, high) - low)
        update = jnp.expand_dims(update, 2)
        if weights is not None:
            stacked = jnp.stack(jnp.broadcast_arrays(*weights), -1)
            stacked = stacked.reshape(*stacked.shape, *(1,) * (update.ndim - 3))
            update = jnp.where(stacked == 0, jnp.zeros_like(update), stacked * update)
    places = [jnp.broadcast_to(p, y.shape[:2]) for p in place]
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(range(2, update.ndim)),
        inserted_window_dims=(),
        scatter_dims_to_operand_dims=tuple(range(1, len(axes) + 1)),
        operand_batching_dims=(0,),
        scatter_indices_batching_dims=(0,),
    )
    return lax.scatter_add(image, jnp.stack(places, -1), update, numbers, mode="promise_in_bounds")


def _fold(image: jax.Array, dim: int, axis: TapAxis) -> jax.Array:
    """Adds the padding of a dimension to the samples it stands for, and cuts it off."""
    low, high = axis.starts
    outside = np.concatenate([np.arange(low, 0), np.arange(axis.size, high + axis.taps)])
    inner = lax.slice_in_dim(image, -low, axis.size - low, axis=dim)
    index, there = sample_index(outside, axis.size, axis.boundary)
    if there is not None:
        return inner
    padding = jnp.take(image, outside - low, axis=dim, mode="clip")
    where = (slice(None),) * dim + (index,)
    return inner.at[where].add(padding, mode="promise_in_bounds")
