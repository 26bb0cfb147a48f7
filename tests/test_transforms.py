"""vmap, jit, scan, sharding, export: each transformation over the whole table."""

import functools
import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import CASE_IDS, CASES, FEW, FEW_IDS, matrix, relative_error
from jax import export
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jresample

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
COLLECTIVES = r"all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter|collective-bcast"


def batch_of(case, *leading, dtype=np.float64):
    rng = np.random.default_rng([3, *leading, *case.shape])
    return rng.normal(size=(*leading, *case.shape)).astype(dtype)


def expected(case, batch):
    return np.stack([case.expected(x) for x in batch])


# vmap ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=CASE_IDS)
def test_vmap(case):
    """Over every axis, out of every axis, nested; and of the gradient."""
    batch, cotangents = batch_of(case, 3), np.stack([case.cotangent(seed=s) for s in (1, 2, 3)])
    want, back = expected(case, batch), np.stack([case.adjoint(y) for y in cotangents])

    @jax.jit
    def run(batch, cotangents):
        outs = {}
        for axis in range(4):
            mapped = jax.vmap(case.run, in_axes=axis, out_axes=3 - axis)
            out = mapped(jnp.moveaxis(batch, 0, axis))
            outs[f"axis {axis}"] = jnp.moveaxis(out, 3 - axis, 0)
        pair = jnp.stack([batch, 2 * batch], axis=2)
        nested = jax.vmap(jax.vmap(case.run, in_axes=1, out_axes=2))(pair)
        outs["nested"] = nested[:, :, :, 1] / 2
        outs["gradient"] = jax.vmap(
            lambda x, y: jax.vjp(case.run, x)[1](y)[0], in_axes=(0, 0), out_axes=0
        )(batch, cotangents)
        return outs

    got = run(batch, cotangents)
    assert relative_error(got.pop("gradient"), back, cotangents) <= 1e-12
    for name, value in got.items():
        assert relative_error(value, want, batch) <= 1e-12, name


@pytest.mark.parametrize("case", FEW, ids=FEW_IDS)
def test_spmd_axis_name_and_axis_size(case):
    batch = batch_of(case, 2)
    got = jax.vmap(case.run, axis_name="batch")(batch)
    assert relative_error(got, expected(case, batch), batch) <= 1e-12


# jit and control flow -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", FEW, ids=FEW_IDS)
def test_scan_map_cond_and_while(case):
    batch = batch_of(case, 3)
    want = expected(case, batch)

    def scanned(batch):
        def body(total, x):
            out = case.run(x)
            return total + out.sum(), out

        return jax.lax.scan(body, 0.0, batch)

    total, outs = jax.jit(scanned)(batch)
    assert relative_error(outs, want, batch) <= 1e-12
    np.testing.assert_allclose(total, want.sum(), rtol=0, atol=1e-11)
    grad = jax.jit(jax.grad(lambda b: (scanned(b)[1] ** 2).sum() / 2))(batch)
    back = np.stack([case.adjoint(y) for y in want])
    assert relative_error(grad, back, batch) <= 1e-11
    mapped = jax.jit(lambda b: jax.lax.map(case.run, b))(batch)
    assert relative_error(mapped, want, batch) <= 1e-12
    branch = jax.jit(lambda p, x: jax.lax.cond(p, case.run, lambda x: 0 * case.run(x), x))
    assert relative_error(branch(True, batch[0]), want[0], batch) <= 1e-12


@pytest.mark.parametrize("case", FEW, ids=FEW_IDS)
def test_traced_once(case):
    """Options built anew at every call are equal, so the second call traces nothing."""
    chex.clear_trace_counter()

    @functools.partial(jax.jit, static_argnames="options")
    @chex.assert_max_traces(n=1)
    def run(x, options):
        return jresample.resize(x, **dict(options))

    for seed in range(3):
        run(case.image(seed=seed), tuple(case.options().items()))


def test_equal_kernels_trace_once():
    chex.clear_trace_counter()

    @functools.partial(jax.jit, static_argnames="kernel")
    @chex.assert_max_traces(n=1)
    def run(x, kernel):
        return jresample.resize(x, (4,), kernel)

    for _ in range(3):
        run(np.ones(7), jresample.kernels.cubic(-0.6))


