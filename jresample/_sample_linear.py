"""The sampling primitive: linear in its array, smooth in its coordinates, closed under transposing.

    read(x; z)      y = A(z) x          splat(y; z)      x = A(z)^T y

where z are the coordinates and the traced numbers of kernels. With `A_i` the same map with its
weights differentiated once more with respect to `z_i`, and `D(v)` the product with `v` output by
output,

    d read(x; z)  = read(dx; z)  + sum_i D(dz_i) read_i(x; z)
    d splat(y; z) = splat(dy; z) + sum_i splat_i(D(dz_i) y; z)

and the transpose of either in its array is the other, so derivatives exist in both modes to any
order, no tap is ever kept, and the residuals are array and coordinates. A primitive is needed
for what `custom_jvp` cannot say: that the transpose of the gathers is *one* scatter, by chunks.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ._sample_apply import read, splat, varying
from ._sample_taps import TapAxis

_sample_p = Primitive("jresample_sample")


@dataclasses.dataclass(frozen=True)
class SampleOp:
    """Static part of a call: the axes, the layout, and whether it is the adjoint."""

    axes: tuple[TapAxis, ...]
    channels_first: bool
    adjoint: bool = False

    def apply(self, x: jax.Array, *z: jax.Array) -> jax.Array:
        """Returns the value, in plain jnp."""
        function = splat if self.adjoint else read
        return function(x, *z, axes=self.axes, channels_first=self.channels_first)

    def transpose(self) -> "SampleOp":
        """Returns the adjoint; transposing twice gives the first back."""
        return dataclasses.replace(self, adjoint=not self.adjoint)

    def derivative(self, operand: int) -> "SampleOp | None":
        """Returns the op with weights differentiated in one operand; None where that is 0."""
        axes = list(self.axes)
        for i, axis in enumerate(axes):
            if operand < axis.operands:
                slope = axis.derivative(operand)
                if slope is None:
                    return None
                axes[i] = slope
                return dataclasses.replace(self, axes=tuple(axes))
            operand -= axis.operands
        raise IndexError(operand)

    def scaled(self, array: jax.Array, factor: jax.Array) -> jax.Array:
        """Returns outputs `[B, P, C]` (or `[B, C, P]`) times a number for each, `[B, P]`."""
        factor = jnp.expand_dims(factor.astype(array.dtype), 1 if self.channels_first else -1)
        return array * factor


def apply_taps(x: jax.Array, z: tuple[jax.Array, ...], op: SampleOp) -> jax.Array:
    """Returns `op` applied: `read`'s or `splat`'s result, differentiable in everything."""
    if any(isinstance(v, Tracer) for v in z):
        x = varying(x, z)
    return _sample_p.bind(x, *z, op=op)


@functools.partial(jax.jit, static_argnames="op")
def _impl(x: jax.Array, *z: jax.Array, op: SampleOp) -> jax.Array:
    return op.apply(x, *z)


def _lowered(x: jax.Array, *z: jax.Array, op: SampleOp) -> jax.Array:
    return op.apply(x, *z)


def _abstract(x, *z, op: SampleOp):
    return jax.make_jaxpr(op.apply)(x, *z).out_avals[0]


def _jvp(primals, tangents, *, op: SampleOp):
    (x, *z), (dx, *dz) = primals, tangents
    value = _sample_p.bind(x, *z, op=op)
    terms = []
    if type(dx) is not ad.Zero:
        terms.append(_sample_p.bind(dx, *z, op=op))
    for i, d in enumerate(dz):
        slope = None if type(d) is ad.Zero else op.derivative(i)
        if slope is None:
            continue
        term = _splat_term if op.adjoint else _read_term
        terms.append(jax.checkpoint(functools.partial(term, slope))(x, d, *z))
    if not terms:
        return value, ad.Zero.from_primal_value(value)  # pyright: ignore
    return value, functools.reduce(jnp.add, terms)


# Under checkpoint: the slopes are computed where they are used, and never kept.
def _read_term(slope: SampleOp, x: jax.Array, d: jax.Array, *z: jax.Array) -> jax.Array:
    return slope.scaled(_sample_p.bind(x, *z, op=slope), d)


def _splat_term(slope: SampleOp, x: jax.Array, d: jax.Array, *z: jax.Array) -> jax.Array:
    return _sample_p.bind(slope.scaled(x, d), *z, op=slope)


def _transpose(cotangent, x, *z, op: SampleOp):
    if type(cotangent) is ad.Zero:
        return [ad.Zero(x.aval), *(None for _ in z)]
    return [_sample_p.bind(cotangent, *z, op=op.transpose()), *(None for _ in z)]


def _batch(args, dims, *, op: SampleOp):
    """Puts the new axis where it costs least: with the channels, the outputs or the batch."""
    (x, *z), (dx, *dz) = args, dims
    count = next(a.shape[d] for a, d in zip(args, dims, strict=True) if d is not None)
    if all(d is None for d in dz):
        # the same taps for all: more channels
        x = jnp.moveaxis(x, dx, 2 if op.channels_first else -1)
        x = _merge(x, 1 if op.channels_first else x.ndim - 2)
        y = _sample_p.bind(x, *z, op=op)
        at = 1 if op.channels_first else y.ndim - 1
        y = y.reshape(*y.shape[:at], -1, count, *y.shape[at + 1 :])
        return y, at + 1
    z = [v[None] if d is None else jnp.moveaxis(v, d, 0) for v, d in zip(z, dz, strict=True)]
    points = max(v.shape[-1] for v in z)
    if dx is None and not op.adjoint:
        # one array read at more outputs
        z = [v[0] if v.size == 1 else _as_outputs(v, count, points) for v in z]
        y = _sample_p.bind(x, *z, op=op)
        at = 2 if op.channels_first else 1
        return y.reshape(*y.shape[:at], count, points, *y.shape[at + 1 :]), at
    shape = (count, *x.shape)
    x = jnp.broadcast_to(x[None], shape) if dx is None else jnp.moveaxis(x, dx, 0)
    rows = x.shape[1]
    z = [v[0] if v.shape[:2] == (1, 1) else _as_rows(v, count, rows) for v in z]
    y = _sample_p.bind(_merge(x, 0), *z, op=op)
    return y.reshape(count, rows, *y.shape[1:]), 0


def _merge(x: jax.Array, at: int) -> jax.Array:
    return x.reshape(*x.shape[:at], x.shape[at] * x.shape[at + 1], *x.shape[at + 2 :])


def _as_outputs(v: jax.Array, count: int, points: int) -> jax.Array:
    v = jnp.broadcast_to(v, (count, v.shape[1], points))
    return _merge(jnp.moveaxis(v, 0, 1), 1)


def _as_rows(v: jax.Array, count: int, rows: int) -> jax.Array:
    return _merge(jnp.broadcast_to(v, (count, rows, v.shape[2])), 0)


_sample_p.def_impl(_impl)
_sample_p.def_abstract_eval(_abstract)
ad.primitive_jvps[_sample_p] = _jvp
ad.primitive_transposes[_sample_p] = _transpose
batching.primitive_batchers[_sample_p] = _batch
mlir.register_lowering(_sample_p, mlir.lower_fun(_lowered, multiple_results=False))
