"""The oracle (plain double loops over exact rationals) and the table of cases the tests cross.

Nothing here imports the library's internals. Positions are `Fraction`s; kernels are written
again from their papers, and the piecewise polynomials among them are evaluated exactly, so a weight
is zero here only if it is zero.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np

HALF = Fraction(1, 2)

# --------------------------------------------------------------------------------------------------
# Kernels, as functions of the signed distance (sample - centre) in units of the (widened) sample.


def keys(a):
    """Keys, IEEE Trans. ASSP 29(6), 1981, equation (8), for a free `a`."""

    def weight(t):
        t = abs(t)
        if t < 1:
            return (a + 2) * t**3 - (a + 3) * t**2 + 1
        if t < 2:
            return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a
        return Fraction(0)

    return weight


def mitchell_netravali(b, c):
    """Mitchell and Netravali, SIGGRAPH 1988, equation (8)."""

    def weight(t):
        t = abs(t)
        if t < 1:
            cubic = (12 - 9 * b - 6 * c) * t**3 + (-18 + 12 * b + 6 * c) * t**2
            return (cubic + 6 - 2 * b) / 6
        if t < 2:
            cubic = (-b - 6 * c) * t**3 + (6 * b + 30 * c) * t**2
            return (cubic + (-12 * b - 48 * c) * t + 8 * b + 24 * c) / 6
        return Fraction(0)

    return weight


def central_bspline(degree):
    """Schoenberg's truncated powers: sum_k (-1)^k C(d+1, k) (t + (d+1)/2 - k)_+^d / d!."""

    def weight(t):
        total = Fraction(0)
        for k in range(degree + 2):
            power = max(t + Fraction(degree + 1, 2) - k, Fraction(0)) ** degree
            total += (-1) ** k * math.comb(degree + 1, k) * power
        return total / math.factorial(degree)

    return lambda t: weight(-abs(t)) if 2 * abs(t) < degree + 1 else Fraction(0)


def windowed_sinc(radius):
    """Lanczos: sinc(t) sinc(t / radius); exactly 0 at the other samples."""

    def weight(t):
        if t == 0:
            return 1.0
        if abs(t) >= radius or t.denominator == 1:
            return 0.0
        x = math.pi * float(t)
        return math.sin(x) / x * math.sin(x / radius) * radius / x

    return weight


def hamming_sinc(t):
    """Pillow's HAMMING: sinc(t) (0.54 + 0.46 cos(pi t)) for |t| < 1."""
    if t == 0:
        return 1.0
    if abs(t) >= 1:
        return 0.0
    x = math.pi * float(t)
    return math.sin(x) / x * (0.54 + 0.46 * math.cos(x))


def gaussian_bell(sigma, radius):
    """exp(-t^2 / (2 sigma^2)) for |t| <= radius."""
    return lambda t: math.exp(-(float(t) ** 2) / (2 * sigma**2)) if abs(t) <= radius else 0.0


def pillow_box(t):
    """1 on (-1/2, 1/2]."""
    return Fraction(int(-HALF < t <= HALF))


def triangle(t):
    return max(1 - abs(t), Fraction(0))


# name -> (radius, weight)
KERNELS = {
    "linear": (1, triangle),
    "cubic": (2, keys(Fraction(-1, 2))),
    "keys-0.75": (2, keys(Fraction(-3, 4))),
    "lanczos2": (2, windowed_sinc(2)),
    "lanczos3": (3, windowed_sinc(3)),
    "lanczos4": (4, windowed_sinc(4)),
    "lanczos5": (5, windowed_sinc(5)),
    "box": (HALF, pillow_box),
    "hamming": (1, hamming_sinc),
    "gaussian": (2, gaussian_bell(0.5, 2)),
    "mitchell": (2, mitchell_netravali(Fraction(1, 3), Fraction(1, 3))),
    "bspline2": (Fraction(3, 2), central_bspline(2)),
    "bspline3": (2, central_bspline(3)),
    "bspline4": (Fraction(5, 2), central_bspline(4)),
    "bspline5": (3, central_bspline(5)),
}
INDEX_METHODS = ("nearest", "nearest-floor")
SMOOTHING = ("gaussian", "mitchell", "bspline2", "bspline3", "bspline4", "bspline5")
METHODS = (*INDEX_METHODS, "area", "cubic-pytorch", *(k for k in KERNELS if k != "keys-0.75"))
BOUNDARIES = (None, "edge", "reflect", "symmetric", "wrap", "constant")

