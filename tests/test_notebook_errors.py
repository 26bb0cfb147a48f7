"""What people type first in a notebook: it works, or the message says what to type instead."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import jresample

PHOTO = np.random.default_rng(0).integers(0, 256, (96, 80, 3)).astype(np.uint8)
BATCH = PHOTO[None]  # [batch, height, width, channels], where torch's order has channels first


def message(call, *args):
    """The error's text: ours, in at most three lines, the same under jit where that applies."""
    with pytest.raises((TypeError, ValueError)) as info:
        call(*args)
    text = str(info.value)
    assert type(info.value) in (TypeError, ValueError)
    assert len(text.splitlines()) <= 3, text
    assert "`" in text, text
    return text


# a numpy uint8 image straight from a file ---------------------------------------------------------


@pytest.fixture
def from_file(tmp_path):
    Image.fromarray(PHOTO).save(tmp_path / "photo.png")
    with Image.open(tmp_path / "photo.png") as image:
        return np.asarray(image)


def test_uint8_from_a_file(from_file):
    """Taken as it is, on its own scale of 0 to 255; nearest methods keep the dtype."""
    assert from_file.dtype == np.uint8
    small = jresample.resize(from_file, (48, 40, 3), "area")
    assert small.dtype == jnp.float32
    want = PHOTO.reshape(48, 2, 40, 2, 3).mean((1, 3))
    np.testing.assert_allclose(small, want, atol=1e-4)
    assert jresample.resize(from_file, (48, 40, 3), "nearest").dtype == jnp.uint8
    layer = jresample.interpolate(from_file[None], size=(48, 40), mode="bilinear", channel_axis=-1)
    assert layer.dtype == jnp.float32
    assert layer.shape == (1, 48, 40, 3)


def test_read_only_and_strided_views(from_file):
    """Files are often mapped read-only, and channels reversed by a slice."""
    from_file = from_file.view()
    from_file.flags.writeable = False
    for view in (from_file, from_file[..., ::-1], from_file[::2, ::-1]):
        copied = jresample.resize(np.array(view), (24, 20, 3), "cubic")
        np.testing.assert_array_equal(jresample.resize(view, (24, 20, 3), "cubic"), copied)


def test_a_gradient_of_uint8_is_refused_by_jax():
    """Nothing is silently zero: integers have no gradient, and jax says so."""
    with pytest.raises(TypeError, match="uint8"):
        jax.grad(lambda x: jresample.resize(x, (48, 40, 3), "cubic").sum())(PHOTO)


NOT_ARRAYS = {
    "list": lambda: [[1.0, 2.0], [3.0, 4.0]],
    "tuple": lambda: (1.0, 2.0),
    "list of arrays": lambda: [PHOTO, PHOTO],
    "list of different arrays": lambda: [PHOTO, PHOTO[:3]],
    "Pillow image": lambda: Image.fromarray(PHOTO),
    "file name": lambda: "photo.png",
    "None": lambda: None,
}


POINTS = np.zeros((5, 2))
MOVE = (np.ones(2), np.zeros(2), "linear")  # scale, translation, method
WANT_ARRAYS = {
    "resize": (lambda x: jresample.resize(x, (4, 4), "linear"), "`image`"),
    "interpolate": (lambda x: jresample.interpolate(x, 4), "`input`"),
    "scale_and_translate": (
        lambda x: jresample.scale_and_translate(x, (4, 4), (0, 1), *MOVE),
        "`image`",
    ),
    "sample": (lambda x: jresample.sample(x, POINTS), "`image`"),
    "coordinates": (lambda x: jresample.sample(PHOTO, x), "`coordinates`"),
    "map_coordinates": (lambda x: jresample.map_coordinates(x, POINTS.T, 1), "`input`"),
    "spline_filter": (lambda x: jresample.spline_filter(x), "`input`"),
    "grid_sample": (lambda x: jresample.grid_sample(x, np.zeros((1, 4, 4, 2))), "`input`"),
    "affine_grid": (lambda x: jresample.affine_grid(x, (1, 3, 4, 4)), "`theta`"),
}


