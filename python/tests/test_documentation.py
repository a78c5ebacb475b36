"""The examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import einrel
from einrel import _elementwise, _mathematics, _parameters

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


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """All of the package, but for those that are not there."""
    for module in (einrel, einrel.linalg, einrel.random, einrel.optim, einrel.models):
        for name in module.__all__:
            one = getattr(module, name)
            if inspect.isfunction(one) or isinstance(one, _elementwise.Elementwise):
                yield f"{module.__name__}.{name}", one


def test_docstrings_speak_of_all_parameters() -> None:
    functions = dict(public_functions())
    assert len(functions) > 250
    missing = [
        f"{name}({parameter})"
        for name, function in functions.items()
        for parameter in inspect.signature(function).parameters
        if not _parameters.speaks_of(inspect.getdoc(function) or "", parameter)
    ]
    assert missing == []


def test_words_of_sentences_are_no_parameters() -> None:
    assert not _parameters.speaks_of("Along a dimension, where it has one.\n\n>>> f(a, x)", "a")
    assert not _parameters.speaks_of("Along a dimension.\n\n>>> f(x)", "x")
    assert _parameters.speaks_of("Along a dimension of `a`.", "a")
    assert "\n    a: " in (inspect.getdoc(einrel.cross) or "")
    assert "\n    axis: " in (inspect.getdoc(einrel.linalg.norm) or "")


def test_each_meaning_of_a_parameter_is_told_somewhere() -> None:
    told = {
        f"{name}.{line.strip().partition(':')[0]}"
        for path, function in public_functions()
        for name in (path.rpartition(".")[2],)
        for line in (inspect.getdoc(function) or "").partition("\nParameters:\n")[2].splitlines()
    }
    assert set(_parameters._OWN) - told == set()
    assert set(_parameters._COMMON) - {one.rpartition(".")[2] for one in told - set(_parameters._OWN)} == set()


def test_a_meaning_stands_before_the_examples_and_once() -> None:
    doc = inspect.getdoc(einrel.sum) or ""
    assert doc.index("\n    keepdims: whether ") < doc.index(">>>")
    before = {name: function.__doc__ for name, function in public_functions()}
    _parameters.describe({name: getattr(einrel, name) for name in einrel.__all__})
    assert before == {name: function.__doc__ for name, function in public_functions()}
