"""Boundary rules: which sample stands in for an index outside an axis.

The words are `numpy.pad`'s. In scipy's, "symmetric" is `reflect` and "reflect" is `mirror`.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

# Indices of the host planner (numpy) or of traced code (jax.numpy): rules serve both.
Index: TypeAlias = Any


def _edge(i: Index, n: int) -> Index:
    return i.__array_namespace__().clip(i, 0, n - 1)


def _reflect(i: Index, n: int) -> Index:
    # ... 2 1 | 0 1 2 ... n-1 | n-2 ...: period 2(n - 1), the ends once each
    if n == 1:
        return i * 0
    xp = i.__array_namespace__()
    folded = i % (2 * (n - 1))
    return xp.minimum(folded, 2 * (n - 1) - folded)


def _symmetric(i: Index, n: int) -> Index:
    # ... 1 0 | 0 1 ... n-1 | n-1 n-2 ...: period 2n, the ends twice each
    xp = i.__array_namespace__()
    folded = i % (2 * n)
    return xp.minimum(folded, 2 * n - 1 - folded)


def _wrap(i: Index, n: int) -> Index:
    return i % n


# `constant` and None (drop the tap) read no sample outside; clamping keeps their index valid.
INDEX_MAPS: dict[str | None, Callable[[Index, int], Index]] = {
    None: _edge,
    "constant": _edge,
    "edge": _edge,
    "reflect": _reflect,
    "symmetric": _symmetric,
    "wrap": _wrap,
}

# The rules under which a tap outside the axis has no sample.
OUTSIDE_IS_EMPTY = (None, "constant")


def sample_index(i: Index, size: int, boundary: str | None) -> tuple[Index, Index | None]:
    """Returns for integer indices the samples that stand for them, and which exist.

    Args:
        i: Signed integer indices of any shape, a numpy or jax array.
        size: Samples on the axis, at least 1.
        boundary: A key of `INDEX_MAPS`.

    Returns:
        `(index, exists)`: indices within `[0, size)`, and a mask that is False where the rule
        gives no sample, or None where it always gives one.
    """
    index = INDEX_MAPS[boundary](i, size)
    if boundary in OUTSIDE_IS_EMPTY:
        return index, (i >= 0) & (i < size)
    return index, None
