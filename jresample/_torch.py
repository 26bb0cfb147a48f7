"""interpolate: `torch.nn.functional.interpolate`'s arguments onto the same resampling."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from fractions import Fraction

import jax
from jax.typing import ArrayLike

from . import _check, _grid
from ._resize import apply_specs, as_image
from ._spec import (
    AREA,
    BINS,
    FLOOR,
    METHODS,
    NEAREST,
    ONE_SAMPLE,
    AxisSpecs,
    Method,
    axis_spec,
    method,
    same_size,
)

_LANCZOS = METHODS["lanczos3"]
_BICUBIC = METHODS["cubic-pytorch"]

MODES: dict[str, Method] = {
    "nearest": METHODS["nearest-floor"],
    "nearest-exact": METHODS["nearest"],
    "linear": METHODS["linear"],
    "bilinear": METHODS["linear"],
    "trilinear": METHODS["linear"],
    "bicubic": _BICUBIC,
    "tricubic": _BICUBIC,
    "lanczos3": _LANCZOS,
    "lanczos": _LANCZOS,
    "area": Method(BINS),
}

# Modes that say how many spatial axes they are for; the others serve 1, 2 and 3.
_DIMENSIONS = {"linear": 1, "bilinear": 2, "trilinear": 3, "tricubic": 3}
_PLAIN = (NEAREST, FLOOR, AREA, BINS)


def interpolate(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
    *,
    channel_axis: int = 1,
) -> jax.Array:
    """Returns a batch resized: `torch.nn.functional.interpolate`, 1-D, 2-D and 3-D.

    The numbers are torch's for every torch mode and option. Beyond torch: `"lanczos3"` with and
    without antialias and `align_corners`, as Burn has it; antialias in 1-D and 3-D; `"bicubic"`
    and `"lanczos3"` in 1-D and 3-D, `"tricubic"`; channels last; empty outputs. For Burn's
    modules set `align_corners=True`, their default.

    Differences from torch: integer images give float32 in every mode but the nearest ones
    (torch rounds uint8 back); positions are exact, where torch's float32 picks another sample in
    nearest modes at some size pairs. As in torch, a kept scale whose size comes out unchanged
    leaves that axis alone in the linear modes, with antialias and in 2-D `"nearest"`, and
    resamples it in the others.

    Args:
        input: `[batch, channels, *spatial]` with 1 to 3 spatial axes; see `channel_axis`.
        size: Output size, one integer or one for each spatial axis. Static.
        scale_factor: Output samples per input sample, likewise, instead of `size`: the size is
            `floor(n s)`, and the coordinates are `(o + 1/2)/s - 1/2`, unless recomputed.
        mode: `"nearest"` (sample `floor(o n/m)`), `"nearest-exact"`, `"linear"` (1-D),
            `"bilinear"` (2-D), `"trilinear"` (3-D), `"bicubic"` (Keys, a = -3/4, edge repeated;
            with antialias a = -1/2), `"tricubic"` (the same, 3-D), `"lanczos3"` (torch's
            `"lanczos"`), `"area"` (adaptive average pooling).
        align_corners: Whether corner samples coincide; only for the modes that interpolate.
            None is False.
        recompute_scale_factor: Whether the coordinates follow the sizes, `n/m`, rather than
            `scale_factor`.
        antialias: Whether to widen the kernel when shrinking; not for nearest and area. With
            `align_corners` the step is `(n - 1)/(m - 1)` and output `o` lies at
            `(o + 1/2) step - 1/2`: torch's own arithmetic, which does not align the corners.
        channel_axis: Where the channels are: 1, torch's, or -1 for `[batch, *spatial, channels]`.

    Returns:
        The resized batch. Floating-point and complex dtypes come back as they came; integers and
        bools keep theirs in the nearest modes and give float32 otherwise.

    Raises:
        TypeError: An argument is of the wrong kind, or a size or scale is traced.
        ValueError: A value is not possible, or does not go with the mode.

    Example:
        >>> import jax.numpy as jnp, jresample
        >>> batch = jnp.array([[[1.0, 4.0, 6.0]]])
        >>> jresample.interpolate(batch, size=5, mode="linear", align_corners=True)
        Array([[[1. , 2.5, 4. , 5. , 6. ]]], dtype=float32)
        >>> images = jnp.ones((2, 32, 32, 3))
        >>> jresample.interpolate(images, scale_factor=2, mode="bicubic", channel_axis=-1).shape
        (2, 64, 64, 3)
    """
    image = as_image("input", input)
    with _layout(image.shape, channel_axis):
        specs, copies = _specs(
            image.shape,
            size,
            scale_factor,
            mode,
            align_corners,
            recompute_scale_factor,
            antialias,
            channel_axis,
        )
    return apply_specs(image, specs, copies)


def _specs(
    shape: tuple[int, ...],
    size: object,
    scale_factor: object,
    mode: str,
    align_corners: object,
    recompute: object,
    antialias: object,
    channel_axis: object,
) -> tuple[AxisSpecs, bool]:
    """Returns (axis, spec) for every axis that is resampled, and whether the mode only copies."""
    axes = _spatial_axes(shape, channel_axis)
    chosen = _mode(mode, len(axes))
    plain = chosen.rule in _PLAIN
    if plain and align_corners is not None:
        raise ValueError(
            f"`align_corners` is {align_corners!r} with mode={mode!r}; it applies to the modes "
            "that interpolate only (linear, cubic, lanczos3): leave it None"
        )
    corners = False if align_corners is None else _check.flag("align_corners", align_corners)
    widen = _check.flag("antialias", antialias)
    if plain and widen:
        raise ValueError(
            f"`antialias` is True with mode={mode!r}; it applies to the modes that interpolate "
            "only (linear, cubic, lanczos3): 'area' averages when shrinking"
        )
    sizes, scales = _targets(shape, axes, size, scale_factor, recompute, mode)
    specs = []
    for axis, size_out, scale in zip(axes, sizes, scales, strict=True):
        size_in = shape[axis]
        if _check.is_symbolic(size_out):
            continue
        if size_in == size_out and (scale is None or _copies(mode, len(axes), widen)):
            continue
        grid = _place(size_in, size_out, scale, chosen, corners, widen)
        specs.append((axis, axis_spec(axis, size_in, size_out, grid, chosen, widen, None, "input")))
    return tuple(specs), chosen.rule in ONE_SAMPLE


def _layout(shape: tuple[int, ...], channel_axis: object) -> AbstractContextManager[None]:
    """Returns the block for checks of a batch: channels first, or last where they say so."""
    last = len(shape) - 1
    ends = isinstance(channel_axis, int) and channel_axis in (-1, last)
    channel = last if ends else 1
    batch = ", and add a batch axis, `input[None]`" if last == 2 else ""
    return _check.layout(
        "input",
        shape,
        [axis for axis in range(1, last + 1) if axis != channel],
        [channel] if last > 0 else [],
        f"pass `channel_axis={-1 if channel == 1 else 1}`{batch}",
    )


def _spatial_axes(shape: tuple[int, ...], channel_axis: object) -> tuple[int, ...]:
    """Returns the spatial axes of a batch, or raises naming `input` or `channel_axis`."""
    ndim = len(shape)
    if not 3 <= ndim <= 5:
        raise ValueError(
            f"`input` has {_check.counted(ndim, 'axis', 'axes')}, shape {shape}; expected a batch "
            "and a channel axis and 1 to 3 spatial ones: add the missing axes, or use `resize` "
            "with `axes`"
        )
    if _check.is_sequence(channel_axis):
        raise TypeError(
            f"`channel_axis` is {_check.describe(channel_axis)}; expected one integer: 1 or -1"
        )
    (channel,) = _check.axes("channel_axis", channel_axis, ndim)
    if channel == 0:
        raise ValueError(
            f"`channel_axis` is {channel_axis!r}, the batch axis; expected 1 for [batch, channels, "
            "*spatial] or -1 for [batch, *spatial, channels]"
        )
    return tuple(axis for axis in range(1, ndim) if axis != channel)


def _mode(mode: object, dimensions: int) -> Method:
    """Returns what a mode stands for, or raises where it is for another number of axes."""
    if not isinstance(mode, str):
        raise TypeError(f"`mode` is {_check.describe(mode)}; expected one of {list(MODES)}")
    chosen = method(mode, MODES, "mode")
    expected = _DIMENSIONS.get(mode, dimensions)
    if expected != dimensions:
        same = next(name for name, n in _DIMENSIONS.items() if n == dimensions)
        same = "bicubic" if mode == "tricubic" else same
        raise ValueError(
            f"`mode` is {mode!r}, for {expected} spatial axes, but `input` has {dimensions}; "
            f"expected {same!r} (see `channel_axis` if the channels are not axis 1)"
        )
    return chosen


def _targets(
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    size: object,
    scale_factor: object,
    recompute: object,
    mode: str,
) -> tuple[list[int], list[float | None]]:
    """Returns each spatial axis's output size, and its scale where one is kept."""
    recompute = recompute is not None and _check.flag("recompute_scale_factor", recompute)
    each, count = "per spatial axis", len(axes)
    if (size is None) == (scale_factor is None):
        came = "neither" if size is None else "both"
        raise ValueError(f"`size` and `scale_factor`: {came} came; expected exactly one of them")
    if size is not None:
        if recompute:
            raise ValueError(
                "`recompute_scale_factor` is True with an explicit `size`; expected it with "
                "`scale_factor` only: leave it None"
            )
        given = _check.entries("size", size, count, each)
        return [_size(v, shape[a], a) for v, a in zip(given, axes, strict=True)], [None] * count
    scales = _check.entries("scale_factor", scale_factor, count, each, _scale)
    lengths = [_check.size("input", shape[a], f"axis {a}") for a in axes]
    sizes = [
        _check.length("scale_factor", _grid.floor_size(n, s), f"the factor {s}")
        for n, s in zip(lengths, scales, strict=True)
    ]
    if recompute or mode == "area":
        return sizes, [None] * count
    # torch's 2-D "nearest" reads o // 2 where the size doubles, whatever the scale
    halves = mode == "nearest" and count == 2
    return sizes, [
        None if halves and m == 2 * n else s for n, m, s in zip(lengths, sizes, scales, strict=True)
    ]


