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
    return _resample_p.bind(x, passes=passes) if passes else x


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
