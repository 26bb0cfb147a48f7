"""The sampling primitive: multilinear in its arrays, smooth in its coordinates, closed under AD.

With z the coordinates and the traced numbers of kernels, and A(z) the matrix of the weights,

    read(x; z)   y = A(z) x            splat(y; z)   x = A(z)^T y

are the derivatives of one form, <y, A(z) x>, with respect to y and to x. With A_j the matrix of
the weights differentiated with respect to z_j, the derivatives of either in z are those of

    sum_j <d_j y, A_j(z) x>

where d_j holds a number for each output. An op is such a form and the argument it is
differentiated by: it takes the others. So its transpose in any of them is an op again, and so is
its derivative in z, with the weights differentiated once more and d times the tangent of z_j.
Derivatives therefore exist in both modes to any order, no tap is ever kept, and the residuals are
the arrays and the coordinates. A primitive is needed for what `custom_jvp` cannot say: that the
transpose of the gathers is a scatter by chunks, and that of the slopes a sum over the channels.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ._apply import written_out
from ._sample_read import contract, read
from ._sample_splat import splat, varying
from ._sample_taps import TapAxis

_sample_p = Primitive("jresample_sample")

# Taps over all axes up to which a sum is left to XLA:CPU's fusion.
FUSED_TAPS = 8


@dataclasses.dataclass(frozen=True)
class SampleOp:
    """Static part of a call.

    Attributes:
        axes: One for each spatial axis.
        channels_first: Where the channels lie.
        along: The operands z_j of the second form; empty for the first.
        by: The argument by which the form is differentiated: "y" (read), "x" (splat) or "d".
    """

    axes: tuple[TapAxis, ...]
    channels_first: bool
    along: tuple[int, ...] = ()
    by: str = "y"

    @property
    def takes(self) -> str:
        """The arguments that come as arrays: x `[B, *sizes, C]`, y `[B, P, C]`, d `[n, B, P]`."""
        return "".join(name for name in ("xyd" if self.along else "xy") if name != self.by)

    def apply(self, *args: jax.Array, write: Callable[..., jax.Array]) -> jax.Array:
        """Returns the value, in plain jnp; for `write` see `contract`."""
        count = len(self.takes)
        array, z = dict(zip(self.takes, args, strict=False)), args[count:]
        options = {"axes": self.axes, "channels_first": self.channels_first}
        if self.by == "d":
            return contract(array["x"], array["y"], *z, along=self.along, write=write, **options)
        if self.by == "x":
            if not self.along:
                return splat(array["y"], *z, **options)
            slopes = [
                self.slope(j).apply(self.scaled(array["y"], d), *z, write=write)
                for j, d in zip(self.along, array["d"], strict=True)
            ]
            return functools.reduce(jnp.add, slopes)

        def total(x: jax.Array, *rest: jax.Array) -> jax.Array:
            if not self.along:
                return read(x, *rest, **options)[0]
            parts = zip(read(x, *rest[1:], along=self.along, **options), rest[0], strict=True)
            return functools.reduce(jnp.add, [self.scaled(slope, d) for slope, d in parts])

        few = math.prod(axis.taps for axis in self.axes) <= FUSED_TAPS
        return (_fused if few else write)(total, *args)

    def slope(self, operand: int) -> "SampleOp":
        """Returns the first form with its weights differentiated in one operand."""
        op = dataclasses.replace(self, along=()).derivative(operand)
        assert op is not None
        return op

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

    def scaled(self, y: jax.Array, factor: jax.Array) -> jax.Array:
        """Returns outputs `[B, P, C]` (or `[B, C, P]`) times a number for each, `[B, P]`."""
        return y * jnp.expand_dims(factor, 1 if self.channels_first else -1)


def apply_taps(x: jax.Array, z: tuple[jax.Array, ...], op: SampleOp) -> jax.Array:
    """Returns `op` applied: `read`'s or `splat`'s result, differentiable in everything."""
    if any(isinstance(v, Tracer) for v in z):
        x = varying(x, z)
    return _sample_p.bind(x, *z, op=op)


def _fused(function: Callable[..., jax.Array], *args) -> jax.Array:
    return function(*args)


def _apart(function: Callable[..., jax.Array], *args) -> jax.Array:
    """Returns `function(*args)`, written out before anything else reads it.

    XLA:CPU would copy a sum over many taps into each of its readers, and keep the taps for all.
    """
    result = jax.eval_shape(function, *args)

    def zeros(*args: jax.Array) -> jax.Array:
        return jnp.broadcast_to(varying(jnp.zeros((), result.dtype), args), result.shape)

    return written_out(function, zeros, *args)


@functools.partial(jax.jit, static_argnames="op")
def _impl(*args: jax.Array, op: SampleOp) -> jax.Array:
    return _sample_p.bind(*args, op=op)


def _abstract(*args, op: SampleOp):
    return jax.make_jaxpr(functools.partial(op.apply, write=_fused))(*args).out_avals[0]


def _jvp(primals, tangents, *, op: SampleOp):
    value, count = _sample_p.bind(*primals, op=op), len(op.takes)
    arrays, z = list(primals[:count]), primals[count:]
    terms = []
    for i, tangent in enumerate(tangents[:count]):
        if type(tangent) is not ad.Zero:
            terms.append(_sample_p.bind(*arrays[:i], tangent, *arrays[i + 1 :], *z, op=op))
    dz = {
        j: _each_output(tangent, op, arrays, z)
        for j, tangent in enumerate(tangents[count:])
        if type(tangent) is not ad.Zero and op.derivative(j) is not None
    }
    if dz and not op.along:
        slopes = dataclasses.replace(op, along=tuple(dz))
        terms.append(_sample_p.bind(*arrays, jnp.stack(list(dz.values())), *z, op=slopes))
    elif op.by == "d":
        terms += [_sample_p.bind(*primals, op=op.derivative(j)) * d[None] for j, d in dz.items()]
    else:
        *rest, factor = arrays
        terms += [
            _sample_p.bind(*rest, factor * d[None], *z, op=op.derivative(j)) for j, d in dz.items()
        ]
    if not terms:
        return value, ad.Zero.from_primal_value(value)  # pyright: ignore
    return value, functools.reduce(jnp.add, terms)


def _each_output(tangent, op: SampleOp, arrays: Sequence, z: Sequence) -> jax.Array:
    """Returns the tangent of an operand as `[B, P]`, in the dtype of the arrays."""
    points = max(v.shape[1] for v in z)
    if "y" in op.takes:
        points = arrays[op.takes.index("y")].shape[2 if op.channels_first else 1]
    return jnp.broadcast_to(tangent.astype(arrays[0].dtype), (arrays[0].shape[0], points))


def _transpose(cotangent, *args, op: SampleOp):
    count = len(op.takes)
    which = next(i for i, a in enumerate(args) if ad.is_undefined_primal(a))
    out: list = [None] * len(args)
    if type(cotangent) is ad.Zero:
        out[which] = ad.Zero(args[which].aval)
        return out
    array = dict(zip(op.takes, args[:count], strict=True)) | {op.by: cotangent}
    adjoint = dataclasses.replace(op, by=op.takes[which])
    arrays = [array[name] for name in adjoint.takes]
    out[which] = _sample_p.bind(*arrays, *args[count:], op=adjoint)
    return out


def _batch(args, dims, *, op: SampleOp):
    """Puts the new axis where it costs least: with the channels, the outputs or the batch."""
    size = next(a.shape[d] for a, d in zip(args, dims, strict=True) if d is not None)
    count = len(op.takes)
    if not op.along and all(d is None for d in dims[1:]):
        return _batch_channels(*args, dim=dims[0], op=op)
    args = [a if d is None else jnp.moveaxis(a, d, 0) for a, d in zip(args, dims, strict=True)]
    batched = [d is not None for d in dims]
    arrays, z = dict(zip(op.takes, args[:count], strict=True)), args[count:]
    outputs = "x" in arrays and not batched[op.takes.index("x")]
    for name, there in zip(op.takes, batched, strict=False):
        if name != "x" or not outputs:
            v = arrays[name]
            v = v if there else jnp.broadcast_to(v, (size, *v.shape))
            at = _place(name, op, outputs)
            arrays[name] = _merge(jnp.moveaxis(v, 0, at), at)
    z = [v if there else v[None] for v, there in zip(z, batched[count:], strict=True)]
    points = max(v.shape[-1] for v in z)
    if outputs:
        z = [v[0] if v.size == 1 else _as_outputs(v, size, points) for v in z]
    else:
        rows = arrays[op.takes[0]].shape[0] // size
        z = [v[0] if v.shape[:2] == (1, 1) else _as_rows(v, size, rows) for v in z]
    y = _sample_p.bind(*arrays.values(), *z, op=op)
    at = _place(op.by, op, outputs)
    return y.reshape(*y.shape[:at], size, -1, *y.shape[at + 1 :]), at


def _batch_channels(x: jax.Array, *z: jax.Array, dim: int, op: SampleOp):
    """The same taps for all: more channels."""
    size = x.shape[dim]
    x = jnp.moveaxis(x, dim, 2 if op.channels_first else -1)
    x = _merge(x, 1 if op.channels_first else x.ndim - 2)
    y = _sample_p.bind(x, *z, op=op)
    at = 1 if op.channels_first else y.ndim - 1
    y = y.reshape(*y.shape[:at], -1, size, *y.shape[at + 1 :])
    return y, at + 1


def _place(name: str, op: SampleOp, outputs: bool) -> int:
    """Returns which axis of an argument is its outputs', or its batch's."""
    if name == "d":
        return 2 if outputs else 1
    return (2 if op.channels_first else 1) if outputs else 0


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
for _write, _platform in ((_fused, None), (_apart, "cpu")):
    mlir.register_lowering(
        _sample_p,
        mlir.lower_fun(
            lambda *args, op, write=_write: op.apply(*args, write=write), multiple_results=False
        ),
        platform=_platform,
    )
