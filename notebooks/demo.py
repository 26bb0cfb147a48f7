"""Every mode on a photograph, its gradient, and an image recovered by descending through `resize`.

Run it with `make demo`, or with `python notebooks/demo.py [--out FOLDER]` where jresample and
matplotlib are installed. `--readme` also rewrites the pictures that README.md shows.

The photograph is the portrait of Grace Hopper that matplotlib's wheel ships: an official picture of
the United States Navy, in the public domain.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")  # draw into files, on machines with and without a display

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import cbook
from matplotlib.figure import Figure
from PIL import Image

import jresample

MODES = (
    *("nearest", "nearest-floor", "box", "area", "linear", "hamming"),
    *("cubic", "cubic-pytorch", "mitchell", "lanczos2", "lanczos3", "lanczos4"),
    *("lanczos5", "gaussian", "bspline2", "bspline3", "bspline4", "bspline5"),
)
README_MODES = ("nearest", "linear", "cubic", "lanczos3", "gaussian")

TILE = 192  # side of a picture on the contact sheet
FACTOR = 4  # it is shrunk, or enlarged, by this much
FACE = np.s_[116 : 116 + TILE, 166 : 166 + TILE]
EYE = np.s_[162 : 162 + TILE // FACTOR, 190 : 190 + TILE // FACTOR]
GAP = 6  # pixels between pictures
DPI = 100

SMOOTHNESS = 2e-4  # weight of the total variation against the squared error
EDGE = 2e-2  # differences below this count as noise, those above as edges; intensities are 0 to 1
STEPS = 100  # the PSNR is flat from here on

IMAGES = Path(__file__).parent / "images"


def main() -> int:
    """Runs every section and returns the exit status: 0 when the recovery beats bicubic."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder to write to")
    parser.add_argument("--readme", action="store_true", help="rewrite the pictures of README.md")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    start = time.perf_counter()
    photo = load_photo()
    height, width, _ = photo.shape
    print(f"photograph: {height} x {width}, three channels")

    files = [contact_sheet(photo, options.out / "modes.png")]
    recovered, files_of_recovery = recover(photo, options.out)
    files += files_of_recovery
    if options.readme:
        files += readme_pictures(photo)

    print(f"\nwritten in {time.perf_counter() - start:.0f} s:")
    for file in files:
        print(f"  {file}")
    if not recovered:
        print("the recovered image does not beat bicubic enlargement", file=sys.stderr)
    return 0 if recovered else 1


def load_photo() -> jax.Array:
    """Returns the photograph, float32 `[height, width, 3]`, intensities 0 to 1."""
    file = cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)
    return jnp.asarray(plt.imread(file), jnp.float32) / 255


# --- every mode, and its gradient -----------------------------------------------------------------


