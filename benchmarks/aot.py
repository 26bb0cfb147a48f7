"""Compiles the benchmark's cells for a TPU and a GPU that need not be there: `make bench-aot`.

XLA compiles for a described device, and says what it thinks of the result. For every cell, method
and direction, jresample and jax.image.resize are lowered for that device and compiled, and XLA's
own figures are written side by side:

    tpu    v5e: the cost model's seconds and bytes, temporaries
    cuda   A100: kernels launched, temporaries, scatters and atomics (there is no cost model)

Results are kept in a file as they come, and a program that was compiled before is not compiled
again, so that it may be run piece by piece, with `--seconds` as the limit.
"""

import argparse
import datetime
import hashlib
import importlib.metadata
import json
import math
import os
import pathlib
import re
import sys
import tempfile
import time
from collections.abc import Callable
from unittest import mock

# Before jax is imported: no TPU is asked for what it is, and no kernel is tried on a GPU. Without
# trials, XLA leaves matrices to cuBLAS.
os.environ["TPU_SKIP_MDS_QUERY"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_gpu_autotune_level=0"
    " --xla_gpu_enable_triton_gemm=false"
)

import jax
import jax.numpy as jnp
from cells import CELLS, METHODS, Cell, functions
from jax import lax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding
from tables import geometric_mean, markdown

import jresample
from jresample._apply import Passes, apply
from jresample._strategies import fits_matrix

HERE = pathlib.Path(__file__).parent
DIRECTIONS = ("forward", "gradient")
BAR = 1.05
TOPOLOGIES = {
    "tpu": {"topology_name": "v5e:2x2", "chips_per_host_bounds": [2, 2, 1]},
    "cuda": {"topology": "1x1x1", "target_config": (HERE / "a100.txtpb").read_text()},
}
Figures = dict[str, float]


def device(platform: str) -> jax.Device:
    """Returns a device of a described machine."""
    return topologies.get_topology_desc(platform=platform, **TOPOLOGIES[platform]).devices[0]


def argument(cell: Cell, direction: str, where: jax.Device) -> jax.ShapeDtypeStruct:
    """Returns what a program is given: the image, or the cotangent for a gradient."""
    shape = cell.shape if direction == "forward" else cell.target
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=SingleDeviceSharding(where))


def program(resize: Callable, cell: Cell, method: str, direction: str) -> Callable:
    """Returns the forward pass as a function of the image, or the gradient as one of y's."""
    run = functions(resize, cell, method)[direction]
    if direction == "forward":
        return lambda x: run(x, None)
    return lambda cotangent: run(jnp.zeros(cell.shape), cotangent)


def passes_of(run: Callable, x: jax.ShapeDtypeStruct) -> Passes:
    """Returns what the library's primitive is asked for; the last one, in a gradient."""
    found = []

    def walk(jaxpr: jax.extend.core.Jaxpr) -> None:
        for eqn in jaxpr.eqns:
            if eqn.primitive.name == "jresample":
                found.append(eqn.params["passes"])
            for inner in eqn.params.values():
                walk(inner.jaxpr) if hasattr(inner, "jaxpr") else None

    walk(jax.make_jaxpr(run)(jax.ShapeDtypeStruct(x.shape, x.dtype)).jaxpr)
    return found[-1]


# --- TPU ------------------------------------------------------------------------------------------


def cost(lowered: jax.stages.Lowered) -> Figures:
    """Returns the cost model's seconds and bytes, the temporaries, and the seconds to compile.

    XLA counts -1 s for each custom call it has no model for. Here these are the parts of an
    early copy into fast memory being joined, which is a change of name: it is taken out.
    """
    start = time.perf_counter()
    executable = lowered.compile()
    seconds = time.perf_counter() - start
    model = executable.cost_analysis()
    return {
        "seconds": model["optimal_seconds"] % 1,
        "bytes": model["bytes accessed"],
        "temporaries": executable.memory_analysis().temp_size_in_bytes,
        "copies": entry(executable.as_text()).count(" copy("),
        "compile": seconds,
    }