# Every other name a method goes by.
ALIASES = {
    "nearest-exact": "nearest",
    "bilinear": "linear",
    "trilinear": "linear",
    "triangle": "linear",
    "bicubic": "cubic",
    "tricubic": "cubic",
    "bicubic-pytorch": "cubic-pytorch",
}

# --------------------------------------------------------------------------------------------------
# One axis.


@dataclass(frozen=True)
class Axis:
    """One axis: the arguments of `resize_matrix`, and a kept scale for `interpolate`."""

    size_in: int
    size_out: int
    method: str = "linear"
    antialias: bool = True
    align_corners: bool = False
    boundary: str | None = None
    scale: Fraction | None = None

    @property
    def options(self):
        return {name: getattr(self, name) for name in ("antialias", "align_corners", "boundary")}


def step(axis):
    """dc/do, the distance in input samples between neighbouring outputs."""
    if axis.align_corners:
        return Fraction(axis.size_in - 1, axis.size_out - 1) if axis.size_out > 1 else Fraction(0)
    return 1 / axis.scale if axis.scale else Fraction(axis.size_in, axis.size_out)


def position(axis, o):
    """Coordinate of output `o`, in input samples."""
    if axis.align_corners:
        return o * step(axis)
    return (o + HALF) * step(axis) - HALF


def mapped(j, size, boundary):
    """Sample of an axis of `size` that index `j` reads under `boundary`; None for none."""
    if 0 <= j < size:
        return j
    if boundary in (None, "constant"):
        return None
    if boundary == "edge":
        return min(max(j, 0), size - 1)
    if boundary == "wrap":
        return j % size
    if boundary == "symmetric":
        j %= 2 * size
        return min(j, 2 * size - 1 - j)
    if size == 1:
        return 0
    j %= 2 * (size - 1)
    return min(j, 2 * (size - 1) - j)


def area_taps(axis, o):
    """(index, overlap of the output's cell with that sample's cell); sample j spans j -+ 1/2."""
    centre, width = position(axis, o), step(axis)
    if width == 0:
        return [(math.floor(centre + HALF), Fraction(1))]
    low, high = centre - width / 2, centre + width / 2
    taps = []
    for j in range(math.floor(low) - 1, math.ceil(high) + 2):
        taps.append((j, max(min(high, j + HALF) - max(low, j - HALF), Fraction(0))))
    return taps


def kernel_taps(axis, o, centre=None):
    """(index, kernel weight) of every tap of output `o`, before normalising and mapping."""
    name, boundary = axis.method, axis.boundary
    if name == "cubic-pytorch":
        name = "cubic" if axis.antialias else "keys-0.75"
        boundary = boundary if axis.antialias or boundary else "edge"
    radius, weight = KERNELS[name]
    centre = position(axis, o) if centre is None else centre
    width = max(Fraction(1), step(axis)) if axis.antialias else Fraction(1)
    reach = math.ceil(radius * width) + 1
    taps = [
        (j, weight((j - centre) / width))
        for j in range(math.floor(centre) - reach, math.floor(centre) + reach + 2)
    ]
    return taps, boundary


def normalised(taps, size, boundary):
    """{sample: weight}; rows sum to 1 over what is kept, or over all taps under "constant"."""
    if boundary is None:
        taps = [(j, w) for j, w in taps if 0 <= j < size]
    total = sum(w for _, w in taps)
    if isinstance(total, float):
        total = math.fsum(w for _, w in taps)
    row = {}
    for j, w in taps:
        i = mapped(j, size, boundary)
        if i is not None:
            row[i] = row.get(i, 0) + w / total
    return row


