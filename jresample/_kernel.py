"""The Kernel type: a weight as a function of the distance to a tap, with its parameters."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # for the annotations only: this module runs on the host, without jax
    import jax

    Array = np.ndarray | jax.Array


@dataclasses.dataclass(frozen=True, eq=False)
class Kernel:
    """An interpolation kernel, usable as `method` wherever a method's name is.

    The weight of the tap at input sample `i` for an output that lies at `c` is
    `fn((i - c) / width, *params)`, where `width` is 1, or the step between outputs where
    `antialias` widens the kernel. Weights are divided by their sum afterwards, so a kernel
    need not sum to 1.

    Attributes:
        name: What `repr` and error messages call it.
        radius: Half the support, in input samples. Nothing beyond it is read.
        fn: `fn(x, *params)`: weights for the signed distances `x`, same shape and dtype. Take
            functions from `x.__array_namespace__()`, so that numpy and jax.numpy both work.
        params: Numbers or arrays for `fn`. Those that are jax arrays (traced or not) have
            gradients: the weights are then computed in traced code.
        interpolates: Whether the kernel is 1 at 0 and 0 at every other integer, so that an
            axis whose size does not change comes back as it was.

    Two kernels are equal, and share plans and compiled code, where all five are equal. Give `fn`
    a name at module level: a `lambda` made at each call is a new kernel each time.

    Example:
        >>> import jresample
        >>> from jresample import kernels
        >>> def cosine(x):
        ...     return 0.5 + 0.5 * x.__array_namespace__().cos(3.141592653589793 * x)
        >>> raised_cosine = kernels.Kernel("raised_cosine", 1.0, cosine, interpolates=True)
        >>> jresample.resize_matrix(2, 4, raised_cosine).round(3)
        array([[1.   , 0.   ],
               [0.854, 0.146],
               [0.146, 0.854],
               [0.   , 1.   ]])
    """

    name: str
    radius: float
    fn: Callable[..., Array]
    params: tuple[object, ...] = ()
    interpolates: bool = False

    def __post_init__(self) -> None:
        """Refuses a radius that is not a positive number, and a `fn` that cannot be called."""
        radius = self.radius
        if isinstance(radius, bool) or not isinstance(radius, int | float | np.number):
            raise TypeError(
                f"`radius` of kernel {self.name!r} is a {type(radius).__name__}; "
                "expected a static number of input samples, known before tracing"
            )
        if not 0 < radius < math.inf:
            raise ValueError(
                f"`radius` of kernel {self.name!r} is {radius}; "
                "expected a positive, finite number of input samples"
            )
        if not callable(self.fn):
            raise TypeError(
                f"`fn` of kernel {self.name!r} is a {type(self.fn).__name__}; "
                "expected a function of the distances, fn(x, *params)"
            )
        try:
            hash(self.fn)
        except TypeError:
            raise TypeError(
                f"`fn` of kernel {self.name!r} cannot be hashed; expected a function, or an object "
                "with __hash__: plans are cached by it"
            ) from None
        for name, kind in (("name", str), ("interpolates", bool)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(
                    f"`{name}` of a kernel is {getattr(self, name)!r}; expected a {kind.__name__}"
                )
        object.__setattr__(self, "radius", float(radius))
        object.__setattr__(self, "params", _checked_params(self.name, self.params))

    def __call__(self, x: Array) -> Array:
        """Returns the weights at signed distances `x` (input samples): 0 beyond the radius.

        Args:
            x: Distances, any shape, a floating-point numpy or jax array.

        Returns:
            Weights of the same shape and dtype.

        Example:
            >>> import numpy as np
            >>> from jresample import kernels
            >>> kernels.cubic(-0.5)(np.array([0.0, 0.5, 1.5, 2.5]))
            array([ 1.    ,  0.5625, -0.0625,  0.    ])
        """
        x = x if hasattr(x, "__array_namespace__") else np.asarray(x, np.float64)
        xp = x.__array_namespace__()
        weight = self.fn(x, *self.params)
        if isinstance(x, np.ndarray) and not isinstance(weight, np.ndarray | float | int):
            raise TypeError(
                f"`fn` of kernel {self.name!r} returned a {type(weight).__name__} for a numpy "
                "array; expected numpy: take functions from x.__array_namespace__(), not from jnp"
            )
        if getattr(getattr(weight, "dtype", None), "kind", "f") == "c":
            raise TypeError(f"`fn` of kernel {self.name!r} is complex; expected real weights")
        if getattr(weight, "shape", None) != x.shape:
            raise ValueError(
                f"`fn` of kernel {self.name!r} returned "
                f"{getattr(weight, 'shape', type(weight).__name__)} for distances of shape "
                f"{x.shape}; expected an array of weights of the same shape"
            )
        return xp.where(xp.abs(x) <= self.radius, weight, xp.zeros_like(x))

    @property
    def is_static(self) -> bool:
        """Whether every parameter is a plain number or numpy array, known before tracing."""
        return all(isinstance(p, int | float | np.number | np.ndarray) for p in self.params)

    @property
    def _key(self) -> tuple[object, ...]:
        return (
            self.name,
            self.radius,
            self.fn,
            self.interpolates,
            *(_param_key(p) for p in self.params),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _checked_params(name: str, params: object) -> tuple[object, ...]:
    """Returns a kernel's parameters as a tuple of numbers and arrays, or raises naming them."""
    if not isinstance(params, tuple | list):
        raise TypeError(
            f"`params` of kernel {name!r} is a {type(params).__name__}; expected a tuple: "
            "one parameter is written (value,)"
        )
    for param in params:
        if not (isinstance(param, int | float) or hasattr(param, "dtype")):
            raise TypeError(
                f"`params` of kernel {name!r} holds {param!r}; expected numbers or arrays"
            )
    return tuple(params)


def _param_key(param: object) -> object:
    """Returns what two equal parameters share; a traced one equals itself only."""
    if isinstance(param, np.ndarray):
        return (param.shape, param.dtype.str, param.tobytes())
    if isinstance(param, int | float | np.number):
        return (type(param), param)
    return id(param)


def number(name: str, value: object) -> Array | float:
    """Returns a kernel's parameter: a number, or an array to differentiate with respect to."""
    # "V" is the kind of bfloat16 and its like
    kind = getattr(getattr(value, "dtype", None), "kind", "none")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number and kind not in ("f", "i", "u", "V"):
        raise TypeError(
            f"`{name}` is {value!r}, a {type(value).__name__}; expected a real number or a scalar "
            "array of one"
        )
    if getattr(value, "shape", ()) != ():
        raise ValueError(f"`{name}` has shape {value.shape}; expected a scalar")  # pyright: ignore
    return value  # pyright: ignore[reportReturnType]


def whole(name: str, value: object, least: int) -> int:
    """Returns an integer argument as int, or raises naming it."""
    expected = f"expected an integer of at least {least}, known before tracing"
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"`{name}` is {value!r}, a {type(value).__name__}; {expected}")
    if value < least:
        raise ValueError(f"`{name}` is {value}; {expected}")
    return int(value)