def entry(text: str) -> str:
    """Returns the entry computation of a compiled program."""
    return text[text.index("\nENTRY ") :].split("\n}")[0]


def finite_path(passes: Passes) -> Callable:
    """Returns the part of the TPU lowering that runs where the image is finite.

    That is all but the body of its loop. XLA's total counts that body as if it ran once.
    """

    def run(x: jax.Array) -> tuple:
        conditions = []

        def skip(condition: Callable, body: Callable, state: tuple) -> tuple:
            del body
            conditions.append(condition(state))
            return state

        with mock.patch.object(lax, "while_loop", skip):
            return apply(x, passes, "tpu"), conditions

    return run


def on_tpu(
    ours: jax.stages.Lowered, theirs: jax.stages.Lowered, run: Callable, x: jax.ShapeDtypeStruct
) -> dict[str, Figures]:
    """Returns the figures of both, and of the whole of our program, loop and all."""
    passes = passes_of(run, x)
    matrices = any(fits_matrix(plan) for _, plan in passes)
    if ("stablehlo.dot_general" in ours.as_text()) != matrices:
        raise AssertionError(f"this is not the lowering for TPU: {passes}")
    whole = cost(ours)
    path = cost(jax.jit(finite_path(passes)).lower(x)) if matrices else whole
    return {"ours": path, "whole": whole, "jax": cost(theirs)}


# --- GPU ------------------------------------------------------------------------------------------