def contact_sheet(photo: jax.Array, file: Path) -> Path:
    """Draws each mode's reduction, enlargement and gradients, and returns the file written."""
    panels = []
    for count, mode in enumerate(MODES, 1):
        panels.append((mode, mode_panels(photo, mode)))
        progress("modes", count, len(MODES), mode)

    columns = 3
    rows = -(-len(MODES) // columns)
    wide, high = 4 * (TILE + GAP) + 2 * GAP, TILE + 60
    figure = new_figure(columns * wide + 2 * GAP, rows * high + 60)
    text_at(figure, columns * wide // 2, 16, CAPTION, size=16, ha="center")
    for place, (mode, tiles) in enumerate(panels):
        row, column = divmod(place, columns)
        draw_mode(figure, 2 * GAP + column * wide, 56 + row * high, mode, tiles)
    return save(figure, file)


CAPTION = (
    f"Each mode reduces a {TILE} x {TILE} crop and enlarges a {TILE // FACTOR} x {TILE // FACTOR} "
    f"crop by {FACTOR}. Beside each: the size of the gradient of |resize(x)|\u00b2 / 2 at every "
    "pixel of x, brightest where it is largest."
)


def mode_panels(photo: jax.Array, mode: str) -> list[np.ndarray]:
    """Returns the reduction, its gradient, the enlargement, and its gradient."""
    panels = []
    for image, size in ((photo[FACE], TILE // FACTOR), (photo[EYE], TILE)):
        result, gradient = resize_with_gradient(image, (size, size, 3), mode)
        panels += [to_pixels(result), np.asarray(jnp.linalg.norm(gradient, axis=-1))]
    return panels


def resize_with_gradient(
    image: jax.Array, shape: tuple[int, ...], mode: str
) -> tuple[jax.Array, jax.Array]:
    """Returns the resized image, and d/dx of |resize(x)|^2 / 2 at every pixel of the image."""
    reducing = shape[0] < image.shape[0]  # when enlarging, antialias matters to cubic-pytorch only

    def energy(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        result = jresample.resize(x, shape, mode, antialias=reducing)
        return jnp.sum(result**2) / 2, result

    gradient, result = jax.jit(jax.grad(energy, has_aux=True))(image)
    return result, gradient


def draw_mode(figure: Figure, left: int, top: int, mode: str, tiles: list[np.ndarray]) -> None:
    """Draws the four panels of one mode, under its name, at a place given in pixels."""
    text_at(figure, left, top, mode, size=16, weight="bold")
    titles = (f"\u00f7 {FACTOR}", "its gradient", f"\u00d7 {FACTOR}", "its gradient")
    for count, (tile, title) in enumerate(zip(tiles, titles, strict=True)):
        x = left + count * (TILE + GAP)
        text_at(figure, x + TILE // 2, top + 28, title, size=12, ha="center")
        draw_tile(figure, x, top + 48, tile)


# --- a full-size image from a small one -----------------------------------------------------------


def recover(photo: jax.Array, folder: Path) -> tuple[bool, list[Path]]:
    """Recovers the photograph from one 4 times smaller; returns whether bicubic was beaten, files.

    The small image holds 8-bit pixels, as a file would. What is minimised is the distance between
    it and the reduced guess, plus a little of the guess's total variation, because the small image
    alone says nothing about the finest detail.
    """
    height, width, channels = photo.shape
    shape = (height // FACTOR, width // FACTOR, channels)
    small = jnp.round(to_unit(jresample.resize(photo, shape, "lanczos3")) * 255) / 255
    bicubic = jresample.resize(small, photo.shape, "cubic")

    def loss(x: jax.Array) -> jax.Array:
        error = jresample.resize(x, shape, "lanczos3") - small
        return jnp.sum(error**2) / 2 + SMOOTHNESS * total_variation(x)

    guess = descend(loss, bicubic, largest_curvature(photo.shape, shape), photo)
    before, after = psnr(bicubic, photo), psnr(guess, photo)
    print(f"bicubic enlargement of the small image: {before:.2f} dB PSNR")
    print(f"recovered through resize:               {after:.2f} dB PSNR ({after - before:+.2f})")
    files = [
        draw_recovery(folder / "recovered.png", photo, small, bicubic, guess),
        save_pixels(folder / "recovered_full_size.png", guess),
    ]
    return after > before, files


def descend(loss, x: jax.Array, curvature: float, photo: jax.Array) -> jax.Array:
    """Minimises a convex loss by Nesterov's accelerated gradient descent, from x.

    A step of 1 / curvature never overshoots. The photograph serves the progress line only.
    """

    @jax.jit
    def step(x: jax.Array, ahead: jax.Array, count: jax.Array) -> tuple[jax.Array, jax.Array]:
        new = ahead - jax.grad(loss)(ahead) / curvature
        return new, new + count / (count + 3) * (new - x)

    ahead = x
    for count in range(STEPS):
        x, ahead = step(x, ahead, jnp.float32(count))
        if count % 5 == 4:
            progress("recovering", count + 1, STEPS, f"{psnr(x, photo):.2f} dB")
    return x


def total_variation(x: jax.Array) -> jax.Array:
    """Returns the sum over pixels of the length of x's differences, rounded off below `EDGE`."""
    down = x[1:, :-1] - x[:-1, :-1]
    across = x[:-1, 1:] - x[:-1, :-1]
    return jnp.sum(jnp.sqrt(jnp.sum(down**2 + across**2, axis=-1) + EDGE**2))


def largest_curvature(full: tuple[int, ...], small: tuple[int, ...]) -> float:
    """Returns a bound on the curvature of the loss: squared gains of `resize`, plus smoothness.

    `resize` works axis by axis, so its gain is the product of the axes' largest singular values.
    The squared norm of the differences is at most 8, and the rounded length bends by 1 / `EDGE`.
    """
    gains = (
        np.linalg.norm(jresample.resize_matrix(size_in, size_out, "lanczos3"), 2)
        for size_in, size_out in zip(full[:2], small[:2], strict=True)
    )
    return float(np.prod([gain**2 for gain in gains]) + SMOOTHNESS * 8 / EDGE)


def psnr(x: jax.Array, truth: jax.Array) -> float:
    """Returns the peak signal-to-noise ratio of x against the truth, in decibels."""
    return float(-10 * jnp.log10(jnp.mean((to_unit(x) - truth) ** 2)))


def draw_recovery(
    file: Path, photo: jax.Array, small: jax.Array, bicubic: jax.Array, guess: jax.Array
) -> Path:
    """Draws the face as it was given, enlarged, recovered and in truth, and returns the file."""
    rows, columns = (slice(cut.start // FACTOR, cut.stop // FACTOR) for cut in FACE)
    tiles = {
        f"given: {FACTOR} times smaller": small[rows, columns],
        f"bicubic: {psnr(bicubic, photo):.2f} dB": bicubic[FACE],
        f"recovered: {psnr(guess, photo):.2f} dB": guess[FACE],
        "the photograph": photo[FACE],
    }
    side = 2 * TILE
    figure = new_figure(len(tiles) * (side + GAP) + GAP, side + 40 + GAP)
    for count, (title, tile) in enumerate(tiles.items()):
        left = GAP + count * (side + GAP)
        text_at(figure, left + side // 2, 10, title, size=16, ha="center")
        draw_tile(figure, left, 40, to_pixels(tile), side)
    return save(figure, file)


# --- pictures for README.md -----------------------------------------------------------------------


def readme_pictures(photo: jax.Array) -> list[Path]:
    """Writes the crop that README.md's example loads, and the picture that it shows."""
    IMAGES.mkdir(exist_ok=True)
    rows = (f"reduced by {FACTOR}", "its gradient", f"enlarged by {FACTOR}", "its gradient")
    step = TILE + GAP
    figure = new_figure(24 + len(README_MODES) * step, 30 + len(rows) * step)
    for column, mode in enumerate(README_MODES):
        left = 24 + column * step
        text_at(figure, left + TILE // 2, 8, mode, size=14, ha="center")
        for row, tile in enumerate(mode_panels(photo, mode)):
            draw_tile(figure, left, 30 + row * step, tile)
    for row, title in enumerate(rows):
        middle = 30 + row * step + TILE // 2
        text_at(figure, 6, middle, title, size=12, rotation=90, va="center")
    picture = save(figure, IMAGES / "modes.png")
    with Image.open(picture) as full:  # a palette is enough here, and a third of the size
        full.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(picture, optimize=True)
    return [save_pixels(IMAGES / "photo.png", photo[FACE]), picture]


# --- small helpers --------------------------------------------------------------------------------


def to_unit(x: jax.Array) -> jax.Array:
    """Returns x clipped to the intensities that a screen can show, 0 to 1."""
    return jnp.clip(x, 0, 1)


def to_pixels(x: jax.Array) -> np.ndarray:
    """Returns x as 8-bit pixels."""
    return np.asarray(jnp.round(to_unit(x) * 255).astype(jnp.uint8))


def new_figure(width: int, height: int) -> Figure:
    """Returns an empty figure of a size in pixels."""
    return plt.figure(figsize=(width / DPI, height / DPI), dpi=DPI)


def draw_tile(figure: Figure, left: int, top: int, tile: np.ndarray, side: int = TILE) -> None:
    """Draws an image as it is, or a gradient magnitude on a scale of its own, at whole pixels."""
    width, height = figure.get_size_inches() * DPI
    axis = figure.add_axes(
        (left / width, 1 - (top + side) / height, side / width, side / height), frame_on=False
    )
    axis.imshow(tile, cmap="inferno", vmin=0, interpolation="nearest", aspect="auto")
    axis.set(xticks=[], yticks=[])


def text_at(
    figure: Figure,
    left: int,
    top: int,
    text: str,
    size: int,
    ha: str = "left",
    va: str = "top",
    weight: str = "normal",
    rotation: float = 0,
) -> None:
    """Writes a text at a place given in pixels."""
    width, height = figure.get_size_inches() * DPI
    style = {"ha": ha, "va": va, "rotation": rotation, "fontsize": size, "fontweight": weight}
    figure.text(left / width, 1 - top / height, text, style)


def save(figure: Figure, file: Path) -> Path:
    """Writes a figure and returns its file."""
    figure.savefig(file, dpi=DPI)
    plt.close(figure)
    return file


def save_pixels(file: Path, x: jax.Array) -> Path:
    """Writes an image pixel for pixel and returns its file."""
    Image.fromarray(to_pixels(x)).save(file, optimize=True)
    return file


def progress(name: str, count: int, total: int, text: str) -> None:
    """Rewrites one line on a terminal; in a log, prints about four lines in all."""
    line = f"{name:<11}{count:3d}/{total}  {text}"
    if sys.stdout.isatty():
        print(f"\r{line:<60}", end="\n" if count == total else "", flush=True)
    elif count == total or count % (total // 4) == 0:
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
