"""At home among flax, equinox and optax: plain functions as layers, trained, sharded, exported.

Needs the extra `ecosystem` and is skipped without it (`make test-ecosystem`). A layer object, such
as torch's `nn.Upsample`, is one line of `functools.partial`: see `LAYERS`.
"""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jresample

WAY_IN = "needs the extra `ecosystem`"
datasets = pytest.importorskip("sklearn.datasets", reason=WAY_IN)
eqx = pytest.importorskip("equinox", reason=WAY_IN)
nnx = pytest.importorskip("flax.nnx", reason=WAY_IN)
optax = pytest.importorskip("optax", reason=WAY_IN)

COLLECTIVES = "all-(?:reduce|gather|to-all)|reduce-scatter|collective-permute|collective-broadcast"
TILT = np.array([[0.9, -0.2, 0.1], [0.1, 1.1, -0.05]], np.float32)


def warp(x, theta=TILT):
    """`[batch, 8, 8, channels]` warped by one affine map, to 12 x 10."""
    theta = jnp.broadcast_to(theta, (x.shape[0], 2, 3))
    grid = jresample.affine_grid(theta, (x.shape[0], x.shape[-1], 12, 10))
    out = jresample.grid_sample(jnp.moveaxis(x, -1, 1), grid, "bicubic", "border")
    return jnp.moveaxis(out, 1, -1)


# Each takes [batch, 8, 8, channels] to [batch, 12, 10, channels].
LAYERS = {
    "resize": partial(jresample.resize, shape=(12, 10), method="lanczos3", axes=(1, 2)),
    "interpolate": partial(jresample.interpolate, size=(12, 10), mode="bicubic", channel_axis=-1),
    "grid_sample": warp,
}
each_layer = pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)


@pytest.fixture(autouse=True)
def _as_users_have_it():
    """The strict settings of this suite are not those that the other libraries are written for."""
    enable = getattr(jax, "enable_x64", None)
    if enable is None:
        from jax.experimental import enable_x64 as enable
    with enable(False), jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def digits(count):
    """Returns real images `[count, 8, 8, 1]`, float32."""
    return (datasets.load_digits().images[:count, ..., None] / 16).astype(np.float32)


def batch_and_target(count=16):
    """Returns digits, and what a blur and a warp make of them at 12 x 10."""
    x = digits(count)
    blurred = jresample.resize(jnp.asarray(x), (12, 10), "gaussian", axes=(1, 2))
    return x, np.asarray(blurred[:, ::-1])


def close(a, b, atol=1e-5):
    a, b = jax.tree.leaves(a), jax.tree.leaves(b)
    assert len(a) == len(b) > 0
    for one, other in zip(a, b, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=atol)


# modules ------------------------------------------------------------------------------------------


class Flax(nnx.Module):
    """Convolution, layer, convolution; the layer is a plain attribute."""

    def __init__(self, layer, rngs):
        self.first = nnx.Conv(1, 8, (3, 3), rngs=rngs)
        self.layer = layer
        self.last = nnx.Conv(8, 1, (3, 3), rngs=rngs)

    def __call__(self, x):
        return self.last(self.layer(nnx.relu(self.first(x))))


