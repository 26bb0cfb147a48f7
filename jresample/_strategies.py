"""Ways to apply one plan along one axis. All compute the same sum and differ in how XLA sees it.

    y[..., o, ...] = sum_k weight[o, k] x[..., index[o, k], ...]

Each takes `(x, axis, plan)` and returns an array of the dtype of `x`, which is real. `choose`
picks one by a rule that can be asked and forced; the rule's numbers carry what set them.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ._plan import AxisPlan

# Unrolled taps compile in time linear in their number, and each adds a read of x to one loop.
# 384 of them (4096 -> 64, lanczos3) take 2 s to compile and run 9 times slower than a scan.
UNROLLED_TAPS = 24
# On a GPU, where each step of a scan is a kernel or more that reads the running sum from memory
# and writes it back, while 37 taps unrolled are one kernel. Compiling them takes 0.4 s.
GPU_UNROLLED_TAPS = 64
GPUS = ("cuda", "rocm")
# Taps for each step of the scan: enough that the accumulator's traffic is small beside theirs.
SCAN_CHUNK = 8
# Rows that are this few, and this many times fewer than their taps, are dot products:
# the gradient of 2 -> 2,000,003 takes 10 s scanned, with 190,000 steps, and 0.05 s so.
DOT_ROWS = 8
DOT_TAPS_PER_ROW = 64
# Slices of a period that are still worth unrolling, and the trailing elements (the contiguous run
# of one sample) from which a gather vectorises as well as they do, where phases have to be
# interleaved. On 2 cores, both axes of (8, 512 -> 256, 512 -> 256, 3), ms gather/slices: linear
# 2.6/1.2, lanczos3 4.2/2.6; of (8, 256 -> 512, 256 -> 512, 3) 2.8/2.2 and 5.7/3.2; one axis of
# (16*3*112, 224 -> 112) linear 0.80/0.29; of (1, 2160 -> 1080, 5760) lanczos3 7.0/6.9.
POLYPHASE_SLICES = 32
POLYPHASE_TRAILING = 64
# The largest dense matrix. XLA's estimates for TPU v5e, ms gather/matrix: (1, 512, 8192 -> 6000)
# linear 0.56/0.35; (1, 8192 -> 4096, 512, 3) linear 12.3/0.87; (16, 20000 -> 10000) lanczos3
# 0.22/0.23. jax.image.resize always multiplies.
MATRIX_ENTRIES = 1 << 26
# Table entries that an executable holds as constants; beyond, a long regular axis computes them.
BAKED_ENTRIES = 1 << 16


def choose(plan: AxisPlan, trailing: int, platform: str = "default", widens: bool = False) -> str:
    """Returns the name of the strategy for a plan, a key of `STRATEGIES`.

    Args:
        plan: The plan.
        trailing: Elements of x behind the axis: the contiguous run of one sample.
        platform: What it is lowered for, as `_apply.apply` names it.
        widens: Whether x is read in half precision. Slices of that do not vectorise on a CPU
            unless samples are single: the gradient of (8, 256, 256, 3) -> 512, cubic, takes 12 ms
            where the first pass slices and 3.9 where it gathers.
    """
    if platform == "tpu" and fits_matrix(plan):
        return "matrix"
    repeat = plan.repeat
    if repeat is not None and not plan.copies:
        short, single = trailing < POLYPHASE_TRAILING, repeat.period == 1
        if platform == "cpu":
            suits = trailing == 1 or ((short or single) and not widens)
        else:
            suits = trailing == 1 or (short and single)
        if suits and repeat.period * plan.taps <= POLYPHASE_SLICES and repeat.extra >= 1:
            return "polyphase"
    if plan.taps <= (GPU_UNROLLED_TAPS if platform in GPUS else UNROLLED_TAPS):
        return "gather"
    few = plan.size_out <= DOT_ROWS and plan.taps >= DOT_TAPS_PER_ROW * plan.size_out
    return "dot" if few and plan.is_contiguous else "scan"


def gather(x: jax.Array, axis: int, plan: AxisPlan) -> jax.Array:
    """One gather a tap, unrolled: XLA fuses them into one loop."""
    return _gather_rows(x, axis, plan, 0, plan.size_out)


def scan(x: jax.Array, axis: int, plan: AxisPlan) -> jax.Array:
    """A scan over chunks of taps, for rows too wide to unroll."""
    chunks = _chunks(plan, x.dtype)

    def step(total: jax.Array, chunk: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        for k in range(SCAN_CHUNK):
            total = total + take(x, chunk[0][k], axis) * along(chunk[1][k], axis, x.ndim)
        return total, None

    start = jnp.zeros_like(take(x, chunks[0][0, 0], axis))
    return lax.scan(step, start, chunks)[0]


def dot(x: jax.Array, axis: int, plan: AxisPlan) -> jax.Array:
    """One dot product for each output, for few and wide rows that read contiguous samples."""
    index, weight = plan.expand()
    sums = []
    for first, row in zip(index[:, 0], weight, strict=True):
        row = row[: max(1, np.count_nonzero(row))].astype(x.dtype)
        taken = lax.slice_in_dim(x, int(first), int(first) + len(row), axis=axis)
        sums.append(jnp.tensordot(taken, row, ((axis,), (0,)), precision=lax.Precision.HIGHEST))
    return jnp.stack(sums, axis=axis)


def polyphase(x: jax.Array, axis: int, plan: AxisPlan) -> jax.Array:
    """Strided slices of x with scalar weights, one set for each phase of a repeating plan.

    Outputs `start + j P + phase` read `x[index[phase, k] + j A]` for all j at once. The rows
    before and after the repetition are gathered.
    """
    repeat, copies = plan.phases()
    phases = []
    for row in range(repeat.start, repeat.start + repeat.period):
        total = None
        for index, weight in zip(plan.index[row], plan.weight[row], strict=True):
            if weight == 0:
                continue
            stop = int(index) + repeat.advance * (copies - 1) + 1
            taken = lax.slice_in_dim(x, int(index), stop, repeat.advance, axis)
            term = taken * np.asarray(weight, x.dtype)
            total = term if total is None else total + term
        phases.append(jnp.zeros_like(_first(x, axis, copies)) if total is None else total)
    middle = jnp.stack(phases, axis=axis + 1) if repeat.period > 1 else phases[0]
    stop = repeat.start + copies * repeat.period
    shape = (*x.shape[:axis], copies * repeat.period, *x.shape[axis + 1 :])
    parts = [
        _gather_rows(x, axis, plan, 0, repeat.start),
        middle.reshape(shape),
        _gather_rows(x, axis, plan, stop, plan.size_out),
    ]
    return jnp.concatenate([part for part in parts if part.shape[axis] > 0], axis=axis)


def fits_matrix(plan: AxisPlan) -> bool:
    """Whether a plan may be applied as a dense matrix: it does arithmetic and is not too large."""
    return not plan.copies and plan.size_in * plan.size_out <= MATRIX_ENTRIES


def matrix(x: jax.Array, axis: int, plan: AxisPlan) -> jax.Array:
    """A product with the dense matrix, through which a NaN or Inf spoils the whole axis.

    The executable holds the taps only: XLA builds the matrix where it is read.
    """
    dense, contracted = _dense(plan, x.dtype)
    return _product(x[None], axis, dense[None], contracted)[0]


def careful(x: jax.Array, passes: Iterable[tuple[int, AxisPlan]]) -> jax.Array:
    """Products like `matrix`, in which a NaN or Inf reaches only the outputs that weigh it.

    Three products stand side by side. The first is of the finite samples. With b = 1 where a
    sample is not finite, and +-1 for +-Inf in c, the others count what an output meets:

        n = |sign A| b    samples that are not finite       n = 0: the first product
        s = sign A c      infinities, by the sign they get  |s| = n: s Inf; else NaN
    """
    bad = ~jnp.isfinite(x)
    signs = jnp.where(jnp.isinf(x), jnp.sign(x), jnp.zeros_like(x))
    planes = jnp.stack([jnp.where(bad, jnp.zeros_like(x), x), signs, bad.astype(x.dtype)])
    for axis, plan in passes:
        dense, contracted = _dense(plan, x.dtype)
        signs = jnp.sign(dense)
        planes = _product(planes, axis, jnp.stack([dense, signs, jnp.abs(signs)]), contracted)
    y, signs, count = planes
    return jnp.where(count == 0, y, jnp.where(jnp.abs(signs) == count, signs * np.inf, np.nan))


def _product(x: jax.Array, axis: int, dense: jax.Array, contracted: int) -> jax.Array:
    """Returns `[planes, ...]`, each plane of x times its matrix along an axis of the plane."""
    dims = (((axis + 1,), (contracted + 1,)), ((0,), (0,)))
    product = lax.dot_general(x, dense, dims, precision=lax.Precision.HIGHEST)
    return jnp.moveaxis(product, -1, axis + 1)


def _dense(plan: AxisPlan, dtype: np.dtype) -> tuple[jax.Array, int]:
    """Returns the matrix built from its taps, and which of its axes x is contracted with.

    Of a plan and its adjoint, the one with fewer taps is written out.
    """
    adjoint = plan.transpose()
    source, contracted = (adjoint, 0) if adjoint.taps < plan.taps else (plan, 1)
    sample = lax.broadcasted_iota(jnp.int32, (source.size_out, source.size_in), 1)

    def add(dense: jax.Array, taps: Iterable[tuple]) -> jax.Array:
        for index, weight in taps:
            # a padding tap repeats an index with weight 0: it adds nothing
            hit = sample == index[:, None]
            weight = jnp.broadcast_to(weight[:, None], hit.shape)
            dense = dense + jnp.where(hit, weight, jnp.zeros_like(weight))
        return dense

    dense = jnp.zeros(sample.shape, dtype)
    if source.taps <= UNROLLED_TAPS:
        return add(dense, _columns(source, dtype, 0, source.size_out)), contracted

    def step(dense: jax.Array, chunk: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        return add(dense, zip(*chunk, strict=True)), None

    return lax.scan(step, dense, _chunks(source, dtype))[0], contracted


STRATEGIES: dict[str, Callable[[jax.Array, int, AxisPlan], jax.Array]] = {
    "gather": gather,
    "scan": scan,
    "dot": dot,
    "polyphase": polyphase,
    "matrix": matrix,
}


def take(x: jax.Array, index: np.ndarray | jax.Array, axis: int) -> jax.Array:
    """Returns `x` at indices along an axis, which the caller knows to be within it."""
    index = jnp.asarray(index)[:, None]
    others = tuple(d for d in range(x.ndim) if d != axis)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=others, collapsed_slice_dims=(axis,), start_index_map=(axis,)
    )
    sizes = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return lax.gather(x, index, numbers, sizes, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def along(values: np.ndarray | jax.Array, axis: int, ndim: int) -> np.ndarray | jax.Array:
    """Returns a vector laid along an axis, to broadcast against an array of `ndim` dimensions."""
    return values.reshape((1,) * axis + (-1,) + (1,) * (ndim - axis - 1))


def _first(x: jax.Array, axis: int, count: int) -> jax.Array:
    return take(x, np.zeros(count, np.int32), axis)


def _gather_rows(x: jax.Array, axis: int, plan: AxisPlan, first: int, stop: int) -> jax.Array:
    """Returns outputs `first..stop` by gathering."""
    total = None
    for index, weight in _columns(plan, x.dtype, first, stop):
        term = take(x, index, axis)
        if not plan.copies:
            term = term * along(weight, axis, x.ndim)
        total = term if total is None else total + term
    assert total is not None
    return total


def _columns(
    plan: AxisPlan, dtype: np.dtype, first: int, stop: int
) -> Iterator[tuple[np.ndarray | jax.Array, np.ndarray | jax.Array]]:
    """Yields each tap's (indices, weights) for outputs `first..stop`."""
    index_dtype = np.int32 if plan.size_in < 2**31 else np.int64
    if (first, stop) != (0, plan.size_out) or not _computed(plan):
        row, shift = plan.rows(first, stop)
        for k in range(plan.taps):
            yield (
                (plan.index[row, k] + shift).astype(index_dtype),
                plan.weight[row, k].astype(dtype),
            )
        return
    for k in range(plan.taps):
        index = plan.index[:, k].astype(index_dtype)
        yield spread(plan, index, shifted=True), spread(plan, plan.weight[:, k].astype(dtype))


