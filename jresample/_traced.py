"""Kernels whose parameters are jax arrays: weights computed in traced code, on planned taps.

The taps and distances are planned on the host as for any kernel; only the weights are traced.
With one 1-tap plan for each tap, `y = sum_k w[:, k] (T_k x)` is bilinear in the weights and in
`T_k x`, and every T_k transposes to a gather: the image's gradient has no scatter either.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import _plan
from ._boundary import sample_index
from ._linear import resample, strong_product
from ._spec import AxisSpec
from .kernels import Kernel


def resample_traced(x: jax.Array, axis: int, spec: AxisSpec, kernel: Kernel) -> jax.Array:
    """Returns one axis of `x` resampled with traced weights.

    Args:
        x: Real or complex array, of 32 bits at least: sums are kept in its dtype.
        axis: The axis, non-negative.
        spec: Its spec; `spec.rule` is a static stand-in with the radius of `kernel`.
        kernel: The kernel, with parameters that are jax arrays.
    """
    if spec.size_out == 0:
        return resample(x, ((axis, _plan.build(spec)),))
    if jnp.iscomplexobj(x):
        parts = (resample_traced(p, axis, spec, kernel) for p in (lax.real(x), lax.imag(x)))
        return lax.complex(*parts)
    index, distance = _support(spec, kernel.radius)
    folded, exists = sample_index(index, spec.size_in, spec.boundary)
    exists = np.ones(index.shape, bool) if exists is None else exists
    weight = _evaluate(kernel, distance, x.dtype)
    inside = jnp.where(exists, weight, jnp.zeros_like(weight))
    total = (inside if spec.boundary is None else weight).sum(axis=1, keepdims=True)
    weight = inside / total
    y = None
    for k in range(index.shape[1]):
        taken = resample(x, ((axis, _one_tap(spec, k, folded, exists)),))
        along = weight[:, k].astype(x.dtype).reshape((-1,) + (1,) * (x.ndim - axis - 1))
        term = strong_product(jnp.broadcast_to(along, taken.shape), taken)
        y = term if y is None else y + term
    assert y is not None
    return y


def _evaluate(kernel: Kernel, distance: np.ndarray, image_dtype: np.dtype) -> jax.Array:
    """Returns the kernel at host distances, in float64 if the image or a parameter has it.

    The parameters are brought to that dtype, so that they mix under strict promotion too.
    """
    params = [jnp.asarray(p) for p in kernel.params]
    real = [p.dtype for p in params if jnp.issubdtype(p.dtype, jnp.floating)]
    bits = [jnp.finfo(dtype).bits for dtype in (*real, image_dtype)]
    dtype = jnp.float64 if max(bits) == 64 else jnp.float32
    cast = [p.astype(dtype) if jnp.issubdtype(p.dtype, jnp.floating) else p for p in params]
    with_cast = dataclasses.replace(kernel, params=tuple(cast))
    try:
        return jnp.asarray(with_cast(jnp.asarray(distance, dtype)))
    except jax.errors.TracerArrayConversionError:
        raise TypeError(
            f"`fn` of kernel {kernel.name!r} calls numpy on traced values; expected functions of "
            "the distances' own namespace: take them from x.__array_namespace__()"
        ) from None


def _support(spec: AxisSpec, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns indices and distances of the candidate taps, columns that no row needs cut off."""
    index, distance = _plan.taps(spec)
    near = (np.abs(distance) <= radius).any(axis=0)
    return index[:, near], distance[:, near]


def _one_tap(spec: AxisSpec, k: int, folded: np.ndarray, exists: np.ndarray) -> _plan.AxisPlan:
    table = _plan.compact(folded[:, k : k + 1], exists[:, k : k + 1].astype(np.float64))
    return _plan.AxisPlan(("tap", k, spec), spec.size_in, spec.size_out, *table)


def stand_in(spec: AxisSpec, kernel: Kernel) -> AxisSpec:
    """Returns the spec with the kernel's traced parameters left out, so that it can be cached."""
    return dataclasses.replace(spec, rule=Kernel(kernel.name, kernel.radius, np.ones_like))
