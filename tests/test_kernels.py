"""Kernels against scipy and the papers; gradients in their parameters; a user's own."""

import dataclasses
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import (
    KERNELS,
    Axis,
    kernel_taps,
    keys,
    matrix,
    mitchell_netravali,
    normalised,
    relative_error,
)
from jax.test_util import check_grads
from scipy.interpolate import BSpline

import jresample
from jresample import kernels

# name in `resize` -> the kernel it stands for
NAMED = {
    "linear": kernels.triangle,
    "cubic": kernels.cubic(),
    "lanczos2": kernels.lanczos(2),
    "lanczos3": kernels.lanczos(3),
    "lanczos4": kernels.lanczos(4),
    "lanczos5": kernels.lanczos(5),
    "box": kernels.box,
    "hamming": kernels.hamming,
    "gaussian": kernels.gaussian(),
    "mitchell": kernels.mitchell(),
    "bspline2": kernels.bspline(2),
    "bspline3": kernels.bspline(3),
    "bspline4": kernels.bspline(4),
    "bspline5": kernels.bspline(5),
}
POINTS = [Fraction(k, 8) for k in range(-44, 45)] + [Fraction(k, 7) for k in range(-38, 39)]


@pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
@pytest.mark.parametrize("name", NAMED)
def test_values(name, xp):
    """At, between and beyond the knots, on both sides, in either namespace."""
    kernel, (radius, weight) = NAMED[name], KERNELS[name]
    inside = [t for t in POINTS if abs(t) <= radius]
    got = kernel(xp.asarray([float(t) for t in inside]))
    assert isinstance(got, jax.Array if xp is jnp else np.ndarray)
    if name == "box":
        inside = [t for t in inside if abs(t) != Fraction(1, 2)]
        got = kernel(xp.asarray([float(t) for t in inside]))
    np.testing.assert_allclose(got, [float(weight(t)) for t in inside], rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", NAMED)
def test_zero_beyond_the_radius(name):
    kernel = NAMED[name]
    assert kernel.radius == float(KERNELS[name][0])
    far = kernel.radius + np.array([1e-6, 0.3, 1.0, 7.5])
    np.testing.assert_array_equal(kernel(far), 0)
    np.testing.assert_array_equal(kernel(-far), 0)


def test_box_is_half_open():
    """1 on (-1/2, 1/2]: of two samples as near as each other, one counts."""
    got = kernels.box(np.array([-0.5, -0.25, 0.0, 0.5]))
    np.testing.assert_array_equal(got, [0, 1, 1, 1])


@pytest.mark.parametrize("degree", range(1, 6))
def test_bsplines_are_scipys(degree):
    t = np.linspace(-3.2, 3.2, 129)
    knots = np.arange(degree + 2) - (degree + 1) / 2
    want = np.nan_to_num(BSpline.basis_element(knots, extrapolate=False)(t))
    np.testing.assert_allclose(kernels.bspline(degree)(t), want, rtol=0, atol=1e-14)
    assert kernels.bspline(degree).radius == (degree + 1) / 2


def test_values_in_the_papers():
    """Keys (1981): u(1/2) = 9/16, u(3/2) = -1/16. Mitchell (1988): k(0) = 8/9, k(1) = 1/18."""
    half = np.array([0.5, 1.5])
    np.testing.assert_allclose(kernels.cubic()(half), [9 / 16, -1 / 16], rtol=1e-15)
    np.testing.assert_allclose(kernels.cubic(-0.75)(half), [19 / 32, -3 / 32], rtol=1e-15)
    np.testing.assert_allclose(kernels.cubic(0.0)(half), [0.5, 0.0], rtol=0, atol=1e-15)
    knots = np.array([0.0, 1.0, 2.0])
    np.testing.assert_allclose(kernels.mitchell()(knots), [8 / 9, 1 / 18, 0], rtol=0, atol=1e-15)
    bspline = kernels.mitchell(1.0, 0.0)(np.linspace(0, 2, 9))
    np.testing.assert_allclose(bspline, kernels.bspline(3)(np.linspace(0, 2, 9)), atol=1e-15)
    catmull_rom = kernels.mitchell(0.0, 0.5)(np.linspace(0, 2, 9))
    np.testing.assert_allclose(catmull_rom, kernels.cubic()(np.linspace(0, 2, 9)), atol=1e-15)
    sinc = kernels.lanczos(3)(np.array([0.0, 0.5, 1.0, 1.5]))
    want = [1, 6 / np.pi**2, 0, -4 / (3 * np.pi**2)]
    np.testing.assert_allclose(sinc, want, rtol=0, atol=1e-15)
    np.testing.assert_allclose(kernels.gaussian(0.8)(np.array([0.8])), [np.exp(-0.5)], rtol=1e-15)


@pytest.mark.parametrize("name", NAMED)
def test_kernel_equals_its_name(name):
    """`resize(x, shape, kernel)` is `resize(x, shape, name)`."""
    for antialias in (True, False):
        got = jresample.resize_matrix(9, 5, NAMED[name], antialias)
        np.testing.assert_allclose(got, matrix(Axis(9, 5, name, antialias)), rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", NAMED)
def test_interpolates_flag(name):
    """True just where the kernel is 1 at 0 and 0 at the other samples."""
    _radius, weight = KERNELS[name]
    whole = [weight(Fraction(k)) for k in range(-5, 6)]
    assert NAMED[name].interpolates == (whole == [int(k == 0) for k in range(-5, 6)])


def test_frozen_hashable_equal():
    assert kernels.cubic(-0.6) == kernels.cubic(-0.6)
    assert hash(kernels.cubic(-0.6)) == hash(kernels.cubic(-0.6))
    assert kernels.cubic(-0.6) != kernels.cubic(-0.7)
    assert kernels.lanczos(3) == kernels.lanczos(3) != kernels.lanczos(4)
    assert kernels.gaussian(0.5) == kernels.gaussian() != kernels.gaussian(0.5, 3.0)
    assert len({kernels.box, kernels.triangle, kernels.hamming, kernels.bspline(1)}) >= 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        kernels.box.radius = 3.0


# Free parameters ----------------------------------------------------------------------------------

PARAMETERS = {
    "cubic": (kernels.cubic, (-0.6,), lambda a: (2, keys(Fraction(a)))),
    "mitchell": (
        kernels.mitchell,
        (0.3, 0.4),
        lambda b, c: (2, mitchell_netravali(Fraction(b), Fraction(c))),
    ),
    "gaussian": (kernels.gaussian, (0.7,), None),
}


def oracle_of(radius, weight, axis):
    """The dense matrix of a kernel that has no name."""
    KERNELS["unnamed"] = radius, weight
    try:
        named = dataclasses.replace(axis, method="unnamed")
        dense = np.zeros((axis.size_out, axis.size_in))
        for o in range(axis.size_out):
            taps, boundary = kernel_taps(named, o)
            for i, w in normalised(taps, axis.size_in, boundary).items():
                dense[o, i] = float(w)
        return dense
    finally:
        del KERNELS["unnamed"]


@pytest.mark.parametrize("family", PARAMETERS)
@pytest.mark.parametrize("boundary", [None, "edge", "constant"])
def test_traced_parameters_give_the_planned_values(family, boundary):
    make, values, oracle = PARAMETERS[family]
    x = np.random.default_rng(0).normal(size=(9, 7))
    pairs = (boundary, "wrap")

    def run(x, *values):
        return jresample.resize(
            x, (5, 12), make(*values), (True, False), boundary=pairs, align_corners=(False, True)
        )

    planned, traced = run(x, *values), jax.jit(run)(x, *values)
    np.testing.assert_allclose(traced, planned, rtol=0, atol=1e-13)
    if oracle is not None:
        first = oracle_of(*oracle(*values), Axis(9, 5, boundary=boundary))
        last = oracle_of(*oracle(*values), Axis(7, 12, "", False, True, "wrap"))
        assert relative_error(planned, first @ x @ last.T, x) <= 1e-12


@pytest.mark.parametrize("family", PARAMETERS)
def test_gradients_in_parameters(family):
    """Against finite differences, to second order, in both modes; mixed with the image."""
    make, values, _ = PARAMETERS[family]
    x = np.random.default_rng(0).normal(size=(9, 2))

    def run(x, *values):
        return jresample.resize(x, (5, 2), make(*values), boundary=("edge", None))

    both = ["fwd", "rev"] if family == "cubic" else ["rev"]
    check_grads(jax.jit(run), (x, *values), 1, ["fwd", "rev"], atol=1e-6, rtol=1e-6)
    check_grads(jax.jit(run), (x, *values), 2, both, atol=1e-6, rtol=1e-6)
    slope = jax.grad(lambda v: (run(x, v, *values[1:]) ** 2).sum())(values[0])
    assert abs(slope) > 1e-3


@pytest.mark.parametrize("family", PARAMETERS)
def test_gradient_in_the_parameter_is_exact(family):
    """d/dp of the planned matrix, by central differences of the host's own numbers."""
    make, values, _ = PARAMETERS[family]
    x, y = np.random.default_rng(0).normal(size=9), np.random.default_rng(1).normal(size=14)
    grad = jax.jit(
        jax.grad(lambda p: jnp.vdot(y, jresample.resize(x, (14,), make(p, *values[1:]))))
    )(values[0])

    def plan(p):
        return y @ jresample.resize_matrix(9, 14, make(p, *values[1:])) @ x

    h = 1e-4
    rough, fine = ((plan(values[0] + k) - plan(values[0] - k)) / (2 * k) for k in (2 * h, h))
    np.testing.assert_allclose(grad, (4 * fine - rough) / 3, rtol=1e-8, atol=1e-9)


def test_vmap_over_parameters():
    x = np.random.default_rng(0).normal(size=9)
    params = jnp.array([-0.5, -0.6, -0.75])
    got = jax.vmap(lambda a: jresample.resize(x, (5,), kernels.cubic(a)))(params)
    want = [jresample.resize_matrix(9, 5, kernels.cubic(float(a))) @ x for a in params]
    np.testing.assert_allclose(got, np.stack(want), rtol=0, atol=1e-13)
    both = jax.vmap(lambda x, a: jresample.resize(x, (5,), kernels.cubic(a)))(
        np.stack([x, 2 * x, 3 * x]), params
    )
    np.testing.assert_allclose(both, np.stack(want) * [[1], [2], [3]], rtol=0, atol=1e-12)


def test_image_backward_only_gathers():
    def grad(x, a):
        return jax.grad(lambda x: (jresample.resize(x, (8, 4), kernels.cubic(a)) ** 2).sum())(x)

    x = jax.ShapeDtypeStruct((5, 9), jnp.float32)
    a = jax.ShapeDtypeStruct((), jnp.float32)
    lowered = jax.jit(grad).lower(x, a)
    assert "scatter" not in lowered.as_text()
    assert "scatter" not in lowered.compile().as_text()


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32])
def test_traced_parameter_dtypes(dtype):
    x = np.random.default_rng(0).normal(size=(9,)).astype(dtype)
    run = jax.jit(lambda x, a: jresample.resize(x, (5,), kernels.cubic(a)))
    got, slope = run(x, jnp.float32(-0.6)), jax.grad(lambda a: run(x, a).sum())(jnp.float32(-0.6))
    assert got.dtype == dtype
    assert slope.dtype == jnp.float32
    constant = run(np.full(9, 0.4216, np.float32).astype(dtype), jnp.float32(-0.6))
    if dtype == jnp.bfloat16:
        np.testing.assert_array_equal(np.asarray(constant), np.full(5, 0.4216).astype(dtype))