@cache
def row(axis, o):
    """{sample: weight} of output `o`."""
    n, m = axis.size_in, axis.size_out
    if axis.method == "nearest-floor":
        return {o * n // m: Fraction(1)}
    if axis.method == "nearest":
        return {math.floor(position(axis, o) + HALF): Fraction(1)}
    if axis.method == "area":
        return normalised(area_taps(axis, o), n, axis.boundary)
    taps, boundary = kernel_taps(axis, o)
    return normalised(taps, n, boundary)


@cache
def matrix(axis):
    """float64 [size_out, size_in]: the linear map along the axis."""
    dense = np.zeros((axis.size_out, axis.size_in))
    for o in range(axis.size_out):
        for i, w in row(axis, o).items():
            dense[o, i] = float(w)
    dense.setflags(write=False)
    return dense


# --------------------------------------------------------------------------------------------------
# torch.nn.functional.interpolate, one axis of it.


def torch_row(axis, o):
    """{sample: weight} of output `o` by torch's rules; `axis.method` is a torch mode."""
    n, m, mode = axis.size_in, axis.size_out, axis.method
    if n == m:
        return {o: Fraction(1)}
    if mode in ("nearest", "nearest-exact"):
        shift = HALF if mode == "nearest-exact" else 0
        return {min(math.floor((o + shift) * step(axis)), n - 1): Fraction(1)}
    if mode == "area":
        low, high = o * n // m, -((-(o + 1) * n) // m)
        return {i: Fraction(1, high - low) for i in range(low, high)}
    centre = None
    if axis.antialias and axis.align_corners:
        centre = (o + HALF) * step(axis) - HALF
    if mode == "bicubic":
        kernel, boundary = ("cubic", None) if axis.antialias else ("keys-0.75", "edge")
    else:
        kernel, boundary = {"lanczos3": "lanczos3", "linear": "linear"}[mode], None
    named = Axis(n, m, kernel, axis.antialias, axis.align_corners, boundary, axis.scale)
    taps, boundary = kernel_taps(named, o, centre)
    return normalised(taps, n, boundary)


@cache
def torch_matrix(axis):
    """float64 [size_out, size_in] of one axis of `interpolate`."""
    dense = np.zeros((axis.size_out, axis.size_in))
    for o in range(axis.size_out):
        for i, w in torch_row(axis, o).items():
            dense[o, i] = float(w)
    return dense


# --------------------------------------------------------------------------------------------------
# Several axes.


def along(dense, x, axis):
    """`dense` applied along `axis` of `x`, in float64 (or complex128)."""
    x = np.asarray(x)
    wide = x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)
    return np.moveaxis(np.tensordot(dense, wide, axes=(1, axis)), 0, axis)


def applied(matrices, x):
    """{axis: matrix} applied one after another."""
    for axis, dense in matrices.items():
        x = along(dense, x, axis)
    return x


@dataclass(frozen=True)
class Case:
    """A resize of axes 0 and 2 of a `[size, channels, size]` array, each axis its own way."""

    name: str
    first: Axis
    last: Axis
    channels: int = 2
    method: object = None  # what `resize` is given, when it is not the axes' names
    matrices: tuple = field(default=(), compare=False)

    @property
    def shape(self):
        return (self.first.size_in, self.channels, self.last.size_in)

    @property
    def shape_out(self):
        return (self.first.size_out, self.channels, self.last.size_out)

    @property
    def dense(self):
        """(matrix of axis 0, matrix of axis 2)."""
        return self.matrices or (matrix(self.first), matrix(self.last))

    @property
    def jacobian(self):
        """float64 [prod(shape_out), prod(shape)], C order."""
        first, last = self.dense
        return np.kron(np.kron(first, np.eye(self.channels)), last)

    def expected(self, x):
        return applied({0: self.dense[0], 2: self.dense[1]}, x)

    def adjoint(self, y):
        return applied({0: self.dense[0].T, 2: self.dense[1].T}, y)

    def options(self, axis_shift=0):
        """Keyword arguments of `resize`, the array having `axis_shift` more leading axes."""
        pair = (self.first, self.last)
        methods = tuple(a.method for a in pair)
        method = methods[0] if methods[0] == methods[1] else methods
        return {
            "shape": tuple(a.size_out for a in pair),
            "method": method if self.method is None else self.method,
            "antialias": _one([a.antialias for a in pair]),
            "axes": (axis_shift, axis_shift + 2),
            "align_corners": _one([a.align_corners for a in pair]),
            "boundary": _one([a.boundary for a in pair]),
        }

    def run(self, x, axis_shift=0):
        """The library's answer."""
        import jresample

        return jresample.resize(x, **self.options(axis_shift))

    def image(self, dtype=np.float64, seed=0):
        return np.random.default_rng([seed, *self.shape]).normal(size=self.shape).astype(dtype)

    def cotangent(self, dtype=np.float64, seed=1):
        rng = np.random.default_rng([seed, *self.shape_out])
        return rng.normal(size=self.shape_out).astype(dtype)


def _one(pair):
    """A scalar where both axes agree, so that the table covers both spellings."""
    return pair[0] if pair[0] == pair[1] else tuple(pair)