def _scale(value: object) -> float:
    return _check.scale("scale_factor", value, "it")


def _copies(mode: str, dimensions: int, antialias: bool) -> bool:
    """Whether torch copies an axis of unchanged size although a scale other than 1 is kept."""
    if mode == "nearest":
        return dimensions == 2
    return antialias or mode not in ("nearest-exact", "bicubic", "tricubic")


def _size(value: object, size_in: int, axis: int) -> int:
    """Returns an output size; the axis's own symbolic size stands for itself."""
    if same_size(value, size_in):
        return size_in
    return _check.size("size", value, f"the size of axis {axis}")


def _place(
    size_in: int,
    size_out: int,
    scale: float | None,
    chosen: Method,
    corners: bool,
    antialias: bool,
) -> _grid.Grid:
    """Returns the grid that torch uses."""
    if size_out == 0:
        return _grid.Grid(0, 0, 1)
    centred = chosen.rule not in (FLOOR, BINS)
    if corners and antialias:
        step = Fraction(size_in - 1, size_out - 1) if size_out > 1 else Fraction(0)
        return _grid.with_step(step, centred=True)
    if corners:
        return _grid.align_corners(size_in, size_out)
    if scale is not None:
        return _grid.with_step(_grid.step_of_scale(scale, size_in, size_out), centred=centred)
    place = _grid.half_pixel if centred else _grid.floor_grid
    return place(size_in, size_out)
