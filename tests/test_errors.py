"""Every malformed call: which exception, and which words; eagerly and under jit alike."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jresample
from jresample import interpolate, kernels, resize, resize_matrix

X = np.ones((4, 5), np.float32)
IMAGE = np.ones((1, 2, 4, 5), np.float32)
LINE = np.ones((1, 2, 4), np.float32)
VOLUME = np.ones((1, 2, 4, 5, 3), np.float32)
NAN, INF = float("nan"), float("inf")


def _resize(*args, x=X, **kwargs):
    return lambda x: resize(x, *args, **kwargs), x


def _interpolate(*args, x=IMAGE, **kwargs):
    return lambda x: interpolate(x, *args, **kwargs), x


# name -> ((call, array), words the message must contain)
CALLS = {
    # resize: shape
    "shape too short": (_resize((3,), "linear"), ["`shape`"]),
    "shape too long": (_resize((3, 3, 3), "linear"), ["`shape`"]),
    "shape is a number": (_resize(3, "linear"), ["`shape`"]),
    "shape is None": (_resize(None, "linear"), ["`shape`"]),
    "shape is a string": (_resize("34", "linear"), ["`shape`"]),
    "shape negative": (_resize((3, -2), "linear"), ["`shape`", "-2"]),
    "shape broken": (_resize((3, 3.7), "linear"), ["`shape`", "3.7"]),
    "shape NaN": (_resize((3, NAN), "linear"), ["`shape`"]),
    "shape of None": (_resize((3, None), "linear"), ["`shape`"]),
    "shape of bool": (_resize((3, True), "linear"), ["`shape`"]),
    "shape of floats in an array": (_resize(np.array([3.0, 2.5]), "linear"), ["`shape`"]),
    "shape nested": (_resize(((3, 4), 5), "linear"), ["`shape`"]),
    "shape shorter than axes": (_resize((3,), "linear", axes=(0, 1)), ["`shape`", "`axes`"]),
    "shape longer than axes": (_resize((3, 4), "linear", axes=(0,)), ["`shape`", "`axes`"]),
    "scalar image": (_resize((3,), "linear", x=np.float32(1)), ["`shape`"]),
    # resize: method
    "method unknown": (_resize((3, 3), "nonsense"), ["`method`", "nonsense"]),
    "method misspelt": (_resize((3, 3), "lanczos"), ["`method`", "lanczos"]),
    "method of another case": (_resize((3, 3), "Linear"), ["`method`"]),
    "method empty": (_resize((3, 3), ""), ["`method`"]),
    "method None": (_resize((3, 3), None), ["`method`"]),
    "method a number": (_resize((3, 3), 3), ["`method`"]),
    "method a function": (_resize((3, 3), np.sinc), ["`method`"]),
    "method a factory": (_resize((3, 3), kernels.cubic), ["`method`"]),
    "methods too few": (_resize((3, 3), ("linear",)), ["`method`"]),
    "methods too many": (_resize((3, 3), ("linear",) * 3), ["`method`"]),
    "one method unknown": (_resize((3, 3), ("linear", "nonsense")), ["`method`", "nonsense"]),
    # resize: the other options
    "antialias a string": (_resize((3, 3), "linear", "yes"), ["`antialias`"]),
    "antialias None": (_resize((3, 3), "linear", None), ["`antialias`"]),
    "antialias too long": (_resize((3, 3), "linear", (True,) * 3), ["`antialias`"]),
    "align_corners a string": (_resize((3, 3), "linear", align_corners="yes"), ["`align_corners`"]),
    "align_corners a number": (_resize((3, 3), "linear", align_corners=2), ["`align_corners`"]),
    "align_corners too long": (
        _resize((3, 3), "linear", align_corners=(True,) * 3),
        ["`align_corners`"],
    ),
    "boundary unknown": (_resize((3, 3), "cubic", boundary="mirror"), ["`boundary`", "mirror"]),
    "boundary a number": (_resize((3, 3), "cubic", boundary=0), ["`boundary`"]),
    "boundary a bool": (_resize((3, 3), "cubic", boundary=False), ["`boundary`"]),
    "boundary too short": (_resize((3, 3), "cubic", boundary=("edge",)), ["`boundary`"]),
    "boundary too long": (_resize((3, 3), "cubic", boundary=("edge",) * 3), ["`boundary`"]),
    "boundary not one for each of axes": (
        _resize((3,), "cubic", axes=(1,), boundary=("edge", "wrap")),
        ["`boundary`"],
    ),
    "one boundary unknown": (
        _resize((3, 3), "cubic", boundary=("edge", "zeros")),
        ["`boundary`", "zeros"],
    ),
    "reflect of one sample": (
        _resize((4,), "cubic", boundary="reflect", x=X[:1, 0]),
        ["`boundary`", "reflect", "symmetric"],
    ),
    "axes out of range": (_resize((3,), "linear", axes=(2,)), ["`axes`", "2"]),
    "axes far below zero": (_resize((3,), "linear", axes=(-3,)), ["`axes`", "-3"]),
    "axes repeated": (_resize((3, 3), "linear", axes=(0, 0)), ["`axes`"]),
    "axes repeated by sign": (_resize((3, 3), "linear", axes=(1, -1)), ["`axes`"]),
    "axes broken": (_resize((3,), "linear", axes=(0.5,)), ["`axes`"]),
    "axes of strings": (_resize((3,), "linear", axes=("height",)), ["`axes`"]),
    # resize: the image
    "empty axis to a full one": (_resize((3, 2), "linear", x=X[:0]), ["`image`", "0"]),
    "empty axis, nearest": (_resize((3, 2), "nearest", x=X[:0]), ["`image`"]),
    # interpolate: sizes
    "neither size nor factor": (_interpolate(), ["`size`", "`scale_factor`"]),
    "both size and factor": (_interpolate(3, 2.0), ["`size`", "`scale_factor`"]),
    "size too short": (_interpolate((3,)), ["`size`"]),
    "size too long": (_interpolate((3, 3, 3)), ["`size`"]),
    "size of the whole array": (_interpolate((1, 2, 3, 3)), ["`size`"]),
    "size negative": (_interpolate(-3), ["`size`", "-3"]),
    "size broken": (_interpolate((3, 2.5)), ["`size`", "2.5"]),
    "size a string": (_interpolate("3"), ["`size`"]),
    "factor too short": (_interpolate(None, (2.0,)), ["`scale_factor`"]),
    "factor too long": (_interpolate(None, (2.0,) * 3), ["`scale_factor`"]),
    "factor zero": (_interpolate(None, 0.0), ["`scale_factor`"]),
    "factor negative": (_interpolate(None, -1.5), ["`scale_factor`", "-1.5"]),
    "factor NaN": (_interpolate(None, NAN), ["`scale_factor`"]),
    "factor infinite": (_interpolate(None, INF), ["`scale_factor`"]),
    "factor huge": (_interpolate(None, 1e30), ["`scale_factor`"]),
    "factor a string": (_interpolate(None, "2"), ["`scale_factor`"]),
    "factor complex": (_interpolate(None, 1j), ["`scale_factor`"]),
    "recompute with a size": (
        _interpolate(3, recompute_scale_factor=True),
        ["`recompute_scale_factor`"],
    ),
    "recompute a string": (
        _interpolate(None, 2.0, recompute_scale_factor="no"),
        ["`recompute_scale_factor`"],
    ),
    # interpolate: modes
    "mode unknown": (_interpolate(3, mode="nonsense"), ["`mode`", "nonsense"]),
    "mode of resize": (_interpolate(3, mode="lanczos5"), ["`mode`", "lanczos5"]),
    "mode None": (_interpolate(3, mode=None), ["`mode`"]),
    "mode a kernel": (_interpolate(3, mode=kernels.box), ["`mode`"]),
    "linear in 2-D": (_interpolate(3, mode="linear"), ["`mode`", "bilinear"]),
    "trilinear in 2-D": (_interpolate(3, mode="trilinear"), ["`mode`", "bilinear"]),
    "bilinear in 1-D": (_interpolate(3, mode="bilinear", x=LINE), ["`mode`", "linear"]),
    "bilinear in 3-D": (_interpolate(3, mode="bilinear", x=VOLUME), ["`mode`", "trilinear"]),
    "tricubic in 2-D": (_interpolate(3, mode="tricubic"), ["`mode`"]),
    **{
        f"align_corners={align} with {mode}": (
            _interpolate(3, mode=mode, align_corners=align),
            ["`align_corners`", mode],
        )
        for mode in ("nearest", "nearest-exact", "area")
        for align in (True, False)
    },
    **{
        f"antialias with {mode}": (
            _interpolate(3, mode=mode, antialias=True),
            ["`antialias`", mode],
        )
        for mode in ("nearest", "nearest-exact", "area")
    },
    "align_corners a string, interpolate": (
        _interpolate(3, mode="bilinear", align_corners="yes"),
        ["`align_corners`"],
    ),
    "antialias a string, interpolate": (
        _interpolate(3, mode="bilinear", antialias="yes"),
        ["`antialias`"],
    ),
    # interpolate: the array
    "two dimensions": (_interpolate(3, x=X), ["`input`", "2"]),
    "six dimensions": (_interpolate(3, x=np.ones((1, 2, 3, 3, 3, 3))), ["`input`", "6"]),
    "channel_axis out of range": (_interpolate(3, channel_axis=4), ["`channel_axis`", "4"]),
    "channel_axis a string": (_interpolate(3, channel_axis="last"), ["`channel_axis`"]),
    "channel_axis of the batch": (_interpolate(3, channel_axis=0), ["`channel_axis`", "0"]),
    "empty input axis": (_interpolate(3, x=IMAGE[:, :, :0]), ["`input`", "0"]),
}


def caught(function, *args):
    with pytest.raises((ValueError, TypeError)) as info:
        function(*args)
    return info


def check_message(error, words):
    """What STYLE asks: ours, short, and naming the argument."""
    text = str(error)
    for word in words:
        assert word in text, f"{word} is not in: {text}"
    assert len(text.strip().splitlines()) <= 3, text
    assert type(error) in (ValueError, TypeError), type(error)


@pytest.mark.parametrize("name", CALLS)
def test_bad_call(name):
    (call, x), words = CALLS[name]
    eager = caught(call, x)
    check_message(eager.value, words)
    traced = caught(jax.jit(call), x)
    assert type(traced.value) is type(eager.value)
    check_message(traced.value, words)
    shape = jax.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype)
    check_message(caught(lambda: jax.eval_shape(call, shape)).value, words)


MATRIX = {
    "size_in negative": ((-1, 3, "linear"), {}, "`size_in`"),
    "size_in broken": ((2.5, 3, "linear"), {}, "`size_in`"),
    "size_in zero": ((0, 3, "linear"), {}, "`size_in`"),
    "size_in a tuple": (((3,), 3, "linear"), {}, "`size_in`"),
    "size_out negative": ((3, -1, "linear"), {}, "`size_out`"),
    "size_out None": ((3, None, "linear"), {}, "`size_out`"),
    "method unknown": ((3, 4, "nonsense"), {}, "`method`"),
    "method a sequence": ((3, 4, ("linear", "cubic")), {}, "`method`"),
    "antialias a string": ((3, 4, "linear", "yes"), {}, "`antialias`"),
    "align_corners None": ((3, 4, "linear"), {"align_corners": None}, "`align_corners`"),
    "boundary unknown": ((3, 4, "linear"), {"boundary": "zeros"}, "`boundary`"),
    "reflect of one sample": ((1, 4, "linear"), {"boundary": "reflect"}, "`boundary`"),
}


@pytest.mark.parametrize("name", MATRIX)
def test_bad_resize_matrix(name):
    args, kwargs, word = MATRIX[name]
    check_message(caught(lambda: resize_matrix(*args, **kwargs)).value, [word])


class Unhashable:
    __hash__ = None

    def __call__(self, x):
        return x


KERNELS = {
    "lanczos of zero": (lambda: kernels.lanczos(0), "`n`"),
    "lanczos of a negative": (lambda: kernels.lanczos(-3), "`n`"),
    "lanczos of a fraction": (lambda: kernels.lanczos(2.5), "`n`"),
    "lanczos of a string": (lambda: kernels.lanczos("3"), "`n`"),
    "bspline of a negative": (lambda: kernels.bspline(-1), "`degree`"),
    "bspline of a fraction": (lambda: kernels.bspline(1.5), "`degree`"),
    "gaussian of no width": (lambda: kernels.gaussian(0.0), "`sigma`"),
    "gaussian of a negative width": (lambda: kernels.gaussian(-1.0), "`sigma`"),
    "gaussian of NaN": (lambda: kernels.gaussian(NAN), "`sigma`"),
    "gaussian of no radius": (lambda: kernels.gaussian(0.5, 0.0), "`radius`"),
    "gaussian of an infinite radius": (lambda: kernels.gaussian(0.5, INF), "`radius`"),
    "cubic of a string": (lambda: kernels.cubic("a"), "`a`"),
    "kernel of no radius": (lambda: kernels.Kernel("k", 0.0, np.abs), "`radius`"),
    "kernel of a negative radius": (lambda: kernels.Kernel("k", -1.0, np.abs), "`radius`"),
    "kernel of NaN radius": (lambda: kernels.Kernel("k", NAN, np.abs), "`radius`"),
    "kernel without a function": (lambda: kernels.Kernel("k", 1.0, "abs"), "`fn`"),
    "kernel with one parameter bare": (lambda: kernels.Kernel("k", 1.0, np.abs, 0.5), "`params`"),
    "kernel with a number for a name": (lambda: kernels.Kernel(3, 1.0, np.abs), "`name`"),
    "kernel that half interpolates": (
        lambda: kernels.Kernel("k", 1.0, np.abs, (), "yes"),
        "`interpolates`",
    ),
    "kernel whose function cannot be hashed": (
        lambda: kernels.Kernel("k", 1.0, Unhashable()),
        "`fn`",
    ),
    "cubic of several numbers": (lambda: kernels.cubic(np.array([-0.5, -0.7])), "`a`"),
    "cubic of a traced row": (lambda: kernels.cubic(jnp.array([-0.5, -0.7])), "`a`"),
    "cubic of a complex number": (lambda: kernels.cubic(np.complex64(1 + 1j)), "`a`"),
    "cubic of an array of strings": (lambda: kernels.cubic(np.array("a")), "`a`"),
    "mitchell of a list": (lambda: kernels.mitchell(1 / 3, [1, 2]), "`c`"),
    "gaussian of a negative array": (lambda: kernels.gaussian(np.array(-1.0)), "`sigma`"),
}


@pytest.mark.parametrize("name", KERNELS)
def test_bad_kernel(name):
    call, word = KERNELS[name]
    check_message(caught(call).value, [word])


def test_kernel_that_returns_nonsense():
    """A user's function of the wrong shape, or not finite, is the user's error, by name."""
    bad = {
        "shape": lambda x: x[..., 0],
        "scalar": lambda x: x.sum(),
        "not finite": lambda x: x / x.__array_namespace__().zeros_like(x),
        "zero everywhere": lambda x: 0 * x,
        "complex": lambda x: x + 1j,
        "jnp on the host": lambda x: jnp.maximum(1 - jnp.abs(x), 0),
    }
    for name, fn in bad.items():
        kernel = kernels.Kernel(f"bad: {name}", 1.0, fn)
        with np.errstate(all="ignore"):
            error = caught(lambda k=kernel: resize(X, (8, 5), k)).value
        assert f"bad: {name}" in str(error)


def test_kernel_of_jnp_fails_alike_in_eager_and_jit():
    """Not only where an eager call has not planned it before."""
    kernel = kernels.Kernel("host", 1.0, lambda x: jnp.maximum(1 - jnp.abs(x), 0))
    for call in (resize, jax.jit(resize, static_argnums=(1, 2))):
        text = str(caught(lambda call=call: call(X, (8, 5), kernel)).value)
        assert "`fn`" in text
        assert "__array_namespace__" in text


def test_kernel_of_numpy_with_a_traced_parameter():
    def numpy_only(x, a):
        return np.maximum(1 - np.abs(x * a), 0)

    def call(a):
        return resize(X, (8, 5), kernels.Kernel("numpy only", 1.0, numpy_only, (a,)))

    text = str(caught(jax.jit(call), 1.0).value)
    assert "`fn`" in text
    assert "__array_namespace__" in text


def test_options_are_checked_where_no_axis_is_resized():
    for call in (
        lambda: resize(np.float32(1), (), "nonsense"),
        lambda: resize(X, (), "nonsense", axes=()),
    ):
        check_message(caught(call).value, ["`method`", "nonsense"])
    check_message(caught(lambda: resize(X, (), "linear", "yes", axes=())).value, ["`antialias`"])
    check_message(caught(lambda: resize(X, X.shape, "linear", True, "most")).value, ["`precision`"])


def test_tables_that_cannot_be_held_are_refused():
    """Before anything is allocated, for sizes, scales and kernels alike."""
    huge = 2**31 - 1
    check_message(caught(lambda: resize(X, (huge, 5), "linear")).value, ["`image`", "taps"])
    check_message(caught(lambda: interpolate(LINE, huge, mode="linear")).value, ["`input`", "taps"])
    wide = kernels.gaussian(1.0, 1e9)
    check_message(caught(lambda: resize(X, (5, 5), wide, axes=(0, 1))).value, ["`image`", "taps"])
    for factor in (1e30, 10**400):
        error = caught(lambda f=factor: interpolate(LINE, None, f, "linear")).value
        check_message(error, ["`scale_factor`"])


def test_arrays_of_other_libraries_and_dtypes():
    for bad in (np.ma.ones(4), np.ones(4, np.longdouble), jax.ShapeDtypeStruct((4,), jnp.float32)):
        check_message(caught(lambda b=bad: resize(b, (3,), "linear")).value, ["`image`"])
    swapped = np.arange(4.0, dtype=">f4")
    np.testing.assert_array_equal(
        resize(swapped, (8,), "linear"), resize(swapped.astype("f4"), (8,), "linear")
    )


TRACED = {
    "shape": lambda n: resize(X, (n, 5), "linear"),
    "size": lambda n: interpolate(IMAGE, n),
    "size, one of two": lambda n: interpolate(IMAGE, (3, n)),
    "scale_factor": lambda n: interpolate(IMAGE, None, n),
    "scale_factor, one of two": lambda n: interpolate(IMAGE, None, (2.0, n)),
    "size_in": lambda n: resize_matrix(n, 3, "linear"),
    "size_out": lambda n: resize_matrix(3, n, "linear"),
}


@pytest.mark.parametrize("name", TRACED)
def test_traced_sizes(name):
    """Say which argument, that it must be static, and which function takes traced scales."""
    for value in (6, 6.0) if "scale" in name else (6,):
        error = caught(jax.jit(TRACED[name]), value).value
        for word in (f"`{name.split(',')[0]}`", "static", "scale_and_translate"):
            assert word in str(error)
        assert isinstance(error, (ValueError, TypeError))


def test_traced_options():
    """Other options are static too, and say so."""
    calls = {
        "antialias": lambda flag: resize(X, (3, 3), "linear", flag),
        "align_corners": lambda flag: resize(X, (3, 3), "linear", align_corners=flag),
        "axes": lambda flag: resize(X, (3,), "linear", axes=(flag.astype(jnp.int32),)),
        "radius": lambda flag: resize(X, (3, 3), kernels.gaussian(0.5, flag.astype(jnp.float32))),
    }
    for name, call in calls.items():
        text = str(caught(jax.jit(call), jnp.bool_(True)).value)
        assert f"`{name}`" in text, name
        assert "static" in text, name


def test_not_an_array():
    for bad in ("image", None, object(), {"a": 1}):
        assert "`image`" in str(caught(lambda b=bad: resize(b, (3,), "linear")).value)
        assert "`input`" in str(caught(lambda b=bad: interpolate(b, 3)).value)
    strings = np.array(["a", "b"])
    assert "`image`" in str(caught(lambda: resize(strings, (3,), "nearest")).value)


def test_nothing_is_computed_before_the_check():
    """The image may be any abstract value: errors come from shapes alone."""
    x = jax.ShapeDtypeStruct((4, 5), jnp.float32)
    for call in (
        lambda x: resize(x, (3, -1), "linear"),
        lambda x: resize(x, (3, 3), "cubic", boundary="zeros"),
    ):
        caught(lambda c=call: jax.eval_shape(c, x))


def test_good_calls_of_the_same_kind():
    """The table above refuses nothing that should pass."""
    assert resize(X, (3, 3), "linear", (True, False)).shape == (3, 3)
    assert resize(X, [3, np.int32(3)], "cubic", boundary=["edge", None]).shape == (3, 3)
    assert resize(X, (), "linear", axes=()).shape == X.shape
    assert resize(X, (3,), "linear", axes=[-1]).shape == (4, 3)
    assert resize(X[:0], (0, 3), "linear").shape == (0, 3)
    assert resize(X, (4, 5), "linear", boundary="reflect").shape == X.shape
    assert resize(np.float32(1), (), "linear").shape == ()
    assert interpolate(IMAGE, (3, 0)).shape == (1, 2, 3, 0)
    assert interpolate(IMAGE, 3, mode="bilinear", align_corners=None).shape == (1, 2, 3, 3)
    assert interpolate(IMAGE, None, 2).shape == (1, 2, 8, 10)
    assert interpolate(IMAGE, 3, recompute_scale_factor=False).shape == (1, 2, 3, 3)
    for mode, x in [
        ("bicubic", LINE),
        ("lanczos3", LINE),
        ("bicubic", VOLUME),
        ("tricubic", VOLUME),
    ]:
        for antialias in (True, False):
            assert interpolate(x, 3, mode=mode, antialias=antialias).shape[-1] == 3
    for mode, x in [("linear", LINE), ("trilinear", VOLUME), ("lanczos3", VOLUME)]:
        assert interpolate(x, 3, mode=mode, antialias=True).shape[-1] == 3
    assert jresample.resize_matrix(0, 0, "linear").shape == (0, 0)
