"""AxisSpec -> AxisPlan: the taps and weights of one axis, on the host, in numpy float64.

A plan is a sparse matrix A `[size_out, size_in]` held as a tap table: row `o` reads the samples
`index[o, :]` with the weights `weight[o, :]`. Its transpose is a plan again, so a gradient is
the same gather with another table.

**Periods.** On a regular grid the pattern repeats: `c(o + P) = c(o) + A`. A long axis is planned
on a shorter one, with `extra` periods left out of its middle, and the table keeps the rows of
that short axis only; the rows of one period stand for all that were left out. The repetition is
verified on the short table when it is built, not assumed: where it does not hold, the whole axis
is tabulated.
"""

import dataclasses
import functools
from collections.abc import Callable, Hashable

import numpy as np

from ._boundary import sample_index
from ._spec import AREA, BINS, FLOOR, NEAREST, AxisSpec
from .kernels import Kernel


@dataclasses.dataclass(frozen=True)
class Repeat:
    """Rows `[start, start + period)` of a table stand for `extra + 1` copies of themselves.

    Each copy reads `advance` samples further on; the rows after them, `extra * advance` further.
    """

    start: int
    period: int
    advance: int
    extra: int


@dataclasses.dataclass(frozen=True, eq=False)
class AxisPlan:
    """A linear map of an axis onto another, as taps and weights.

    Contracts: `plan.transpose().dense() == plan.dense().T`; rows sum to 1 except where the
    boundary is "constant"; a tap of weight 0 repeats an index of its row that has one, so that
    it reads nothing new (rows without any tap are marked by `reads`); equal keys, equal plans.

    Attributes:
        key: Hashable; what the plan was built from.
        size_in: Samples read, the columns of A.
        size_out: Samples written, the rows of A.
        index: int64 `[rows, taps]`.
        weight: float64 `[rows, taps]`.
        repeat: How the table's rows stand for the axis, or None where row `o` is output `o`.
        adjoint_of: The plan that this one is the transpose of, if it is one.
    """

    key: Hashable
    size_in: int
    size_out: int
    index: np.ndarray
    weight: np.ndarray
    repeat: Repeat | None = None
    adjoint_of: "AxisPlan | None" = None

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AxisPlan) and self.key == other.key

    @property
    def taps(self) -> int:
        """Taps a row."""
        return self.index.shape[1]

    @property
    def reads(self) -> np.ndarray:
        """Which table rows have any tap, bool `[rows]`; the others are 0 whatever the input."""
        return (self.weight != 0).any(axis=1)

    @property
    def copies(self) -> bool:
        """Whether each output is one sample or 0, so that no arithmetic is needed."""
        return self.taps == 1 and bool(((self.weight == 1) | (self.weight == 0)).all())

    def rows(self, first: int = 0, stop: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Returns for outputs `first..stop` their table rows and the shifts of their taps."""
        o = np.arange(first, self.size_out if stop is None else stop)
        if self.repeat is None:
            return o, np.zeros_like(o)
        start, period, advance, extra = dataclasses.astuple(self.repeat)
        copies = np.clip((o - start) // period, 0, extra)
        return o - copies * period, copies * advance

    @property
    def is_contiguous(self) -> bool:
        """Whether every row reads a run of neighbouring samples, in order."""
        run = self.index[:, :1] + np.arange(self.taps)
        return bool(np.all((self.index == run) | (self.weight == 0)))

    def phases(self) -> tuple[Repeat, int]:
        """Returns the longest repetition around `repeat`, and how often it is repeated in all.

        The table keeps more whole periods than one; those that equal it are counted too.
        """
        repeat = self.repeat
        assert repeat is not None
        first, last, period = repeat.start, repeat.start, repeat.period
        while first >= period and _repeats(self.index, self.weight, repeat, first - period):
            first -= period
        while _repeats(self.index, self.weight, repeat, last):
            last += period
        found = dataclasses.replace(repeat, start=first)
        return found, repeat.extra + 1 + (last - first) // period

    def expand(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns `(index, weight)` of every output, `[size_out, taps]`."""
        row, shift = self.rows()
        return self.index[row] + shift[:, None], self.weight[row]

    def dense(self) -> np.ndarray:
        """Returns A, float64 `[size_out, size_in]`."""
        matrix = np.zeros((self.size_out, self.size_in))
        index, weight = self.expand()
        np.add.at(matrix, (np.arange(self.size_out)[:, None], index), weight)
        return matrix

    def transpose(self) -> "AxisPlan":
        """Returns the plan of A^T, the adjoint; transposing twice gives the first back."""
        return _transpose(self)


@functools.lru_cache(maxsize=1024)
def build(spec: AxisSpec) -> AxisPlan:
    """Returns the plan of an axis; the same object for equal specs."""
    if spec.size_out == 0:
        empty = np.zeros((0, 1))
        return AxisPlan(spec, spec.size_in, 0, empty.astype(np.int64), empty)
    repeat = _plan_repeat(spec)
    if repeat is not None:
        index, weight = _table(_shortened(spec, repeat))
        if _repeats(index, weight, repeat):
            return AxisPlan(spec, spec.size_in, spec.size_out, index, weight, repeat)
    return AxisPlan(spec, spec.size_in, spec.size_out, *_table(spec))


@functools.lru_cache(maxsize=1024)
def _transpose(plan: AxisPlan) -> AxisPlan:
    if plan.adjoint_of is not None:
        return plan.adjoint_of
    repeat, index, weight = plan.repeat, plan.index, plan.weight
    if repeat is not None:
        short_in = plan.size_in - repeat.extra * repeat.advance
        start = repeat.start // repeat.period * repeat.advance
        swapped = Repeat(start, repeat.advance, repeat.period, repeat.extra)
        table = _transpose_table(index, weight, short_in)
        if _repeats(*table, swapped):
            return _adjoint(plan, *table, swapped)
        index, weight = plan.expand()
    return _adjoint(plan, *_transpose_table(index, weight, plan.size_in), None)


def _adjoint(
    plan: AxisPlan, index: np.ndarray, weight: np.ndarray, repeat: Repeat | None
) -> AxisPlan:
    key = ("transpose", plan.key)
    return AxisPlan(key, plan.size_out, plan.size_in, index, weight, repeat, plan)


# ------------------------------------------------------------------ periods


def _plan_repeat(spec: AxisSpec) -> Repeat | None:
    """Returns how an axis may be shortened, or None where nothing can be left out.

    The short axis keeps two periods to compare and, on either side of them, all that a border
    can touch: rows within reach of it, and the samples within reach of those rows.
    """
    period, advance = spec.grid.period
    # a wrapped tap reads across the seam, so that no stretch can be cut out
    if advance == 0 or spec.boundary == "wrap":
        return None
    margin = (2 * spec.reach + 2) // advance + 1
    extra = min(spec.size_out // period, spec.size_in // advance) - (2 * margin + 3)
    return Repeat(margin * period, period, advance, extra) if extra >= 1 else None


def _shortened(spec: AxisSpec, repeat: Repeat) -> AxisSpec:
    return dataclasses.replace(
        spec,
        size_in=spec.size_in - repeat.extra * repeat.advance,
        size_out=spec.size_out - repeat.extra * repeat.period,
    )


def _repeats(
    index: np.ndarray, weight: np.ndarray, repeat: Repeat, start: int | None = None
) -> bool:
    """Whether the period's rows from `start` on and the next ones differ by the advance alone."""
    start = repeat.start if start is None else start
    one = slice(start, start + repeat.period)
    two = slice(one.stop, one.stop + repeat.period)
    return (
        two.stop <= len(index)
        and np.array_equal(weight[one], weight[two])
        and bool(np.all((index[one] + repeat.advance == index[two]) | (weight[one] == 0)))
    )


# ------------------------------------------------------------------ tables


def taps(spec: AxisSpec) -> tuple[np.ndarray, np.ndarray]:
    """Returns every output's candidate taps: unfolded indices and distances, `[rows, taps]`.

    The distance of tap i is `(i - c) / width`, one correctly rounded division of exact integers:
    `(r i - p o - q) / r`, or `/ p` where the width is the step p/r. Kernels are evaluated there,
    in numpy or in traced code.
    """
    grid, numerator = spec.grid, spec.grid.numerators(spec.size_out)
    # floor(c) - reach .. floor(c) + reach + 1: one or two more than the support can touch
    index = (numerator // grid.r)[:, None] + np.arange(-spec.reach, spec.reach + 2)
    exact = index * grid.r - numerator[:, None]
    return index, exact / float(grid.p if spec.widened else grid.r)


def _kernel_rows(spec: AxisSpec, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
    index, distance = taps(spec)
    with np.errstate(all="ignore"):  # what is not finite is refused by name, in check_sums
        return index, np.asarray(kernel(distance), np.float64)


def _nearest_rows(spec: AxisSpec) -> tuple[np.ndarray, np.ndarray]:
    # floor(c + 1/2): ties go up
    r = spec.grid.r
    index = (2 * spec.grid.numerators(spec.size_out) + r) // (2 * r)
    return index[:, None], np.ones((spec.size_out, 1))


def _floor_rows(spec: AxisSpec) -> tuple[np.ndarray, np.ndarray]:
    index = spec.grid.numerators(spec.size_out) // spec.grid.r
    return index[:, None], np.ones((spec.size_out, 1))


def _area_rows(spec: AxisSpec) -> tuple[np.ndarray, np.ndarray]:
    # The cell [c - step/2, c + step/2] against the samples' cells [i - 1/2, i + 1/2], all times
    # 2r. Where the step is 0 the cell is a point, and the sample under it is the answer.
    p, r = spec.grid.p, spec.grid.r
    if p == 0:
        return _nearest_rows(spec)
    centre = 2 * spec.grid.numerators(spec.size_out)[:, None]
    low, high = centre - p, centre + p
    first = (low + r) // (2 * r)
    index = first + np.arange(-(-p // r) + 1)
    overlap = np.minimum(high, 2 * r * index + r) - np.maximum(low, 2 * r * index - r)
    return index, np.maximum(overlap, 0) / float(2 * p)


def _bin_rows(spec: AxisSpec) -> tuple[np.ndarray, np.ndarray]:
    # The mean of samples floor(o n/m) .. ceil((o + 1) n/m) - 1: adaptive average pooling.
    low = spec.grid.numerators(spec.size_out)[:, None]
    first, stop = low // spec.grid.r, -((-low - spec.grid.p) // spec.grid.r)
    index = first + np.arange(int((stop - first).max()))
    return index, (index < stop) / (stop - first)


_RULES: dict[str, Callable[[AxisSpec], tuple[np.ndarray, np.ndarray]]] = {
    NEAREST: _nearest_rows,
    FLOOR: _floor_rows,
    AREA: _area_rows,
    BINS: _bin_rows,
}


def _table(spec: AxisSpec) -> tuple[np.ndarray, np.ndarray]:
    """Returns the canonical `(index, weight)` of a spec, every output tabulated."""
    if isinstance(spec.rule, Kernel):
        index, weight = _kernel_rows(spec, spec.rule)
    else:
        index, weight = _RULES[spec.rule](spec)
    folded, exists = sample_index(index, spec.size_in, spec.boundary)
    if spec.boundary is None and exists is not None:
        weight = np.where(exists, weight, 0.0)
    total = weight.sum(axis=1, keepdims=True)
    spec.check_sums(total)
    weight = weight / total
    if exists is not None:
        weight = np.where(exists, weight, 0.0)
    else:
        folded, weight = _merged(folded, weight, (folded != index).any(axis=1))
    return compact(folded, weight)


def _merged(
    index: np.ndarray, weight: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Adds up taps that fell on one sample, in the given rows, so that each is read once."""
    picked = index[rows]
    order = np.argsort(picked, axis=1, kind="stable")
    picked = np.take_along_axis(picked, order, axis=1)
    values = np.take_along_axis(weight[rows], order, axis=1)
    fresh = np.diff(picked, axis=1, prepend=-1) != 0
    slot = np.cumsum(fresh, axis=1) - 1
    sums = np.zeros_like(values)
    row = np.broadcast_to(np.arange(len(slot))[:, None], slot.shape)
    np.add.at(sums, (row, slot), values)
    places = np.zeros_like(picked)
    places[row, slot] = picked
    index, weight = index.copy(), weight.copy()
    index[rows], weight[rows] = places, sums
    return index, weight


def compact(index: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Moves each row's taps of non-zero weight to the front and cuts the rest.

    Rows with fewer taps than the longest repeat their last index with weight 0.
    """
    used = weight != 0
    if used.all():
        return index.astype(np.int64, copy=False), weight
    count = used.sum(axis=1)
    width = max(1, int(count.max(initial=0)))
    order = np.argsort(~used, axis=1, kind="stable")[:, :width]
    index = np.take_along_axis(index, order, axis=1)
    weight = np.take_along_axis(weight, order, axis=1)
    last = np.take_along_axis(index, np.maximum(count - 1, 0)[:, None], axis=1)
    real = np.arange(width) < count[:, None]
    index = np.where(real, index, np.where(count[:, None] > 0, last, 0))
    return index.astype(np.int64), np.where(real, weight, 0.0)


def _transpose_table(
    index: np.ndarray, weight: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the table whose row i lists the (row, weight) pairs that read sample i."""
    row, tap = np.nonzero(weight)
    column, value = index[row, tap], weight[row, tap]
    order = np.argsort(column, kind="stable")
    column, row, value = column[order], row[order], value[order]
    count = np.bincount(column, minlength=size)
    slot = np.arange(len(column)) - np.repeat(np.cumsum(count) - count, count)
    width = max(1, int(count.max(initial=0)))
    new_index = np.zeros((size, width), np.int64)
    new_weight = np.zeros((size, width))
    new_index[column, slot], new_weight[column, slot] = row, value
    return compact(new_index, new_weight)
