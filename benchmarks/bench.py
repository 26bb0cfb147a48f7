"""Times jresample, jax.image.resize and torch in turn, in one process: `make bench`.

Every cell is timed in rounds; in each round every contestant runs twice, results blocked on, and
the second time counts. Ratios are taken round by round, so that a disturbance hits both sides,
and the table quotes their medians. Gradients are vector-Jacobian products with a given cotangent;
for torch, forward and backward are timed together, as its autograd runs them.

The copy floor is what the same memory traffic costs with no arithmetic worth mention: half of
an elementwise pass over an array of the input's size, and half of one over the output's.
"""

import argparse
import datetime
import os
import pathlib
import platform
import statistics
import sys

import jax
import jax.numpy as jnp
import numpy as np
import sampling
from cells import CELLS, HALF, METHODS, Cell, functions
from tables import geometric_mean, markdown
from timing import Thunk, compiled, race, ratio

import jresample

try:
    import torch
except ImportError:
    torch = None

CAP = 50.0


def torch_thunks(cell: Cell, method: str, backward: bool) -> list[Thunk]:
    """Returns torch's calls for a cell, one for each memory layout; none where it has no mode."""
    modes = {"linear": {1: "linear", 2: "bilinear", 3: "trilinear"}, "cubic": {2: "bicubic"},
             "lanczos3": {2: "lanczos"}}[method]  # fmt: skip
    count = len(cell.axes)
    if torch is None or count not in modes:
        return []
    channels = 1 if cell.channels is None else cell.shape[cell.channels]
    shape = (cell.shape[0], channels, *(cell.shape[a] for a in cell.axes))
    antialias = method == "lanczos3" or (cell.shrinks and count == 2)
    layouts = [torch.contiguous_format] + ([torch.channels_last] if count == 2 else [])
    thunks = []
    for layout in layouts:
        image = torch.randn(shape).contiguous(memory_format=layout)
        image.requires_grad_(backward)

        def call(image=image):
            return torch.nn.functional.interpolate(
                image, size=cell.sizes, mode=modes[count], antialias=antialias
            )

        weight = torch.ones_like(call())

        def with_gradient(image=image, call=call, weight=weight):
            image.grad = None
            call().backward(weight)

        thunks.append(with_gradient if backward else call)
    return thunks


def floor_of(cell: Cell, dtype: jnp.dtype) -> dict[str, Thunk]:
    """Returns an elementwise pass over the input's size and one over the output's."""
    add = jax.jit(lambda x: x + jnp.ones((), dtype))
    passes = {}
    for name, shape in (("in", cell.shape), ("out", cell.target)):
        x = jnp.ones(shape, dtype)
        passes[f"copy {name}"] = lambda x=x: add(x)
    return passes