# A user's own -------------------------------------------------------------------------------------


def tent(x):
    """Written over the array's own namespace, as the docs ask."""
    xp = x.__array_namespace__()
    return xp.maximum(1 - xp.abs(x) / 2, 0)


def learned(x, taps):
    """Piecewise linear through `taps` at 0, 1/2, 1, 3/2; 0 at 2."""
    xp = x.__array_namespace__()
    last = (1,) * x.ndim + (4,)
    knots = xp.asarray([0.0, 0.5, 1.0, 1.5], dtype=x.dtype).reshape(last)
    hats = xp.maximum(1 - xp.abs(xp.abs(x)[..., None] - knots) * 2, 0)
    return (hats * taps.reshape(last)).sum(-1)


def test_user_kernel():
    kernel = kernels.Kernel("tent", 2.0, tent)
    assert kernel.params == ()
    assert kernel.interpolates is False

    def weight(t):
        return max(1 - abs(t) / 2, Fraction(0))

    for size_in, size_out in [(9, 5), (5, 9), (6, 6)]:
        for antialias in (True, False):
            for boundary in (None, "reflect"):
                axis = Axis(size_in, size_out, "", antialias, boundary=boundary)
                got = jresample.resize_matrix(
                    size_in, size_out, kernel, antialias, boundary=boundary
                )
                np.testing.assert_allclose(got, oracle_of(2, weight, axis), rtol=0, atol=1e-13)
    x = np.random.default_rng(0).normal(size=(6, 2))
    same = jresample.resize(x, (6,), kernel, axes=(0,))
    assert np.abs(np.asarray(same) - x).max() > 0.1
    exact = kernels.Kernel("tent", 2.0, tent, interpolates=True)
    np.testing.assert_array_equal(jresample.resize(x, (6,), exact, axes=(0,)), x)


