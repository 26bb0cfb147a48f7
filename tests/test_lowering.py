"""One program for each platform: which strategies it takes, and what it must and must not hold.

The texts are those of jax.export, which lowers for machines that are not here. What XLA makes of
them is the business of `benchmarks/aot.py`.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import Axis, matrix
from jax import export
from jax.sharding import AxisType, PartitionSpec

import jresample
from jresample import _apply, _plan, _spec, _strategies

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
METHODS = ("linear", "cubic", "lanczos3", "area")


def plan_of(size_in, size_out, method="cubic"):
    specs, _ = _spec.resize_specs((size_in,), (size_out,), method, True, (0,), False, None)
    return _plan.build(specs[0][1])


def passes_of(sizes, methods):
    """Pairs (axis, plan), and their matrices by the oracle."""
    pairs = list(zip(sizes, itertools.cycle(methods), strict=False))
    plans = tuple((axis, plan_of(*size, method)) for axis, (size, method) in enumerate(pairs))
    return plans, [np.asarray(matrix(Axis(*size, method)), float) for size, method in pairs]


def applied(x, matrices):
    for axis, dense in enumerate(matrices):
        x = np.moveaxis(np.tensordot(x, dense, (axis, 1)), -1, axis)
    return x


run = jax.jit(_apply.apply, static_argnums=(1, 2))


# the choice ---------------------------------------------------------------------------------------

# (size_in, size_out, method, elements behind the axis) -> strategy on cpu, cuda and rocm, tpu
CHOICES = {
    (256, 512, "cubic", 768): ("gather", "gather", "matrix"),
    (512, 777, "lanczos3", 3): ("gather", "gather", "matrix"),
    (256, 512, "nearest", 768): ("gather", "gather", "gather"),
    (224, 112, "linear", 1): ("polyphase", "polyphase", "matrix"),
    (2048, 224, "cubic", 5760): ("scan", "gather", "matrix"),
    (4096, 64, "lanczos3", 5760): ("scan", "scan", "matrix"),
    (20000, 10000, "linear", 1): ("polyphase", "polyphase", "polyphase"),
    (20000, 10001, "linear", 64): ("gather", "gather", "gather"),
}


@pytest.mark.parametrize("asked", CHOICES, ids=str)
def test_strategies_by_platform(asked):
    *axis, trailing = asked
    names = [_strategies.choose(plan_of(*axis), trailing, platform) for platform in PLATFORMS]
    cpu, gpu, tpu = CHOICES[asked]
    assert names == [cpu, gpu, gpu, tpu]
    assert _strategies.choose(plan_of(*axis), trailing) == cpu, "any other platform"


def test_every_platform_is_registered():
    assert set(_apply.PLATFORMS) == {*PLATFORMS, "default"}


@pytest.mark.parametrize(
    ("sizes", "order"),
    [
        ([(256, 512), (256, 512)], (0, 1)),  # as the axes come
        ([(1080, 224), (1920, 224)], (0, 1)),  # the other is 0.93 of the work: not worth a copy
        ([(224, 1080), (1920, 224)], (1, 0)),  # 0.2
        ([(1080, 2160), (1920, 3840)], (1, 0)),  # 0.83
        ([(64, 65), (512, 16), (32, 128)], (1, 0, 2)),
    ],
)
def test_order_of_matrices(sizes, order):
    passes = tuple((axis, plan_of(*size)) for axis, size in enumerate(sizes))
    for given in (passes, passes[::-1]):
        assert tuple(axis for axis, _ in _apply.by_products(given)) == order


# what each program holds --------------------------------------------------------------------------


def texts(method, platforms):
    """Exported forward and gradient, as text."""
    exported = export.export(
        jax.jit(lambda x: jresample.resize(x, (2, 36, 10, 3), method)), platforms=platforms
    )(jax.ShapeDtypeStruct((2, 20, 24, 3), jnp.float32))
    return exported.mlir_module(), exported.vjp().mlir_module()


@pytest.mark.parametrize("method", METHODS)
def test_on_tpu_matrices_are_multiplied(method):
    for text in texts(method, ("tpu",)):
        # two passes; and two, of three planes, for an image that is not finite
        assert text.count("stablehlo.dot_general") == 4
        assert text.count("HIGHEST, precision = HIGHEST") + text.count("[HIGHEST, HIGHEST]") == 4
        assert "stablehlo.gather" not in text
        # a conditional would copy the result
        assert text.count("stablehlo.while") == 1
        assert "stablehlo.case" not in text
        assert "stablehlo.if" not in text


@pytest.mark.parametrize("platform", ["cuda", "rocm"])
@pytest.mark.parametrize("method", METHODS)
def test_on_gpu_taps_are_gathered(method, platform):
    """No scatter, so no atomics; nothing that waits for a value, so nothing between kernels."""
    for text in texts(method, (platform,)):
        assert "stablehlo.gather" in text
        for other in ("scatter", "dot_general", "stablehlo.while", "stablehlo.case"):
            assert other not in text


def test_on_gpu_wide_kernels_are_unrolled_further():
    def text(platform):
        passes = ((0, plan_of(2048, 224)),)
        return run.lower(jnp.ones((2048, 2), jnp.float32), passes, platform).as_text()

    for platform in ("cuda", "rocm"):
        assert "stablehlo.while" not in text(platform)
    assert "stablehlo.while" in text("default")


def test_all_platforms_at_once():
    """One artefact has all the lowerings, forwards and backwards, and runs here."""
    for text in texts("cubic", PLATFORMS):
        assert "stablehlo.dot_general" in text
        assert "stablehlo.gather" in text
        assert "scatter" not in text
    x = np.random.default_rng(0).normal(size=(20, 24)).astype(np.float32)
    exported = export.export(
        jax.jit(lambda x: jresample.resize(x, (36, 10), "cubic")), platforms=PLATFORMS
    )(x)
    _, matrices = passes_of([(20, 36), (24, 10)], ["cubic"])
    np.testing.assert_allclose(exported.call(x), applied(x, matrices), rtol=0, atol=2e-6)
    y = np.random.default_rng(1).normal(size=(36, 10)).astype(np.float32)
    (back,) = exported.vjp().call(x, y)
    np.testing.assert_allclose(back, applied(y, [d.T for d in matrices]), rtol=0, atol=5e-6)


def test_matrices_are_not_baked_in():
    """They are built from their taps, whichever of a plan and its adjoint has fewer."""
    for sizes in ((2048, 64), (64, 2048)):
        x = jax.ShapeDtypeStruct(sizes[:1], jnp.float32)
        text = run.lower(x, ((0, plan_of(*sizes)),), "tpu").as_text()
        assert len(text) < 300_000
        assert text.count("stablehlo.compare") < 40
        assert text.count("stablehlo.while") == 1, "that for images that are not finite"


# what the program for TPU computes, run here ------------------------------------------------------

SHAPES = {
    "both axes": [(12, 7), (9, 20)],
    "the other order": [(9, 40), (30, 6)],
    "three axes": [(5, 9), (6, 4), (7, 9)],
    "one axis, enlarged": [(9, 20)],
    "one axis, shrunk": [(20, 9)],
    "as many taps as samples": [(200, 3), (4, 5)],
}


@pytest.mark.parametrize(
    "methods", [("cubic", "lanczos3", "linear"), ("area", "gaussian")], ids=str
)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("transposed", [False, True])
def test_matrices_keep_to_their_taps(shape, methods, transposed):
    """Values, and NaN and infinities that reach only what weighs them, with the sign they get."""
    passes, matrices = passes_of(SHAPES[shape], methods)
    if transposed:
        passes = tuple((axis, plan.transpose()) for axis, plan in passes)
        matrices = [dense.T for dense in matrices]
    rng = np.random.default_rng(0)
    clean = rng.normal(size=[dense.shape[1] for dense in matrices])
    want = applied(clean, matrices)
    scale = np.prod([np.abs(dense).sum(1).max() for dense in matrices])
    np.testing.assert_allclose(run(clean, passes, "tpu"), want, rtol=0, atol=1e-13 * scale)
    places = [tuple(k * (n - 1) // 2 for n in clean.shape) for k in (0, 1, 2)]
    for place, bad in itertools.product(places, (np.nan, np.inf, -np.inf)):
        x = clean.copy()
        x[place] = bad
        weights = matrices[0][:, place[0]]
        for dense, i in zip(matrices[1:], place[1:], strict=True):
            weights = np.multiply.outer(weights, dense[:, i])
        hit = weights != 0
        got = np.asarray(run(x, passes, "tpu"))
        np.testing.assert_array_equal(got[hit], bad * weights[hit])
        np.testing.assert_allclose(got[~hit], want[~hit], rtol=0, atol=1e-13 * scale)


def test_infinities_that_disagree():
    """Inf - Inf is NaN, and only where both are weighed; NaN wins over both."""
    passes, matrices = passes_of([(12, 24), (9, 18)], ["linear"])
    x = np.zeros((12, 9))
    x[3, 4], x[4, 4], x[9, 2], x[9, 3] = np.inf, -np.inf, np.inf, np.nan
    up, down, nan = (
        applied(where.astype(float), [np.abs(dense) for dense in matrices]) > 0
        for where in (x == np.inf, x == -np.inf, np.isnan(x))
    )
    want = np.select([nan | (up & down), up, down], [np.nan, np.inf, -np.inf], 0.0)
    assert (up & down).any()
    np.testing.assert_array_equal(run(x, passes, "tpu"), want)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.complex64])
def test_other_dtypes(dtype):
    passes, matrices = passes_of([(12, 7), (9, 20)], ["cubic"])
    x = np.random.default_rng(0).normal(size=(12, 9)).astype(dtype)
    want = applied(x.astype(complex), matrices)
    got = np.asarray(run(x, passes, "tpu"))
    assert got.dtype == dtype
    # rounded once: half a unit in the last place
    rounding = 0.51 * float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(got.astype(complex), want, rtol=rounding, atol=2e-6)
    x[2, 3] = np.nan
    hit = np.multiply.outer(matrices[0][:, 2] != 0, matrices[1][:, 3] != 0)
    np.testing.assert_array_equal(np.isnan(np.asarray(run(x, passes, "tpu"))), hit)


@pytest.mark.parametrize("entries", [0, 100, 200])
def test_axes_too_long_for_a_matrix_are_gathered(entries, monkeypatch):
    """None, one and both of the axes are multiplied; a NaN passes both kinds in its own lane."""
    monkeypatch.setattr(_strategies, "MATRIX_ENTRIES", entries)
    passes, matrices = passes_of([(12, 7), (9, 20)], ["cubic", "lanczos3"])
    fresh = jax.jit(lambda x: _apply.apply(x, passes, "tpu"))
    x = np.random.default_rng(0).normal(size=(12, 9))
    count = str(jax.make_jaxpr(fresh)(x)).count("dot_general")
    assert count == {0: 0, 100: 2, 200: 4}[entries]
    want = applied(x, matrices)
    np.testing.assert_allclose(fresh(x), want, rtol=0, atol=1e-13)
    x[5, 0] = np.nan
    hit = np.multiply.outer(matrices[0][:, 5] != 0, matrices[1][:, 0] != 0)
    got = np.asarray(fresh(x))
    np.testing.assert_array_equal(np.isnan(got), hit)
    np.testing.assert_allclose(got[~hit], want[~hit], rtol=0, atol=1e-13)


# sharded ------------------------------------------------------------------------------------------


def shared_batch(kind):
    """Four images over two devices: the mesh, the passes, the images, and what is wanted."""
    mesh = jax.make_mesh((2,), ("b",), axis_types=(kind,), devices=jax.devices()[:2])
    passes, matrices = passes_of([(12, 7), (9, 20)], ["cubic"])
    x = np.random.default_rng(0).normal(size=(4, 12, 9))
    want = np.stack([applied(one, matrices) for one in x])
    return mesh, tuple((axis + 1, plan) for axis, plan in passes), x, want


@pytest.mark.parametrize("platform", _apply.PLATFORMS)
def test_in_shard_map(platform):
    """Each lowering is traced where batch axes are manual, and its loop keeps their types."""
    mesh, passes, x, want = shared_batch(AxisType.Auto)
    spec = PartitionSpec("b")
    mapped = jax.jit(
        jax.shard_map(
            lambda x: _apply.apply(x, passes, platform), mesh=mesh, in_specs=spec, out_specs=spec
        )
    )
    np.testing.assert_allclose(mapped(x), want, rtol=0, atol=1e-13)
    x[1, 0, 0] = np.nan
    got = np.asarray(mapped(x))
    assert np.isnan(got[1]).any()
    np.testing.assert_allclose(got[[0, 2, 3]], want[[0, 2, 3]], rtol=0, atol=1e-13)


@pytest.mark.parametrize("platform", _apply.PLATFORMS)
def test_with_explicit_sharding(platform):
    mesh, passes, x, want = shared_batch(AxisType.Explicit)
    with jax.set_mesh(mesh):
        got = run(jax.device_put(x, PartitionSpec("b")), passes, platform)
    assert jax.typeof(got).sharding.spec[0] == "b"
    np.testing.assert_allclose(got, want, atol=1e-13)
