"""Arguments of the sampling functions -> what is known before tracing, or an error.

Host only. Methods become `TapAxis`es' static parts here and nowhere else; the leaf checks shared
with `resize` are in `_check.py`.
"""

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from . import _check, kernels
from ._spec import FLOOR, METHODS, NEAREST, method
from .kernels import Kernel

# Kernels whose weights are 0 at both ends of the support and sum to 1, whatever their parameters.
_TRACED_PARTITIONS = (kernels.cubic(0.0).fn, kernels.mitchell(0.0, 0.0).fn)

# The methods of `sample`: those of `resize` that need no output cell.
SAMPLE_METHODS = {
    name: value for name, value in METHODS.items() if value.rule not in (FLOOR, "area")
}


@functools.lru_cache(maxsize=256)
def _traits(kernel: Kernel) -> tuple[bool, bool]:
    """Returns whether the left end of the support has weight, and whether weights sum to 1."""
    radius = kernel.radius
    closed = float(np.abs(kernel.fn(np.array([-radius]), *kernel.params)[0])) != 0
    u = np.linspace(0.0, 1.0, 18)[:-1] + radius - 1
    count = math.floor(2 * radius) + 1
    total = sum(np.asarray(kernel(k - u)) for k in range(count))
    return closed, bool(np.abs(total - 1).max() < 1e-13)


def kernel_taps(kernel: Kernel) -> tuple[int, bool, bool]:
    """Returns `(taps, closed, normalise)` of a kernel at its own width: see `TapAxis`.

    Raises:
        ValueError: The weights of the kernel have no finite, non-zero sum somewhere.
    """
    if kernel.is_static:
        closed, whole = _traits(kernel)
    else:
        closed = whole = False
        if kernel.fn not in _TRACED_PARTITIONS:
            closed = True
        else:
            whole = True
    taps = math.floor(2 * kernel.radius) + 1 if closed else math.ceil(2 * kernel.radius)
    return taps, closed, not whole


def sample_methods(value: object, axes: int) -> list[tuple[Kernel | None, str | None]]:
    """Returns for each axis the kernel (None for nearest) and the method's own boundary."""
    result: list[tuple[Kernel | None, str | None]] = []
    for entry in _check.entries("method", value, axes, "per axis of `coordinates`"):
        rule, boundary = method(entry, SAMPLE_METHODS).resolve(False)
        if isinstance(rule, str) and rule != NEAREST:
            raise ValueError(f"`method` is {entry!r}; expected 'nearest', 'linear' or a kernel")
        result.append((rule if isinstance(rule, Kernel) else None, boundary))
    return result


def boundaries(name: str, value: object, axes: int) -> list[str | None]:
    """Returns the boundary rule of each axis."""
    entries = _check.entries(name, value, axes, "per axis of `coordinates`")
    return [_check.boundary(name, entry) for entry in entries]


def choice(name: str, value: object, options: Sequence[str], hint: str = "") -> str:
    """Returns one of several names."""
    if not isinstance(value, str):
        raise TypeError(f"`{name}` is {_check.describe(value)}; expected one of {_listed(options)}")
    if value not in options:
        raise ValueError(f"`{name}` is {value!r}; expected one of {_listed(options)}{hint}")
    return value


def _listed(options: Sequence[str]) -> str:
    return ", ".join(repr(option) for option in options)


def order(name: str, value: object, least: int) -> int:
    """Returns a spline order, `least` to 5."""
    if _check.is_traced(value) or isinstance(value, bool | np.bool_):
        raise TypeError(
            f"`{name}` is {_check.describe(value)}; expected an integer known before tracing: "
            "make it a static argument (`static_argnames` under jit)"
        )
    if not isinstance(value, int | np.integer):
        raise TypeError(f"`{name}` is {_check.describe(value)}; expected an integer")
    if not least <= value <= 5:
        raise ValueError(f"`{name}` is {value}; expected {least} to 5")
    return int(value)


def not_empty(name: str, sizes: Sequence[int], first: int, outputs: int) -> None:
    """Refuses to sample an empty axis, unless nothing is asked for."""
    for axis, size in enumerate(sizes, first):
        if size == 0 and outputs != 0:
            raise ValueError(
                f"`{name}`: axis {axis} is empty and cannot be sampled; "
                "expected at least 1 sample, or no output points"
            )


def real(name: str, dtype: np.dtype, issubdtype: Callable[..., bool]) -> None:
    """Refuses coordinates that are not real numbers."""
    if not (issubdtype(dtype, np.floating) or issubdtype(dtype, np.integer)):
        raise TypeError(
            f"`{name}` has dtype {dtype}; expected real numbers: cast it to float32 first"
        )
