"""The house: which module may import which, what runs without jax, and how large things grow."""

import ast
import pathlib

import jresample

PACKAGE = pathlib.Path(jresample.__file__).parent
MODULES = {path.stem: ast.parse(path.read_text()) for path in sorted(PACKAGE.glob("*.py"))}

# Lower layers first: a module imports only from layers before its own, or its own siblings
# listed beside it.
LAYERS = [
    ["_boundary", "_kernel", "kernels"],
    ["_check", "_grid"],
    ["_spec"],
    ["_plan"],
    ["_strategies"],
    ["_apply"],
    ["_linear"],
    ["_traced"],
    ["_resize"],
    ["_torch"],
    ["_sample_spec"],
    ["_sample_taps"],
    ["_sample_windows"],
    ["_sample_read", "_sample_splat"],
    ["_sample_linear"],
    ["_sample"],
    ["_spline", "_translate", "_grid_sample"],
    ["_scipy"],
    ["__init__"],
]
HOST_ONLY = ["_boundary", "_kernel", "kernels", "_check", "_grid", "_spec", "_plan", "_sample_spec"]
PRIMITIVE_MODULES = ["_linear", "_sample_linear"]
MODULE_LINES = 350
# Lines of code: without docstrings, comments and blank lines.
LIBRARY_LINES = 2750
FUNCTION_LINES = 40


def imports(tree: ast.Module) -> set[str]:
    """Names of imported modules, those for annotations only left out; own ones start with '.'."""
    hidden = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {f".{name}" for name in names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
    return found


def test_every_module_has_a_layer():
    assert sorted(MODULES) == sorted(name for layer in LAYERS for name in layer)


def test_imports_point_down():
    allowed: set[str] = set()
    for layer in LAYERS:
        for module in layer:
            own = {name[1:] for name in imports(MODULES[module]) if name.startswith(".")}
            assert own <= allowed | set(layer), f"{module} imports {own - allowed}"
        allowed |= set(layer)


def test_planning_runs_without_jax():
    for module in HOST_ONLY:
        foreign = {n for n in imports(MODULES[module]) if n.split(".")[0].startswith("jax")}
        assert not foreign, f"{module} imports {foreign}"


def test_no_private_jax_and_one_home_for_primitives():
    for module, tree in MODULES.items():
        names = imports(tree)
        assert not {n for n in names if n.startswith("jax._src")}, module
        unstable = {n for n in names if n.startswith(("jax.extend", "jax.interpreters"))}
        assert not unstable or module in PRIMITIVE_MODULES, f"{module} imports {unstable}"


def test_only_the_three_runtime_packages():
    for module, tree in MODULES.items():
        for name in imports(tree):
            root = name.split(".")[0]
            assert root in {"", "jax", "numpy", "__future__"} or root in STANDARD, (module, name)


STANDARD = {"collections", "contextlib", "dataclasses", "enum", "fractions", "functools",
            "itertools", "math", "operator", "typing"}  # fmt: skip


def code_lines(tree: ast.Module) -> int:
    """Lines that hold code: the module printed again without its docstrings."""
    bare = ast.parse(ast.unparse(tree))
    for node in ast.walk(bare):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return len(ast.unparse(bare).splitlines())


def test_sizes():
    lengths = {m: len((PACKAGE / f"{m}.py").read_text().splitlines()) for m in MODULES}
    assert {m: n for m, n in lengths.items() if n > MODULE_LINES} == {}
    code = {module: code_lines(tree) for module, tree in MODULES.items()}
    assert sum(code.values()) <= LIBRARY_LINES, code
    for module, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                lines = node.end_lineno - body[0].lineno + 1 if body else 0
                assert lines <= FUNCTION_LINES, f"{module}.{node.name} has {lines} lines"


def test_every_module_and_public_function_has_a_docstring():
    for module, tree in MODULES.items():
        assert ast.get_docstring(tree), module
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{module}.{node.name}"


def test_init_holds_names_only():
    kinds = {type(node) for node in MODULES["__init__"].body}
    assert kinds <= {ast.Expr, ast.ImportFrom, ast.Assign}
