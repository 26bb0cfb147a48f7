"""Faults other libraries had: each one's small case, then its whole kind."""

import functools
import json
from fractions import Fraction
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import METHODS, Axis, matrix, relative_error, torch_matrix

import jresample
from jresample import interpolate, resize, resize_matrix

DATA = json.loads((Path(__file__).parent / "data" / "reported_faults.json").read_text())
FAULTS = {fault["id"]: fault["expect"] for fault in DATA["faults"]}
EVERY = ("nearest", "linear", "cubic", "cubic-pytorch", "lanczos3", "area")


def one(x, **kwargs):
    """`interpolate` of a 1-D array."""
    return interpolate(jnp.asarray(x)[None, None], **kwargs)[0, 0]


def two(x, **kwargs):
    """`interpolate` of a 2-D array."""
    return interpolate(jnp.asarray(x)[None, None], **kwargs)[0, 0]


def same(got, want, atol=1e-12):
    np.testing.assert_allclose(got, np.asarray(want, np.float64), rtol=0, atol=atol)


def grad_of_sum(run, x):
    return jax.grad(lambda x: run(x).sum())(x)


def outcome(function):
    """What it returns, or the complaint it raises."""
    try:
        return function()
    except (TypeError, ValueError) as error:
        return error


def test_every_fault_has_its_test():
    names = [name for name in globals() if name.startswith("test_")]
    for fault in FAULTS:
        assert any(n.startswith(f"test_{fault.lower().replace('-', '_')}") for n in names), fault
    assert len(FAULTS) + len(DATA["other part of the API"]) == 56


# nearest ------------------------------------------------------------------------------------------


def test_nnx_26to11():
    ramp = jnp.arange(26.0)
    want = FAULTS["NNX-26to11"]["value"]
    for run in (
        lambda x: resize(x, (11,), "nearest"),
        lambda x: resize(x, (11,), "nearest-exact"),
        lambda x: one(x, size=11, mode="nearest-exact"),
    ):
        same(run(ramp), want, 0)
        grad = grad_of_sum(run, ramp)
        np.testing.assert_array_equal(grad, np.isin(np.arange(26), want))