def test_one_sided_kernel():
    """Distances are signed: sample minus centre."""

    def ahead(x):
        xp = x.__array_namespace__()
        return xp.where((x >= 0) & (x < 1), 1.0, 0.0)

    got = jresample.resize_matrix(3, 6, kernels.Kernel("ahead", 1.0, ahead), boundary="edge")
    # c = -1/4, 1/4, 3/4, ...: the first sample at or after each.
    want = np.eye(3)[[0, 1, 1, 2, 2, 2]]
    np.testing.assert_array_equal(got, want)


def test_learned_taps():
    taps = jnp.array([0.9, 0.5, 0.1, -0.05])
    x = np.random.default_rng(0).normal(size=(9, 2))

    def run(x, taps):
        kernel = kernels.Kernel("mine", 2.0, learned, params=(taps,))
        return jresample.resize(x, (14, 2), kernel)

    out = jax.jit(run)(x, taps)
    values = [Fraction(float(t)) for t in taps]

    def weight(t):
        hats = [max(1 - abs(abs(t) - Fraction(k, 2)) * 2, Fraction(0)) for k in range(4)]
        return sum(h * v for h, v in zip(hats, values, strict=True))

    want = oracle_of(2, weight, Axis(9, 14)) @ x
    assert relative_error(out, want, x) <= 1e-12
    check_grads(jax.jit(run), (x, taps), 1, ["fwd", "rev"], atol=1e-6, rtol=1e-6)
    check_grads(jax.jit(run), (x, taps), 2, ["fwd", "rev"], atol=1e-4, rtol=1e-4)
    grads = jax.grad(lambda t: (run(x, t) ** 2).sum())(taps)
    assert grads.shape == taps.shape
    assert (np.abs(grads) > 1e-4).all()


