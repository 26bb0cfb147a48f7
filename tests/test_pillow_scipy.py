"""Pillow's filters, live; scipy's splines where a resize is one."""

import numpy as np
import pytest
from helpers import relative_error

import jresample

Image = pytest.importorskip("PIL.Image")
FILTERS = {
    "box": Image.Resampling.BOX,
    "linear": Image.Resampling.BILINEAR,
    "hamming": Image.Resampling.HAMMING,
    "cubic": Image.Resampling.BICUBIC,
    "lanczos3": Image.Resampling.LANCZOS,
}


@pytest.mark.parametrize("method", FILTERS)
def test_pillow_filters(method):
    """Mode "F", whose arithmetic is float64 and whose result is float32."""
    rng = np.random.default_rng(0)
    for shape, new in [((9, 16), (4, 21)), ((7, 5), (3, 12)), ((64, 3), (9, 1)), ((12, 8), (8, 4))]:
        x = rng.normal(size=shape).astype(np.float32)
        want = np.asarray(Image.fromarray(x).resize(new[::-1], FILTERS[method]))
        got = jresample.resize(x, new, method)
        # Pillow rounds to float32 between the axes too.
        assert relative_error(got, want, x) <= 5e-7, (method, shape, new)


@pytest.mark.parametrize("method", FILTERS)
def test_pillow_weights(method):
    """Every pair of small sizes, by the weights; a box's exact ties included."""
    for size_in in range(1, 14):
        eye = Image.fromarray(np.eye(size_in, dtype=np.float32))
        for size_out in range(1, 14):
            if size_in == size_out:
                continue
            want = np.asarray(eye.resize((size_in, size_out), FILTERS[method]))
            got = jresample.resize_matrix(size_in, size_out, method)
            if method == "box" and not _binary_step(size_in, size_out):
                got, want = _without_ties(got, want, size_in, size_out)
            np.testing.assert_allclose(got, want, rtol=0, atol=2e-7, err_msg=f"{size_in, size_out}")


def _binary_step(size_in, size_out):
    """Whether size_in / size_out has no rounding in binary, so that Pillow's ties are exact."""
    return (size_in / size_out * 1024).is_integer() and size_out & (size_out - 1) == 0


def _without_ties(got, want, size_in, size_out):
    """Rows in which no sample lies just half a step from the centre: Pillow rounds those anyhow."""
    edges = [2 * k * size_in % size_out == 0 and 2 * k * size_in // size_out % 2 for k in range(99)]
    keep = [o for o in range(size_out) if not (edges[o] or edges[o + 1])]
    return got[keep], want[keep]


def test_pillow_uint8():
    """Pillow rounds and saturates after each pass, across first; ours does neither."""
    x = np.random.default_rng(0).integers(0, 256, (24, 31), np.uint8)
    for method, size in [("linear", (10, 50)), ("cubic", (13, 9)), ("lanczos3", (40, 20))]:
        want = np.asarray(Image.fromarray(x).resize(size[::-1], FILTERS[method])).astype(np.int32)
        across = np.asarray(jresample.resize(x, (24, size[1]), method))
        across = np.clip(np.round(across), 0, 255).astype(np.uint8)
        got = np.clip(np.round(np.asarray(jresample.resize(across, size, method))), 0, 255)
        assert np.abs(got - want).max() <= 1


@pytest.mark.parametrize("degree", [2, 3, 4, 5])
@pytest.mark.parametrize("align", [False, True])
def test_scipy_bspline(degree, align):
    """A B-spline kernel is scipy's map_coordinates without the prefilter, by every grid mode."""
    ndimage = pytest.importorskip("scipy.ndimage")
    x = np.random.default_rng(0).normal(size=7)
    modes = {"edge": "nearest", "reflect": "mirror", "symmetric": "reflect", "wrap": "grid-wrap"}
    for size in (5, 12):
        o = np.arange(size)
        c = o * 6 / (size - 1) if align else (o + 0.5) * 7 / size - 0.5
        for boundary, mode in {**modes, "constant": "grid-constant"}.items():
            want = ndimage.map_coordinates(x, [c], order=degree, mode=mode, prefilter=False)
            got = jresample.resize(
                x, (size,), f"bspline{degree}", False, align_corners=align, boundary=boundary
            )
            assert relative_error(got, want, x) <= 1e-12, (size, boundary)


@pytest.mark.parametrize("align", [False, True])
def test_scipy_linear_and_nearest(align):
    ndimage = pytest.importorskip("scipy.ndimage")
    x = np.random.default_rng(0).normal(size=7)
    for size in (5, 12):
        o = np.arange(size)
        c = o * 6 / (size - 1) if align else (o + 0.5) * 7 / size - 0.5
        want = ndimage.map_coordinates(x, [c], order=1, mode="nearest")
        got = jresample.resize(x, (size,), "linear", False, align_corners=align)
        assert relative_error(got, want, x) <= 1e-12
        zoomed = ndimage.zoom(x, size / 7, order=1, grid_mode=not align, mode="nearest")
        assert relative_error(got, zoomed, x) <= 1e-12
