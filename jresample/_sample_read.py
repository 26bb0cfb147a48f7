"""Reading samples in jnp/lax: taps gathered one by one and added up.

    read        y[b, p, c]    = sum_k  w_0[k_0, b, p] ... w_n[k_n, b, p]  x[b, i_0(k_0), ..., c]
    contract    d_j[b, p]     = sum_c  y[b, p, c]  (d read / d z_j)[b, p, c]

The taps are unrolled, and XLA fuses them into one loop over the outputs. What that loop must not
do is keep them: a result that two others read would be computed in each, or its taps be written
out for both. So the slopes along two coordinates are returned as one complex array.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ._boundary import sample_index
from ._sample_taps import TapAxis, Weights, taps
from ._sample_windows import extend, extents, index_dtype, split, strides, window

# Taps over all axes that are unrolled into one expression; beyond, the outer axes are scanned.
UNROLLED_TAPS = 16
# Taps over all axes, times the slopes asked for, from which windows of an extended copy are read,
# where there are at least half as many outputs as samples: the taps then share one array of
# indices. On 2 cores, ms one by one/windows: (4, 32, 128, 128) cubic 9.1/6.9, both its slopes
# 22/9; linear 2.1/2.9, both its slopes 5.3/3.7.
WINDOW_TERMS = 8

# One axis: its first taps, then the weights of the value and those of each slope.
Row = tuple[TapAxis, jax.Array, list[Weights | None]]
# Reads the samples at a flat place, an index for each output or a number for all.
Take = Callable[[jax.Array | int | None], jax.Array]
# Each tap's place on one axis.
Places = Sequence[jax.Array | int] | jax.Array
# One axis again: places, then the same weights tap by tap; None is a weight of 1.
Column = tuple[Places, Sequence[Sequence[jax.Array | None] | jax.Array]]


def read(
    x: jax.Array,
    *z: jax.Array,
    axes: tuple[TapAxis, ...],
    channels_first: bool,
    along: tuple[int, ...] = (),
) -> list[jax.Array]:
    """Returns the samples read, `[B, P, C]`, or `[B, C, P]` with `channels_first`; or slopes.

    Args:
        x: `[B, *sizes, C]`, or `[B, C, *sizes]` with `channels_first`.
        z: Operands of all axes in turn, each `[B or 1, P or 1]`; coordinates canonical.
        axes: One for each spatial axis.
        channels_first: Where the channels lie.
        along: Operands, ascending. If there are any, the derivatives with respect to each are
            returned in place of the value.
    """
    rows: list[Row] = []
    for axis, own, operands in zip(axes, split(axes, z), split(axes, range(len(z))), strict=True):
        slopes = [axis.derivative(i) for i, j in enumerate(operands) if j in along]
        found = [taps(a, own, x.dtype) for a in (axis, *slopes) if a is not None]
        rows.append((axis, found[0][0], [w for _, w in found]))
    windows = _suit_windows(axes, max(1, len(along)), max(v.shape[1] for v in z))
    channel = 1 if channels_first else 2
    take, columns = (_windows if windows else _samples)(x, rows, channel)
    value, *slopes = _nest(take, columns, None, channel)
    return slopes if along else [value]


def contract(
    x: jax.Array,
    y: jax.Array,
    *z: jax.Array,
    axes: tuple[TapAxis, ...],
    channels_first: bool,
    along: tuple[int, ...],
    write: Callable[..., jax.Array],
) -> jax.Array:
    """Returns the slopes of `read` times `y`, summed over channels: `[len(along), B, P]`.

    Args:
        x: As in `read`.
        y: As the value of `read`.
        z: As in `read`.
        axes: As in `read`.
        channels_first: As in `read`.
        along: As in `read`.
        write: `write(function, *args)` returns `function(*args)`, written out before it is read.
    """

    def products(pair: tuple[int, ...], x: jax.Array, y: jax.Array, *z: jax.Array) -> jax.Array:
        slopes = read(x, *z, axes=axes, channels_first=channels_first, along=pair)
        terms = [slope * y for slope in slopes]
        return lax.complex(*terms) if len(pair) == 2 else terms[0]

    sums: list[jax.Array] = []
    for i in range(0, len(along), 2):
        terms = write(functools.partial(products, along[i : i + 2]), x, y, *z)
        total = terms.sum(axis=1 if channels_first else 2)
        sums += [total.real, total.imag] if jnp.iscomplexobj(total) else [total]
    return jnp.stack(sums)


def _suit_windows(axes: Sequence[TapAxis], sums: int, points: int) -> bool:
    count = math.prod(axis.taps for axis in axes)
    if count > UNROLLED_TAPS or count * sums < WINDOW_TERMS:
        return False
    # a symbolic size of jax.export is taken for a large one
    return not isinstance(points, int) or 2 * points >= math.prod(extents(axes))


def _windows(x: jax.Array, rows: Sequence[Row], channel: int) -> tuple[Take, list[Column]]:
    """Returns how to read windows of the extended array; places are numbers, the same for all."""
    axes = [axis for axis, _, _ in rows]
    for i, axis in enumerate(axes):
        x = extend(x, (2 if channel == 1 else 1) + i, axis)
    sizes = extents(axes)
    flat, size = _flat(x, sizes, channel), math.prod(sizes)
    dtype, steps = index_dtype(size), strides(sizes)
    ends = sum((axis.taps - 1) * step for axis, step in zip(axes, steps, strict=True))
    base, columns = jnp.zeros((), dtype), []
    for (axis, start, weights), step in zip(rows, steps, strict=True):
        base = base + window(axis, start).astype(dtype) * step
        places = range(0, axis.taps * step, step)
        columns.append((places, [[None] if w is None else w for w in weights]))

    def take(place: jax.Array | int | None) -> jax.Array:
        assert isinstance(place, int)
        shifted = lax.slice_in_dim(flat, place, size - ends + place, axis=3 - channel)
        return _take(shifted, channel, base)

    return take, columns


def _samples(x: jax.Array, rows: Sequence[Row], channel: int) -> tuple[Take, list[Column]]:
    """Returns how to read the samples that stand for the taps; places are indices."""
    sizes = [axis.size for axis, _, _ in rows]
    flat, dtype = _flat(x, sizes, channel), index_dtype(math.prod(sizes))
    columns: list[Column] = []
    for (axis, start, weights), step in zip(rows, strides(sizes), strict=True):
        if isinstance(weights[0], jax.Array):
            taps = jnp.arange(axis.taps, dtype=start.dtype).reshape(-1, 1, 1)
            index, there = sample_index(start[None] + taps, axis.size, axis.boundary)
            stacked = [_masked(w, there) for w in weights if isinstance(w, jax.Array)]
            columns.append((index.astype(dtype) * step, stacked))
            continue
        pairs = [sample_index(start + k, axis.size, axis.boundary) for k in range(axis.taps)]
        every = [
            [_masked(w, there) for w, (_, there) in zip(one or [None], pairs, strict=True)]
            for one in weights
        ]
        columns.append(([index.astype(dtype) * step for index, _ in pairs], every))
    return functools.partial(_take, flat, channel), columns


def _masked(weight: jax.Array | None, there: jax.Array | None) -> Any:
    """Returns a weight, 0 where there is no sample; None is a weight of 1, True is 1 as well."""
    if weight is None or there is None:
        return there if weight is None else weight
    return jnp.where(there, weight, jnp.zeros_like(weight))


def _flat(x: jax.Array, sizes: Sequence[int], channel: int) -> jax.Array:
    size = math.prod(sizes)
    shape = (x.shape[0], x.shape[1], size) if channel == 1 else (x.shape[0], size, x.shape[-1])
    return x.reshape(shape)


def _take(flat: jax.Array, channel: int, index: jax.Array | int | None) -> jax.Array:
    """Returns samples `[B, C, P]` or `[B, P, C]` at flat indices `[B or 1, P]`, all valid."""
    assert isinstance(index, jax.Array)

    def one(image: jax.Array, i: jax.Array) -> jax.Array:
        place = image.at[:, i] if channel == 1 else image.at[i]
        return place.get(mode="promise_in_bounds")

    if index.shape[0] == 1:
        return jax.vmap(one, (0, None))(flat, index[0])
    return jax.vmap(one)(flat, index)


def _nest(
    take: Take, columns: Sequence[Column], offset: jax.Array | int | None, channel: int
) -> list[jax.Array]:
    """Returns the sum over the taps of all columns, the last innermost: value, then slopes."""
    if not columns:
        return [take(offset)]
    (places, weights), *rest = columns

    def term(place: jax.Array | int, *own: jax.Array | None) -> list[jax.Array]:
        place = place if offset is None else offset + place
        value, *slopes = _nest(take, rest, place, channel)
        here = [_weighted(value, weight, channel) for weight in own]
        return here + [_weighted(slope, own[0], channel) for slope in slopes]

    count = math.prod(len(p) for p, _ in columns)
    if count <= UNROLLED_TAPS or len(places) == 1:
        return functools.reduce(_added, map(term, places, *weights))
    if not isinstance(places, jax.Array):
        places = jnp.stack(jnp.broadcast_arrays(*places))
        weights = [jnp.stack(jnp.broadcast_arrays(*map(jnp.asarray, w))) for w in weights]

    def step(total: list[jax.Array], tap: list[jax.Array]) -> tuple[list[jax.Array], None]:
        return _added(total, term(*tap)), None

    # the first term gives the sum its shape, and its manual axes under shard_map
    taps = [places, *weights]
    return lax.scan(step, term(*(v[0] for v in taps)), [v[1:] for v in taps])[0]


def _added(left: list[jax.Array], right: list[jax.Array]) -> list[jax.Array]:
    return [a + b for a, b in zip(left, right, strict=True)]


def _weighted(value: jax.Array, weight: jax.Array | None, channel: int) -> jax.Array:
    """Returns weight * value, 0 where the weight is 0, whatever the value."""
    if weight is None:
        return value
    weight = jnp.expand_dims(weight, channel)
    if weight.dtype == bool:
        return jnp.where(weight, value, jnp.zeros_like(value))
    return jnp.where(weight == 0, jnp.zeros_like(value), weight * value)