def test_learning_a_kernel():
    """Gradient descent on `a` finds the kernel that made the target."""
    x = np.random.default_rng(0).normal(size=40)
    target = jresample.resize(x, (97,), kernels.cubic(-0.75), antialias=False)

    @jax.jit
    def slope(a):
        def loss(a):
            out = jresample.resize(x, (97,), kernels.cubic(a), antialias=False)
            return ((out - target) ** 2).mean()

        return jax.grad(loss)(a)

    a = -0.5
    for _ in range(40):
        a = a - 12.0 * slope(a)
    np.testing.assert_allclose(a, -0.75, atol=1e-6)


def taps(x, w):
    """A kernel of steps, its heights learned."""
    xp = x.__array_namespace__()
    d = xp.abs(x)
    heights = xp.where(d < 0.5, w[0], xp.where(d < 1.5, w[1], w[2]))
    return heights * xp.ones_like(x)


@pytest.mark.parametrize(
    ("factory", "params", "size"),
    [
        (kernels.cubic, (0.0,), 13),
        (kernels.cubic, (-0.5,), 24),
        (kernels.mitchell, (0.0, 0.5), 8),
        (lambda w: kernels.Kernel("steps", 2.5, taps, (w,)), (np.array([1.0, 0.0, 0.0]),), 8),
    ],
    ids=["cubic at 0", "cubic on the grid", "mitchell of one size", "steps that start at 0"],
)
def test_gradient_where_weights_are_zero(factory, params, size):
    """A weight that is 0 now still moves with its parameter: central differences, order 1 and 2."""
    x = np.random.default_rng(0).normal(size=8)

    def loss(*params):
        y = jresample.resize(x, (size,), factory(*params), axes=(0,))
        return (y * jnp.arange(float(size))).sum()

    params = tuple(jnp.asarray(p) for p in params)
    check_grads(loss, params, order=2, modes=("fwd", "rev"), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_learned_kernels_round_once(dtype):
    """Both axes learned, or one of two: what the planned weights give, to the last bit."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=(9, 8)), dtype)
    learned, planned = kernels.cubic(jnp.float32(-0.5)), kernels.cubic(-0.5)
    want = jresample.resize(x, (13, 14), planned)
    for methods in (learned, (learned, planned), (planned, learned)):
        got = jresample.resize(x, (13, 14), methods)
        assert got.dtype == dtype
        assert (got != want).sum() <= 2, "float32 weights differ from float64 in their last bit"


def test_learned_kernel_on_a_complex_image():
    x = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
    x = jnp.asarray(x[0] + 1j * x[1])
    got = jresample.resize(x, (13,), kernels.cubic(jnp.float32(-0.7)))
    assert got.dtype == jnp.complex64
    np.testing.assert_allclose(got, jresample.resize(x, (13,), kernels.cubic(-0.7)), atol=1e-6)


def test_an_explicitly_sharded_resized_axis_is_refused():
    mesh = jax.make_mesh((2,), ("rows",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        x = jax.device_put(np.ones((4, 6)), jax.sharding.PartitionSpec("rows"))
        with pytest.raises(ValueError, match=r"`image`: axis 0 is sharded.*rows"):
            jresample.resize(x, (8, 6), "linear")
        assert jresample.resize(x, (4, 9), "linear").shape == (4, 9)
