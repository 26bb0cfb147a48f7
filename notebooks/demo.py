"""Every mode on a photograph and its gradient, and two problems solved by descending through them.

An image is recovered from a small one through `resize`, and a photograph that was turned and moved
is registered onto the original through `grid_sample`.

Run it with `make demo`, or with `python notebooks/demo.py [--out FOLDER]` where jresample and
matplotlib are installed. `--readme` also rewrites the pictures that README.md shows.

The photograph is the portrait of Grace Hopper that matplotlib's wheel ships: an official picture of
the United States Navy, in the public domain.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
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

SIDE = 256  # of the square that is registered, in pixels
ANGLE, SHIFT = 12.0, (0.10, -0.06)  # degrees, and half sides to the right and down
LEVELS = (8, 4, 2, 1)  # the square is registered this many times smaller, one after another
TURNS = 60  # steps on each level
WITHIN = 0.05, 0.1  # degrees and pixels: what counts as registered

IMAGES = Path(__file__).parent / "images"


def main() -> int:
    """Runs every section and returns the exit status: 0 when both problems are solved."""
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
    registered, file = register(photo, options.out / "registered.png")
    files += [*files_of_recovery, file]
    if options.readme:
        files += readme_pictures(photo)

    print(f"\nwritten in {time.perf_counter() - start:.0f} s:")
    for file in files:
        print(f"  {file}")
    if not recovered:
        print("the recovered image does not beat bicubic enlargement", file=sys.stderr)
    if not registered:
        print("the photograph was not registered onto the original", file=sys.stderr)
    return 0 if recovered and registered else 1


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


# --- a photograph registered onto another ---------------------------------------------------------


def register(photo: jax.Array, file: Path) -> tuple[bool, Path]:
    """Turns and moves the photograph, then finds out by how much; returns whether it did, a file.

    What is minimised is the mean squared difference in the middle, where both have pixels. Small
    images come first: in them a large motion is a small one.
    """
    square = jnp.moveaxis(photo[: photo.shape[1]], -1, 0)
    image = jresample.interpolate(square[None], (SIDE, SIDE), mode="bicubic", antialias=True)
    truth = jnp.array([jnp.deg2rad(ANGLE), *SHIFT])
    moved = warp(image, motion(truth))

    guess = jnp.zeros(3)
    for level in LEVELS:
        size = SIDE // level
        shrink = partial(jresample.interpolate, size=(size, size), mode="bicubic", antialias=True)
        guess = descend_to(shrink(image), shrink(moved), guess, 0.05 / 2 ** LEVELS.index(level))
        error = abs(float(jnp.rad2deg(guess[0])) - ANGLE)
        progress("registering", LEVELS.index(level) + 1, len(LEVELS), f"{error:.3f} degrees off")

    for name, (angle, *shift) in (("turned and moved by", truth), ("registered at", guess)):
        right, down = (float(s) * SIDE / 2 for s in shift)
        degrees = float(jnp.rad2deg(angle))
        print(f"{name + ':':<21}{degrees:7.3f} degrees, {right:7.3f} and {down:7.3f} pixels")
    degrees, pixels = WITHIN
    off = jnp.abs(guess - truth)
    found = bool(jnp.rad2deg(off[0]) < degrees) and bool((off[1:] * SIDE / 2 < pixels).all())
    verdict = "agree" if found else "do not agree"
    print(f"they {verdict} within {degrees} degrees and {pixels} pixels")
    return found, draw_registration(file, image, moved, warp(moved, undone(guess)))


def motion(parameters: jax.Array) -> jax.Array:
    """Returns the affine matrix `[2, 3]` of an angle in radians and a shift in half sides."""
    angle, right, down = parameters
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    return jnp.array([[cosine, -sine, right], [sine, cosine, down]])


def undone(parameters: jax.Array) -> jax.Array:
    """Returns the affine matrix that takes back `motion`."""
    matrix = motion(parameters)
    turn = matrix[:, :2].T
    return jnp.concatenate([turn, -turn @ matrix[:, 2:]], axis=1)


def warp(image: jax.Array, matrix: jax.Array) -> jax.Array:
    """Returns an image `[1, channels, height, width]` read at places moved by a matrix."""
    return jresample.grid_sample(image, jresample.affine_grid(matrix[None], image.shape))


def descend_to(image: jax.Array, moved: jax.Array, guess: jax.Array, rate: float) -> jax.Array:
    """Returns the motion that takes `moved` back onto `image`, by Adam's gradient descent."""
    middle = np.s_[..., image.shape[-1] // 4 : -(image.shape[-1] // 4)]

    def loss(parameters: jax.Array) -> jax.Array:
        difference = warp(moved, undone(parameters)) - image
        return jnp.mean(jnp.swapaxes(difference[middle], -1, -2)[middle] ** 2)

    def step(state: tuple[jax.Array, ...], count: jax.Array) -> tuple[tuple[jax.Array, ...], None]:
        guess, mean, square = state
        gradient = jax.grad(loss)(guess)
        mean, square = 0.8 * mean + 0.2 * gradient, 0.9 * square + 0.1 * gradient**2
        size = jnp.sqrt(square / (1 - 0.9**count)) + 1e-12
        slower = rate * 0.5 * (1 + jnp.cos(jnp.pi * count / TURNS))
        return (guess - slower * mean / (1 - 0.8**count) / size, mean, square), None

    start = (guess, jnp.zeros(3), jnp.zeros(3))
    return jax.jit(lambda: jax.lax.scan(step, start, 1.0 + jnp.arange(TURNS))[0][0])()


def draw_registration(file: Path, image: jax.Array, moved: jax.Array, back: jax.Array) -> Path:
    """Draws the photograph, moved, registered, and what is left between, and returns the file."""
    left_over = jnp.linalg.norm(back[0] - image[0], axis=0)
    tiles = {
        "the photograph": to_pixels(jnp.moveaxis(image[0], 0, -1)),
        "turned and moved": to_pixels(jnp.moveaxis(moved[0], 0, -1)),
        "registered": to_pixels(jnp.moveaxis(back[0], 0, -1)),
        "what is left between": np.asarray(left_over),
    }
    figure = new_figure(len(tiles) * (SIDE + GAP) + GAP, SIDE + 40 + GAP)
    for count, (title, tile) in enumerate(tiles.items()):
        left = GAP + count * (SIDE + GAP)
        text_at(figure, left + SIDE // 2, 10, title, size=14, ha="center")
        draw_tile(figure, left, 40, tile, SIDE)
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
