"""The examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path

import numpy as np
import pytest

import einrel
from einrel import _elementwise, _mathematics

MODULES = ["einrel", *sorted(module.name for module in pkgutil.walk_packages(einrel.__path__, "einrel."))]
FUNCTIONS = {**_elementwise.UNARY, **_elementwise.BINARY, **_mathematics.UNARY, **_mathematics.BINARY}
NAMES = {"np": np, **{name: getattr(einrel, name) for name in dir(einrel) if not name.startswith("__")}}


@pytest.mark.parametrize("name", [name for name in MODULES if name != "einrel._native"])
def test_module(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module, globs={**NAMES, **vars(module)}).failed == 0


@pytest.mark.parametrize("name", ["README.md", "docs/models.md", "docs/python.md", "docs/transformations.md"])
def test_document(name: str) -> None:
    file = Path(__file__).parents[2] / name
    assert doctest.testfile(str(file), module_relative=False, optionflags=doctest.ELLIPSIS).failed == 0


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_elementwise_function(name: str) -> None:
    example = FUNCTIONS[name].__doc__
    assert example is not None
    test = doctest.DocTestParser().get_doctest(example, dict(NAMES), name, None, None)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_every_public_name_says_what_it_is() -> None:
    for module in (einrel, einrel.linalg, einrel.random, einrel.optim):
        public = [getattr(module, name) for name in dir(module) if not name.startswith("_")]
        ours = [one for one in public if callable(one) and str(getattr(one, "__module__", "")).startswith("einrel")]
        silent = [one.__name__ for one in ours if not inspect.getdoc(one)]
        assert ours and silent == []
