"""Leaf checks of arguments: each returns the value in its canonical form or raises.

Every message names the argument in backticks, says what came and what was expected, and gives
the way out. Checks run while tracing, before any array is touched, the same in eager and jit.
"""

import contextlib
import math
import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

import numpy as np

from ._boundary import INDEX_MAPS

TRACED_WAY_OUT = (
    "expected a number known before tracing: make it static (`static_argnums` under jit), or, for "
    "a traced scale, use `scale_and_translate`"
)


Checked = TypeVar("Checked")

# A picture has no more channels than the first, and often more rows and columns than the second.
FEW, MANY = 4, 64

# Beyond it, positions would no longer be exact in int64, and no table would fit in memory.
MAX_SIZE = 2**31


def is_traced(value: object) -> bool:
    """Whether a value is a jax tracer, told by its class's name: this module runs without jax."""
    return any(base.__name__ == "Tracer" for base in type(value).__mro__)


def is_symbolic(value: object) -> bool:
    """Whether a value is a symbolic dimension of `jax.export`."""
    return hasattr(value, "_to_var") or type(value).__name__ == "_DimExpr"


def describe(value: object) -> str:
    """Returns a value and its type for a message, shortened."""
    text = repr(value)
    text = text if len(text) <= 80 else text[:77] + "..."
    return f"{text} ({type(value).__name__})"


def a_type(value: object) -> str:
    """Returns the name of a value's type with its article: "a list", "an Image"."""
    name = type(value).__name__
    # one says "an n-d-array"
    return f"{'an' if name[0] in 'AEIOaeio' or name == 'ndarray' else 'a'} {name}"


def counted(count: int, one: str, more: str) -> str:
    """Returns a number of things: "1 entry", "2 entries"."""
    return f"{count} {one if count == 1 else more}"


@contextlib.contextmanager
def layout(
    name: str,
    shape: Sequence[object],
    space: Collection[int],
    channels: Collection[int],
    way_out: str,
) -> Iterator[None]:
    """Runs checks whose refusals also say what to do where the channels lie on another axis.

    They seem to where an axis of a few samples is read as space and one of many as channels.

    Args:
        name: The argument.
        shape: Its shape.
        space: The axes that are read as space.
        channels: Those that are not, or all of them where no axis is for channels.
        way_out: What to do.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        sizes = [n if isinstance(n, int) else 0 for n in shape]
        few = [axis for axis in space if 0 < sizes[axis] <= FEW]
        # an error of jax's own is of a derived type
        ours = type(error) in (TypeError, ValueError)
        if ours and few and any(sizes[axis] > MANY for axis in channels):
            error.args = (
                f"{error}\n`{name}`: axis {few[-1]} of shape {tuple(shape)} is read as space; "
                f"if it holds the channels, {way_out}",
            )
        raise


def size(name: str, value: object, what: str) -> int:
    """Returns an output size as int. `what` says which one, such as "entry 2"."""
    if is_traced(value):
        raise TypeError(f"`{name}`: {what} is traced; {TRACED_WAY_OUT}")
    if is_symbolic(value):
        raise ValueError(
            f"`{name}`: {what} is the symbolic size {value}; a resampled axis must have a static "
            "size: fix it when exporting (axes that are not resampled may be symbolic)"
        )
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        result = operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise TypeError(
            f"`{name}`: {what} is {describe(value)}; expected an integer: "
            "round it to a whole number of samples first"
        ) from None
    if result < 0:
        raise ValueError(f"`{name}`: {what} is {result}; expected a size of 0 or more")
    return length(name, result, what)


def scale(name: str, value: object, what: str) -> float:
    """Returns a scale (out/in) as a positive finite float."""
    if is_traced(value):
        raise TypeError(f"`{name}`: {what} is traced; {TRACED_WAY_OUT}")
    try:
        if isinstance(value, bool | np.bool_ | str | bytes | complex | np.complexfloating):
            raise TypeError
        result = float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        raise TypeError(
            f"`{name}`: {what} is {describe(value)}; expected a positive number (output samples "
            "per input sample)"
        ) from None
    except OverflowError:
        result = math.inf
    if not 0 < result < math.inf:
        raise ValueError(
            f"`{name}`: {what} is {result}; expected a positive, finite number (output samples "
            "per input sample)"
        )
    return result


def length(name: str, value: int, what: str) -> int:
    """Returns an axis length, or raises where no index could count it."""
    if value > MAX_SIZE:
        raise ValueError(
            f"`{name}`: {what} asks for {value} samples on an axis; expected at most {MAX_SIZE}"
        )
    return value


def flag(name: str, value: object) -> bool:
    """Returns a boolean option."""
    if is_traced(value):
        raise TypeError(
            f"`{name}` is traced; expected True or False, known before tracing: make it a static "
            "argument (`static_argnames` under jit)"
        )
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` is {describe(value)}; expected True or False")
    return bool(value)


def boundary(name: str, value: object) -> str | None:
    """Returns a boundary rule of `numpy.pad`'s vocabulary, or None."""
    if value is None or (isinstance(value, str) and value in INDEX_MAPS):
        return value
    rules = ", ".join(repr(rule) for rule in INDEX_MAPS if rule is not None)
    error = ValueError if isinstance(value, str) else TypeError
    raise error(f"`{name}` is {describe(value)}; expected None or one of {rules}")


def is_sequence(value: object) -> bool:
    """Whether a value is a list, a tuple or a one-dimensional array of several values."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return True
    return getattr(value, "ndim", 0) == 1 and not is_traced(value)


def items(value: object) -> list[object]:
    """Returns a sequence's entries; an array's as numpy scalars, also while tracing."""
    return list(np.asarray(value) if hasattr(value, "ndim") else value)  # pyright: ignore


def _unchecked(value: object) -> object:
    return value


def entries(
    name: str,
    value: object,
    count: int,
    each: str,
    check: Callable[[object], Checked] = _unchecked,
) -> list[Checked]:
    """Returns `count` checked entries: those of a sequence, or a single value repeated.

    A single value is checked also where it is repeated no times.
    """
    if not is_sequence(value):
        return [check(value)] * count
    result = [check(item) for item in items(value)]
    if len(result) != count:
        raise ValueError(
            f"`{name}` has {counted(len(result), 'entry', 'entries')}; expected one value, or "
            f"{count}: one {each}"
        )
    return result


def axes(name: str, value: object, ndim: int) -> tuple[int, ...]:
    """Returns distinct non-negative axes of an array of `ndim` dimensions."""
    given = items(value) if is_sequence(value) else [value]
    result: list[int] = []
    for item in given:
        if is_traced(item):
            raise TypeError(
                f"`{name}` is traced; expected static integers, known before tracing: make it a "
                "static argument (`static_argnames` under jit)"
            )
        if isinstance(item, bool | np.bool_) or not isinstance(item, int | np.integer):
            raise TypeError(f"`{name}` has {describe(item)}; expected integers")
        if not -ndim <= item < ndim:
            raise ValueError(
                f"`{name}` has {item}; expected axes of an array that has "
                f"{counted(ndim, 'dimension', 'dimensions')}: {-ndim} to {ndim - 1}"
            )
        if int(item) % ndim in result:
            raise ValueError(f"`{name}` names axis {int(item) % ndim} twice: {describe(value)}")
        result.append(int(item) % ndim)
    return tuple(result)
