"""What is said of mistakes: errors of the kinds that NumPy raises, in Python's words, and names that are missing."""

from __future__ import annotations

import copy
import importlib
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import einrel as er

pytestmark = pytest.mark.filterwarnings(
    "ignore::RuntimeWarning", "ignore:.*ComplexWarning", "ignore::DeprecationWarning"
)

SINGULAR = np.stack([np.eye(2), [[1.0, 2.0], [2.0, 4.0]]])


def test_a_singular_matrix_is_numpys_error_and_named_by_its_index() -> None:
    for matrices, index in ((SINGULAR, r" at \[1\]"), (SINGULAR[None], r" at \[0, 1\]"), (SINGULAR[1], "")):
        for raised in (np.linalg.LinAlgError, er.linalg.LinAlgError, er.ProgramError, ValueError):
            with pytest.raises(raised, match=rf"^the matrix{index} is singular: it has no inverse"):
                er.linalg.inv(matrices).compute()
    with pytest.raises(np.linalg.LinAlgError, match=r"the matrix at \[1\] is singular"):
        er.linalg.solve(SINGULAR, np.ones((2, 2, 1))).tolist()
    with pytest.raises(np.linalg.LinAlgError, match=r"the matrix at \[1\] is singular"):
        er.jit(er.linalg.inv)(SINGULAR)
    with pytest.raises(np.linalg.LinAlgError, match=r"^one of the matrices is singular"):
        er.linalg.inv(SINGULAR).compute(sites=2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: er.linalg.inv(np.ones(3)),
        lambda: er.linalg.inv(np.ones((2, 3))),
        lambda: er.linalg.qr(np.ones(3)),
        lambda: er.linalg.matrix_power(np.ones((2, 3)), 2),
        lambda: er.linalg.trace(np.ones(3)),
    ],
)
def test_what_is_no_matrix_is_an_error_of_linear_algebra(call: Callable[[], Any]) -> None:
    with pytest.raises(np.linalg.LinAlgError, match="matrix has two dimensions|as many of both"):
        call()


@pytest.mark.parametrize("sites", [None, 3])
def test_a_position_outside_is_an_index_error(sites: int | None) -> None:
    options = {} if sites is None else {"sites": sites}
    x = er.asarray(np.arange(6.0).reshape(2, 3))
    for call, at in (
        (lambda: x[:, er.asarray([0, 3])], r"the position at \[1\] is 3, in a dimension of extent 3"),
        (lambda: x[er.asarray([[0], [-3]])], r"the position at \[1,0\] is -3, in a dimension of extent 2"),
        (lambda: er.take(x, np.array(9)), "a position is 9, in a dimension of extent 6"),
    ):
        for raised in (IndexError, er.RunError):
            with pytest.raises(raised, match=f"^{at}: positions are from -"):
                call().compute(**options)
    with pytest.raises(IndexError, match=r"the position at \[0\] is 7"):
        er.jit(lambda x, i: x[i], **options)(np.arange(3.0), np.array([7]))


ODD = [None, "a", object(), len, -1, 2.5, [], {}, np.ones((2, 3)), np.ones(()), np.zeros((0, 2)), 1 + 2j, True,
       np.array(["a"]), float("nan"), (1,), b"x", er.ones((2, 2)), 10**30, np.ones((2, 2), complex), ...]  # fmt: skip
ELSEWHERE = {
    "calibrate",
    "train",
    "explain",
    "plan",
    "html",
    "from_file",
    "load_program",
    "compute",
    "jit",
    "from_function",
    "array_split",
}


