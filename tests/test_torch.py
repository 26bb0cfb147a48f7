"""`interpolate` against torch itself, values and gradients, in float64 to 1e-12."""

import inspect
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import relative_error

import jresample

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

SHAPES = {1: (2, 3, 7), 2: (2, 3, 7, 10), 3: (2, 2, 5, 7, 4)}
SIZES = {1: [(5,), (12,), (1,)], 2: [(5, 13), (12, 4)], 3: [(4, 11, 3), (8, 1, 6)]}
FACTORS = {1: [(1.3,), (0.7,)], 2: [(1.3, 0.7), (0.45, 2.3)], 3: [(1.7, 0.6, 1.3)]}
LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


def modes_of(dim):
    """(mode, align_corners, antialias) of all that torch takes in `dim` dimensions."""
    yield from ((mode, None, False) for mode in ("nearest", "nearest-exact", "area"))
    yield from ((LINEAR[dim], align, False) for align in (None, False, True))
    if dim == 2:
        yield from (("bicubic", align, False) for align in (False, True))
        yield from itertools.product(("bilinear", "bicubic"), (False, True), (True,))
        if "lanczos" in torch.nn.functional.interpolate.__doc__:
            yield "lanczos", None, True


MODES = [(dim, *mode) for dim in (1, 2, 3) for mode in modes_of(dim)]


def both(x, y=None, **kwargs):
    """(ours, theirs), and with a cotangent their gradients."""
    theirs = torch.tensor(x, requires_grad=True)
    out = torch.nn.functional.interpolate(theirs, **kwargs)
    ours, pullback = jax.vjp(lambda x: jresample.interpolate(x, **kwargs), jnp.asarray(x))
    if y is None:
        y = np.random.default_rng(9).normal(size=tuple(out.shape))
    out.backward(torch.tensor(y))
    return (ours, out.detach().numpy()), (pullback(y)[0], theirs.grad.numpy()), y


def compare(x, **kwargs):
    (ours, theirs), (grad, their_grad), y = both(x, **kwargs)
    assert relative_error(ours, theirs, x) <= 1e-12, kwargs
    assert relative_error(grad, their_grad, y) <= 1e-12 * max(1, y.size / x.size), kwargs


@pytest.mark.parametrize(("dim", "mode", "align", "antialias"), MODES)
def test_sizes(dim, mode, align, antialias):
    x = np.random.default_rng(0).normal(size=SHAPES[dim])
    for size in SIZES[dim]:
        compare(x, size=size, mode=mode, align_corners=align, antialias=antialias)


@pytest.mark.parametrize("recompute", [None, False, True])
@pytest.mark.parametrize(("dim", "mode", "align", "antialias"), MODES)
def test_factors(dim, mode, align, antialias, recompute):
    """Kept, the factor sets the coordinates; recomputed, the sizes do."""
    x = np.random.default_rng(0).normal(size=SHAPES[dim])
    options = {"mode": mode, "align_corners": align, "antialias": antialias}
    for factor in FACTORS[dim]:
        compare(x, scale_factor=factor, recompute_scale_factor=recompute, **options)
    compare(x, scale_factor=1.3, recompute_scale_factor=recompute, **options)


def test_one_size_for_every_axis():
    compare(np.random.default_rng(0).normal(size=(1, 2, 5, 7)), size=6, mode="bilinear")


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "area", "bilinear", "bicubic"])
def test_unchanged_axis(mode):
    """One axis keeps its size, and its samples."""
    compare(np.random.default_rng(0).normal(size=(1, 2, 5, 7)), size=(5, 9), mode=mode)
    compare(np.random.default_rng(0).normal(size=(1, 2, 5, 7)), size=(3, 7), mode=mode)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_unchanged_axis_of_a_kept_factor(dim):
    """torch copies, in the linear family, an axis whose size stays; the factor says otherwise."""
    x = np.random.default_rng(0).normal(size=SHAPES[dim])
    compare(x, scale_factor=(1.02,) * dim, mode=LINEAR[dim])
    compare(x, scale_factor=(1.02,) * (dim - 1) + (1.3,), mode=LINEAR[dim])


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_at_every_small_pair(mode):
    """Wherever float32 positions, torch's, are not on a tie."""
    shift = 1 if mode == "nearest-exact" else 0
    for size_in in range(1, 41):
        x = torch.arange(size_in, dtype=torch.float64).reshape(1, 1, -1)
        for size_out in range(1, 41):
            o = np.arange(size_out)
            want = (2 * o + shift) * size_in // (2 * size_out)
            ties = (2 * o + shift) * size_in % (2 * size_out) == 0
            theirs = torch.nn.functional.interpolate(x, size_out, mode=mode)[0, 0].numpy()
            np.testing.assert_array_equal(theirs[~ties], want[~ties])
            weights = jresample.resize_matrix(
                size_in, size_out, "nearest" if shift else "nearest-floor"
            )
            np.testing.assert_array_equal(weights.argmax(1), want)


