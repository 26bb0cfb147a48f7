"""Derivatives of `sample`: both modes to second order, at knots, the adjoint, and their cost."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sampling_helpers import CASE_IDS, CASES, FEW, FEW_IDS, SampleCase, check_derivatives

from jresample import kernels, sample


def runner(case):
    return jax.jit(functools.partial(sample, **case.options))


@pytest.mark.parametrize("case", FEW, ids=FEW_IDS)
def test_second_order_both_modes(case):
    """Image and coordinates together, away from knots."""
    image, c = case.image(), case.coordinates(6, off_knots=True)
    args = (jnp.asarray(image), jnp.asarray(c))
    check_derivatives(functools.partial(sample, **case.options), args)


@pytest.mark.parametrize("case", CASES, ids=CASE_IDS)
def test_first_order(case):
    """Against central differences of the oracle; and <A x, y> = <x, A^T y>."""
    image, c = case.image(), case.coordinates(12, off_knots=True)
    run, rng = runner(case), np.random.default_rng(1)
    y, back = jax.vjp(run, jnp.asarray(image), jnp.asarray(c))
    y_bar = rng.normal(size=y.shape)
    x_bar, c_bar = back(jnp.asarray(y_bar))
    offset = case.expected(np.zeros_like(image), c)
    np.testing.assert_allclose(
        np.vdot(image, x_bar), np.vdot(y_bar, np.asarray(y) - offset), rtol=1e-11, atol=1e-11
    )
    for axis in range(2):
        step = np.zeros(2)
        step[axis] = 1e-5
        slope = (case.expected(image, c + step) - case.expected(image, c - step)) / 2e-5
        np.testing.assert_allclose(c_bar[:, axis], (slope * y_bar).sum(-1), rtol=1e-6, atol=1e-7)


def test_hessian_of_a_bilinear_patch():
    """d2/dy dx = a - b - c + d, the pure second derivatives 0; mixed with the image likewise."""
    image, c = jnp.asarray([[1.0, 4.0], [2.0, 9.0]]), jnp.asarray([0.3, 0.6])
    assert float(sample(image, c)) == pytest.approx(3.82)
    for outer, inner in ((jax.jacfwd, jax.jacrev), (jax.jacrev, jax.jacrev), (jax.jacfwd,) * 2):
        hessian = outer(inner(lambda c: sample(image, c)))(c)
        np.testing.assert_allclose(hessian, [[0, 4], [4, 0]], atol=1e-12)
        mixed = outer(jax.grad(lambda x, c: sample(x, c), 0), 1)(image, c)[..., 1]
        np.testing.assert_allclose(mixed, [[-0.7, 0.7], [-0.3, 0.3]], atol=1e-12)


def test_third_order():
    image = jnp.asarray(np.random.default_rng(2).normal(size=7))
    run = lambda t: sample(image, t[None], "cubic")  # noqa: E731
    third = jax.grad(jax.grad(jax.grad(run)))(jnp.asarray(2.3))
    ends = [jax.grad(jax.grad(run))(jnp.asarray(2.3 + d)) for d in (1e-5, -1e-5)]
    assert float(third) == pytest.approx(float(ends[0] - ends[1]) / 2e-5, rel=1e-5)


KNOTS = {"linear": (0.0, 1.0, 2.0), "cubic": (1.0, 2.0), "bspline2": (0.5, 1.5), "hamming": (1.0,)}


@pytest.mark.parametrize("method", KNOTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slope_at_a_knot_is_the_one_on_the_right(method, dtype):
    """Forward and reverse mode, to the first and the second derivative."""
    image = jnp.asarray([1.0, 4.0, 2.0, 9.0, 5.0], dtype)
    wide = image.astype(np.float64)
    run = lambda x, t: sample(x, t[None], method)  # noqa: E731
    for knot in KNOTS[method]:
        t = jnp.asarray(knot, dtype)
        for slope in (jax.grad(run, 1), jax.jacfwd(run, 1)):
            right = (run(wide, jnp.asarray(knot + 1e-6)) - run(wide, jnp.asarray(knot))) / 1e-6
            assert float(slope(image, t)) == pytest.approx(float(right), abs=3e-4), knot
        curve = jax.grad(jax.grad(run, 1), 1)
        beyond = curve(wide, jnp.asarray(knot + 1e-6))
        assert float(curve(image, t)) == pytest.approx(float(beyond), abs=1e-3), knot


def test_ramp_and_squares():
    """On whole coordinates, where both neighbours of a careless rule fall together."""
    slope = lambda x, c: jax.grad(lambda c: sample(x, c).sum())(c)[:, 0]  # noqa: E731
    c = jnp.asarray([[0.0], [1.0], [2.0], [3.0]])
    got = slope(jnp.asarray([3.0, 5, 7, 9]), c)
    np.testing.assert_array_equal(got, [2, 2, 2, 0])
    assert 3 <= float(slope(jnp.asarray([0.0, 1, 4, 9]), c[2:3])[0]) <= 5


@pytest.mark.parametrize("boundary", ["edge", "reflect", "symmetric", "constant", "wrap"])
@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_slopes_at_the_far_edge(boundary, method):
    """Between the one-sided slopes of the sampled function itself, never as if zeros followed."""
    image = jnp.asarray([1.0, 2, 4, 7, 11])
    run = jax.jit(functools.partial(sample, method=method, boundary=boundary, fill_value=50.0))
    for place in (0.0, 4.0, 4.5, -0.5):
        here = jnp.asarray([place])
        value, slope = jax.value_and_grad(run, 1)(image, here)
        sides = [(run(image, here + d) - value) / d for d in (1e-6, -1e-6)]
        low, high = sorted(float(s) for s in sides)
        assert low - 1e-4 <= float(slope[0]) <= high + 1e-4


def test_nearest_has_slope_zero_and_an_image_gradient():
    image, c = jnp.ones((3, 4)), jnp.asarray([[0.4, 2.5], [2.0, 0.0], [9.0, 1.0]])
    run = functools.partial(sample, method="nearest")
    x_bar, c_bar = jax.grad(lambda x, c: run(x, c).sum(), (0, 1))(image, c)
    want = np.zeros((3, 4))
    for place in ((0, 3), (2, 0), (2, 1)):
        want[place] += 1
    np.testing.assert_array_equal(x_bar, want)
    np.testing.assert_array_equal(c_bar, np.zeros((3, 2)))
    assert jax.jvp(lambda c: run(image, c), (c,), (c,))[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_fill_value_has_a_gradient(method):
    """It is the weight of the taps outside, at every depth; 0 where all are inside."""
    c = jnp.asarray([[-9.0], [-0.4], [1.3], [3.0], [3.9]])
    run = functools.partial(sample, jnp.zeros(4), c, method, boundary="constant")
    lost = 1 - sample(jnp.ones(4), c, method, boundary="constant")
    for jacobian in (jax.jacfwd, jax.jacrev):
        got = jacobian(lambda v: run(fill_value=v))(jnp.asarray(2.0))
        np.testing.assert_allclose(got, lost, atol=1e-15)
    np.testing.assert_array_equal(got[jnp.asarray([0, 2, 3])], [1, 0, 0])


def test_locality_of_gradients():
    """Bad pixels and bad cotangents stay where their weight, or its slope, is not 0."""
    rng = np.random.default_rng(3)
    good, bad = rng.uniform(3, 6, (8, 2)), rng.uniform(0, 1, (3, 2))
    c = jnp.asarray(np.concatenate([good, bad, [[0.0, 0.0], [6.0, 6.0]]]))
    image = rng.normal(size=(7, 7))
    image[0, 0] = np.nan
    for method in ("linear", "cubic"):
        _, back = jax.vjp(functools.partial(sample, method=method), jnp.asarray(image), c)
        x_bar, c_bar = back(jnp.ones(13))
        assert np.isfinite(x_bar).all()
        assert np.isfinite(c_bar[:8]).all()
        # on the grid the neighbours' weights are 0: a bad cotangent reaches one pixel
        x_bar, _ = back(jnp.zeros(13).at[12].set(np.nan))
        assert np.isnan(x_bar).sum() == 1


# what they cost -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["linear", "cubic", "lanczos3"])
def test_two_scatters_for_the_whole_image_gradient(method):
    """Half the rows of all windows each, however many taps: two cores take one each."""
    image, c = jnp.ones((30, 20)), jnp.ones((500, 2))
    grad = jax.grad(lambda x, c: sample(x, c, method, boundary="constant").sum(), (0, 1))
    assert jax.jit(grad).lower(image, c).as_text().count('"stablehlo.scatter"(') == 2


def test_residuals_are_image_and_coordinates():
    """What the backward pass keeps: the arguments, and nothing as large as the taps."""
    image, c = jnp.ones((64, 64), jnp.float32), jnp.ones((100, 100, 2), jnp.float32)
    out, pullback = jax.vjp(functools.partial(sample, method="cubic"), image, c)
    kept = sum(leaf.nbytes for leaf in jax.tree.leaves(pullback))
    assert kept <= 2 * (image.nbytes + c.nbytes + out.nbytes)


@pytest.mark.slow
def test_temporaries_of_a_large_gradient():
    """A bicubic 1024^2 sample and both its gradients: under 4 times its arguments and result."""
    image = jax.ShapeDtypeStruct((1024, 1024), np.float32)
    c = jax.ShapeDtypeStruct((1024, 1024, 2), np.float32)

    def loss(image, c):
        return (sample(image, c, "cubic") ** 2).sum()

    compiled = jax.jit(jax.grad(loss, (0, 1))).lower(image, c).compile()
    bound = 4 * (4 * 1024 * 1024 * (1 + 2 + 1))
    assert compiled.memory_analysis().temp_size_in_bytes < bound


def test_chunks_of_the_splat_add_up():
    """An adjoint that takes many chunks, the last of them filled up, equals one dense sum."""
    rng = np.random.default_rng(4)
    c = jnp.asarray(rng.uniform(-2, 13, (33_333, 2)))
    y_bar = jnp.asarray(rng.normal(size=33_333))
    run = functools.partial(sample, method="lanczos3", boundary="wrap")
    x_bar = jax.vjp(lambda x: run(x, c), jnp.zeros((12, 11)))[1](y_bar)[0]
    basis = jnp.eye(132).reshape(12, 11, 132)
    np.testing.assert_allclose(x_bar.ravel(), run(basis, c).T @ y_bar, atol=1e-10)


def test_parameters_of_a_kernel_to_second_order():
    image = jnp.asarray(np.random.default_rng(5).normal(size=(5, 2)))
    c = jnp.asarray([[0.3], [2.6], [5.1]])

    def run(a, c):
        return sample(image, c, kernels.cubic(a), boundary="reflect")

    check_derivatives(run, (jnp.asarray(-0.6), c))


def test_case_table_mixes_methods_and_boundaries():
    mixed = [case for case in CASES if isinstance(case.boundary, tuple)]
    assert len(mixed) > 20
    assert SampleCase("linear", "edge") in CASES
