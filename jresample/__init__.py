"""Differentiable resampling for JAX: regular grids, computed coordinates, and their kernels."""

from . import kernels
from ._grid_sample import affine_grid, grid_sample
from ._resize import resize, resize_matrix
from ._sample import sample
from ._scipy import map_coordinates
from ._spline import spline_filter
from ._torch import interpolate
from ._translate import scale_and_translate

__all__ = [
    "affine_grid",
    "grid_sample",
    "interpolate",
    "kernels",
    "map_coordinates",
    "resize",
    "resize_matrix",
    "sample",
    "scale_and_translate",
    "spline_filter",
]
__version__ = "0.1.0"
