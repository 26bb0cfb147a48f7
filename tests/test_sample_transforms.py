"""`sample` under vmap, jit, scan, checkpoint, linearize, sharding: each over cases of the table."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from sampling_helpers import FEW, FEW_IDS, SampleCase

from jresample import kernels, sample


def batches(case, count=3):
    images = np.stack([case.image(seed) for seed in range(count)])
    rng = np.random.default_rng(5)
    coordinates = rng.uniform(-2, 7, (count, 8, 2))
    cotangents = rng.normal(size=(count, 8, 3))
    return images, coordinates, cotangents


@pytest.mark.parametrize("case", FEW, ids=FEW_IDS)
def test_vmap(case):
    """Over the image, the coordinates or both, on other axes, nested; values and gradients."""
    images, coordinates, cotangents = batches(case)
    one = functools.partial(sample, **case.options)

    def pull(x, c, y):
        return jax.vjp(one, x, c)[1](y)

    def push(x, c, y):
        return jax.jvp(one, (x, c), (x, jnp.ones_like(c)))[1]

    @jax.jit
    def run(x, c, y):
        outs = {}
        for name, axes in {
            "both": (0, 0, 0),
            "image": (0, None, 0),
            "points": (None, 0, 0),
        }.items():
            args = [v if axis == 0 else v[0] for v, axis in zip((x, c, y), axes, strict=True)]
            outs[name] = tuple(
                jax.vmap(f, axes)(*args) for f in (lambda x, c, y: one(x, c), pull, push)
            )
        moved = jnp.moveaxis(x, 0, 2), jnp.moveaxis(c, 0, 1)
        outs["moved"] = jax.vmap(one, (2, 1), 1)(*moved)
        outs["nested"] = jax.vmap(jax.vmap(one, (None, 0)), (0, None))(x, c)
        outs["twice"] = jax.vmap(jax.vmap(one))(x[None], c[None])
        outs["gradient of nested"] = jax.grad(
            lambda x: (jax.vmap(jax.vmap(one, (None, 0)), (0, None))(x, c) ** 2).sum()
        )(x)
        return outs

    got = run(*map(jnp.asarray, (images, coordinates, cotangents)))
    single = jax.jit(lambda x, c, y: (one(x, c), pull(x, c, y), push(x, c, y)))
    for name in ("both", "image", "points"):
        for i in range(3):
            j, k = (0 if name == "points" else i), (0 if name == "image" else i)
            want = single(images[j], coordinates[k], cotangents[i])
            mapped = jax.tree.map(lambda v: v[i], got[name])  # noqa: B023
            chex.assert_trees_all_close(mapped, want, atol=1e-13)
    values = [[case.expected(x, c) for c in coordinates] for x in images]
    np.testing.assert_allclose(got["nested"], values, atol=1e-13)
    diagonal = np.stack([values[i][i] for i in range(3)])
    np.testing.assert_allclose(got["twice"][0], diagonal, atol=1e-13)
    np.testing.assert_allclose(np.moveaxis(got["moved"], 1, 0), diagonal, atol=1e-13)
    for i in range(3):
        want = sum(
            single(images[i], c, 2 * v)[1][0] for c, v in zip(coordinates, values[i], strict=True)
        )
        np.testing.assert_allclose(got["gradient of nested"][i], want, atol=1e-12)


def test_vmap_over_kernels():
    """Each image with its own kernel parameter."""
    image, c = (
        jnp.asarray(SampleCase("cubic", "edge").image()),
        jnp.asarray([[0.3, 2.2], [4.1, 0.6]]),
    )
    a = jnp.asarray([-0.5, -0.75, -1.0])
    run = lambda a, c: sample(image, c, kernels.cubic(a), boundary=("wrap", "edge"))  # noqa: E731
    got = jax.jit(jax.vmap(jax.value_and_grad(lambda a, c: run(a, c).sum(), (0, 1)), (0, None)))(
        a, c
    )
    for i in range(3):
        want = jax.value_and_grad(lambda a, c: run(a, c).sum(), (0, 1))(a[i], c)
        chex.assert_trees_all_close(jax.tree.map(lambda v: v[i], got), want, atol=1e-12)  # noqa: B023


def test_linear_in_the_image():
    case = FEW[2]
    image, c = jnp.asarray(case.image()), jnp.asarray(case.coordinates(9))
    run = lambda x: sample(x, c, "cubic", boundary="symmetric")  # noqa: E731
    value, push = jax.linearize(run, image)
    np.testing.assert_allclose(push(image), value, atol=1e-13)
    y = jnp.asarray(np.random.default_rng(0).normal(size=value.shape))
    (back,) = jax.linear_transpose(run, image)(y)
    np.testing.assert_allclose(back, jax.vjp(run, image)[1](y)[0], atol=1e-14)
    (again,) = jax.linear_transpose(lambda y: jax.linear_transpose(run, image)(y)[0], y)(image)
    np.testing.assert_allclose(again, value, atol=1e-13)


def test_scan_and_checkpoint():
    """A flow followed in steps: gradients through scan, with and without checkpoint."""
    image = jnp.asarray(np.random.default_rng(1).normal(size=(6, 5, 2)))
    start = jnp.asarray(np.random.default_rng(2).uniform(1, 4, (7, 2)))

    def follow(image, start, wrap):
        step = wrap(lambda c: c + 0.1 * sample(image, c, ("cubic", "linear")))
        return jax.lax.scan(lambda c, _: (step(c), None), start, length=4)[0].sum()

    def unrolled(image, c):
        for _ in range(4):
            c = c + 0.1 * sample(image, c, ("cubic", "linear"))
        return c.sum()

    want = jax.jit(jax.grad(unrolled, (0, 1)))(image, start)
    for wrap in (lambda f: f, jax.checkpoint):
        got = jax.jit(jax.grad(functools.partial(follow, wrap=wrap), (0, 1)))(image, start)
        chex.assert_trees_all_close(got, want, atol=1e-13)


@pytest.mark.parametrize("case", FEW[1:4], ids=FEW_IDS[1:4])
def test_shard_map(case):
    """Points spread over devices, the image whole: values and both gradients, summed."""
    mesh = jax.make_mesh((8,), ("points",), axis_types=(AxisType.Auto,))
    image, c = jnp.asarray(case.image()), jnp.asarray(case.coordinates(16))
    one = functools.partial(sample, **case.options)

    @jax.jit
    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P(), P("points")),
        out_specs=(P("points"), P(), P("points")),
    )
    def spread(image, c):
        x_bar, c_bar = jax.grad(
            lambda x, c: jax.lax.psum((one(x, c) ** 2).sum(), "points"), (0, 1)
        )(image, c)
        return one(image, c), x_bar, c_bar

    value, x_bar, c_bar = spread(image, c)
    want = jax.jit(jax.grad(lambda x, c: (one(x, c) ** 2).sum(), (0, 1)))(image, c)
    np.testing.assert_allclose(value, one(image, c), atol=1e-13)
    np.testing.assert_allclose(x_bar, want[0], atol=1e-12)
    np.testing.assert_allclose(c_bar, want[1], atol=1e-12)


def test_shard_map_over_images_in_chunks():
    """The chunked splat (its loop carries the image) under manual axes."""
    mesh = jax.make_mesh((2,), ("batch",), axis_types=(AxisType.Auto,), devices=jax.devices()[:2])
    rng = np.random.default_rng(3)
    image = jnp.asarray(rng.normal(size=(2, 9, 8)))
    c = jnp.asarray(rng.uniform(0, 8, (2, 40_000, 2)))
    loss = lambda x, c: (jax.vmap(functools.partial(sample, method="cubic"))(x, c) ** 2).sum()  # noqa: E731
    spread = jax.shard_map(
        jax.grad(loss, (0, 1)), mesh=mesh, in_specs=P("batch"), out_specs=P("batch")
    )
    chex.assert_trees_all_close(
        jax.jit(spread)(image, c), jax.jit(jax.grad(loss, (0, 1)))(image, c)
    )


def test_no_retracing():
    """New images and coordinates of one shape: one trace, also of an eager call's pieces."""
    case = FEW[2]
    run = jax.jit(chex.assert_max_traces(lambda x, c: sample(x, c, **case.options), n=1))
    for seed in range(3):
        run(jnp.asarray(case.image(seed)), jnp.asarray(case.coordinates()) + seed)


def test_repeatable():
    """The image's gradient is the same every time, to the last bit (on a CPU)."""
    rng = np.random.default_rng(2)
    image, c = jnp.asarray(rng.normal(size=(33, 47))), jnp.asarray(rng.uniform(0, 46, (10_000, 2)))
    grad = jax.jit(jax.grad(lambda x: (sample(x, c) ** 2).sum()))
    first = grad(image)
    for _ in range(5):
        np.testing.assert_array_equal(grad(image), first)


def test_export_for_every_platform():
    """One lowering holds for all; the batch may be symbolic."""
    from jax import export

    run = jax.jit(jax.grad(lambda x, c: sample(x, c, "cubic").sum(), (0, 1)))
    (n,) = export.symbolic_shape("n")
    shapes = (jax.ShapeDtypeStruct((8, 7), np.float32), jax.ShapeDtypeStruct((n, 2), np.float32))
    module = export.export(run, platforms=("cpu", "cuda", "rocm", "tpu"))(*shapes)
    c = jnp.asarray(np.random.default_rng(4).uniform(0, 6, (11, 2)), jnp.float32)
    image = jnp.ones((8, 7), jnp.float32)
    chex.assert_trees_all_close(module.call(image, c), run(image, c), atol=1e-6)