@pytest.mark.parametrize("module", ["einrel", "einrel.linalg"])
def test_no_error_shows_what_lies_below_python(module: str) -> None:
    namespace = importlib.import_module(module)
    for name in set(namespace.__all__) - ELSEWHERE:
        function = getattr(namespace, name)
        if not callable(function) or isinstance(function, type):
            continue
        for arguments in [
            *[(x,) for x in ODD],
            *[(er.ones((2, 2)), x) for x in ODD],
            *[(er.ones(3), 0, x) for x in ODD],
        ]:
            try:
                function(*arguments)
            except er.Bug:
                raise
            except Exception as error:
                said = f"{name}{arguments!r}: {error!r}"
                assert "incompatible function arguments" not in str(error), said
                assert "_native" not in str(error), said
                assert not isinstance(error, (UnboundLocalError, ZeroDivisionError, KeyError, AssertionError)), said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("median", "'median': the language cannot say it; numpy.median takes our arrays and computes it"),
        ("fft", "'fft'; functions of numpy.fft take our arrays"),
        ("uint8", "'uint8': Einrel computes with float16 to float64, int32, int64"),
        ("mgrid", "see einrel.indices or einrel.meshgrid"),
        ("ascontiguousarray", "see einrel.asarray"),
        ("put_along_axis", "arrays do not change; einrel.where makes another one"),
        ("save", "'save'; numpy.save takes our arrays$"),
        ("load", "see einrel.from_file"),
        ("euler_gamma", "there is numpy.euler_gamma"),
        ("softmx", "did you mean einrel.softmax"),
        ("there_is_no_such_thing", "has no attribute 'there_is_no_such_thing'$"),
    ],
)
def test_a_name_that_is_missing_says_what_to_write(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        getattr(er, name)
    assert not hasattr(er, name)


def test_a_name_of_linear_algebra_that_is_missing_says_what_to_write() -> None:
    with pytest.raises(AttributeError, match="numpy.linalg.lstsq takes our arrays"):
        er.linalg.lstsq
    with pytest.raises(NotImplementedError, match="numpy.linalg.svd takes our arrays and computes it"):
        er.linalg.svd(np.eye(2))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sort", "arrays do not change; numpy.sort"),
        ("fill", "arrays do not change; einrel.full_like"),
        ("argsort", r"numpy.argsort\(x, ...\) computes it"),
        ("flags", r"numpy.asarray\(x\).flags is that of the elements"),
        ("no_method", "has no attribute 'no_method'$"),
    ],
)
def test_a_method_that_is_missing_says_what_to_write(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        getattr(er.ones(2), name)
    assert not hasattr(er.ones(2), name)


def test_what_the_language_lacks_computes_by_the_function_that_is_named() -> None:
    x = er.asarray(np.array([3.0, 1.0, 2.0]))
    for name in ("sort", "argsort", "nonzero", "searchsorted"):
        with pytest.raises(NotImplementedError, match=f"numpy.{name} takes our arrays"):
            getattr(er, name)(x, x)
    with pytest.raises(NotImplementedError, match=r"numpy\.where takes our arrays"):
        er.where(x > 1)
    assert np.where(x > 1)[0].tolist() == [0, 2]


@pytest.mark.parametrize(
    "call",
    [
        lambda: er.einsum("i,i->", np.ones(2), np.ones(2), join=lambda x, y: x * y),
        lambda: er.einsum("i->", np.ones(2), reduce=max),
    ],
)
def test_formulas_of_einsum_are_text(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="is no text of the language, such as"):
        call()


def test_options_of_elementwise_functions_are_numpys_or_refused_by_name() -> None:
    x = np.array([0.5, 2.0])
    for function, same in ((er.exp, np.exp), (er.arcsinh, np.arcsinh)):
        found = function(er.asarray(x), dtype="f4")
        np.testing.assert_allclose(np.asarray(found), same(x, dtype="f4"), 1e-6, strict=True)
    assert er.add(x, 1, dtype=er.int32, casting="unsafe").tolist() == [1, 3]
    with pytest.raises(TypeError, match="under the rule 'same_kind'"):
        er.add(x, 1, dtype="i4")
    with pytest.raises(TypeError, match=r"exp\(out=...\): .* numpy.exp writes to arrays of NumPy's"):
        er.exp(x, out=x)
    with pytest.raises(TypeError, match=r"add\(\) got an unexpected keyword argument 'axis'"):
        er.add(x, x, axis=0)


def test_what_has_no_meaning_is_said_without_a_statement_of_the_language() -> None:
    z = er.asarray(np.array([1j, 2.0]))
    for call, said in (
        (lambda: er.floor(z), "floor: there is no floor of complex numbers; take real(x), imag(x) or abs(x) first"),
        (lambda: z < 1, "less: '<' has no meaning of complex numbers; compare abs(x) or real(x)"),
        (lambda: er.max(z), "there is no max of complex numbers; take real(x), imag(x) or abs(x) first"),
    ):
        with pytest.raises(er.ProgramError) as caught:
            call()
        assert str(caught.value) == said
    with pytest.raises(er.ProgramError, match="<join>:1:1"):
        er.einsum("i,i->", np.ones(2), np.ones(2), join="none(x)")


def test_reductions_of_nothing_are_refused_where_they_are_written() -> None:
    nothing = er.zeros((0, 3))
    for function in (er.max, er.min, er.argmax, er.argmin):
        with pytest.raises(ValueError, match="of no elements, along a dimension of extent 0"):
            function(nothing, axis=0)
        assert function(nothing, axis=1).shape == (0,)


TYPES = ("float16", "float32", "float64", "bfloat16", "int32", "int64", "bool", "complex64", "complex128")


@pytest.mark.parametrize("name", TYPES)
def test_types_can_be_called_and_stand_where_numpys_do(name: str) -> None:
    own = getattr(er, name)
    dtype = np.dtype(er.bfloat16) if name == "bfloat16" else np.dtype(name)
    assert own == dtype
    assert dtype == own
    assert {own: 1}[dtype] == 1
    assert (own.name, own.itemsize, own.kind) == (dtype.name, dtype.itemsize, dtype.kind)
    assert np.zeros(2, own).dtype == dtype
    assert er.zeros(2, own).dtype == er.ones(2).astype(own).dtype == own(1).dtype == own([1, 2]).dtype == dtype
    assert er.result_type(own, own) == dtype
    assert er.can_cast(own, own)
    assert pickle.loads(pickle.dumps(own)) is own
    assert copy.deepcopy(own) is own
    assert repr(own) == f"einrel.{name}"
    assert own() == 0


def test_a_call_of_a_type_is_a_cast_with_a_gradient() -> None:
    x = er.asarray(np.array([1.0, 2.0]))
    assert er.grad(er.sum(er.float32(x) ** 2), x).tolist() == [2.0, 4.0]
    assert er.jit(lambda x: er.int64(x))(np.array([1.9, -1.9])).tolist() == [1, -1]


def test_an_axis_that_is_none_is_named() -> None:
    with pytest.raises(TypeError, match=r"axis is an array of the shape \(3,\): give a dimension"):
        er.rms_norm(np.ones((3, 4)), np.ones(3))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="axis is 'rows'"):
        er.sum(np.ones(3), axis="rows")