# What launches nothing.
FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "partition-id"}
INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?[\w.-]+ = (?:\(.*?\)|\S+) ([\w-]+)\(")


def computations(text: str) -> dict[str, list[str]]:
    """Returns the lines of each computation of an HLO module; the entry's name is ''."""
    found: dict[str, list[str]] = {}
    name = None
    for line in text.splitlines():
        head = re.match(r"^(ENTRY )?%?([\w.-]+) \(.*\{$", line)
        if head:
            name = "" if head[1] else head[2]
            found[name] = []
        elif line.startswith("}"):
            name = None
        elif name is not None:
            found[name].append(line)
    return found


def kernels(parts: dict[str, list[str]], name: str = "") -> int:
    """Returns how many kernels a computation launches.

    A fusion, a library call, or any other instruction that does something is one; what a loop
    does counts as often as it runs, and a call counts as what it calls.
    """
    total = 0
    for line in parts[name]:
        match = INSTRUCTION.match(line)
        opcode = match[1] if match else "parameter"
        called = re.findall(r"(?:body|to_apply|branch_computations)=\{?%?([\w.-]+)", line)
        if opcode == "while":
            trips = re.search(r'known_trip_count":\{"n":"(\d+)"', line)
            total += kernels(parts, called[0]) * (int(trips[1]) if trips else 1)
        elif opcode in ("call", "conditional"):
            total += max(kernels(parts, inner) for inner in called)
        elif opcode not in FREE and not opcode.endswith("-done"):
            total += 1
    return total


def figures_on_gpu(lowered: jax.stages.Lowered) -> Figures:
    """Returns kernels, temporaries, scatters in the program and atomics in the machine code."""
    with tempfile.TemporaryDirectory() as folder:
        executable = lowered.compile(compiler_options={"xla_dump_to": folder})
        code = [path.read_text() for path in pathlib.Path(folder).glob("*.ptx")]
    if not code:
        raise AssertionError("XLA wrote no machine code to look at")
    text = executable.as_text()
    return {
        "kernels": kernels(computations(text)),
        "library": len(re.findall(r" custom-call\(", text)),
        "temporaries": executable.memory_analysis().temp_size_in_bytes,
        "scatters": len(re.findall(r" scatter\(", text)),
        "atomics": sum(len(re.findall(r"\b(?:atom|red)\.", part)) for part in code),
    }


def on_gpu(
    ours: jax.stages.Lowered, theirs: jax.stages.Lowered, run: Callable, x: jax.ShapeDtypeStruct
) -> dict[str, Figures]:
    """Returns the figures of both."""
    del run, x
    return {"ours": figures_on_gpu(ours), "jax": figures_on_gpu(theirs)}


MEASURES = {"tpu": on_tpu, "cuda": on_gpu}


# --- report ---------------------------------------------------------------------------------------


def ratio(row: dict[str, Figures], figure: str, floor: float = 0.0) -> float:
    """Returns our figure over jax's; below 1 ours is the lower. Both are at least `floor`."""
    return max(row["ours"][figure], floor) / max(row["jax"][figure], floor)


def table(rows: dict[str, dict[str, Figures]], head: list[str], cells: Callable) -> str:
    """Returns a Markdown table with one line for each row."""
    return markdown(["cell", *head], [[name, *cells(row)] for name, row in rows.items()])


def tpu_table(rows: dict[str, dict[str, Figures]]) -> str:
    """Returns the table for TPU and its summary."""

    def cells(row: dict[str, Figures]) -> list[str]:
        ours, theirs, whole = row["ours"], row["jax"], row["whole"]
        return [
            f"{1e3 * ours['seconds']:.3f}",
            f"{1e3 * theirs['seconds']:.3f}",
            f"**{ratio(row, 'seconds'):.2f}**",
            f"{ours['bytes'] / 1e6:.0f}",
            f"{theirs['bytes'] / 1e6:.0f}",
            f"{whole['temporaries'] / 1e6:.1f}",
            f"{theirs['temporaries'] / 1e6:.1f}",
            f"{1e3 * whole['seconds']:.3f}",
            f"{whole['copies'] - ours['copies']}",
            f"{whole['compile'] / theirs['compile']:.1f}",
        ]

    head = ["ms", "jax's", "ratio", "MB", "jax's", "temporaries MB", "jax's", "loop run once, ms",
            "copies for the loop", "compile"]  # fmt: skip
    ratios = {name: ratio(row, "seconds") for name, row in rows.items()}
    over = [f"{name} {value:.2f}" for name, value in ratios.items() if value > BAR]
    return (
        f"{table(rows, head, cells)}\n\n"
        f"Ratio of seconds: geometric mean **{geometric_mean(ratios.values()):.2f}**, worst "
        f"**{max(ratios.values()):.2f}** ({max(ratios, key=ratios.__getitem__)}); above {BAR}: "
        f"{', '.join(over) or 'none'}. Ratio of bytes: geometric mean "
        f"{geometric_mean(ratio(row, 'bytes') for row in rows.values()):.2f}."
    )


def cuda_table(rows: dict[str, dict[str, Figures]]) -> str:
    """Returns the table for GPU and its summary."""

    def cells(row: dict[str, Figures]) -> list[str]:
        ours, theirs = row["ours"], row["jax"]
        return [
            f"{ours['kernels']}",
            f"{theirs['kernels']} ({theirs['library']})",
            f"{ours['temporaries'] / 1e6:.1f}",
            f"{theirs['temporaries'] / 1e6:.1f}",
            f"{ours['scatters']}, {ours['atomics']}",
            f"{theirs['scatters']}, {theirs['atomics']}",
        ]

    head = ["kernels", "jax's (in libraries)", "temporaries MB", "jax's", "scatters, atomics",
            "jax's"]  # fmt: skip
    found = sum(row["ours"]["scatters"] + row["ours"]["atomics"] for row in rows.values())
    spaces = [ratio(row, "temporaries", 1e6) for row in rows.values()]
    kernels_mean = geometric_mean(ratio(row, "kernels") for row in rows.values())
    return (
        f"{table(rows, head, cells)}\n\n"
        f"Ratio of kernels: geometric mean **{kernels_mean:.2f}**, worst "
        f"{max(ratio(row, 'kernels') for row in rows.values()):.2f}. Ratio of temporaries (at "
        "least 1 MB each): geometric mean "
        f"**{geometric_mean(spaces):.2f}**, worst {max(spaces):.2f}. Scatters and "
        f"atomics of ours in all: **{found}**."
    )


TABLES = {"tpu": tpu_table, "cuda": cuda_table}


def version(*packages: str) -> str:
    """Returns the versions of those packages that are installed."""
    found = []
    for package in packages:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def render(results: dict[str, dict]) -> str:
    """Returns the whole report."""
    parts = []
    for platform, title in (("tpu", "TPU v5e"), ("cuda", "NVIDIA A100")):
        for direction in DIRECTIONS:
            rows = {
                f"{cell.name} {method}": results[key]["figures"]
                for cell in CELLS
                for method in METHODS
                if (key := f"{platform}|{cell.name}|{method}|{direction}") in results
            }
            if rows:
                parts.append(f"### {title}, {direction}\n\n{TABLES[platform](rows)}\n")
    versions = version("jax", "jaxlib", "libtpu", "jax-cuda12-plugin", "nvidia-cuda-nvcc-cu12")
    notes = (HERE / "aot_notes.md").read_text()
    return f"""# Compiled for TPU and GPU

jresample {jresample.__version__}, {versions}, {datetime.date.today()}. Nothing here was run: these
are the compiler's own figures. Written by `make bench-aot` (`benchmarks/aot.py`).

{notes}
## The tables

{chr(10).join(parts)}"""


def measure(platform: str, where: jax.Device, key: str, results: dict[str, dict]) -> bool:
    """Adds an entry to the results; returns whether anything had to be compiled."""
    _, name, method, direction = key.split("|")
    cell = next(cell for cell in CELLS if cell.name == name)
    x = argument(cell, direction, where)
    run = program(jresample.resize, cell, method, direction)
    ours = jax.jit(run).lower(x)
    digest = hashlib.sha256((ours.as_text() + jax.__version__).encode()).hexdigest()
    if results.get(key, {}).get("digest") == digest:
        return False
    theirs = jax.jit(program(jax.image.resize, cell, method, direction)).lower(x)
    figures = MEASURES[platform](ours, theirs, run, x)
    results[key] = {"digest": digest, "figures": figures}
    return True


def main() -> None:
    """Compiles what is asked for and not known yet, and writes the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--platform", default="", choices=["", *TOPOLOGIES], help="only this one")
    parser.add_argument("--cell", default="", help="only cells whose name contains this")
    parser.add_argument("--method", default="", help="only this method")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start nothing after this")
    parser.add_argument(
        "--data", type=pathlib.Path, default="build/aot.json", help="results so far"
    )
    parser.add_argument("--write", type=pathlib.Path, help="write the report to this file")
    options = parser.parse_args()
    options.data.parent.mkdir(parents=True, exist_ok=True)
    results = json.loads(options.data.read_text()) if options.data.exists() else {}
    start, left = time.perf_counter(), 0
    for platform in TOPOLOGIES:
        if options.platform not in ("", platform):
            continue
        where = device(platform)
        for cell in CELLS:
            for method in METHODS:
                if options.cell not in cell.name or options.method not in ("", method):
                    continue
                for direction in DIRECTIONS:
                    if time.perf_counter() - start > options.seconds:
                        left += 1
                        continue
                    key = f"{platform}|{cell.name}|{method}|{direction}"
                    if measure(platform, where, key, results):
                        options.data.write_text(json.dumps(results, indent=1))
                        print(key, json.dumps(results[key]["figures"]), flush=True)
    print(f"{len(results)} programs compiled, {left} not looked at for want of time")
    if options.write:
        options.write.write_text(render(results))


if __name__ == "__main__":
    sys.exit(main())