@pytest.mark.parametrize("function", WANT_ARRAYS)
@pytest.mark.parametrize("name", NOT_ARRAYS)
def test_not_an_array(name, function):
    call, argument = WANT_ARRAYS[function]
    text = message(call, NOT_ARRAYS[name]())
    assert argument in text
    assert "jnp.asarray" in text  # the way out
    assert type(NOT_ARRAYS[name]()).__name__ in text


def test_articles_and_plurals():
    """The messages are sentences."""
    kinds = [(Image.fromarray(PHOTO), "an Image"), ([1.0], "a list"), ("a.png", "a str")]
    for value, words in [*kinds, (1, "an int"), (None, "a NoneType")]:
        text = message(lambda x: jresample.resize(x, (4, 4), "linear"), value)
        assert f"`image` is {words};" in text
    for count, words in [(1, "1 entry;"), (2, "2 entries;")]:
        methods = ("linear",) * count
        text = message(lambda m: jresample.resize(PHOTO, (4, 4, 3), m), methods)
        assert f"`method` has {words}" in text
        text = message(lambda n: jresample.affine_grid(np.eye(2, 3)[None], (1,) * n), count)
        assert f"`size` has {words}" in text
        text = message(lambda n: jresample.map_coordinates(PHOTO, POINTS.T[:n], 1), count)
        assert f"`coordinates` has {words}" in text
    for x, words in [(PHOTO[:, 0, 0], "1 axis,"), (PHOTO[..., 0], "2 axes,")]:
        assert f"`input` has {words}" in message(jresample.interpolate, x, 4)
        assert f"{x.ndim} dimension" in message(
            lambda x: jresample.resize(x, 4, "linear", axes=3), x
        )


# sizes --------------------------------------------------------------------------------------------

HEIGHT, WIDTH = PHOTO.shape[:2]
FLOATS = {
    "half of a shape": lambda: jresample.resize(PHOTO, (HEIGHT / 2, WIDTH / 2, 3), "linear"),
    "numpy floats": lambda: jresample.resize(PHOTO, np.array([48.0, 40.0, 3.0]), "linear"),
    "on some axes": lambda: jresample.resize(PHOTO, (48, 40.0), "linear", axes=(0, 1)),
    "size": lambda: jresample.interpolate(BATCH, (48.0, 40.0), channel_axis=-1),
    "one size": lambda: jresample.interpolate(BATCH, np.float32(48), channel_axis=-1),
}


@pytest.mark.parametrize("name", FLOATS)
def test_sizes_as_floats(name):
    """Even a whole one, as `height / 2` gives: 96 / 2 is 48.0 and 95 / 2 is not a size."""
    text = message(FLOATS[name])
    assert "`size`" in text or "`shape`" in text
    assert any(value in text for value in ("48.0", "40.0"))
    assert "integer" in text
    assert "round" in text


TRACED = {
    "shape": lambda x, n: jresample.resize(x, (n, n, 3), "linear"),
    "whole shape": lambda x, n: jresample.resize(x, jnp.stack([n, n, n]), "linear"),
    "size": lambda x, n: jresample.interpolate(x[None], n, channel_axis=-1),
    "scale": lambda x, n: jresample.interpolate(x[None], None, n / 2.0, channel_axis=-1),
    "of an array": lambda x, n: jresample.resize(x, (x.sum().astype(int), n, 3), "linear"),
    "entry": lambda x, n: jresample.scale_and_translate(x, (n, 40, 3), (0, 1), *MOVE),
    "entry of another axis": lambda x, n: jresample.scale_and_translate(
        x, (48, 40, n), (0, 1), *MOVE
    ),
    "array": lambda x, n: jresample.scale_and_translate(x, jnp.stack([n, n, n]), (0, 1), *MOVE),
    "grid": lambda x, n: jresample.affine_grid(jnp.eye(2, 3)[None], (1, 3, n, n)),
}


