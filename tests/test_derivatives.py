"""Forward and reverse mode, to second order, and every way JAX has of asking for them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import CASE_IDS, CASES, FEW, FEW_IDS, relative_error
from jax.test_util import check_grads

import jresample


@pytest.mark.parametrize("case", CASES, ids=CASE_IDS)
def test_jacobians(case):
    """jacfwd == jacrev == the Kronecker product of the axes' matrices."""
    forward, reverse = jax.jit(lambda x: (jax.jacfwd(case.run)(x), jax.jacrev(case.run)(x)))(
        case.image()
    )
    want = case.jacobian
    for got in (forward, reverse):
        np.testing.assert_allclose(got.reshape(want.shape), want, rtol=0, atol=1e-13)


@pytest.mark.parametrize("case", CASES, ids=CASE_IDS)
def test_second_order(case):
    """Hessian of sum(sin(A x)) is A^T diag(-sin(A x)) A, both ways round; and the linear tools."""
    x, v, y = case.image(), case.image(seed=5), case.cotangent()

    def loss(x):
        return jnp.sin(case.run(x)).sum()

    def everything(x, v, y):
        out, linear = jax.linearize(case.run, x)
        transposed = jax.linear_transpose(case.run, x)
        return {
            "over_reverse": jax.jvp(jax.grad(loss), (x,), (v,))[1],
            "reverse_reverse": jax.grad(lambda x: jnp.vdot(jax.grad(loss)(x), v))(x),
            "value": out,
            "linear": linear(v),
            "transpose": transposed(y)[0],
            "twice": jax.linear_transpose(lambda y: transposed(y)[0], y)(x)[0],
            "checkpoint": jax.grad(jax.checkpoint(loss))(x),
        }

    got = jax.jit(everything)(x, v, y)
    bend = case.adjoint(-np.sin(case.expected(x)) * case.expected(v))
    want = {
        "over_reverse": bend,
        "reverse_reverse": bend,
        "value": case.expected(x),
        "linear": case.expected(v),
        "transpose": case.adjoint(y),
        "twice": case.expected(x),
        "checkpoint": case.adjoint(np.cos(case.expected(x))),
    }
    for name, value in want.items():
        scale = np.max(np.abs(value)) + 1
        np.testing.assert_allclose(got[name], value, rtol=0, atol=1e-12 * scale, err_msg=name)


@pytest.mark.parametrize("case", FEW, ids=FEW_IDS)
def test_check_grads(case):
    """Against finite differences, orders 1 and 2, both modes."""
    check_grads(jax.jit(lambda x: jnp.sin(case.run(x))), (case.image(),), 2, ["fwd", "rev"])


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "area"])
def test_check_grads_of_interpolate(mode):
    def run(x):
        return jnp.sin(jresample.interpolate(x, scale_factor=(1.3, 0.6), mode=mode))

    x = np.random.default_rng(0).normal(size=(1, 2, 5, 6))
    check_grads(jax.jit(run), (x,), 2, ["fwd", "rev"])


@pytest.mark.parametrize("case", FEW, ids=FEW_IDS)
def test_hessian(case):
    x = case.image()
    got = jax.jit(jax.hessian(lambda x: (case.run(x) ** 3).sum() / 6))(x)
    dense = case.jacobian
    want = dense.T @ (case.expected(x).reshape(-1, 1) * dense)
    np.testing.assert_allclose(got.reshape(want.shape), want, rtol=0, atol=1e-11)


def test_third_order():
    """d^3/dx^3 of sum(y^3) / 6 for y = A x, contracted with the same direction thrice."""
    x, v = np.random.default_rng(0).normal(size=(2, 5))

    def along(t):
        return (jresample.resize(x + t * v, (8,), "cubic") ** 3).sum() / 6

    third = jax.grad(jax.grad(jax.jacfwd(along)))(0.0)
    want = (jresample.resize_matrix(5, 8, "cubic") @ v) ** 3
    np.testing.assert_allclose(third, want.sum(), rtol=1e-12)


def test_complex_gradient():
    rng = np.random.default_rng(0)
    x = rng.normal(size=5) + 1j * rng.normal(size=5)
    grad = jax.grad(lambda x: (jnp.abs(jresample.resize(x, (8,), "lanczos3")) ** 2).sum())(x)
    dense = jresample.resize_matrix(5, 8, "lanczos3")
    assert relative_error(grad, 2 * dense.T @ dense @ x.conj(), x) <= 1e-12
    check_grads(lambda x: jresample.resize(x, (8,), "cubic"), (x,), 2, ["fwd", "rev"])


def test_integer_image_has_float0_gradient():
    x = np.array([10, 200, 30], np.uint8)
    out, pullback = jax.vjp(lambda x: jresample.resize(x, (5,), "linear"), x)
    assert pullback(jnp.ones_like(out))[0].dtype == jax.dtypes.float0
