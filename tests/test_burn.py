"""Burn's own test vectors: values, shapes, sums, index maps and gradients of `interpolate`."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jresample

DATA = json.loads((Path(__file__).parent / "data" / "burn_interpolate.json").read_text())
VECTORS = {v["id"]: v for v in DATA["vectors"]}
MODES = {"Nearest": "nearest", "Bilinear": "bilinear", "Bicubic": "bicubic", "Lanczos3": "lanczos3"}


def of(*kinds, ops=("interpolate",)):
    chosen = [k for k, v in VECTORS.items() if v["expected_kind"] in kinds and v["op"] in ops]
    assert chosen, kinds
    return pytest.mark.parametrize("name", chosen)


def numbers(nested):
    """float64 array of nested lists, in which "NaN" is a string."""
    return np.array(nested, np.float64)


def image(vector):
    shape = vector["input_shape"]
    if "input" in vector:
        return numbers(vector["input"]).reshape(shape)
    i = np.arange(int(np.prod(shape)), dtype=np.float64)
    if vector.get("input_rule") == "quadratic":
        i = (((37 * i + 13 * i**2) % 257) / 17 - 7).astype(np.float32).astype(np.float64)
    return i.reshape(shape)


def run(x, vector):
    """Burn's align_corners is torch's, but it ignores it in Nearest, where torch refuses it."""
    align = None if vector["mode"] == "Nearest" else vector["align_corners"]
    return jresample.interpolate(
        x, tuple(vector["output_size"]), mode=MODES[vector["mode"]], align_corners=align
    )


def close(got, want, vector):
    tolerance = vector["tolerance"]
    atol = max(tolerance["absolute"], 1e-12)
    np.testing.assert_allclose(got, want, rtol=tolerance["relative"], atol=atol)


@of("output", "derived")
def test_output(name):
    vector = VECTORS[name]
    close(run(image(vector), vector), numbers(vector["expected"]), vector)


@of("derived")
def test_derived_more_closely(name):
    """Evaluated in float64 from Burn's formula, and written with 12 digits."""
    vector = VECTORS[name]
    np.testing.assert_allclose(
        run(image(vector), vector), numbers(vector["expected"]), rtol=1e-11, atol=1e-10
    )


@of("sum")
def test_sum(name):
    vector = VECTORS[name]
    close(run(image(vector), vector).sum(), vector["expected"], vector)


@of("flat_positions")
def test_flat_positions(name):
    vector = VECTORS[name]
    got = np.asarray(run(image(vector), vector)).ravel()
    for place, value in vector["expected"].items():
        close(got[int(place)], value, vector)


@of("shape")
def test_shape(name):
    vector = VECTORS[name]
    assert list(run(image(vector), vector).shape) == vector["expected"]


@of("grad")
def test_gradient_of_the_sum(name):
    vector = VECTORS[name]
    grad = jax.grad(lambda x: run(x, vector).sum())(image(vector))
    close(grad, numbers(vector["expected"]), vector)


@of("grad_flat_positions")
def test_gradient_at_places(name):
    vector = VECTORS[name]
    _, pullback = jax.vjp(lambda x: run(x, vector), image(vector))
    (grad,) = pullback(jnp.asarray(numbers(vector["upstream_grad"])))
    for place, value in vector["expected"].items():
        close(grad.ravel()[int(place)], value, vector)


@of("index_map")
def test_index_map(name):
    """The sample each output reads, and the output each sample's gradient comes from."""
    vector = VECTORS[name]
    size, new = vector["input_shape"][-1], vector["output_size"][-1]
    ramp = jnp.arange(size, dtype=jnp.float32)
    x = ramp[:, None] * 1000 + ramp[None]
    want = np.array(vector["expected"])
    got = jresample.interpolate(x[None, None], (new, new))[0, 0]
    np.testing.assert_array_equal(got, want[:, None] * 1000 + want[None])
    counts = jax.grad(lambda x: jresample.interpolate(x, new).sum())(ramp[None, None])[0, 0]
    np.testing.assert_array_equal(counts, np.bincount(want, minlength=size))


@of("property")
def test_taps_outside_are_dropped(name):
    """A NaN in the first sample stays out of outputs that have no weight for it."""
    vector = VECTORS[name]
    x = image(vector)
    assert np.isnan(x[0, 0, 0, 0])
    got = np.asarray(run(x, vector))[0, 0, 0]
    assert np.isfinite(got[7])
    np.testing.assert_array_equal(got[1:], x[0, 0, 0, 1:])


@of("output_size", ops=("output_size",))
def test_output_size(name):
    vector = VECTORS[name]
    x = jax.ShapeDtypeStruct(tuple(vector["input_shape"]), jnp.float32)
    got = jax.eval_shape(
        lambda x: jresample.interpolate(x, vector.get("output_size"), vector.get("scale_factor")),
        x,
    )
    assert list(got.shape[2:]) == np.atleast_1d(vector["expected"]).tolist()


@of("shape", ops=("Interpolate1d", "Interpolate2d"))
def test_module_shape(name):
    vector = VECTORS[name]
    mode = {"Nearest": "nearest", "Linear": "linear" if "1d" in name else "bilinear"}
    got = jresample.interpolate(
        jnp.zeros(vector["input_shape"]),
        vector.get("output_size"),
        vector.get("scale_factor"),
        mode[vector["mode"]],
    )
    assert list(got.shape) == vector["expected"]


@of("error", ops=("output_size",))
def test_error(name):
    """Neither a size nor a factor, or a factor that makes sizes no array has."""
    vector = VECTORS[name]
    x = jnp.zeros([min(n, 4) for n in vector["input_shape"]])
    factor = vector.get("scale_factor")
    if factor is not None:
        factor = [f * 2.0**64 for f in np.atleast_1d(factor).tolist()]
    with pytest.raises((ValueError, TypeError), match="scale_factor"):
        jresample.interpolate(x, None, factor)


@pytest.mark.parametrize(
    ("size_in", "size_out"), [(n, m) for n in range(1, 65, 3) for m in (5, 33, 61)]
)
def test_nearest_backward_reads_the_forwards_index(size_in, size_out):
    """Burn's own backward sent some gradients to another sample than the forward had read."""
    dense = jresample.resize_matrix(size_in, size_out, "nearest-floor")
    np.testing.assert_array_equal(dense.argmax(1), np.arange(size_out) * size_in // size_out)
    assert dense.sum() == size_out
    if size_out == 61 and size_in % 9 == 1:
        grad = jax.grad(lambda x: jresample.interpolate(x, size_out).sum())
        np.testing.assert_array_equal(grad(jnp.zeros((1, 1, size_in)))[0, 0], dense.sum(0))