@pytest.mark.parametrize("name", TRACED)
def test_traced_size(name):
    text = message(jax.jit(TRACED[name]), PHOTO, 48)
    assert "traced" in text
    assert "static" in text
    assert "static_argnums" in text
    # and the way out is one
    half = jax.jit(lambda x, n: jresample.resize(x, (n, n, 3), "linear"), static_argnums=1)
    assert half(PHOTO, 48).shape == (48, 48, 3)


def test_height_and_width_only():
    """The commonest first call: the sizes of two axes for an image of three."""
    text = message(lambda: jresample.resize(PHOTO, (48, 40), "linear"))
    assert "`axes`" in text
    assert "(96, 80, 3)" in text
    assert jresample.resize(PHOTO, (48, 40), "linear", axes=(0, 1)).shape == (48, 40, 3)


# channels on another axis than the call reads them from -------------------------------------------

SWAPPED = {
    "no batch": lambda x: jresample.interpolate(x[0], (48, 40)),
    "no batch, bilinear": lambda x: jresample.interpolate(x[0], 48, mode="bilinear"),
    "three sizes": lambda x: jresample.interpolate(x, (48, 40, 3), mode="bicubic"),
    "one size in a list": lambda x: jresample.interpolate(x, (48,), mode="bicubic"),
    "sizes as floats": lambda x: jresample.interpolate(x, (48.0, 40.0), mode="bicubic"),
    "negative size": lambda x: jresample.interpolate(x, -1),
    "three factors": lambda x: jresample.interpolate(x, None, (2, 2, 1)),
    "factor zero": lambda x: jresample.interpolate(x, None, 0),
    "no size": lambda x: jresample.interpolate(x),
    "unknown mode": lambda x: jresample.interpolate(x, 48, mode="cubic"),
    "trilinear": lambda x: jresample.interpolate(x, 48, mode="trilinear"),
    "corners of nearest": lambda x: jresample.interpolate(x, 48, align_corners=True),
    "antialias of nearest": lambda x: jresample.interpolate(x, 48, antialias=True),
    "antialias a string": lambda x: jresample.interpolate(x, 48, mode="bicubic", antialias="yes"),
}


@pytest.mark.parametrize("name", SWAPPED)
def test_channels_last_by_mistake(name):
    """96 "channels" and an axis of 3: whatever failed, `channel_axis` is worth a look."""
    for text in (message(SWAPPED[name], BATCH), message(jax.jit(SWAPPED[name]), BATCH)):
        assert "channel_axis" in text, text


FIRST = np.moveaxis(BATCH, -1, 1)
GRID = np.zeros((1, 5, 5, 2))
# Failing calls, and words of the way out.
SWAPPED_ELSEWHERE = {
    "interpolate": (
        lambda: jresample.interpolate(FIRST, (48.0, 40.0), channel_axis=-1),
        ["axis 1 ", "`channel_axis=1`"],
    ),
    "resize, two sizes": (
        lambda: jresample.resize(PHOTO, (48, 40), "linear"),
        ["axis 2 ", "`axes`"],
    ),
    "resize, shape": (
        lambda: jresample.resize(BATCH, (1, 3, 48.0, 40.0), "linear"),
        ["axis 3 ", "`axes`"],
    ),
    "resize, axes": (
        lambda: jresample.resize(BATCH, (48, 40), "keys", axes=(-2, -1)),
        ["axis 3 ", "`axes`"],
    ),
    "resize, channels first": (
        lambda: jresample.resize(FIRST, (48, 40), "keys", axes=np.array([1, 2])),
        ["axis 1 ", "`axes`"],
    ),
    "scale_and_translate": (
        lambda: jresample.scale_and_translate(BATCH, (1, 48, 40, 3), (2, 3), *MOVE),
        ["axis 3 ", "`spatial_dims`"],
    ),
    "sample": (
        lambda: jresample.sample(FIRST[0], POINTS, "keys"),
        ["axis 0 ", "move them last"],
    ),
    "map_coordinates": (
        lambda: jresample.map_coordinates(PHOTO, POINTS.T, 1),
        ["axis 2 ", "jax.vmap", "`sample`"],
    ),
    "grid_sample": (
        lambda: jresample.grid_sample(BATCH, GRID, padding_mode="edge"),
        ["axis 3 ", "jnp.moveaxis(input, -1, 1)"],
    ),
    "affine_grid": (
        lambda: jresample.affine_grid(np.eye(2, 3), BATCH.shape),
        ["axis 3 ", "axis 1"],
    ),
}