def measure(cell: Cell, method: str, dtype: jnp.dtype) -> dict[str, float]:
    """Returns a row of the table."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=cell.shape), dtype)
    cotangent = jnp.asarray(rng.normal(size=cell.target), dtype)
    row: dict[str, float] = {}
    ours, theirs = (
        {name: compiled(fn, x, cotangent) for name, fn in functions(lib, cell, method).items()}
        for lib in (jresample.resize, jax.image.resize)
    )
    for name in ("forward", "gradient"):
        contestants = {
            "ours": lambda name=name: ours[name][0](x, cotangent),
            "jax": lambda name=name: theirs[name][0](x, cotangent),
        }
        if name == "forward":
            contestants |= floor_of(cell, dtype)
        with_torch = torch_thunks(cell, method, name == "gradient") if dtype == jnp.float32 else []
        if name == "gradient" and with_torch:
            contestants["both"] = lambda: ours["both"][0](x, cotangent)
        contestants |= {f"torch {i}": thunk for i, thunk in enumerate(with_torch)}
        times = race(contestants)
        row[f"{name} ms"] = 1e3 * statistics.median(times["ours"])
        row[f"{name}/jax"] = ratio(times, "jax", "ours")
        if name == "forward":
            floor = [(a + b) / 2 for a, b in zip(times["copy in"], times["copy out"], strict=True)]
            row["floors"] = statistics.median(
                a / b for a, b in zip(times["ours"], floor, strict=True)
            )
        if with_torch:
            ours_name = "ours" if name == "forward" else "both"
            row[f"{name}/torch"] = min(
                ratio(times, f"torch {i}", ours_name) for i in range(len(with_torch))
            )
        row[f"{name} compile"] = ours[name][1] / theirs[name][1]
        row[f"{name} temp"] = ours[name][2] / max(theirs[name][2], 1)
    return row


COLUMNS = ("forward ms", "gradient ms", "forward/jax", "gradient/jax", "forward/torch",
           "gradient/torch", "floors", "forward compile", "gradient compile", "forward temp",
           "gradient temp")  # fmt: skip


def table(rows: dict[str, dict[str, float]]) -> str:
    """Returns the rows as a Markdown table, with geometric means (each cell capped at 50)."""
    lines = []
    for name, row in rows.items():
        lines.append([name, *(f"{row[c]:.2f}" if c in row else "" for c in COLUMNS)])
    for label, best in (("geometric mean", None), ("least", min), ("most", max)):
        shown = [label]
        for column in COLUMNS:
            values = [min(row[column], CAP) for row in rows.values() if column in row]
            if column.endswith(" ms") or not values:
                shown.append("")
            elif best is not None:
                shown.append(f"{best(values):.2f}")
            else:
                shown.append(f"**{geometric_mean(max(v, 1e-3) for v in values):.2f}**")
        lines.append(shown)
    return markdown(("cell", *COLUMNS), lines)


def machine() -> str:
    """Returns versions and machine in one line."""
    cpu = platform.processor() or platform.machine()
    for line in (
        pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        if os.path.exists("/proc/cpuinfo")
        else []
    ):
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    versions = f"jresample {jresample.__version__}, jax {jax.__version__}"
    versions += f", torch {torch.__version__}" if torch else ", no torch"
    return (
        f"{versions}, Python {platform.python_version()}, {jax.default_backend()}: {cpu}, "
        f"{os.cpu_count()} cores, {datetime.date.today()}"
    )


def main() -> None:
    """Measures all cells, or those whose names contain `--cell`, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cell", default="", help="only cells whose name contains this")
    parser.add_argument("--method", default="", help="only this method")
    parser.add_argument("--write", type=pathlib.Path, help="also write the table to this file")
    options = parser.parse_args()
    if torch is not None:
        torch.set_num_threads(os.cpu_count() or 1)
    tables: dict[str, dict[str, dict[str, float]]] = {"float32": {}, "bfloat16": {}}
    for dtype in (jnp.float32, jnp.bfloat16):
        for cell in CELLS:
            if options.cell not in cell.name or (dtype == jnp.bfloat16 and cell.name not in HALF):
                continue
            for method in METHODS:
                if options.method in ("", method):
                    row = measure(cell, method, dtype)
                    tables[jnp.dtype(dtype).name][f"{cell.name} {method}"] = row
                    figures = ", ".join(f"{k} {v:.2f}" for k, v in row.items())
                    print(f"{jnp.dtype(dtype).name} {cell.name} {method}: {figures}", flush=True)
    half, full = tables["bfloat16"], tables["float32"]
    for name, row in half.items():
        for kind in ("forward", "gradient"):
            row[f"{kind}/float32"] = row[f"{kind} ms"] / full[name][f"{kind} ms"]
    report = render(tables, sampling.report(options.cell))
    print(report)
    if options.write:
        options.write.write_text(report)


def render(tables: dict[str, dict[str, dict[str, float]]], sampled: str) -> str:
    """Returns the whole report."""
    half = [
        [name, *(f"{row[f'{kind}/float32']:.2f}" for kind in ("forward", "gradient"))]
        for name, row in tables["bfloat16"].items()
    ]
    return f"""# Benchmark results

{machine()}

[README.md](README.md) says what holds the cells that fall short.

## Resizing

Ratios are the rival's time over jresample's, medians of round-by-round ratios: above 1 jresample
is faster. `gradient/torch` is torch's forward and backward over ours. `floors` is our forward
time over the copy floor. `compile` and `temp` are our trace-and-compile time and temporary
memory over jax.image.resize's. Written by `make bench` (`benchmarks/bench.py`).

{table(tables["float32"])}

bfloat16, our time over our float32 time:

{markdown(("cell", "forward", "gradient"), half)}

## Sampling at coordinates

{sampled}
"""


if __name__ == "__main__":
    sys.exit(main())
