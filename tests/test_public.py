"""The public surface: names, signatures, docstrings and the examples in them."""

import doctest
import importlib
import inspect
import pkgutil

import jax
import pytest

import jresample

EXPECTED = {"interpolate", "kernels", "resize", "resize_matrix"}
FUNCTIONS = [name for name in jresample.__all__ if inspect.isfunction(getattr(jresample, name))]
MODULES = ["jresample"] + [
    f"jresample.{module.name}" for module in pkgutil.iter_modules(jresample.__path__)
]
SIGNATURES = {
    "resize": "image shape method antialias=True precision=None "
    "* axes=None align_corners=False boundary=None",
    "resize_matrix": "size_in size_out method antialias=True * align_corners=False boundary=None",
    "interpolate": "input size=None scale_factor=None mode='nearest' align_corners=None "
    "recompute_scale_factor=None antialias=False * channel_axis=1",
}


def spelled(function):
    """The parameters as the design writes them."""
    words, star = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            words.append("*")
            star = True
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        words.append(parameter.name + default)
    return " ".join(words)


def test_all():
    assert set(jresample.__all__) >= EXPECTED
    for name in jresample.__all__:
        assert hasattr(jresample, name)
    public = {
        name
        for name, value in vars(jresample).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public <= set(jresample.__all__)
    assert jresample.__version__


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name):
    assert spelled(getattr(jresample, name)) == SIGNATURES[name]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_annotations(name):
    """Everything annotated; no `Any`, no `**kwargs`."""
    signature = inspect.signature(getattr(jresample, name))
    assert signature.return_annotation is not signature.empty
    for parameter in signature.parameters.values():
        assert parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        assert parameter.annotation is not parameter.empty, parameter
        assert "Any" not in str(parameter.annotation), parameter


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstring(name):
    function = getattr(jresample, name)
    doc = inspect.getdoc(function)
    assert doc, name
    first = doc.splitlines()[0]
    assert first.endswith(".")
    assert len(first) <= 100
    for section in ("Args:", "Returns:", "Raises:", ">>> "):
        assert section in doc, section
    arguments = doc.split("Args:")[1].split("Returns:")[0]
    for parameter in inspect.signature(function).parameters:
        assert f"{parameter}:" in arguments, parameter
    assert function.__module__.startswith("jresample")


@pytest.mark.parametrize("name", ["cubic", "mitchell", "lanczos", "gaussian", "bspline", "Kernel"])
def test_kernel_docstring(name):
    assert inspect.getdoc(getattr(jresample.kernels, name)), name


def test_kernels_all():
    names = {
        "Kernel",
        "box",
        "triangle",
        "hamming",
        "cubic",
        "mitchell",
        "lanczos",
        "gaussian",
        "bspline",
    }
    assert names <= set(jresample.kernels.__all__)
    signatures = {
        "cubic": "a=-0.5",
        "mitchell": f"b={1 / 3!r} c={1 / 3!r}",
        "lanczos": "n",
        "gaussian": "sigma=0.5 radius=2.0",
        "bspline": "degree",
        "Kernel": "name radius fn params=() interpolates=False",
    }
    for name, want in signatures.items():
        assert spelled(getattr(jresample.kernels, name)) == want
    for name in ("box", "triangle", "hamming"):
        assert isinstance(getattr(jresample.kernels, name), jresample.kernels.Kernel)


@pytest.mark.parametrize("module", MODULES)
def test_module_docstring(module):
    assert importlib.import_module(module).__doc__


@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module):
    """Under JAX's defaults, as a reader has them."""
    enable = getattr(jax, "enable_x64", None)
    if enable is None:
        from jax.experimental import enable_x64 as enable
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    with enable(False), jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        result = doctest.testmod(importlib.import_module(module), optionflags=flags)
    assert result.failed == 0


def test_examples_exist():
    finder = doctest.DocTestFinder()
    for name in FUNCTIONS:
        assert any(test.examples for test in finder.find(getattr(jresample, name), name)), name