def _chunks(plan: AxisPlan, dtype: np.dtype) -> tuple[jax.Array, jax.Array]:
    """Returns indices and weights `[steps, SCAN_CHUNK, size_out]`, padded with taps of weight 0."""
    columns = list(_columns(plan, dtype, 0, plan.size_out))
    missing = -plan.taps % SCAN_CHUNK
    index = [index for index, _ in columns] + [columns[-1][0]] * missing
    weight = [weight for _, weight in columns] + [np.zeros(plan.size_out, dtype)] * missing
    shape = (len(index) // SCAN_CHUNK, SCAN_CHUNK, plan.size_out)
    return _stacked(index, shape), _stacked(weight, shape)


def _computed(plan: AxisPlan) -> bool:
    """Whether the executable computes a plan's tables where it repeats, and keeps one period."""
    return plan.repeat is not None and plan.size_out * plan.taps > BAKED_ENTRIES


def spread(plan: AxisPlan, values: np.ndarray, *, shifted: bool = False) -> np.ndarray | jax.Array:
    """Returns values given for each table row for each output, as a constant or computed.

    Args:
        plan: The plan.
        values: `[rows]`.
        shifted: Whether they are indices, which move by the advance from copy to copy.
    """
    if plan.repeat is None or not _computed(plan):
        row, shift = plan.rows()
        return values[row] + shift.astype(values.dtype) if shifted else values[row]
    start, period, advance, extra = dataclasses.astuple(plan.repeat)
    head, middle, tail = np.split(values, [start, start + period])
    repeated = jnp.broadcast_to(middle, (extra + 1, period))
    if shifted:
        repeated = repeated + advance * jnp.arange(extra + 1, dtype=values.dtype)[:, None]
        tail = tail + values.dtype.type(extra * advance)
    return jnp.concatenate([head, repeated.ravel(), tail])


def _stacked(columns: list, shape: tuple[int, ...]) -> jax.Array:
    stack = np.stack if all(isinstance(c, np.ndarray) for c in columns) else jnp.stack
    return jnp.asarray(stack(columns).reshape(shape))