@each_layer
def test_flax_module_trains(layer):
    model = Flax(layer, nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    x, target = batch_and_target()
    before = model(x)
    close(before, model.last(layer(nnx.relu(model.first(x)))))

    @nnx.jit
    def step(model, optimizer):
        loss, gradient = nnx.value_and_grad(lambda m: jnp.mean((m(x) - target) ** 2))(model)
        optimizer.update(model, gradient)
        return loss, gradient

    losses = []
    for _ in range(40):
        loss, gradient = step(model, optimizer)
        losses.append(float(loss))
    assert losses[-1] < losses[0] / 2
    # what lies before the layer is trained through it
    assert float(jnp.abs(gradient.first.kernel[...]).max()) > 0


class Equinox(eqx.Module):
    """The same for one example, channels first, as equinox has it."""

    first: eqx.nn.Conv2d
    last: eqx.nn.Conv2d
    layer: object = eqx.field(static=True)

    def __init__(self, layer, key):
        keys = jax.random.split(key)
        self.first = eqx.nn.Conv2d(1, 8, 3, padding=1, key=keys[0])
        self.last = eqx.nn.Conv2d(8, 1, 3, padding=1, key=keys[1])
        self.layer = layer

    def __call__(self, x):
        x = jax.nn.relu(self.first(x))
        x = self.layer(jnp.moveaxis(x, 0, -1)[None])[0]
        return self.last(jnp.moveaxis(x, -1, 0))


@each_layer
def test_equinox_module_trains(layer):
    model = Equinox(layer, jax.random.key(0))
    optimizer = optax.adam(1e-2)
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    x, target = (np.moveaxis(array, -1, 1) for array in batch_and_target())

    @eqx.filter_jit
    def step(model, state):
        loss, gradient = eqx.filter_value_and_grad(
            lambda m: jnp.mean((jax.vmap(m)(x) - target) ** 2)
        )(model)
        updates, state = optimizer.update(gradient, state)
        return eqx.apply_updates(model, updates), state, loss, gradient

    losses = []
    for _ in range(40):
        model, state, loss, gradient = step(model, state)
        losses.append(float(loss))
    assert losses[-1] < losses[0] / 2
    assert float(jnp.abs(gradient.first.weight).max()) > 0


def test_equinox_sequential():
    """A partial is a layer of `Sequential`, by way of `eqx.nn.Lambda`."""
    upsample = partial(jresample.resize, shape=(16, 16), method="cubic", axes=(1, 2))
    model = eqx.nn.Sequential([eqx.nn.Lambda(upsample), eqx.nn.Lambda(jax.nn.relu)])
    x = jnp.moveaxis(jnp.asarray(digits(3)), -1, 1)
    close(jax.vmap(model)(x), jax.nn.relu(upsample(x[:, 0])[:, None]))


def test_spatial_transformer_learns_its_map():
    """A warp inside a flax module: the affine map itself is the parameter."""

    class Warp(nnx.Module):
        def __init__(self):
            self.theta = nnx.Param(jnp.eye(2, 3))

        def __call__(self, x):
            return warp(x, self.theta[...])

    x = jresample.resize(jnp.asarray(digits(8)), (16, 16), "bspline3", axes=(1, 2))
    x = jresample.resize(x, (8, 8), "gaussian", axes=(1, 2))
    target = warp(x)
    model = Warp()
    optimizer = nnx.Optimizer(model, optax.adam(2e-2), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer):
        gradient = nnx.grad(lambda m: jnp.mean((m(x) - target) ** 2))(model)
        optimizer.update(model, gradient)

    for _ in range(200):
        step(model, optimizer)
    np.testing.assert_allclose(model.theta[...], TILT, atol=1e-2)


# training loops -----------------------------------------------------------------------------------


@each_layer
def test_optax_loop_inside_scan(layer):
    """A whole training run as one `scan`, equal to the loop in Python."""
    x = jnp.asarray(digits(4))
    target = layer(x)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-2))

    def step(carry, _):
        guess, state = carry
        loss, gradient = jax.value_and_grad(lambda g: jnp.mean((layer(g) - target) ** 2))(guess)
        updates, state = optimizer.update(gradient, state, guess)
        return (optax.apply_updates(guess, updates), state), loss

    start = jnp.full_like(x, 0.5), optimizer.init(x)
    _, losses = jax.jit(lambda start: jax.lax.scan(step, start, length=60))(start)
    assert losses[-1] < losses[0] / 10
    carry = start
    for _ in range(3):
        carry, loss = jax.jit(step)(carry, None)
    np.testing.assert_allclose(loss, losses[2], rtol=1e-4)


@each_layer
def test_scan_over_depth(layer):
    """The same layer at every depth of a recurrent network, with its gradient."""

    def block(x, gain):
        x = jnp.tanh(gain * layer(x))
        return jresample.resize(x, (8, 8), "linear", axes=(1, 2)), x.mean()

    def by_scan(x, gains):
        x, means = jax.lax.scan(block, x, gains)
        return (x**2).sum() + means.sum()

    def unrolled(x, gains):
        means = []
        for gain in gains:
            x, mean = block(x, gain)
            means.append(mean)
        return (x**2).sum() + sum(means)

    arguments = jnp.asarray(digits(2)), jnp.array([1.0, 0.7, 1.3])
    close(
        jax.jit(jax.value_and_grad(by_scan, (0, 1)))(*arguments),
        jax.jit(jax.value_and_grad(unrolled, (0, 1)))(*arguments),
    )