def test_output_sizes():
    """floor(float(n) * s), whatever the factor, as torch computes it."""
    factors = [k / 100 for k in range(3, 260, 7)] + [0.29, 0.57, 0.58, 1.1, 1.15, 2.3, 1 / 3, 0.1]
    for n in (1, 7, 10, 30, 100):
        for factor in factors:
            size = math.floor(float(n) * factor)
            if size == 0:
                continue
            shape = jax.eval_shape(
                lambda x, f=factor: jresample.interpolate(x, scale_factor=f),
                jax.ShapeDtypeStruct((1, 1, n), jnp.float32),
            ).shape
            theirs = torch.nn.functional.interpolate(torch.zeros(1, 1, n), scale_factor=factor)
            assert shape == tuple(theirs.shape) == (1, 1, size), (n, factor)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_single_sample_axes(mode, antialias):
    x = np.random.default_rng(0).normal(size=(1, 1, 1, 6))
    for align in (False, True):
        for size in [(4, 1), (1, 1), (3, 3)]:
            compare(x, size=size, mode=mode, align_corners=align, antialias=antialias)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "area", "bilinear", "bicubic"])
def test_channels_last(mode):
    x = np.random.default_rng(0).normal(size=(2, 5, 7, 3))
    got = jresample.interpolate(x, (8, 4), mode=mode, channel_axis=-1)
    theirs = torch.tensor(np.moveaxis(x, -1, 1))
    want = torch.nn.functional.interpolate(theirs, (8, 4), mode=mode).numpy()
    assert relative_error(got, np.moveaxis(want, 1, -1), x) <= 1e-12


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "area"])
def test_dtypes(mode, dtype):
    x = np.random.default_rng(0).normal(size=(1, 2, 6, 8)).astype(np.float32)
    theirs = torch.tensor(x).to(getattr(torch, dtype))
    want = torch.nn.functional.interpolate(theirs, (9, 5), mode=mode)
    got = jresample.interpolate(jnp.asarray(x, dtype), (9, 5), mode=mode)
    assert got.dtype == jnp.dtype(dtype)
    assert str(want.dtype) == f"torch.{dtype}"
    bound = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    assert relative_error(got, want.float().numpy().astype(np.float64), x) <= bound


def test_refuses_what_torch_refuses():
    """But for what it goes past torch in; test_errors.py has the messages."""
    x = np.zeros((1, 2, 4, 5))
    calls = [
        {},
        {"size": 3, "scale_factor": 2.0},
        {"size": (3, 3, 3)},
        {"scale_factor": (2.0,)},
        {"size": 3, "recompute_scale_factor": True},
        {"size": 3, "mode": "nearest", "align_corners": True},
        {"size": 3, "mode": "area", "align_corners": False},
        {"size": 3, "mode": "linear"},
        {"size": 3, "mode": "trilinear"},
        {"size": 3, "mode": "nonsense"},
        {"size": 3, "mode": "nearest", "antialias": True},
        {"size": 3, "mode": "area", "antialias": True},
        {"size": (3.5, 2)},
        {"size": -1},
    ]
    for kwargs in calls:
        with pytest.raises((ValueError, TypeError, NotImplementedError, RuntimeError)):
            torch.nn.functional.interpolate(torch.tensor(x), **kwargs)
        with pytest.raises((ValueError, TypeError)):
            jresample.interpolate(x, **kwargs)


def test_leading_parameters():
    ours = inspect.signature(jresample.interpolate).parameters
    theirs = inspect.signature(torch.nn.functional.interpolate).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    for name, parameter in theirs.items():
        assert ours[name].default == parameter.default


@pytest.mark.parametrize("mode", ["nearest", "bicubic"])
@pytest.mark.parametrize("factor", [2.1, 2.3, 1.05, 1.5, 0.55])
def test_kept_factors_beside_each_other(mode, factor):
    """torch's 2-D rules for a size that doubles or stays although the factor says otherwise."""
    x = np.random.default_rng(0).normal(size=(1, 2, 5, 7))
    want = torch.nn.functional.interpolate(torch.tensor(x), None, (1.0, factor), mode).numpy()
    got = jresample.interpolate(x, None, (1.0, factor), mode)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)
