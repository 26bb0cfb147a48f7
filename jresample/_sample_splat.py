"""Splatting, the adjoint of reading: every output adds to the samples that it read.

    splat    x[b, i_0(k_0), ..., c] += w_0[k_0, b, p] ... w_n[k_n, b, p]  y[b, p, c]

An output's window in the extended image (`_sample_windows.py`) is a set of rows along the last
axis, each contiguous: the taps of that axis times the channels. Every row is one scatter of such
runs. Outputs go by in chunks, so that the runs stay in the cache and never reach the size of all
taps, and what was added outside the image is folded back at the end.
"""

import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ._sample_taps import Operands, TapAxis, taps
from ._sample_windows import extents, fold, index_dtype, split, strides, window

# Numbers in the runs of one chunk (2 MB in float32).
CHUNK_NUMBERS = 2**19
# Channels up to which half the rows go to an image of their own, added at the end: XLA:CPU runs a
# scatter on one thread, two independent ones on two. On 2 cores, ms one/two: cubic
# (1, 1, 1024, 1024) 34/22, linear 6.7/4.2; but (4, 32, 128, 128) linear 5.8/8.5.
TWO_IMAGES_CHANNELS = 8


def splat(
    y: jax.Array, *z: jax.Array, axes: tuple[TapAxis, ...], channels_first: bool
) -> jax.Array:
    """Returns the adjoint of `read` applied to `y`: arguments and layout as there."""
    y = jnp.moveaxis(y, 1, -1) if channels_first else y
    batch, points, channels = y.shape
    # what differs between outputs goes through the chunks, the rest stands by; the batch stays an
    # axis of its own, so that devices which share it out exchange nothing
    each = [jnp.broadcast_to(v, (batch, points)) for v in z if v.size != 1]

    def add(
        images: tuple[jax.Array, ...], part: tuple[jax.Array, ...]
    ) -> tuple[tuple[jax.Array, ...], None]:
        y, *rest = part
        values = iter(rest)
        own = [v if v.size == 1 else next(values) for v in z]
        return _add_windows(images, y, split(axes, own), axes), None

    sizes, parts = extents(axes), (y, *each)
    rows = math.prod(axis.taps for axis in axes[:-1])
    few = isinstance(channels, int) and channels <= TWO_IMAGES_CHANNELS
    count = 2 if rows > 1 and few else 1
    zero = varying(jnp.zeros((), y.dtype), parts)
    images = (jnp.broadcast_to(zero, (batch, math.prod(sizes) * channels)),) * count
    taps_each = rows * axes[-1].taps
    # a single tap's runs are y itself
    chunks = _chunks(batch * points * channels * taps_each) if taps_each > 1 else 1
    if chunks == 1:
        images, _ = add(images, parts)
    else:
        images, _ = lax.scan(add, images, tuple(_chunked(part, chunks) for part in parts))
    image = functools.reduce(jnp.add, images).reshape(batch, *sizes, channels)
    for i, axis in enumerate(axes):
        image = fold(image, i + 1, axis)
    return jnp.moveaxis(image, -1, 1) if channels_first else image


def _chunks(numbers: int) -> int:
    if not isinstance(numbers, int):  # a symbolic size of jax.export
        return 1
    return max(1, -(-numbers // CHUNK_NUMBERS))


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
    images: tuple[jax.Array, ...],
    y: jax.Array,
    z: Sequence[Operands],
    axes: tuple[TapAxis, ...],
) -> tuple[jax.Array, ...]:
    """Adds outputs `[B, P, C]`, weighted, to their windows of flat images `[B, size]`."""
    shape, channels = y.shape[:2], y.shape[2]
    dtype = index_dtype(math.prod(extents(axes)) * channels)
    steps = [step * channels for step in strides(extents(axes))]
    # of each row of the window, its run [B, P, rows, length] and where that begins [B, P, rows]
    runs, places = y[:, :, None], jnp.zeros((*shape, 1), dtype)
    for i in reversed(range(len(axes))):
        start, weights = taps(axes[i], z[i], y.dtype)
        begin = window(axes[i], start).astype(dtype) * steps[i]
        places = places + jnp.broadcast_to(begin, shape)[..., None]
        if weights is not None:
            weights = jnp.stack(jnp.broadcast_arrays(*weights), -1)[..., None, None]
            runs = runs[:, :, None]
            runs = jnp.where(weights == 0, jnp.zeros_like(runs), weights * runs)
        if i == len(axes) - 1:  # its taps lie in a row
            runs = runs.reshape(*shape, 1, -1)
        elif weights is not None:
            runs = runs.reshape(*shape, -1, runs.shape[-1])
            ahead = jnp.arange(axes[i].taps, dtype=dtype).reshape(1, 1, -1, 1) * steps[i]
            places = (places[:, :, None] + ahead).reshape(*shape, -1)
    halves = np.array_split(np.arange(places.shape[-1]), 2)
    sums = list(images)
    for i, rows in enumerate(half for half in halves if half.size):
        part, which = slice(rows[0], rows[-1] + 1), i % len(sums)
        sums[which] = _scattered(sums[which], places[:, :, part], runs[:, :, part])
    return tuple(sums)


def _scattered(image: jax.Array, places: jax.Array, runs: jax.Array) -> jax.Array:
    """Adds runs `[B, P, rows, length]` to flat images `[B, size]` from places `[B, P, rows]` on."""
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(3,),
        inserted_window_dims=(),
        scatter_dims_to_operand_dims=(1,),
        operand_batching_dims=(0,),
        scatter_indices_batching_dims=(0,),
    )
    return lax.scatter_add(image, places[..., None], runs, numbers, mode="promise_in_bounds")
