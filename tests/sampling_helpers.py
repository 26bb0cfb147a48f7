"""The oracle for sampling at coordinates (plain double loops, float64) and the table of its cases.

It folds no coordinate and keeps no window: every tap of every output is found, weighed and mapped
on its own, with exact rationals for the positions.
"""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from helpers import HALF, KERNELS, keys, mapped

# The method's own kernel where `KERNELS` has it under another name.
OWN = {"cubic-pytorch": (Fraction(2), keys(Fraction(-3, 4)))}


def axis_taps(c, size, method, boundary):
    """[(sample or None, weight)] of an output at `c`."""
    c = Fraction(float(c))
    if boundary is None:
        c = min(max(c, -HALF), size - HALF)
    if method == "nearest":
        index = math.floor(c + HALF)
        return [(min(index, size - 1) if boundary is None else mapped(index, size, boundary), 1.0)]
    radius, weight = OWN.get(method) or KERNELS[method]
    reach = math.ceil(radius)
    near = range(math.floor(c) - reach, math.floor(c) + reach + 2)
    taps = [(j, float(weight(j - c))) for j in near]
    if boundary is None:
        taps = [(j, w) for j, w in taps if 0 <= j < size]
    total = math.fsum(w for _, w in taps)
    return [(mapped(j, size, boundary), w / total) for j, w in taps if w != 0]


def sampled(image, coordinates, method, boundary="edge", fill=0.0):
    """`sample`, one output and one tap after the other; scalars stand for all axes."""
    image, coordinates = np.asarray(image), np.asarray(coordinates, np.float64)
    n = coordinates.shape[-1]
    methods = method if isinstance(method, tuple) else (method,) * n
    rules = boundary if isinstance(boundary, tuple) else (boundary,) * n
    wide = np.complex128 if np.iscomplexobj(image) else np.float64
    out = np.zeros((*coordinates.shape[:-1], *image.shape[n:]), wide)
    for place in np.ndindex(*coordinates.shape[:-1]):
        axes = zip(coordinates[place], image.shape[:n], methods, rules, strict=True)
        total = np.zeros(image.shape[n:], wide)
        for taps in itertools.product(*(axis_taps(*axis) for axis in axes)):
            index, weight = tuple(i for i, _ in taps), math.prod(w for _, w in taps)
            total = total + weight * (fill if None in index else image[index].astype(wide))
        out[place] = total
    return out


def scattered(rng, sizes, count, *, off_knots=False):
    """Coordinates `[count, n]`: within the image, around its border, far outside, on the grid.

    With `off_knots` none lies within 1/16 of a sample or of half way between two.
    """
    sizes = np.asarray(sizes)
    inside = rng.uniform(0, sizes - 1, (count, len(sizes)))
    around = rng.uniform(-3, sizes + 2, (count, len(sizes)))
    far = rng.uniform(-4 * sizes - 9, 5 * sizes + 9, (count, len(sizes)))
    kind = rng.integers(0, 4, (count, len(sizes)))
    c = np.choose(kind, [inside, around, far, around])
    if off_knots:
        return np.floor(c) + rng.choice([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], c.shape)
    on_grid = rng.integers(0, 5, c.shape) == 0
    return np.where(on_grid, np.round(2 * c) / 2, c)


def check_derivatives(run, args, *, seed=0, step=1e-5, rtol=1e-5, atol=1e-6):
    """Derivatives of `run(*args)` in random directions against central differences, float64.

    First order forward and reverse; second order forward over reverse, reverse over forward,
    reverse over reverse and forward over forward. One program each for the derivatives and for
    the differences, where `jax.test_util.check_grads` compiles a dozen.
    """
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=jax.eval_shape(run, *args).shape)
    along = tuple(jnp.asarray(rng.normal(size=a.shape)) for a in args)
    dot = lambda a, b: sum(jnp.vdot(x, y) for x, y in zip(a, b, strict=True))  # noqa: E731
    value = lambda *a: jnp.vdot(weight, run(*a))  # noqa: E731
    every = tuple(range(len(args)))
    reverse = jax.grad(value, every)
    forward = lambda *a: jax.jvp(value, a, along)[1]  # noqa: E731

    @jax.jit
    def derivatives(*a):
        return {
            "reverse": dot(reverse(*a), along),
            "forward": forward(*a),
            "forward over reverse": jax.jvp(reverse, a, along)[1],
            "reverse over forward": jax.grad(forward, every)(*a),
            "reverse over reverse": jax.grad(lambda *a: dot(reverse(*a), along), every)(*a),
            "forward over forward": jax.jvp(forward, a, along)[1],
        }

    both = jax.jit(lambda *a: (value(*a), reverse(*a)))
    moved = [tuple(x + d * v for x, v in zip(args, along, strict=True)) for d in (step, -step)]
    high, low = both(*moved[0]), both(*moved[1])
    first = (high[0] - low[0]) / (2 * step)
    second = [(np.asarray(a) - b) / (2 * step) for a, b in zip(high[1], low[1], strict=True)]
    got = derivatives(*args)
    for name in ("reverse", "forward"):
        np.testing.assert_allclose(got[name], first, rtol=rtol, atol=atol, err_msg=name)
    for name in ("forward over reverse", "reverse over forward", "reverse over reverse"):
        for v, want in zip(got[name], second, strict=True):
            scale = 1 + np.abs(want).max(initial=0)
            np.testing.assert_allclose(v, want, rtol=rtol, atol=atol * scale, err_msg=name)
    twice = dot(second, along)
    np.testing.assert_allclose(got["forward over forward"], twice, rtol=rtol, atol=10 * atol)


