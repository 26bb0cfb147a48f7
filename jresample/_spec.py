"""The user's arguments -> frozen, hashable `AxisSpec`s: everything known before tracing.

Method names are looked up here and nowhere else. The leaf checks are in `_check.py`; what
concerns several arguments at once is raised here.
"""

import dataclasses
import enum
import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from . import _check, _grid, kernels
from .kernels import Kernel

# Rules that are no kernel: which samples an output averages follows from its cell alone.
NEAREST = "nearest"  # sample floor(c + 1/2)
FLOOR = "nearest-floor"  # sample floor(c)
AREA = "area"  # exact overlap with the output's cell
BINS = "bins"  # adaptive average pooling
# The rules that copy one sample, and so keep every dtype.
ONE_SAMPLE = (NEAREST, FLOOR)

# The largest table that is planned: 2 GB of indices and as much of weights.
MAX_ENTRIES = 1 << 28

AxisSize = int


@dataclasses.dataclass(frozen=True)
class AxisSpec:
    """One axis's resampling: equal specs give equal plans.

    Attributes:
        size_in: Samples of the axis, at least 1 unless `size_out` is 0.
        size_out: Samples asked for.
        grid: Where they lie.
        rule: A kernel, or one of the rules above.
        antialias: Whether the kernel is widened by the step where that is above 1.
        boundary: A key of `_boundary.INDEX_MAPS`.
    """

    size_in: int
    size_out: int
    grid: _grid.Grid
    rule: Kernel | str
    antialias: bool
    boundary: str | None

    @property
    def widened(self) -> bool:
        """Whether the kernel's unit is the step between outputs rather than the input sample."""
        return self.antialias and self.grid.p > self.grid.r

    @property
    def reach(self) -> int:
        """How far from an output a tap can lie, in whole input samples, rounded up."""
        width = self.grid.step if self.widened else Fraction(1)
        if isinstance(self.rule, Kernel):
            return math.ceil(Fraction(self.rule.radius) * width)
        return math.ceil(self.grid.step) + 1

    @property
    def entries(self) -> int:
        """Table entries that planning goes through; a regular axis repeats after one period."""
        period, advance = self.grid.period
        taps = 2 * self.reach + 2 if isinstance(self.rule, Kernel) else 1
        rows = self.size_out
        if advance and self.boundary != "wrap":
            rows = min(rows, period * (4 * self.reach // advance + 10))
        return rows * taps

    def check_sums(self, total: np.ndarray) -> None:
        """Refuses a kernel whose weights cannot be divided by their sum."""
        bad = np.flatnonzero(~np.isfinite(total) | (total == 0))
        if bad.size and isinstance(self.rule, Kernel):
            raise ValueError(
                f"`method`: the weights of kernel {self.rule.name!r} sum to "
                f"{total.flat[bad[0]]} at output {bad[0]} of {self.size_out} (from "
                f"{self.size_in}); expected a finite sum other than 0: widen its radius, "
                "or check `fn` between the samples"
            )


AxisSpecs = tuple[tuple[int, AxisSpec], ...]


@dataclasses.dataclass(frozen=True)
class Method:
    """What a method's name stands for: its rule and boundary, and those with antialias."""

    rule: Kernel | str
    boundary: str | None = None
    antialias_rule: Kernel | str | None = None
    antialias_boundary: str | None = None

    def resolve(self, antialias: bool) -> tuple[Kernel | str, str | None]:
        """Returns the rule and its default boundary."""
        if antialias and self.antialias_rule is not None:
            return self.antialias_rule, self.antialias_boundary
        return self.rule, self.boundary


_LINEAR = Method(kernels.triangle)
_CUBIC = Method(kernels.cubic(-0.5))
# OpenCV's coefficient and edge rule without antialias, Pillow's with it: what torch does.
_CUBIC_TORCH = Method(kernels.cubic(-0.75), "edge", antialias_rule=kernels.cubic(-0.5))

METHODS: dict[str, Method] = {
    "nearest": Method(NEAREST),
    "nearest-exact": Method(NEAREST),
    "nearest-floor": Method(FLOOR),
    "linear": _LINEAR,
    "bilinear": _LINEAR,
    "trilinear": _LINEAR,
    "triangle": _LINEAR,
    "cubic": _CUBIC,
    "bicubic": _CUBIC,
    "tricubic": _CUBIC,
    "cubic-pytorch": _CUBIC_TORCH,
    "bicubic-pytorch": _CUBIC_TORCH,
    "mitchell": Method(kernels.mitchell()),
    "lanczos2": Method(kernels.lanczos(2)),
    "lanczos3": Method(kernels.lanczos(3)),
    "lanczos4": Method(kernels.lanczos(4)),
    "lanczos5": Method(kernels.lanczos(5)),
    "area": Method(AREA),
    "box": Method(kernels.box),
    "hamming": Method(kernels.hamming),
    "gaussian": Method(kernels.gaussian()),
    "bspline2": Method(kernels.bspline(2)),
    "bspline3": Method(kernels.bspline(3)),
    "bspline4": Method(kernels.bspline(4)),
    "bspline5": Method(kernels.bspline(5)),
}


def method(value: object, table: dict[str, Method] = METHODS, name: str = "method") -> Method:
    """Returns what a method argument stands for: a name, a member of jax's enum or a kernel."""
    if isinstance(value, Kernel):
        return Method(value)
    if isinstance(value, enum.Enum) and type(value).__name__ == "ResizeMethod":
        value = value.name.lower().replace("_", "-")
    if not isinstance(value, str):
        raise TypeError(
            f"`{name}` is {_check.describe(value)}; expected a name such as 'linear', "
            "a `jax.image.ResizeMethod` or a `jresample.kernels.Kernel`"
        )
    if value not in table:
        names = ", ".join(repr(key) for key in table)
        raise ValueError(f"`{name}` is {value!r}; expected one of {names}, or a `Kernel`")
    return table[value]


def axis_spec(
    axis: int,
    size_in: int,
    size_out: int,
    grid: _grid.Grid,
    chosen: Method,
    antialias: bool,
    boundary: str | None,
    name: str = "image",
) -> AxisSpec:
    """Returns an axis's spec, its sizes and boundary checked against each other."""
    rule, default = chosen.resolve(antialias)
    if size_in == 0 and size_out > 0:
        raise ValueError(
            f"`{name}`: axis {axis} is empty and cannot be resized to {size_out} samples; "
            "expected at least 1 sample, or an output size of 0"
        )
    boundary = default if boundary is None else boundary
    if boundary == "reflect" and size_in == 1:
        raise ValueError(
            f"`boundary`: axis {axis} has length 1 and boundary='reflect' needs at least 2: "
            "use 'symmetric' or 'edge'"
        )
    spec = AxisSpec(size_in, size_out, grid, rule, antialias, boundary)
    if spec.entries > MAX_ENTRIES:
        raise ValueError(
            f"`{name}`: resampling axis {axis} from {size_in} to {size_out} samples needs a table "
            f"of {spec.entries} taps; expected at most {MAX_ENTRIES}: choose sizes in a ratio of "
            "small integers, which repeats, or a narrower kernel"
        )
    return spec


def keeps(chosen: Method, antialias: bool) -> bool:
    """Whether resampling an axis to its own size leaves it as it is."""
    rule, _ = chosen.resolve(antialias)
    return not isinstance(rule, Kernel) or rule.interpolates


def target_sizes(
    shape_in: Sequence[AxisSize], shape: object, named: tuple[int, ...] | None
) -> dict[int, object]:
    """Returns the requested size of each named axis (of all axes where none are named)."""
    axes = tuple(range(len(shape_in))) if named is None else named
    if not _check.is_sequence(shape):
        if named is not None and len(named) == 1:
            return {axes[0]: shape}
        if _check.is_traced(shape):
            raise TypeError(f"`shape` is traced; {_check.TRACED_WAY_OUT}")
        raise TypeError(
            f"`shape` is {_check.describe(shape)}; expected a sequence of {len(axes)} integers"
        )
    wanted = _check.items(shape)
    if len(wanted) != len(axes):
        whole = "the whole output shape" if named is None else f"the sizes of `axes` {named}"
        raise ValueError(
            f"`shape` has {_check.counted(len(wanted), 'entry', 'entries')}; expected {len(axes)}: "
            f"{whole} for an image of shape {tuple(shape_in)}. To resize some axes only, name them "
            "in `axes`"
        )
    return dict(zip(axes, wanted, strict=True))


def resize_specs(
    shape_in: Sequence[AxisSize],
    shape: object,
    method_: object,
    antialias: object,
    axes: object,
    align_corners: object,
    boundary: object,
) -> tuple[AxisSpecs, bool]:
    """Returns `resize`'s arguments as an (axis, spec) for every axis that is resampled.

    Also whether every method only copies samples, so that integers stay integers.
    """
    ndim = len(shape_in)
    named = None if axes is None else _check.axes("axes", axes, ndim)
    targets = target_sizes(shape_in, shape, named)
    per = "per axis" if named is None else "per entry of `axes`"
    count = len(targets)
    methods = _check.entries("method", method_, count, per, method)
    widen = _check.entries("antialias", antialias, count, per, _flag("antialias"))
    corners = _check.entries("align_corners", align_corners, count, per, _flag("align_corners"))
    rules = _check.entries("boundary", boundary, count, per, _boundary)
    specs: list[tuple[int, AxisSpec]] = []
    for i, (axis, target) in enumerate(targets.items()):
        size_in, kept = shape_in[axis], named is None or keeps(methods[i], widen[i])
        if kept and same_size(target, size_in):
            continue
        size_out = _check.size("shape", target, f"entry {i} (axis {axis})")
        size_in = _check.size("image", size_in, f"axis {axis}")
        place = _grid.align_corners if corners[i] else _grid.half_pixel
        if kept and size_in == size_out:
            continue
        if isinstance(methods[i].rule, str) and methods[i].rule == FLOOR and not corners[i]:
            place = _grid.floor_grid
        grid = place(size_in, size_out) if size_out else _grid.Grid(0, 0, 1)
        specs.append(
            (axis, axis_spec(axis, size_in, size_out, grid, methods[i], widen[i], rules[i]))
        )
    given = methods or _check.entries("method", method_, 1, per, method)
    return tuple(specs), all(chosen.rule in ONE_SAMPLE for chosen in given)


def _flag(name: str) -> Callable[[object], bool]:
    return functools.partial(_check.flag, name)


def _boundary(value: object) -> str | None:
    return _check.boundary("boundary", value)


def same_size(target: object, size_in: object) -> bool:
    """Whether a target is the axis's own symbolic size (a traced or malformed one is not)."""
    return _check.is_symbolic(size_in) and _check.is_symbolic(target) and bool(target == size_in)