def _case(name, method, antialias=True, align=False, boundary=None, sizes=((5, 8), (7, 4))):
    """Each option is one value for both axes, or a pair."""

    def pair(value):
        return value if isinstance(value, tuple) else (value, value)

    options = zip(sizes, *map(pair, (method, antialias, align, boundary)), strict=True)
    first, last = (Axis(*size, *rest) for size, *rest in options)
    return Case(name, first, last)


CASES = (
    _case("nearest", "nearest"),
    _case("nearest-floor", "nearest-floor"),
    _case("nearest, corners aligned on one axis", "nearest", align=(True, False)),
    _case("linear", "linear"),
    _case("linear, no antialias, aligned on the other", "linear", (True, False), (True, False)),
    _case("linear, reflect and wrap", "linear", boundary=("wrap", "reflect")),
    _case("linear down both, aligned, symmetric", "linear", True, (False, True), "symmetric",
          ((8, 3), (7, 4))),
    _case("cubic", "cubic"),
    _case("cubic, symmetric and dropped", "cubic", (True, False), False, ("symmetric", None)),
    _case("cubic, constant and reflect", "cubic", False, (True, False), ("constant", "reflect")),
    _case("cubic-pytorch, antialias on one axis", "cubic-pytorch", (True, False)),
    _case("cubic-pytorch, corners aligned", "cubic-pytorch", False, True),
    _case("lanczos3", "lanczos3"),
    _case("lanczos3 as in Burn", "lanczos3", False, True),
    _case("lanczos3, constant and wrap", "lanczos3", True, (False, True), ("constant", "wrap")),
    _case("lanczos5, wrap and edge", "lanczos5", True, False, ("wrap", "edge")),
    _case("area", "area"),
    _case("area, aligned, symmetric", "area", True, (True, False), ("symmetric", None)),
    _case("box and hamming", ("box", "hamming"), (False, True)),
    _case("hamming and box", ("hamming", "box"), True, (True, False), ("edge", "constant")),
    _case("gaussian, an axis of unchanged size", "gaussian", sizes=((6, 6), (7, 4))),
    _case("mitchell and cubic", ("mitchell", "cubic"), (False, True), (True, False)),
    _case("bspline2 and bspline5", ("bspline2", "bspline5"), True, False, (None, "reflect")),
    _case("bspline4 and bspline3", ("bspline4", "bspline3"), (True, False), True),
    _case("lanczos2 and lanczos4", ("lanczos2", "lanczos4"), False, False, ("edge", "symmetric")),
    _case("one sample in, one sample out", "cubic", sizes=((1, 4), (6, 1))),
)  # fmt: skip
CASE_IDS = [case.name for case in CASES]

# A few that stand for the rest, where a test is slow.
FEW = tuple(
    case
    for case in CASES
    if case.name
    in (
        "nearest",
        "linear, no antialias, aligned on the other",
        "cubic, constant and reflect",
        "lanczos3",
        "area",
        "gaussian, an axis of unchanged size",
    )
)
FEW_IDS = [case.name for case in FEW]
assert len(FEW) == 6


def relative_error(got, want, x):
    """max |got - want| / max |x|, the error the numbers of this suite are about."""
    got = np.asarray(got)
    assert got.shape == np.shape(want), (got.shape, np.shape(want))
    if got.size == 0:
        return 0.0
    got = got.astype(np.complex128 if np.iscomplexobj(got) else np.float64)
    return float(np.max(np.abs(got - want)) / np.max(np.abs(np.asarray(x, np.complex128))))


def sweep(method):
    """Six cases: every boundary on one axis with the next on the other, the options mixed."""
    sizes = (((5, 8), (7, 4)), ((9, 3), (4, 11)), ((8, 5), (6, 13)))
    flags = ((True, False), (False, True), (False, False), (True, True))
    corners = flags if method != "nearest-floor" else ((False, False),)
    offset = METHODS.index(method)
    cases = []
    for k, boundary in enumerate(BOUNDARIES):
        pair = (boundary, BOUNDARIES[(k + 1) % len(BOUNDARIES)])
        align, antialias = corners[(k + offset) % len(corners)], flags[(3 * k + offset) % 4]
        name = f"{method}, {pair}, align {align}, antialias {antialias}"
        cases.append(_case(name, method, antialias, align, pair, sizes[(k + offset) % 3]))
    return cases
