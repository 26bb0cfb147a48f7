"""The linear primitive: a table of taps applied along axes, transposed by transposing the table.

`custom_vjp` would forbid forward mode and `linear_call` has no batching rule, so the map is a
primitive of its own. jax.extend promises no stability: it is used in this file alone.

    resample(x, passes)      y = A x
    transpose                A^T is resample with transposed plans: a gather, not a scatter
    batching                 a new leading axis shifts every pass by one
    abstract evaluation      taken from a traced function of the same shape, so that sharding
                             and manual axes (shard_map) follow as for any jnp function
    lowering                 one for each platform of `_apply.PLATFORMS`
"""

import functools

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ._apply import PLATFORMS, Passes, apply, outline

_resample_p = Primitive("jresample")


def resample(x: jax.Array, passes: Passes) -> jax.Array:
    """Returns `x` resampled along axes: linear in `x`, to any order, in either mode.

    Args:
        x: Floating-point or complex array.
        passes: Pairs (axis, plan), axes non-negative and distinct.

    Returns:
        The array with each axis replaced by its plan's outputs, in the dtype of `x`.
    """
    for axis, _ in passes:
        _not_sharded(x, axis)
    return _resample_p.bind(x, passes=passes) if passes else x


def _not_sharded(x: jax.Array, axis: int) -> None:
    """Refuses an axis that an explicit mesh splits: its samples must be on one device."""
    sharding = getattr(jax.typeof(x), "sharding", None)
    spec = getattr(sharding, "spec", ())
    if axis < len(spec) and spec[axis] is not None:
        raise ValueError(
            f"`image`: axis {axis} is sharded over mesh axis {spec[axis]!r}; a resampled axis must "
            "be whole on each device: shard batch axes instead, or jax.sharding.reshard it first"
        )


@functools.partial(jax.jit, static_argnames="passes")
def _impl(x: jax.Array, *, passes: Passes) -> jax.Array:
    return _resample_p.bind(x, passes=passes)


def _abstract(x: ShapedArray, *, passes: Passes) -> ShapedArray:
    return jax.make_jaxpr(functools.partial(outline, passes=passes))(x).out_avals[0]


def _transpose(cotangent, x, *, passes: Passes):
    if type(cotangent) is ad.Zero:
        return [ad.Zero(x.aval)]
    return [resample(cotangent, tuple((axis, plan.transpose()) for axis, plan in passes))]


def _batch(args, dims, *, passes: Passes):
    (x,), (dim,) = args, dims
    shifted = tuple((axis + (axis >= dim), plan) for axis, plan in passes)
    return resample(x, shifted), dim


def strong_product(a: jax.Array, b: jax.Array) -> jax.Array:
    """Returns a * b, where 0 times anything is 0: NaN and Inf do not pass a weight of 0.

    Bilinear, and its derivatives are strong products again, in both modes and to any order. A
    product behind `where(a != 0, ...)` would lose the derivative in `a` where `a` is 0.

    Args:
        a: Real array.
        b: Real array of the same shape and dtype.
    """
    # Selecting nothing from the other factor gives both the manual axes of either (shard_map),
    # and their cotangents the sums over them; XLA removes it.
    never = jnp.zeros(a.shape, bool)
    return _product_p.bind(jnp.where(never, b, a), jnp.where(never, a, b))


_product_p = Primitive("jresample_product")


def _product(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.where((a == 0) | (b == 0), jnp.zeros_like(a), a * b)


def _product_batch(args, dims):
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    moved = [
        jnp.broadcast_to(x[None], (size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
        for x, d in zip(args, dims, strict=True)
    ]
    return strong_product(*moved), 0


_product_p.def_impl(jax.jit(_product))
_product_p.def_abstract_eval(lambda a, b: jax.make_jaxpr(_product)(a, b).out_avals[0])
ad.defbilinear(_product_p, lambda ct, a, b: strong_product(ct, b),
               lambda ct, a, b: strong_product(a, ct))  # fmt: skip
batching.primitive_batchers[_product_p] = _product_batch
mlir.register_lowering(_product_p, mlir.lower_fun(_product, multiple_results=False))

_resample_p.def_impl(_impl)
_resample_p.def_abstract_eval(_abstract)
ad.deflinear2(_resample_p, _transpose)
batching.primitive_batchers[_resample_p] = _batch
for _platform in PLATFORMS:
    mlir.register_lowering(
        _resample_p,
        mlir.lower_fun(functools.partial(apply, platform=_platform), multiple_results=False),
        platform=None if _platform == "default" else _platform,
    )
