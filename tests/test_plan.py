"""The plan's contracts: transposition, row sums, periods, and every strategy against `dense`."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jresample import _apply, _plan, _strategies
from jresample._spec import METHODS, AxisSpec, resize_specs
from jresample.kernels import Kernel

BOUNDARIES = (None, "edge", "reflect", "symmetric", "wrap", "constant")


def spec_of(n, m, method="linear", antialias=True, align_corners=False, boundary=None) -> AxisSpec:
    specs, _ = resize_specs((n,), (m,), method, antialias, (0,), align_corners, boundary)
    return specs[0][1]


def tabulated(spec: AxisSpec) -> _plan.AxisPlan:
    """The same axis with every row in the table: no period left out."""
    return _plan.AxisPlan(("whole", spec), spec.size_in, spec.size_out, *_plan._table(spec))


def random_specs(count: int):
    rng = np.random.default_rng(7)
    names = [name for name in METHODS if name not in ("bilinear", "trilinear", "bicubic")]
    while count:
        n = int(rng.integers(2, 90))
        m = int(rng.choice([rng.integers(1, 90), 2 * n, 3 * n, max(1, n // 2), max(1, n // 3)]))
        if n != m:
            count -= 1
            boundary = BOUNDARIES[rng.integers(len(BOUNDARIES))]
            flags = bool(rng.integers(2)), bool(rng.integers(4) == 0)
            yield spec_of(n, m, str(rng.choice(names)), *flags, boundary)


def test_shortened_plans_equal_the_whole_table():
    shortened = 0
    for spec in random_specs(1500):
        plan, dense = _plan.build(spec), tabulated(spec).dense()
        np.testing.assert_array_equal(plan.dense(), dense, err_msg=str(spec))
        np.testing.assert_array_equal(plan.transpose().dense(), dense.T, err_msg=str(spec))
        assert plan.transpose().transpose() is plan
        if spec.boundary != "constant":
            np.testing.assert_allclose(dense.sum(axis=1), 1, rtol=0, atol=1e-14)
        shortened += plan.repeat is not None
    assert shortened > 200, "the sweep must meet plans that leave periods out"


@pytest.mark.parametrize("method", ["linear", "lanczos3", "nearest", "area", "bspline3"])
@pytest.mark.parametrize(("n", "m"), [(100_000, 50_000), (60_000, 90_000), (30_000, 90_000)])
def test_long_regular_axes_keep_one_period(n, m, method):
    plan = _plan.build(spec_of(n, m, method))
    for side in (plan, plan.transpose()):
        assert side.repeat is not None
        assert side.index.size < 1500, "rows do not grow with the axis"
        index, weight = side.expand()
        assert index.shape[0] == side.size_out == len(weight)
        assert index.min() >= 0
        assert index.max() < side.size_in


def test_a_plan_is_its_spec():
    a, b = (spec_of(17, 40, "lanczos3", boundary="edge") for _ in range(2))
    assert a is not b
    assert hash(a) == hash(b)
    assert _plan.build(a) is _plan.build(b)
    assert hash(_plan.build(a)) == hash(a)
    assert _plan.build(a) != _plan.build(spec_of(17, 40, "lanczos3"))
    assert _plan.build(a).transpose() != _plan.build(a)


def test_padding_taps_read_nothing_new():
    for spec in random_specs(200):
        for plan in (_plan.build(spec), _plan.build(spec).transpose()):
            index, weight = plan.expand()
            for row, values in zip(index, weight, strict=True):
                used = set(row[values != 0])
                assert not used or set(row) == used


FORCED = {
    "gather": [spec_of(13, 29, "cubic"), spec_of(40, 20, "lanczos3"), spec_of(9, 4, "nearest")],
    "scan": [spec_of(200, 7, "lanczos3"), spec_of(13, 29, "cubic", boundary="reflect")],
    "dot": [spec_of(700, 3, "linear"), spec_of(512, 1, "area")],
    "matrix": [spec_of(13, 29, "cubic", boundary="edge"), spec_of(90, 7, "lanczos3")],
    "polyphase": [
        spec_of(64, 32, "lanczos3"),
        spec_of(32, 64, "cubic", boundary="edge"),
        spec_of(60, 90, "linear"),
        spec_of(33, 99, "linear"),
    ],
}


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("name", sorted(_strategies.STRATEGIES))
def test_every_strategy_is_the_dense_matrix(name, adjoint):
    rng = np.random.default_rng(0)
    for spec, axis in itertools.product(FORCED[name], (0, 1)):
        plan = _plan.build(spec).transpose() if adjoint else _plan.build(spec)
        if name == "polyphase":
            assert plan.repeat is not None, "the case must have something to repeat"
        if name == "dot" and not plan.is_contiguous:
            continue
        shape = (plan.size_in, 3) if axis == 0 else (2, plan.size_in)
        x = rng.normal(size=shape)
        got = jax.jit(_strategies.STRATEGIES[name], static_argnums=(1, 2))(x, axis, plan)
        reads = _strategies.along(plan.reads[plan.rows()[0]], axis, 2)
        want = plan.dense() @ x if axis == 0 else x @ plan.dense().T
        np.testing.assert_allclose(np.where(reads, got, 0), want, rtol=0, atol=1e-12)


def test_a_long_axis_computes_its_tables():
    """Above the limit the executable holds one period; the values are those of the constants."""
    plan = _plan.build(spec_of(30_000, 45_000, "cubic"))
    assert plan.size_out * plan.taps > _strategies.BAKED_ENTRIES
    x = np.random.default_rng(0).normal(size=plan.size_in)
    lowered = jax.jit(_strategies.gather, static_argnums=(1, 2)).lower(x, 0, plan)
    assert len(lowered.as_text()) < 100_000
    index, weight = plan.expand()
    want = (x[index] * weight).sum(axis=1)
    np.testing.assert_allclose(lowered.compile()(x), want, rtol=0, atol=1e-12)


def test_the_rule_that_chooses():
    def chosen(plan, trailing, platform="cpu", widens=False):
        return _strategies.choose(plan, trailing, platform, widens)

    halve, double = _plan.build(spec_of(512, 256, "linear")), _plan.build(spec_of(256, 512))
    assert chosen(halve, 1) == chosen(halve, 3) == chosen(halve, 1024) == "polyphase"
    assert chosen(halve, 1024, "cuda") == "gather", "one kernel serves as well"
    assert chosen(double, 1) == chosen(double, 3) == "polyphase"
    assert chosen(double, 1024) == "gather", "long runs vectorise without slices"
    assert chosen(double, 3, "cuda") == "gather"
    assert chosen(halve, 3, widens=True) == "gather", "slices of half precision do not vectorise"
    assert chosen(halve, 1, widens=True) == "polyphase"
    assert chosen(_plan.build(spec_of(512, 777)), 3) == "gather", "no period"
    wide = _plan.build(spec_of(4096, 64, "lanczos3"))
    assert wide.taps > 300
    assert chosen(wide, 3) == "scan"
    assert chosen(_plan.build(spec_of(2, 4000)).transpose(), 1) == "dot"


def test_the_order_of_passes():
    """Short runs are gathered last, but sliced first; otherwise what shrinks goes first."""

    def order(shape, sizes, method):
        specs = [spec_of(n, m, method) for n, m in zip(shape[1:3], sizes, strict=True)]
        passes = tuple((axis, _plan.build(s)) for axis, s in zip((1, 2), specs, strict=True))
        return [axis for axis, _ in _apply.ordered(shape, passes, "cpu")]

    assert order((1, 1080, 1920, 3), (224, 224), "cubic") == [1, 2]
    assert order((8, 256, 256, 3), (512, 512), "cubic") == [2, 1]
    assert order((1, 512, 512, 3), (777, 777), "cubic") == [1, 2]
    assert order((1, 64, 64, 256), (64 * 3, 16), "cubic") == [2, 1]


def test_wide_kernels_do_not_unroll():
    plan = _plan.build(spec_of(4096, 64, "lanczos3"))
    text = jax.jit(_apply.apply, static_argnums=1).lower(jnp.ones(4096), ((0, plan),)).as_text()
    assert text.count("stablehlo.gather") <= 2 * _strategies.SCAN_CHUNK
    assert "stablehlo.while" in text


def test_a_kernel_that_sums_to_zero_is_refused():
    narrow = Kernel("narrow", 0.25, np.ones_like)
    spec = spec_of(4, 3, narrow)
    with pytest.raises(ValueError, match=r"`method`.*narrow.*sum to 0"):
        _plan.build(spec)


@pytest.mark.parametrize("platform", _apply.PLATFORMS)
def test_every_lowering_is_the_dense_matrices(platform):
    """Each platform's program, run here: values, and a NaN that stays where its taps reach."""
    plans = [_plan.build(spec_of(12, 7, "lanczos3")), _plan.build(spec_of(9, 20, "cubic"))]
    x = np.random.default_rng(0).normal(size=(12, 9))
    run = jax.jit(_apply.apply, static_argnums=(1, 2))
    for adjoint in (False, True):
        a, b = (p.transpose() if adjoint else p for p in plans)
        image = np.resize(x, (a.size_in, b.size_in))
        got = run(image, ((0, a), (1, b)), platform)
        want = a.dense() @ image @ b.dense().T
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)
        image[0, 0] = np.nan
        touched = np.outer(a.dense()[:, 0] != 0, b.dense()[:, 0] != 0)
        poisoned = np.asarray(run(image, ((0, a), (1, b)), platform))
        np.testing.assert_array_equal(np.isnan(poisoned), touched)
        np.testing.assert_allclose(poisoned[~touched], want[~touched], rtol=0, atol=1e-12)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_compiled_for_cpu_the_passes_are_apart(direction):
    """Fused, the first pass would be recomputed for every tap of the second."""
    a, b = _plan.build(spec_of(40, 52, "lanczos3")), _plan.build(spec_of(40, 68, "lanczos3"))
    if direction == "backward":
        a, b = a.transpose(), b.transpose()
    passes = ((0, a), (1, b))

    def temporaries(platform):
        x = jnp.ones((a.size_in, b.size_in), jnp.float32)
        run = jax.jit(_apply.apply, static_argnums=(1, 2))
        compiled = run.lower(x, passes, platform).compile()
        return compiled.memory_analysis().temp_size_in_bytes, compiled.as_text()

    between = min(a.size_out * b.size_in, a.size_in * b.size_out) * 4
    size, text = temporaries("cpu")
    assert " conditional(" in text
    assert between <= size <= between + 4096, "one array between the passes, and nothing else"
    assert temporaries("default")[0] < between, "the control: without it they are fused"