@each_layer
def test_checkpoint(layer):
    """Nothing is kept for the backward pass, and the gradient is the same."""

    def loss(x, wrapped):
        return (jnp.sin(wrapped(jnp.cos(x))) ** 2).sum()

    x = jnp.asarray(digits(2))
    remade = jax.checkpoint(layer, policy=jax.checkpoint_policies.nothing_saveable)
    close(jax.grad(loss)(x, layer), jax.jit(jax.grad(lambda x: loss(x, remade)))(x))


# many devices -------------------------------------------------------------------------------------


@pytest.fixture
def mesh():
    if len(jax.devices()) < 8:
        pytest.skip("needs 8 (simulated) devices")
    return jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Auto,))


@each_layer
def test_data_parallel_layer(layer, mesh):
    """Each device resamples its own images, forward and backward, and asks no other for data."""
    batches = NamedSharding(mesh, P("batch"))
    x = jax.device_put(digits(16), batches)

    @jax.jit
    def both(x):
        out, pullback = jax.vjp(layer, x)
        return out, pullback(jnp.cos(out))[0]

    compiled = both.lower(x).compile()
    assert not re.findall(COLLECTIVES, compiled.as_text())
    out, back = compiled(x)
    assert out.sharding.is_equivalent_to(batches, out.ndim)
    assert back.sharding.is_equivalent_to(batches, back.ndim)
    close((out, back), both(jnp.asarray(digits(16))))


@each_layer
def test_data_parallel_training(layer, mesh):
    """Weights on every device, the batch spread: the step is that of a single device."""
    optimizer = optax.sgd(0.1)
    x, target = batch_and_target()

    def step(weights, x, target):
        def loss(weights):
            mixed = jnp.tanh(x * weights["gain"] + weights["bias"])
            return jnp.mean((layer(mixed) - target) ** 2)

        value, gradient = jax.value_and_grad(loss)(weights)
        updates, _ = optimizer.update(gradient, optimizer.init(weights))
        return optax.apply_updates(weights, updates), value

    weights = {"gain": jnp.full((8, 8, 1), 0.9), "bias": jnp.zeros((8, 8, 1))}
    batches, everywhere = NamedSharding(mesh, P("batch")), NamedSharding(mesh, P())
    spread = jax.jit(step)(
        jax.device_put(weights, everywhere), *jax.device_put((x, target), batches)
    )
    close(spread, jax.jit(step)(weights, x, target))
    assert all(leaf.sharding.is_fully_replicated for leaf in jax.tree.leaves(spread[0]))


# export -------------------------------------------------------------------------------------------


@each_layer
def test_export_to_disk_and_back(layer, tmp_path):
    """One file for every batch size, and its gradient."""
    pytest.importorskip("flatbuffers", reason=WAY_IN)
    (batch,) = export.symbolic_shape("batch")
    shape = jax.ShapeDtypeStruct((batch, 8, 8, 1), jnp.float32)
    file = tmp_path / "layer.jax"
    file.write_bytes(export.export(jax.jit(layer))(shape).serialize(vjp_order=1))

    loaded = export.deserialize(bytearray(file.read_bytes()))
    for count in (1, 3, 7):
        x = jnp.asarray(digits(count))
        out, pullback = jax.vjp(layer, x)
        close(loaded.call(x), out)
        close(jax.grad(lambda x: (loaded.call(x) ** 2).sum())(x), pullback(2 * out)[0])


def test_export_of_a_trained_module(tmp_path):
    """A flax module, its weights inside the file."""
    pytest.importorskip("flatbuffers", reason=WAY_IN)
    model = Flax(LAYERS["interpolate"], nnx.Rngs(1))
    definition, weights = nnx.split(model)

    def predict(x):
        return nnx.merge(definition, weights)(x)

    (batch,) = export.symbolic_shape("batch")
    shape = jax.ShapeDtypeStruct((batch, 8, 8, 1), jnp.float32)
    file = tmp_path / "model.jax"
    file.write_bytes(export.export(jax.jit(predict))(shape).serialize())
    loaded = export.deserialize(bytearray(file.read_bytes()))
    for count in (1, 5):
        close(loaded.call(jnp.asarray(digits(count))), model(digits(count)))
