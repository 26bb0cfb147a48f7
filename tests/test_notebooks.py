"""The notebooks as files: no outputs, nothing downloaded, and assertions in the closing cell.

`make notebooks` runs them; here only their structure is read.
"""

import ast
import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "notebooks"
NAMES = ["1_quickstart", "2_antialiasing", "3_training", "4_warping", "5_inverse_problems"]
# What would fetch something, or use what a reader does not have.
FORBIDDEN = ["http:", "https:", "urllib", "requests", "fetch_", "../", "/home", "/tmp", "_notebook"]

each_notebook = pytest.mark.parametrize("name", NAMES)


def cells(name, kind=None):
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    return [cell for cell in notebook["cells"] if kind in (None, cell["cell_type"])]


def source(cell):
    return "".join(cell["source"])


def code(name):
    """The notebook's code as one syntax tree."""
    return ast.parse("\n".join(source(cell) for cell in cells(name, "code")))


def test_all_there():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == NAMES


@each_notebook
def test_outputs_are_stripped(name):
    for cell in cells(name, "code"):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        assert not cell["metadata"]
    assert (FOLDER / f"{name}.ipynb").stat().st_size < 60_000


@each_notebook
def test_last_cell_asserts_something_computed(name):
    last = cells(name)[-1]
    assert last["cell_type"] == "code"
    tree = ast.parse(source(last))
    claims = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    assert claims
    assert isinstance(tree.body[-1], ast.Assert | ast.For)
    for claim in claims:
        assert any(isinstance(node, ast.Name) for node in ast.walk(claim.test))


@each_notebook
def test_opens_with_a_title_and_explains_itself(name):
    kinds = [cell["cell_type"] for cell in cells(name)]
    first, *rest = cells(name, "markdown")
    assert kinds[0] == "markdown"
    assert source(first).startswith("# ")
    assert all(source(cell).startswith("## ") for cell in rest)
    # no more than three cells of code between two paragraphs of prose
    assert "code code code code" not in " ".join(kinds)


@each_notebook
def test_nothing_is_downloaded_and_nothing_is_private(name):
    text = "\n".join(source(cell) for cell in cells(name))
    assert [word for word in FORBIDDEN if word in text] == []
    imported = set()
    for node in ast.walk(code(name)):
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module)
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    assert "jresample" in imported
    assert not any(module.startswith("jresample._") for module in imported)


@each_notebook
def test_plots_are_labelled(name):
    """Every cell that draws shows what it drew, with a title or labels on the axes."""
    words = ("set_title", "title=", "label", "suptitle", "show(axes", "show(ax,")
    drawing = [source(cell) for cell in cells(name, "code") if "plt.show()" in source(cell)]
    assert len(drawing) >= 3
    for text in drawing:
        assert any(word in text for word in words), text
        assert text.count("plt.show()") >= text.count("plt.subplots(") > 0 or "plt.figure" in text