@dataclass(frozen=True)
class SampleCase:
    """A call of `sample` on an image of two spatial axes and three channels."""

    method: object
    boundary: object
    fill: float = 0.0
    sizes: tuple = (6, 5)

    @property
    def name(self):
        return f"{self.method}, {self.boundary}, {self.fill}"

    @property
    def options(self):
        """Keyword arguments of `sample`."""
        return {"method": self.method, "boundary": self.boundary, "fill_value": self.fill}

    def image(self, seed=0):
        return np.random.default_rng([seed, *self.sizes]).normal(size=(*self.sizes, 3))

    def coordinates(self, count=60, *, off_knots=False):
        rng = np.random.default_rng([7, *self.sizes])
        c = scattered(rng, self.sizes, count, off_knots=off_knots)
        methods = self.method if isinstance(self.method, tuple) else (self.method,)
        if "box" in methods:  # its ties fall on the other side of a mirror
            c = np.where(c % 1 == 0.5, c + 0.125, c)
        return c

    def expected(self, image, coordinates):
        return sampled(image, coordinates, self.method, self.boundary, self.fill)


# Each boundary with each other on the second axis, each method with several boundaries.
CASES = (
    SampleCase("nearest", ("edge", "constant"), 0.7),
    SampleCase("nearest", ("reflect", "symmetric")),
    SampleCase("nearest", ("wrap", None)),
    SampleCase("linear", "edge"),
    SampleCase("linear", "constant"),
    SampleCase("linear", ("constant", "wrap"), -1.5),
    SampleCase("linear", ("reflect", "symmetric")),
    SampleCase("linear", (None, "edge")),
    SampleCase("cubic", ("edge", "symmetric")),
    SampleCase("cubic", ("constant", "constant"), 0.7),
    SampleCase("cubic", (None, "wrap")),
    SampleCase("cubic-pytorch", ("reflect", "constant"), 2.0),
    SampleCase("lanczos3", ("edge", "reflect")),
    SampleCase("lanczos3", ("constant", None), 0.7),
    SampleCase("lanczos5", ("wrap", "symmetric")),
    SampleCase("box", ("edge", "wrap")),
    SampleCase("hamming", ("symmetric", "edge")),
    SampleCase("gaussian", ("reflect", "edge")),
    SampleCase("mitchell", ("wrap", "constant"), 0.7),
    SampleCase("bspline2", ("symmetric", "reflect")),
    SampleCase("bspline3", ("edge", "wrap")),
    SampleCase("bspline5", ("reflect", "constant"), -0.3),
    SampleCase(("cubic", "linear"), ("symmetric", "edge")),
    SampleCase(("linear", "lanczos3"), ("constant", "reflect"), 0.7),
    SampleCase(("nearest", "cubic"), ("wrap", "constant"), 0.7),
    SampleCase(("bspline4", "nearest"), ("edge", "reflect")),
    SampleCase("cubic", "reflect", sizes=(1, 2)),
    SampleCase("lanczos3", "symmetric", sizes=(2, 1)),
)
CASE_IDS = [case.name for case in CASES]
# A few that stand for the rest, where a test is slow.
FEW = tuple(CASES[i] for i in (5, 6, 22, 23, 24))
FEW_IDS = [case.name for case in FEW]