COMPILATIONS = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, duration, **kwargs: COMPILATIONS.append(event) if "compile" in event else None
)


@pytest.mark.parametrize("method", ["nearest", "linear", "lanczos3", "kernel"])
def test_equal_eager_calls_compile_once(method):
    def method_now():
        return jresample.kernels.cubic(-0.6) if method == "kernel" else method

    x = jnp.asarray(np.random.default_rng(0).normal(size=(13, 5)))
    jax.block_until_ready(jresample.resize(x, (6, 5), method_now()))
    before = len(COMPILATIONS)
    jax.block_until_ready(jresample.resize(x + 0, (6, 5), method_now()))
    fresh = [e for e in COMPILATIONS[before:] if "backend_compile" in e]
    assert len(fresh) <= 1, fresh  # `x + 0` is allowed one
    before = len(COMPILATIONS)
    jax.block_until_ready(jresample.resize(x, (6, 5), method_now()))
    assert not COMPILATIONS[before:]
    jax.block_until_ready(jresample.resize(x, (9, 5), method_now()))
    assert COMPILATIONS[before:], "the listener hears nothing: this test could not fail"


# compiled text ------------------------------------------------------------------------------------
# The text holds the names of the functions traced, so none of them may say what is looked for.


@pytest.mark.parametrize("case", CASES, ids=CASE_IDS)
def test_backward_only_gathers(case):
    def both(x, y):
        pullback = jax.vjp(case.run, x)[1]
        return pullback(y), jax.linear_transpose(case.run, x)(y)

    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in (case.shape, case.shape_out)]
    lowered = jax.jit(both).lower(*shapes)
    assert "scatter" not in lowered.as_text()
    assert "scatter" not in lowered.compile().as_text()


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
@pytest.mark.parametrize("scale", [(2.0, 3.0), (0.4, 0.3), (1.7, 0.6)], ids=str)
def test_backward_of_interpolate_only_gathers(mode, scale):
    def grad(x):
        return jax.grad(
            lambda x: (jresample.interpolate(x, scale_factor=scale, mode=mode) ** 2).sum()
        )(x)

    lowered = jax.jit(grad).lower(jax.ShapeDtypeStruct((2, 3, 20, 24), jnp.float32))
    assert "scatter" not in lowered.as_text()
    assert "scatter" not in lowered.compile().as_text()


def test_an_indexed_read_does_otherwise():
    """The search above can fail: an indexed read does transpose to a scatter."""
    lowered = jax.jit(jax.grad(lambda x: x[jnp.array([0, 0, 1])].sum())).lower(jnp.ones(3))
    assert "scatter" in lowered.as_text()


# sharding -----------------------------------------------------------------------------------------


def mesh_of(axis_type):
    devices = jax.devices()
    if len(devices) < 8:
        pytest.skip("needs 8 (simulated) devices")
    return jax.make_mesh((4, 2), ("batch", "other"), axis_types=(axis_type,) * 2)


@pytest.mark.parametrize("case", FEW, ids=FEW_IDS)
def test_shard_map(case):
    mesh, batch = mesh_of(AxisType.Auto), batch_of(case, 8)
    spec = P(("batch", "other"))
    run = jax.shard_map(jax.vmap(case.run), mesh=mesh, in_specs=spec, out_specs=spec)

    def inside(x):
        loss = (jax.vmap(case.run)(x) ** 2).sum() / 2
        return jax.lax.psum(loss, ("batch", "other"))

    losses = jax.shard_map(inside, mesh=mesh, in_specs=spec, out_specs=P())
    want = expected(case, batch)
    back = np.stack([case.adjoint(y) for y in want])
    got, outside = jax.jit(lambda x: (*jax.vjp(run, x)[1](run(x)), run(x)))(batch)[::-1]
    assert relative_error(got, want, batch) <= 1e-12
    assert relative_error(outside, back, batch) <= 1e-11
    value, grad = jax.jit(jax.value_and_grad(losses))(batch)
    np.testing.assert_allclose(value, (want**2).sum() / 2, rtol=1e-12)
    assert relative_error(grad, back, batch) <= 1e-11


