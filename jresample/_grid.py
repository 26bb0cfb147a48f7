"""Where output samples lie, in input samples, as exact rationals.

A regular grid puts output `o` at `c = (p o + q) / r` with integers p, q, r. All conventions have
this form, so positions, ties and phases are exact in int64 at every size:

    half-pixel      c = (o + 1/2) n/m - 1/2  = (2 n o + n - m) / 2m
    align corners   c = o (n - 1)/(m - 1),  and 0 where m = 1
    kept scale s    c = (o + 1/2)/s - 1/2
    floor           c = o n/m  (or o/s): the corner convention of the legacy nearest rules
"""

import dataclasses
import math
from fractions import Fraction

import numpy as np

# p o, and a few multiples of it, must stay below 2^63.
_INT64_ROOM = 2**60


@dataclasses.dataclass(frozen=True)
class Grid:
    """Output `o` lies at `(p o + q) / r` input samples; r > 0."""

    p: int
    q: int
    r: int

    @property
    def step(self) -> Fraction:
        """Input samples between neighbouring outputs."""
        return Fraction(self.p, self.r)

    @property
    def period(self) -> tuple[int, int]:
        """The smallest (outputs, inputs) after which the pattern repeats: c(o + P) = c(o) + A."""
        common = math.gcd(self.p, self.r)
        return self.r // common, self.p // common

    def numerators(self, size_out: int) -> np.ndarray:
        """Returns `p o + q` for all outputs, int64 `[size_out]`."""
        return self.p * np.arange(size_out, dtype=np.int64) + self.q


def half_pixel(size_in: int, size_out: int) -> Grid:
    """Pixel areas align: `c = (o + 1/2) n/m - 1/2`."""
    return Grid(2 * size_in, size_in - size_out, 2 * size_out)


def align_corners(size_in: int, size_out: int) -> Grid:
    """First and last samples align: `c = o (n - 1)/(m - 1)`; the first sample where m = 1."""
    if size_out == 1:
        return Grid(0, 0, 1)
    return Grid(size_in - 1, 0, size_out - 1)


def floor_grid(size_in: int, size_out: int) -> Grid:
    """First samples align: `c = o n/m`."""
    return Grid(size_in, 0, size_out)


def with_step(step: Fraction, *, centred: bool) -> Grid:
    """A grid of a given step: `(o + 1/2) step - 1/2` where centred, else `o step`."""
    a, b = step.numerator, step.denominator
    return Grid(2 * a, a - b, 2 * b) if centred else Grid(a, 0, b)


def step_of_scale(scale: float, size_in: int, size_out: int) -> Fraction:
    """Returns 1/scale as the fraction the caller meant, small enough for int64.

    A float such as 0.1 is not 1/10, but who writes it means 1/10: the simplest fraction that
    rounds to the float is taken. One that has none with a denominator below a million (an
    irrational scale) is approximated to better than 1e-18, far below the float's own error.
    """
    simple = Fraction(scale).limit_denominator(1_000_000)
    if simple > 0 and float(simple) == scale:
        fraction = simple
    else:
        room = _INT64_ROOM // (4 * max(size_in, size_out, 1))
        fraction = Fraction(scale).limit_denominator(max(1, int(room / max(1.0, scale))))
    return 1 / fraction


def floor_size(size_in: int, scale: float) -> int:
    """Returns torch's output size for a scale: `floor(n s)`, in float64 as torch computes it."""
    return math.floor(size_in * scale)
