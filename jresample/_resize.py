"""resize and resize_matrix: an image onto a regular grid of another size."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from . import _check, _plan
from ._apply import accumulator
from ._linear import resample
from ._spec import AxisSpecs, resize_specs
from ._traced import resample_traced, stand_in
from .kernels import Kernel

Boundary = str | None
Method = str | jax.image.ResizeMethod | Kernel


def resize(
    image: ArrayLike,
    shape: Sequence[int] | int,
    method: Method | Sequence[Method],
    antialias: bool | Sequence[bool] = True,
    precision: jax.lax.PrecisionLike = None,
    *,
    axes: int | Sequence[int] | None = None,
    align_corners: bool | Sequence[bool] = False,
    boundary: Boundary | Sequence[Boundary] = None,
) -> jax.Array:
    """Returns an image resized to a shape: `jax.image.resize`, with every mode and a fast adjoint.

    Output `o` of an axis lies at `c = (o + 1/2) n/m - 1/2` input samples (n in, m out), or at
    `c = o (n - 1)/(m - 1)` with `align_corners`. Its value is the sum of the samples around `c`,
    weighted by the method's kernel and divided by the sum of the weights; the axes are separable.
    Positions are exact rationals and weights are float64 until they are applied. The result is
    linear in the image; its gradient is a gather through the transposed table.

    Args:
        image: `[...]`, any number of axes; real, complex, integer or bool.
        shape: The whole output shape; with `axes`, the sizes of those axes. Static: under `jit`,
            fix it with `functools.partial` or `static_argnames`.
        method: `"nearest"` (same as `"nearest-exact"`), `"nearest-floor"` (sample
            `floor(o n/m)`), `"linear"`, `"cubic"` (Keys, a = -1/2), `"cubic-pytorch"`
            (a = -3/4, edge repeated; with antialias a = -1/2), `"mitchell"`, `"lanczos2"` to
            `"lanczos5"`, `"area"` (exact overlap of cells), `"box"` and `"hamming"` (Pillow's),
            `"gaussian"`, `"bspline2"` to `"bspline5"` (without prefilter: they smooth), the
            aliases and the enum of `jax.image.ResizeMethod`, or a `kernels.Kernel`. Formulas and
            sources are in `kernels`.
        antialias: Whether to widen the kernel by the step between outputs where that is above
            1 input sample. The nearest methods and `"area"` ignore it.
        precision: Accepted for `jax.image.resize`'s sake: sums are always kept in float32 or
            better.
        axes: The axes to resize, negative ones counted from the end; all by default.
        align_corners: Whether the first and last samples of input and output coincide.
        boundary: What lies outside the image: `"edge"`, `"reflect"`, `"symmetric"`, `"wrap"` as
            in `numpy.pad`, `"constant"` (zeros), or None: taps outside are dropped and the rest
            divided by their sum, except for `"cubic-pytorch"` without antialias (`"edge"`).

    `method`, `antialias`, `align_corners` and `boundary` also take a list or tuple with one
    entry for each axis of the image, or for each of `axes`.

    An axis whose size does not change is left alone, unless it is named in `axes` and the kernel
    does not interpolate (gaussian, Mitchell, B-spline).

    Returns:
        The resized image. Floating-point and complex dtypes come back as they came (half
        precisions are summed in float32 and rounded once); integers and bools keep their dtype
        under the nearest methods and give float32 otherwise.

    Raises:
        TypeError: An argument is of the wrong kind, or a size is traced.
        ValueError: A size, name, axis or number of entries is not possible.

    Example:
        >>> import jax, jax.numpy as jnp, jresample
        >>> jresample.resize(jnp.array([2.0, 4.0, 12.0, 6.0]), (8,), "linear")
        Array([ 2. ,  2.5,  3.5,  6. , 10. , 10.5,  7.5,  6. ], dtype=float32)
        >>> photo = jnp.ones((4, 64, 64, 3))
        >>> jresample.resize(photo, (32, 48), "lanczos3", axes=(1, 2)).shape
        (4, 32, 48, 3)
        >>> jax.grad(lambda x: jresample.resize(x, (4,), "linear")[1])(jnp.zeros(2))
        Array([0.75, 0.25], dtype=float32)
    """
    image = as_image("image", image)
    _check_precision(precision)
    with resize_layout(image.shape, shape, axes):
        specs, copies = resize_specs(
            image.shape, shape, method, antialias, axes, align_corners, boundary
        )
    return apply_specs(image, specs, copies)


def resize_layout(
    shape_in: Sequence[int], shape: object, axes: object, name: str = "axes"
) -> AbstractContextManager[None]:
    """Returns the block for checks of a call that resizes `axes`, as far as it tells them."""
    ndim = len(shape_in)
    space = list(range(ndim))
    if axes is not None:
        given = _check.items(axes) if _check.is_sequence(axes) else [axes]
        space = [int(axis) % ndim for axis in given if isinstance(axis, int | np.integer) and ndim]
    elif _check.is_sequence(shape) and len(wanted := _check.items(shape)) == ndim:
        # an axis that keeps its size is not meant
        kept = [
            isinstance(n, int | np.integer) and n == m
            for n, m in zip(wanted, shape_in, strict=True)
        ]
        space = [axis for axis in space if not kept[axis]]
    return _check.layout(
        "image",
        shape_in,
        space,
        range(1 if ndim > 3 else 0, ndim),
        f"name only height and width in `{name}` (`interpolate` takes a `channel_axis`)",
    )


def resize_matrix(
    size_in: int,
    size_out: int,
    method: Method,
    antialias: bool = True,
    *,
    align_corners: bool = False,
    boundary: Boundary = None,
) -> np.ndarray:
    """Returns the exact linear map that `resize` applies along an axis, as a dense matrix.

    `resize(x, (size_out,), ...)` is `resize_matrix(len(x), size_out, ...) @ x` up to rounding,
    and its gradient is the transposed matrix. The kernel's parameters must be plain numbers. A
    kernel that does not interpolate is applied also where the size does not change, as `resize`
    does for an axis named in `axes`.

    Args:
        size_in: Samples of the axis.
        size_out: Samples asked for.
        method: As for `resize`.
        antialias: As for `resize`.
        align_corners: As for `resize`.
        boundary: As for `resize`.

    Returns:
        float64 numpy array `[size_out, size_in]`.

    Raises:
        TypeError: An argument is of the wrong kind, or traced.
        ValueError: A size or name is not possible.

    Example:
        >>> import jresample
        >>> jresample.resize_matrix(4, 2, "linear").round(4)
        array([[0.4286, 0.4286, 0.1429, 0.    ],
               [0.    , 0.1429, 0.4286, 0.4286]])
    """
    size_in = _check.size("size_in", size_in, "it")
    size_out = _check.size("size_out", size_out, "it")
    if size_in == 0 and size_out > 0:
        raise ValueError(
            f"`size_in` is 0 with size_out={size_out}; expected at least 1 sample to read"
        )
    if isinstance(method, Kernel) and not method.is_static:
        raise TypeError(
            f"`method`: kernel {method.name!r} has parameters that are jax arrays; "
            "resize_matrix runs on the host: pass plain numbers"
        )
    specs, _ = resize_specs(
        (size_in,), (size_out,), method, antialias, (0,), align_corners, boundary
    )
    return _plan.build(specs[0][1]).dense() if specs else np.eye(size_in)


def as_image(name: str, image: ArrayLike) -> jax.Array:
    """Returns an array argument as a jax array, or raises naming it."""
    masked = isinstance(image, np.ma.MaskedArray)
    if masked or not isinstance(image, jax.Array | np.ndarray | np.generic):
        raise TypeError(
            f"`{name}` is {_check.a_type(image)}; expected a jax or numpy array: "
            "wrap it in jnp.asarray(...)"
        )
    dtype = image.dtype
    if isinstance(image, np.ndarray) and not dtype.isnative:
        image = image.astype(dtype.newbyteorder("="))
    if dtype in (np.longdouble, np.clongdouble):
        raise TypeError(f"`{name}` has dtype {dtype}, which jax lacks: convert it to float64")
    if not (jnp.issubdtype(dtype, jnp.number) or jnp.issubdtype(dtype, jnp.bool_)):
        raise TypeError(
            f"`{name}` has dtype {dtype}; expected real or complex numbers, integers or bools"
        )
    return jnp.asarray(image)


def apply_specs(image: jax.Array, specs: AxisSpecs, copies: bool) -> jax.Array:
    """Returns the image with each (axis, spec) applied: what `resize` and `interpolate` share.

    `copies` says whether every method only copies samples; else integers become float32.
    """
    if not (copies or jnp.issubdtype(image.dtype, jnp.inexact)):
        image = image.astype(jnp.float32)
    passes, learned = [], []
    for axis, spec in specs:
        if isinstance(spec.rule, Kernel) and not spec.rule.is_static:
            learned.append((axis, stand_in(spec, spec.rule), spec.rule))
        else:
            passes.append((axis, _plan.build(spec)))
    dtype = image.dtype
    if learned:  # rounded once, after the last axis
        image = image.astype(accumulator(dtype))
    image = resample(image, tuple(passes))
    for axis, spec, kernel in learned:
        image = resample_traced(image, axis, spec, kernel)
    return image.astype(dtype)


def _check_precision(precision: object) -> None:
    """Refuses what `jax.lax.PrecisionLike` does not cover: it is not used, but may be mistyped."""
    for value in precision if isinstance(precision, tuple) else (precision,):
        known = isinstance(value, jax.lax.Precision | jax.lax.DotAlgorithm)
        if value is None or known or isinstance(value, jax.lax.DotAlgorithmPreset):
            continue
        try:
            jax.lax.Precision(value)
        except ValueError:
            raise ValueError(
                f"`precision` is {_check.describe(value)}; expected None or a jax.lax.Precision"
            ) from None