def test_shard_map_with_a_learned_kernel():
    """Sharded images, a replicated parameter; its gradient is summed over the devices."""
    mesh = mesh_of(AxisType.Auto)
    batch = np.random.default_rng(0).normal(size=(8, 9))
    spec = P(("batch", "other"))

    def resize(x, a):
        return jresample.resize(x, (x.shape[0], 5), jresample.kernels.cubic(a))

    sharded = jax.shard_map(resize, mesh=mesh, in_specs=(spec, P()), out_specs=spec)
    losses = [lambda x, a, f=f: (f(x, a) ** 2).sum() for f in (resize, sharded)]
    plain, split = (jax.jit(jax.grad(f, argnums=(0, 1)))(batch, -0.6) for f in losses)
    for one, other in zip(plain, split, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", FEW, ids=FEW_IDS)
def test_sharded_batch_needs_no_collectives(case):
    mesh = mesh_of(AxisType.Auto)
    sharding = NamedSharding(mesh, P(("batch", "other")))
    run = functools.partial(case.run, axis_shift=1)

    def both(x, y):
        out, pullback = jax.vjp(run, x)
        return out, pullback(y)[0]

    shapes = [
        jax.ShapeDtypeStruct((16, *s), jnp.float32, sharding=sharding)
        for s in (case.shape, case.shape_out)
    ]
    compiled = jax.jit(both).lower(*shapes).compile()
    assert not re.findall(COLLECTIVES, compiled.as_text())
    batch = batch_of(case, 16, dtype=np.float32)
    y = np.stack([case.cotangent(np.float32, seed=s) for s in range(16)])
    out, back = compiled(jax.device_put(batch, sharding), jax.device_put(y, sharding))
    assert relative_error(out, expected(case, batch), batch) <= 3e-7
    assert out.sharding.is_equivalent_to(sharding, out.ndim)
    assert back.sharding.is_equivalent_to(sharding, back.ndim)


def test_collectives_would_be_seen():
    """The search above can fail: a sum over the sharded batch does need one."""
    sharding = NamedSharding(mesh_of(AxisType.Auto), P(("batch", "other")))
    shape = jax.ShapeDtypeStruct((16, 5), jnp.float32, sharding=sharding)
    compiled = jax.jit(lambda x: x - x.sum(0, keepdims=True)).lower(shape).compile()
    assert re.findall(COLLECTIVES, compiled.as_text())


@pytest.mark.parametrize("case", FEW, ids=FEW_IDS)
def test_explicit_sharding(case):
    """The batch axes keep their explicit sharding, forwards and backwards."""
    mesh = mesh_of(AxisType.Explicit)
    enter = getattr(jax, "set_mesh", None) or jax.sharding.use_mesh
    with enter(mesh):
        sharding = NamedSharding(mesh, P("batch", "other"))
        batch = batch_of(case, 4, 2)
        x = jax.device_put(batch, sharding)
        run = functools.partial(case.run, axis_shift=2)

        def loss(x):
            out = run(x)
            assert jax.typeof(out).sharding.spec[:2] == ("batch", "other")
            return (out**2).sum() / 2

        want = expected(case, batch.reshape(-1, *case.shape))
        out, grad = jax.jit(lambda x: (run(x), jax.grad(loss)(x)))(x)
        assert tuple(out.sharding.spec[:2]) == ("batch", "other")
        assert tuple(grad.sharding.spec[:2]) == ("batch", "other")
        eager = run(x)
        assert tuple(eager.sharding.spec[:2]) == ("batch", "other")
    back = np.stack([case.adjoint(y) for y in want]).reshape(batch.shape)
    want = want.reshape(4, 2, *case.shape_out)
    assert relative_error(out, want, batch) <= 1e-12
    assert relative_error(eager, want, batch) <= 1e-12
    assert relative_error(grad, back, batch) <= 1e-11


# export -------------------------------------------------------------------------------------------


def exported_of(case):
    (b,) = export.symbolic_shape("b")
    shape = jax.ShapeDtypeStruct((b, *case.shape), jnp.float64)
    run = jax.jit(functools.partial(case.run, axis_shift=1))
    return export.export(run, platforms=PLATFORMS)(shape)


@pytest.mark.parametrize("case", CASES, ids=CASE_IDS)
def test_export_with_a_symbolic_batch(case):
    """One artefact for every platform and batch size, and one for its gradient."""
    exported = exported_of(case)
    assert exported.platforms == PLATFORMS
    assert str(exported.out_avals[0].shape[0]) == "b"
    batch = batch_of(case, 3)
    got = jax.jit(exported.call)(batch)
    assert relative_error(got, expected(case, batch), batch) <= 1e-12
    back = exported.vjp()
    assert back.platforms == PLATFORMS
    y = np.stack([case.cotangent(seed=s) for s in range(3)])
    (grad,) = jax.jit(back.call)(batch, y)
    want = np.stack([case.adjoint(v) for v in y])
    assert relative_error(grad, want, y) <= 1e-12


@pytest.mark.parametrize("case", FEW, ids=FEW_IDS)
def test_serialised(case):
    """Written out and read in again, gradient and all."""
    pytest.importorskip("flatbuffers")
    back = export.deserialize(exported_of(case).serialize(vjp_order=1))
    for size in (1, 5):
        batch = batch_of(case, size)
        assert relative_error(back.call(batch), expected(case, batch), batch) <= 1e-12
    grad = jax.grad(lambda x: (back.call(x) ** 2).sum() / 2)(batch)
    want = np.stack([case.adjoint(y) for y in expected(case, batch)])
    assert relative_error(grad, want, batch) <= 1e-11


def test_symbolic_batch_of_interpolate():
    (b,) = export.symbolic_shape("b")
    run = jax.jit(lambda x: jresample.interpolate(x, scale_factor=1.5, mode="bicubic"))
    exported = export.export(run)(jax.ShapeDtypeStruct((b, 3, 4, 5), jnp.float32))
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    np.testing.assert_allclose(exported.call(x), run(x), rtol=0, atol=1e-6)
    assert exported.call(x).shape == (2, 3, 6, 7)


def test_symbolic_resized_axis_is_refused():
    (n,) = export.symbolic_shape("n")
    run = jax.jit(lambda x: jresample.resize(x, (4,), "linear"))
    with pytest.raises((TypeError, ValueError), match=r"`image`.*symbolic"):
        export.export(run)(jax.ShapeDtypeStruct((n,), jnp.float32))


def test_donated_and_aliased_input():
    x = jnp.arange(12.0).reshape(6, 2)
    got = jax.jit(lambda x: jresample.resize(x, (6, 2), "cubic"), donate_argnums=0)(x + 0)
    np.testing.assert_array_equal(got, x)


def test_under_checkpoint_policy_and_remat_in_scan():
    """A deep stack of resizes, rematerialised, has the gradient of the plain one."""
    up, down = matrix_pair()

    def layer(x):
        return jnp.tanh(jresample.resize(jresample.resize(x, (9,), "cubic"), (6,), "lanczos3"))

    def deep(x, step):
        return jax.lax.scan(lambda x, _: (step(x), None), x, None, length=4)[0].sum()

    x = np.random.default_rng(0).normal(size=6)
    plain = jax.grad(lambda x: deep(x, layer))(x)
    remat = jax.grad(lambda x: deep(x, jax.checkpoint(layer)))(x)
    np.testing.assert_allclose(plain, remat, rtol=0, atol=1e-14)
    y, chain = x, np.eye(6)
    for _ in range(4):
        y = np.tanh(down @ up @ y)
        chain = (1 - y**2)[:, None] * (down @ up) @ chain
    np.testing.assert_allclose(plain, chain.sum(0), rtol=0, atol=1e-12)


def matrix_pair():
    from helpers import Axis

    return matrix(Axis(6, 9, "cubic")), matrix(Axis(9, 6, "lanczos3"))