@pytest.mark.parametrize("name", SWAPPED_ELSEWHERE)
def test_channels_on_the_wrong_axis(name):
    """Each function names the axis, `channel_axis`, and a way out that it has."""
    call, words = SWAPPED_ELSEWHERE[name]
    text = message(call)
    assert "channel_axis" in text
    for word in words:
        assert word in text.splitlines()[1], text


def test_the_ways_out_are_ways_out():
    """What the messages above propose, done."""
    assert jresample.interpolate(FIRST, (48, 40), channel_axis=1).shape == (1, 3, 48, 40)
    assert jresample.resize(PHOTO, (48, 40), "linear", axes=(0, 1)).shape == (48, 40, 3)
    moved = jresample.scale_and_translate(BATCH, (1, 48, 40, 3), (1, 2), *MOVE)
    assert moved.shape == (1, 48, 40, 3)
    last = jnp.moveaxis(FIRST[0], 0, -1)
    sampled = jresample.sample(last, POINTS)
    assert sampled.shape == (5, 3)
    each = jax.vmap(lambda x: jresample.map_coordinates(x, POINTS.T, 1), -1, -1)
    np.testing.assert_allclose(each(PHOTO), sampled)
    assert jresample.grid_sample(jnp.moveaxis(BATCH, -1, 1), GRID).shape == (1, 3, 5, 5)


def test_the_hint_is_not_for_everybody():
    """Channels where the call reads them, or no sign of a mistake: no hint."""
    for call in (
        lambda: jresample.interpolate(FIRST, (48.0, 40.0)),
        lambda: jresample.interpolate(FIRST, 48, mode="cubic"),
        lambda: jresample.interpolate(BATCH, (48.0, 40.0), channel_axis=-1),
        lambda: jresample.interpolate(np.ones((1, 256, 16, 16)), 48, mode="cubic"),
        lambda: jresample.interpolate(np.ones((1, 64, 80, 3)), 48, mode="cubic"),
        lambda: jresample.resize(PHOTO, (48.0, 40.0, 3), "linear"),
        lambda: jresample.resize(PHOTO, np.array([48, 40, 3]), "keys"),
        lambda: jresample.resize(PHOTO, (48.0, 40.0), "linear", axes=(0, 1)),
        lambda: jresample.scale_and_translate(PHOTO, (48.0, 40, 3), (0, 1), *MOVE),
        lambda: jresample.sample(PHOTO, POINTS, "keys"),
        lambda: jresample.map_coordinates(PHOTO[..., 0], POINTS.T, 7),
        lambda: jresample.grid_sample(FIRST, GRID, mode="linear"),
        lambda: jresample.affine_grid(np.eye(2, 3), FIRST.shape),
        lambda: jresample.affine_grid(np.eye(2, 3), (1, 2)),
    ):
        assert len(message(call).splitlines()) == 1


def test_errors_of_jax_are_left_alone():
    """The hint is for this library's refusals, not for what jax raises inside them."""
    with (
        pytest.raises(jax.errors.TracerBoolConversionError) as info,
        jresample._check.layout("input", BATCH.shape, [2, 3], [1], "pass something"),
    ):
        jax.jit(lambda x: 1 if x else 0)(True)
    assert "pass something" not in str(info.value)


def test_a_call_that_succeeds_is_not_second_guessed():
    """Shapes alone do not prove a mistake: 96 channels of 80 x 3 are resized as they were asked."""
    assert jresample.interpolate(BATCH, (40, 3)).shape == (1, 96, 40, 3)
