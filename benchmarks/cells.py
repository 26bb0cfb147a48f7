"""The cells that are timed and compiled: a shape, what it becomes, and which axes are resized."""

import dataclasses
from collections.abc import Callable

import jax


@dataclasses.dataclass(frozen=True)
class Cell:
    """One resize. `axes` are the resized ones, `channels` the channel axis (None: no channels)."""

    name: str
    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    axes: tuple[int, ...]
    channels: int | None

    @property
    def target(self) -> tuple[int, ...]:
        """The whole output shape."""
        out = list(self.shape)
        for axis, size in zip(self.axes, self.sizes, strict=True):
            out[axis] = size
        return tuple(out)

    @property
    def shrinks(self) -> bool:
        """Whether it is a reduction, where antialias matters."""
        return self.sizes[0] < self.shape[self.axes[0]]


METHODS = ("linear", "cubic", "lanczos3")

CELLS = (
    Cell("photo 256->512 NHWC", (8, 256, 256, 3), (512, 512), (1, 2), 3),
    Cell("photo 256->512 NCHW", (8, 3, 256, 256), (512, 512), (2, 3), 1),
    Cell("features 32->64 NHWC", (8, 32, 32, 256), (64, 64), (1, 2), 3),
    Cell("features 32->64 NCHW", (8, 256, 32, 32), (64, 64), (2, 3), 1),
    Cell("1024->512 NHWC", (1, 1024, 1024, 3), (512, 512), (1, 2), 3),
    Cell("1080p->224 NHWC", (1, 1080, 1920, 3), (224, 224), (1, 2), 3),
    Cell("4K->1080p NHWC", (1, 2160, 3840, 3), (1080, 1920), (1, 2), 3),
    Cell("512->777 NHWC", (1, 512, 512, 3), (777, 777), (1, 2), 3),
    Cell("224->112 NCHW", (16, 3, 224, 224), (112, 112), (2, 3), 1),
    Cell("volume 48->80 NDHWC", (1, 48, 48, 48, 4), (80, 80, 80), (1, 2, 3), 4),
    Cell("signal 20000->10000", (16, 20000), (10000,), (1,), None),
    Cell("small 16->8 NHWC", (32, 16, 16, 64), (8, 8), (1, 2), 3),
)

# Those timed in bfloat16 as well.
HALF = ("photo 256->512 NHWC", "features 32->64 NHWC", "1024->512 NHWC", "224->112 NCHW")


def functions(resize: Callable, cell: Cell, method: str) -> dict[str, Callable]:
    """Returns forward, gradient, and both together, as functions of image and cotangent."""

    def forward(x, _):
        return resize(x, cell.target, method)

    def gradient(x, cotangent):
        return jax.vjp(lambda x: resize(x, cell.target, method), x)[1](cotangent)[0]

    def both(x, cotangent):
        y, pullback = jax.vjp(lambda x: resize(x, cell.target, method), x)
        return y, pullback(cotangent)[0]

    return {"forward": forward, "gradient": gradient, "both": both}
