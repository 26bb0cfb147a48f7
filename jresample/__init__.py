"""Differentiable resampling for JAX: resize, interpolate, and the kernels they use."""

from . import kernels
from ._resize import resize, resize_matrix
from ._torch import interpolate

__all__ = ["interpolate", "kernels", "resize", "resize_matrix"]
__version__ = "0.1.0"