def test_nnx_128to160():
    o = np.arange(160)
    got = np.asarray(resize(np.arange(128), (160,), "nearest"))
    np.testing.assert_array_equal(got, (2 * o + 1) * 128 // 320)
    assert (got[127], got[2], got[7]) == (102, 2, 6)


def test_nnx_every_pair():
    """All sizes to 64, and pairs with exact ties at larger ones: no drift, either way."""
    pairs = [(n, m) for n in range(1, 65) for m in range(1, 65)]
    pairs += [(1000, 1500), (4096, 3072), (999, 1998), (1920, 1080), (224, 160), (3, 3000)]
    for n, m in pairs:
        o = np.arange(m)
        for method, want in [
            ("nearest", (2 * o + 1) * n // (2 * m)),
            ("nearest-floor", o * n // m),
        ]:
            dense = resize_matrix(n, m, method)
            np.testing.assert_array_equal(dense.argmax(1), want)
            assert (dense.sum(1) == 1).all()
            assert (dense.max(1) == 1).all()


def test_nn_align():
    for mode, want in FAULTS["NN-align"]["values"].items():
        same(one(np.arange(7.0), size=4, mode=mode), want, 0)
    same(resize(np.arange(7.0), (4,), "nearest-floor"), FAULTS["NN-align"]["values"]["nearest"], 0)


def test_nn_replicate():
    x = np.array([[1.0, 2, 3], [4, 5, 6]])
    for mode in ("nearest", "nearest-exact"):
        same(two(x, size=(6, 9), mode=mode), FAULTS["NN-replicate"]["value"], 0)
    for n in range(1, 9):
        for k in range(1, 9):
            for method in ("nearest", "nearest-floor", "area", "box"):
                block = np.repeat(np.eye(n), k, axis=0)
                np.testing.assert_array_equal(resize_matrix(n, n * k, method), block)


def test_nn_newlabels():
    x = np.array([0, 5, 5, 5, 0, 0, 0, 7, 7, 7, 0, 0], np.int16)
    want = FAULTS["NN-newlabels"]["value"]
    for got in (
        resize(x, (8,), "nearest", antialias=True),
        resize(x, (8,), "nearest", antialias=False),
        one(x, size=8, mode="nearest-exact"),
    ):
        assert got.dtype == jnp.int16
        np.testing.assert_array_equal(got, want)
    with pytest.raises(ValueError, match="antialias"):
        one(x, size=8, mode="nearest-exact", antialias=True)
    for n, m in [(12, 5), (5, 12), (40, 7)]:
        for method in ("nearest", "nearest-floor"):
            np.testing.assert_array_equal(
                resize_matrix(n, m, method, True), resize_matrix(n, m, method, False)
            )


def test_nn_ac():
    """`resize` rounds, `interpolate` refuses."""
    x = np.array([1.0, 4, 6, 9])
    same(resize(x, (10,), "nearest", align_corners=True), FAULTS["NN-ac"]["b"], 0)
    for mode in ("nearest", "nearest-exact", "area"):
        for align in (True, False):
            with pytest.raises(ValueError, match="align_corners"):
                one(x, size=10, mode=mode, align_corners=align)
    for n in range(1, 30):
        for m in range(2, 30):
            c = [Fraction(o * (n - 1), m - 1) for o in range(m)]
            want = [int(t + Fraction(1, 2)) for t in c]
            dense = resize_matrix(n, m, "nearest", align_corners=True)
            np.testing.assert_array_equal(dense.argmax(1), want)


def test_gr_nn_image():
    for run in (
        lambda x: resize(x, (4, 4, 4), "nearest"),
        lambda x: resize(x, (2, 2, 4), "nearest"),
        lambda x: interpolate(x[None], 4, channel_axis=-1),
        lambda x: interpolate(x[None], 4, mode="nearest-exact", channel_axis=-1),
    ):
        x = jnp.ones((2, 2, 4))
        same(grad_of_sum(run, x) / run(x).size, np.full((2, 2, 4), 0.0625))


def test_gr_nn_down():
    x = np.arange(16.0).reshape(4, 4)
    for mode, place in [("nearest", (0, 0)), ("nearest-exact", (2, 2))]:
        value, grad = jax.value_and_grad(lambda x, m=mode: 5 * two(x, size=1, mode=m).sum())(x)
        want = np.zeros((4, 4))
        want[place] = FAULTS["GR-nn-down"]["value"]
        same(grad, want, 0)
        assert value == 5 * x[place]


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_gr_nn_down_every_factor(mode):
    """The gradient goes back to the sample that was read, for whole and broken factors."""
    for n, m in [(8, 2), (9, 4), (12, 5), (5, 12), (64, 7), (7, 3)]:
        x = np.random.default_rng(n).normal(size=n)
        out, pullback = jax.vjp(lambda x, m=m: one(x, size=m, mode=mode), x)
        read = np.argmin(np.abs(x[None] - np.asarray(out)[:, None]), axis=1)
        (grad,) = pullback(jnp.arange(1.0, m + 1))
        np.testing.assert_array_equal(grad, np.bincount(read, np.arange(1.0, m + 1), minlength=n))


# sizes and factors --------------------------------------------------------------------------------


def test_sz_policy():
    """floor(n * scale), one rule for every mode."""
    for factor, want in zip((0.1234, 0.9999, 1.8, 1.3), FAULTS["SZ-policy"]["floor"], strict=True):
        for mode in ("nearest", "nearest-exact", "linear", "area", "bicubic", "lanczos3"):
            for recompute in (None, True):
                out = jax.eval_shape(
                    lambda x, f=factor, mode=mode, r=recompute: one(
                        x, scale_factor=f, mode=mode, recompute_scale_factor=r
                    ),
                    jax.ShapeDtypeStruct((32,), jnp.float32),
                )
                assert out.shape == (want,)


def test_sc_ac_ignored():
    x = [1.0, 3, 7, 2, 5]
    for align in (False, True):
        got = one(x, scale_factor=1.5, mode="linear", align_corners=align)
        same(got, FAULTS["SC-ac-ignored"]["values"][str(align)], 1e-6)
    for mode in ("linear", "bicubic", "lanczos3"):
        for factor in (1.5, 1.3, 0.7, 2.0):
            both = [one(x, scale_factor=factor, mode=mode, align_corners=a) for a in (False, True)]
            assert np.abs(both[0] - both[1]).max() > 1e-3, (mode, factor)


def test_sc_near1():
    x = jnp.array([5.0, 9.0])
    for mode, want in FAULTS["SC-near1"]["values"].items():
        for run in (one, jax.jit(one, static_argnames=("scale_factor", "mode"))):
            same(run(x, scale_factor=1.00001, mode=mode), want, 1e-4)
    for mode in ("nearest", "nearest-exact", "linear", "bicubic", "area", "lanczos3"):
        for n in (2, 5, 9):
            x = jnp.asarray(np.random.default_rng(n).normal(size=n))
            run = functools.partial(one, scale_factor=1.00001, mode=mode)
            np.testing.assert_array_equal(run(x), jax.jit(run)(x))
            assert run(x).shape == (n,)
            if mode != "nearest":
                same(run(x), x, 1e-3)


def test_sc_kept_factor_sets_the_coordinates():
    """torch's default: positions from the factor, not from the rounded size; every mode."""
    for n in (8, 13):
        for text in ("1.3", "0.45", "2.1"):
            factor = Fraction(text)
            m = int(n * factor)
            for mode in ("nearest", "nearest-exact", "linear", "bicubic", "lanczos3"):
                for antialias in (False, True) if "nearest" not in mode else (False,):
                    axis = Axis(n, m, mode, antialias, scale=factor)
                    got = interpolate(
                        np.eye(n)[None], scale_factor=float(factor), mode=mode, antialias=antialias
                    )
                    same(got[0].T, torch_matrix(axis))


def test_sc_traced():
    x = jnp.ones(4)
    calls = {
        "scale_factor": lambda s: one(x, scale_factor=s),
        "size": lambda s: one(x, size=s),
        "shape": lambda s: resize(x, (s,), "linear"),
    }
    for name, call in calls.items():
        for value in (2, 2.0) if name == "scale_factor" else (6,):
            with pytest.raises((TypeError, ValueError), match=f"`{name}`") as caught:
                jax.jit(call)(value)
            assert "static" in str(caught.value)
            assert "scale_and_translate" in str(caught.value)
    for size in (6, np.int64(6), jnp.int32(6), np.array(6)):
        assert one(x, size=size).shape == (6,)
        assert resize(x, (size,), "linear").shape == (6,)
    for factor in (1.5, np.float32(1.5), jnp.float32(1.5), np.array(1.5)):
        assert one(x, scale_factor=factor).shape == (6,)


def test_sz_float():
    x = jnp.ones(4)
    for bad in [(3.7,), (-2,), (3, 3)]:
        for run in (lambda f: f(), lambda f: jax.jit(f)()):
            with pytest.raises((TypeError, ValueError), match="`shape`"):
                run(lambda b=bad: resize(x, b, "linear"))
            with pytest.raises((TypeError, ValueError), match="`size`"):
                run(lambda b=bad: one(x, size=b))
    for good in [(jnp.int32(3),), (np.int64(3),), [3], np.array([3])]:
        assert resize(x, good, "linear").shape == (3,)
        assert one(x, size=good).shape == (3,)
    assert one(x, size=3).shape == (3,)
    whole = outcome(lambda: resize(x, (3.0,), "linear"))
    assert "`shape`" in str(whole) if isinstance(whole, Exception) else whole.shape == (3,)


@pytest.mark.parametrize("size", [(0, 5), (3, 0), (0, 0)], ids=str)
def test_sz_zero_out(size):
    x = jnp.ones((3, 5), jnp.float32)
    for method in METHODS:
        for antialias in (True, False):
            run = functools.partial(resize, shape=size, method=method, antialias=antialias)
            out = run(x)
            assert out.shape == size
            assert out.dtype == jnp.float32
            np.testing.assert_array_equal(grad_of_sum(run, x), np.zeros((3, 5)))
    assert two(x, size=size, mode="bilinear").shape == size
    assert resize_matrix(3, 0, "cubic").shape == (0, 3)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_sz_batch0(mode):
    for dtype in (jnp.float32, jnp.bfloat16):
        x = jnp.zeros((0, 3, 4, 5), dtype)
        out, pullback = jax.vjp(lambda x: interpolate(x, (7, 2), mode=mode), x)
        assert out.shape == (0, 3, 7, 2)
        assert out.dtype == dtype
        (grad,) = pullback(out)
        assert grad.shape == x.shape
        assert grad.dtype == dtype
    assert interpolate(jnp.zeros((2, 0, 4, 5)), (7, 2), mode=mode).shape == (2, 0, 7, 2)
    method = {"nearest-exact": "nearest"}.get(mode, mode)
    assert resize(jnp.zeros((0, 3, 4)), (0, 5, 2), method).shape == (0, 5, 2)


# linear, corners, one output ----------------------------------------------------------------------


def test_lin_halfpix():
    x = np.array([2.0, 4.0, 12.0, 6.0])
    same(resize(x, (8,), "linear"), FAULTS["LIN-halfpix"]["value"])
    for method in ("linear", "cubic", "cubic-pytorch", "lanczos3", "area", "mitchell", "gaussian"):
        for n in range(1, 12):
            for m in range(1, 12):
                for antialias in (True, False):
                    for align in (True, False) if m > 1 else (False,):
                        dense = resize_matrix(n, m, method, antialias, align_corners=align)
                        same(dense, dense[::-1, ::-1], 1e-13)


def test_flip_scale():
    x = [100.0, 160.0, 280.0]
    same(one(x, scale_factor=1.5, mode="linear"), FAULTS["FLIP-scale"]["value"])
    same(one(x[::-1], scale_factor=1.5, mode="linear")[::-1], [110, 150, 220, 280])
    same(one(x, size=4, mode="linear"), [100.0, 137.5, 205.0, 280.0])
    recomputed = one(x, scale_factor=1.5, mode="linear", recompute_scale_factor=True)
    same(recomputed, [100.0, 137.5, 205.0, 280.0])


def test_ac_basic():
    x = np.array([[1.0, 5, 2], [7, 3, 9]])
    want = FAULTS["AC-basic"]["value"]
    same(resize(x, (3, 5), "linear", align_corners=True), want)
    same(two(x, size=(3, 5), mode="bilinear", align_corners=True), want)
    half = [[1.0, 2.6, 5.0, 3.2, 2.0], [4.0, 4.0, 4.0, 4.9, 5.5], [7.0, 5.4, 3.0, 6.6, 9.0]]
    same(two(x, size=(3, 5), mode="bilinear", align_corners=False), half)
    same(resize(x, (3, 5), "linear"), half)


def test_ac_corners_are_kept():
    """Aligned corners are the corner samples, exactly, in every interpolating kernel."""
    for method in ("nearest", "linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5"):
        for n in range(2, 14):
            for m in range(2, 14):
                dense = resize_matrix(n, m, method, False, align_corners=True)
                np.testing.assert_array_equal(dense[[0, -1]], np.eye(n)[[0, -1]])
        np.testing.assert_array_equal(
            resize_matrix(9, 9, method, align_corners=True), np.eye(9), method
        )


def test_ac_out1():
    x = jnp.array([4.0, 9.0, 2.0, 7.0, 5.0])
    for method in ("nearest", "linear", "cubic", "cubic-pytorch", "lanczos3"):

        def run(x, method=method):
            return resize(x, (1,), method, False, align_corners=True)

        np.testing.assert_array_equal(run(x), FAULTS["AC-out1"]["value"])
        np.testing.assert_array_equal(grad_of_sum(run, x), FAULTS["AC-out1"]["grad_of_sum"])
    for mode in ("linear", "bicubic", "lanczos3"):
        np.testing.assert_array_equal(one(x, size=1, mode=mode, align_corners=True), [4.0])
    y = np.random.default_rng(0).normal(size=(5, 3))
    got = two(y, size=(1, 6), mode="bilinear", align_corners=True)
    want = y[:1] @ matrix(Axis(3, 6, "linear", False, True)).T
    same(got, want)
    for method in METHODS:
        for n in range(1, 9):
            for antialias in (True, False):
                if method == "nearest-floor":
                    continue
                dense = resize_matrix(n, 1, method, antialias, align_corners=True)
                assert np.isfinite(dense).all()
                assert abs(dense.sum() - 1) < 1e-14
                if method not in ("gaussian", "mitchell") and "bspline" not in method:
                    np.testing.assert_array_equal(dense, np.eye(n)[:1])


def test_to1_center():
    x = jnp.array([9.0, 1.0, 4.0, 7.0, 3.0])
    for run in (
        lambda x: resize(x, (1,), "linear", False),
        lambda x: resize(x, (1,), "cubic-pytorch", False),
        lambda x: resize(x, (1,), "nearest"),
        lambda x: one(x, size=1, mode="bicubic"),
        lambda x: one(x, size=1, mode="linear"),
        lambda x: one(x, size=1, mode="nearest-exact"),
    ):
        np.testing.assert_array_equal(run(x), FAULTS["TO1-center"]["value"])
        np.testing.assert_array_equal(grad_of_sum(run, x), FAULTS["TO1-center"]["grad_of_sum"])
    for n in range(1, 40, 2):
        for method in ("nearest", "linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5"):
            np.testing.assert_array_equal(
                resize_matrix(n, 1, method, False), np.eye(n)[[n // 2]], method
            )


def test_to1_compile():
    x = (np.arange(70.0) ** 1.5).reshape(7, 10)
    run = functools.partial(resize, shape=(1, 1), method="linear", antialias=False)
    for got in (run(x), jax.jit(run)(x), jax.vmap(run)(np.stack([x] * 3))[1]):
        same(got, FAULTS["TO1-compile"]["value"], 1e-6)


# cubic, antialias ---------------------------------------------------------------------------------


def test_cub_over():
    values = FAULTS["CUB-over"]["values"]
    x = np.array([0, 0, 1, 1], np.float32)
    u = np.array([0, 0, 255, 255], np.uint8)
    for run in (
        lambda x: resize(x, (8,), "cubic-pytorch", False),
        lambda x: one(x, size=8, mode="bicubic"),
    ):
        same(run(x), values["float"], 1e-6)
        got = run(u)
        assert got.dtype == jnp.float32
        same(got, values["uint8 image, float32 result"], 1e-4)


def test_cub_a():
    x = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0])
    values = FAULTS["CUB-a"]["values"]
    same(resize(x, (4,), "cubic-pytorch", False), values["-0.75"], 1e-6)
    same(one(x, size=4, mode="bicubic"), values["-0.75"], 1e-6)
    same(resize(x, (4,), "cubic", False, boundary="edge"), values["-0.5"], 1e-6)
    same(resize(x, (4,), "cubic", False), values["-0.5 dropped"], 1e-6)
    kernel = jresample.kernels.cubic(-0.75)
    same(resize(x, (4,), kernel, False, boundary="edge"), values["-0.75"], 1e-6)


def test_aa_pil():
    x = np.array([0.0, 1.0] * 8)
    for antialias in (True, False):
        want = FAULTS["AA-pil"]["values"][str(antialias)]
        same(resize(x, (4,), "linear", antialias), want, 1e-6)
        same(one(x, size=4, mode="linear", antialias=antialias), want, 1e-6)


def test_aa_grad():
    x = jnp.zeros(16)
    want = FAULTS["AA-grad"]["value"]

    def run(x):
        return resize(x, (4,), "linear").sum()

    for grad in (jax.grad(run)(x), jax.jacfwd(run)(x)):
        same(grad, want, 1e-6)
    for n in range(2, 40):
        for m in range(1, n):
            assert (resize_matrix(n, m, "linear").sum(0) > 0).all(), (n, m)


def test_aa_huge_up():
    x = jnp.array([1.0, 3.0], jnp.float32)
    size = 2_000_003
    run = jax.jit(resize, static_argnames=("shape", "method", "antialias"))
    aa, plain = (run(x, shape=(size,), method="linear", antialias=a) for a in (True, False))
    np.testing.assert_allclose(aa, plain, rtol=0, atol=1e-6)
    np.testing.assert_allclose(aa[jnp.array([0, size // 2, size - 1])], [1, 2, 3], atol=1e-6)
    compiled = run.lower(x, shape=(size,), method="linear", antialias=True).compile()
    assert compiled.memory_analysis().temp_size_in_bytes <= 20 * 4 * size


def test_aa_evenksize():
    same(resize(np.arange(1.0, 9), (6,), "linear"), FAULTS["AA-evenksize"]["value"], 1e-6)
    for n in range(2, 41):
        for m in range(1, n + 1):
            for method in ("linear", "cubic", "lanczos3"):
                np.testing.assert_allclose(resize_matrix(n, m, method).sum(1), 1, atol=4e-15)
    x = jax.ShapeDtypeStruct((512, 1536), jnp.float32)
    assert jax.eval_shape(lambda x: resize(x, (384, 1152), "linear"), x).shape == (384, 1152)


def test_lan_341():
    for x in (np.full(341, 200, np.uint8), np.full((341, 3), 200, np.uint8)):
        got = resize(x, (170,), "lanczos3", axes=(0,))
        assert got.dtype == jnp.float32
        same(got, np.full((170, *x.shape[1:]), 200), FAULTS["LAN-341"]["atol"])
    for n in range(300, 400):
        for method in ("lanczos3", "lanczos5", "cubic"):
            np.testing.assert_allclose(resize_matrix(n, n // 2, method).sum(1), 1, atol=4e-15)


def test_aa_over1():
    got = np.asarray(resize(np.ones((208, 208), np.float32), (128, 128), "linear"))
    assert got.max() <= 1 + 1e-6
    assert got.min() >= 1 - 1e-6
    x = np.random.default_rng(0).uniform(size=(208, 208)).astype(np.float32)
    for method in ("linear", "area", "box", "gaussian", "bspline3"):
        got = np.asarray(resize(x, (128, 150), method))
        assert got.max() <= 1 + 1e-6
        assert got.min() >= -1e-6
        for n, m in [(208, 128), (37, 5), (5, 37), (300, 299)]:
            assert (resize_matrix(n, m, method) >= 0).all()


# not-a-number, dtypes -----------------------------------------------------------------------------


def test_nan_resize():
    nan, inf = np.nan, np.inf
    x = np.array([nan, 1, 2, 3])
    want = np.array([float(v) for v in FAULTS["NAN-resize"]["value"]])
    for run in (lambda x: resize(x, (8,), "linear"), lambda x: one(x, size=8, mode="linear")):
        np.testing.assert_allclose(run(x), want, rtol=0, atol=1e-12)
        got = np.asarray(run(np.array([inf, 1, 2, 3])))
        assert not np.isfinite(got[:3]).any()
        assert np.isfinite(got[3:]).all()
    for method in ("cubic", "cubic-pytorch"):
        got = np.isnan(np.asarray(resize(x, (8,), method, False)))
        np.testing.assert_array_equal(got, [1, 1, 1, 1, 1, 0, 0, 0])
    np.testing.assert_array_equal(np.isnan(resize(x, (8,), "nearest")), [1, 1, 0, 0, 0, 0, 0, 0])
    shrunk = resize(np.array([nan] + [1.0] * 7), (4,), "linear")
    np.testing.assert_allclose(shrunk, [nan, 1, 1, 1], rtol=0, atol=1e-12)
    tripled = resize(np.array([1, 2, nan]), (9,), "linear")
    np.testing.assert_allclose(tripled, [1, 1, 4 / 3, 5 / 3, 2, nan, nan, nan, nan], atol=1e-12)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16], ids=lambda d: d.__name__)
def test_lp_const16(dtype):
    x = jnp.array([[0.4216]], dtype)
    for method in METHODS:
        got = resize(x, (5, 5), method)
        assert got.dtype == dtype
        assert (got == x).all()
    for mode in ("bilinear", "bicubic", "lanczos3"):
        for align in (True, False):
            assert (two(x, size=5, mode=mode, align_corners=align) == x).all()


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16], ids=lambda d: d.__name__)
def test_lp_gradacc(dtype):
    for x in (jnp.ones(1, dtype), jnp.ones(3, dtype)):
        for method in ("nearest", "linear", "cubic", "lanczos3"):
            grad = jax.grad(lambda x, m=method: resize(x, (4096,), m).astype(jnp.float32).sum())(x)
            assert grad.dtype == dtype
            want = resize_matrix(x.size, 4096, method).sum(0)
            got = np.asarray(grad, np.float64)
            if x.size == 1:
                np.testing.assert_array_equal(got, FAULTS["LP-gradacc"]["value"])
            np.testing.assert_allclose(got, want, rtol=float(jnp.finfo(dtype).eps) / 2)


def test_dt_uint8():
    x = [10, 200, 30]
    for dtype in (jnp.uint8, jnp.int32, jnp.bool_):
        image = jnp.asarray(x).astype(dtype)
        for method in EVERY:
            got = resize(image, (5,), method)
            assert got.dtype == (dtype if method == "nearest" else jnp.float32)
    got = resize(np.array(x, np.uint8), (5,), "linear")
    np.testing.assert_array_equal(got, np.float32(FAULTS["DT-uint8"]["linear_values"]))
    for dtype in (jnp.float16, jnp.bfloat16, jnp.float32, jnp.float64):
        for method in EVERY:
            assert resize(jnp.asarray(x, dtype), (5,), method).dtype == dtype


def test_dt_trunc():
    x = np.array([[10, 20, 30, 40], [50, 60, 70, 80]], np.uint8)
    got = two(x, scale_factor=(0.6, 0.6), mode="bilinear")
    assert got.dtype == jnp.float32
    same(got, FAULTS["DT-trunc"]["value"], 1e-4)


def test_cplx():
    x = np.array([1 + 2j, 3 - 4j, -2 + 1j], np.complex64)
    want = np.array(FAULTS["CPLX"]["value"]) @ [1, 1j]
    for method in METHODS:
        got = resize(x, (5,), method)
        assert got.dtype == jnp.complex64
        if method == "linear":
            np.testing.assert_allclose(got, want, atol=1e-6)
        real, imag = (np.asarray(resize(part, (5,), method)) for part in (x.real, x.imag))
        np.testing.assert_allclose(got, real + 1j * imag, atol=1e-6)
        grad = jax.grad(lambda x, m=method: (jnp.abs(resize(x, (5,), m)) ** 2).sum())(x)
        assert np.isfinite(grad).all()
        assert grad.dtype == jnp.complex64
    assert one(x, size=5, mode="linear").dtype == jnp.complex64


# gradients, memory, long axes ---------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "lanczos3"])
@pytest.mark.parametrize("factor", [1.0239, 1.3, 0.6])
def test_gr_consistent(mode, factor):
    """Reverse mode is the transpose of forward mode, whichever rule a kept factor follows."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=(4, 7)))

    def run(x):
        return two(x, scale_factor=factor, mode=mode)

    pushed, pulled = jax.jacfwd(run)(x), jax.jacrev(run)(x)
    np.testing.assert_allclose(pushed, pulled, rtol=0, atol=1e-14)
    same(run(x), jnp.einsum("ijkl,kl->ij", pushed, x), 1e-12)
    assert abs(pushed.sum() - run(x).size) < 1e-12
    if factor == 1.0239:
        assert run(x).size == FAULTS["GR-consistent"]["total"]


def test_gr_determ():
    x = np.random.default_rng(2).normal(size=(2, 8, 33, 47)).astype(np.float32)
    w = np.random.default_rng(3).normal(size=(2, 8, 65, 91)).astype(np.float32)
    grad = jax.jit(jax.grad(lambda x: (interpolate(x, (65, 91), mode="bicubic") * w).sum()))
    first = np.asarray(grad(x))
    assert all(np.array_equal(first, grad(x)) for _ in range(9))


def test_pf_dense():
    """Temporaries grow with the output, not with input times output."""
    run = jax.jit(resize, static_argnames=("shape", "method"))
    for method in ("linear", "lanczos3"):
        for n in (4096, 65536, 1_000_000):
            m = 2 * n if n < 10**6 else 1_500_000
            x = jax.ShapeDtypeStruct((n,), jnp.float32)
            memory = run.lower(x, shape=(m,), method=method).compile().memory_analysis()
            assert memory.temp_size_in_bytes <= 64 * 4 * m, (method, n)
            assert memory.temp_size_in_bytes < 200e6


@pytest.mark.parametrize("align", [False, True])
def test_pr_longaxis(align):
    n, m = 1_000_003, 1_500_001
    x = (np.arange(n) % 2).astype(np.float32)
    got = np.asarray(resize(x, (m,), "linear", align_corners=align))
    axis = Axis(n, m, "linear", align_corners=align)
    for rows in (range(m - 200, m), range(200), range(m // 2, m // 2 + 100)):
        for o in rows:
            c = o * Fraction(n - 1, m - 1) if align else Fraction((2 * o + 1) * n - m, 2 * m)
            low = max(c.numerator // c.denominator, 0)
            part = float(min(max(c - low, 0), 1)) if low < n - 1 else 0.0
            want = (1 - part) * x[low] + part * x[min(low + 1, n - 1)]
            assert abs(got[o] - want) <= 3e-7, (o, axis)


def test_pr_float32_error_everywhere():
    """The same at the sizes where float32 positions are known to be off."""
    for n, m in [(224, 160), (1000, 1501), (10007, 12011)]:
        x = np.random.default_rng(n).normal(size=n).astype(np.float32)
        for method in ("linear", "cubic", "lanczos3"):
            got = np.asarray(resize(x, (m,), method))
            some = np.unique(np.r_[:20, m - 20 : m, np.random.default_rng(1).integers(0, m, 60)])
            want = [_row_value(Axis(n, m, method), int(o), x) for o in some]
            assert relative_error(got[some], np.array(want), x) <= 3e-7, (n, m, method)


def _row_value(axis, o, x):
    from helpers import row

    return sum(float(w) * float(x[i]) for i, w in row(axis, o).items())
