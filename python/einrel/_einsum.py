"""Einsum in NumPy's notation."""

from __future__ import annotations

import operator
import string
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from ._array import Array, node_of
from ._dtypes import computed_as, dtype_of, promoted
from ._formula import Definition, apply, kept
from ._functions import astype, real
from ._leaving import left_graph
from ._native import Type

Label = TypeVar("Label", int, str)

# As NumPy numbers them: in this order implicit outputs have their labels.
_LETTERS: Final = string.ascii_uppercase + string.ascii_lowercase


@kept
def _einsum(subscripts: str, join: str | None, reduce: str | None, *types: Type) -> Definition:
    return Definition.einsum(list(types), subscripts, join, reduce)


def _labels(sublist: Any) -> list[Any]:
    """Those of an operand in the interleaved form: numbers, and perhaps an ellipsis."""
    if not isinstance(sublist, (Sequence, np.ndarray)):
        raise TypeError(f"the subscripts of an operand are a sequence of numbers, not {sublist!r}")
    labels = [label if label is Ellipsis else operator.index(label) for label in sublist]
    for label in labels:
        if label is not Ellipsis and label < 0:
            raise ValueError(f"label {label}: labels of the interleaved form are from 0 up")
    return labels


def _letters_for(labels: set[Label]) -> dict[Label, str]:
    """A letter of the language for each label, in their order, which is that of implicit outputs."""
    if len(labels) > len(_LETTERS):
        raise ValueError(f"an einsum of {len(labels)} labels: it has {len(_LETTERS)} at most")
    return dict(zip(sorted(labels), _LETTERS))


def _from_interleaved(arguments: Sequence[Any]) -> tuple[str, list[Any]]:
    """einsum(A, [0, 1], B, [1, 2], [0, 2]) as subscripts and operands."""
    pairs = len(arguments) // 2
    sublists = [_labels(sublist) for sublist in [*arguments[1 : 2 * pairs : 2], *arguments[2 * pairs :]]]
    numbers = {label for sublist in sublists for label in sublist if label is not Ellipsis}
    letters = dict(enumerate(_LETTERS)) if max(numbers, default=0) < len(_LETTERS) else _letters_for(numbers)
    terms = ["".join("..." if label is Ellipsis else letters[label] for label in sublist) for sublist in sublists]
    return ",".join(terms[:pairs]) + "".join(f"->{term}" for term in terms[pairs:]), list(arguments[: 2 * pairs : 2])


def _in_ascii(subscripts: str) -> str:
    """With letters of ASCII for others, as other libraries take them."""
    if subscripts.isascii():
        return subscripts
    letters = _letters_for({character for character in subscripts if character.isalpha()})
    return "".join(letters.get(character, character) for character in subscripts)


def einsum(
    *arguments: Any,
    out: npt.NDArray[Any] | None = None,
    dtype: npt.DTypeLike | None = None,
    order: str = "K",
    casting: str = "safe",
    optimize: Any = False,
    join: str | None = None,
    reduce: str | None = None,
) -> Any:
    """NumPy's einsum, with any formula in place of the product and any reduction in place of the sum.

    `join` is a formula of the language in which the operands are x, y, z, or x1, x2, ... if there are more; `reduce` a
    reduction of it. Operands are converted to their common type first, as in NumPy. `optimize` is taken and not
    needed: the order of products is planned in any case. Results are in row-major order, whatever `order` asks for.
    With `out`, the result is computed, written there, and `out` returned. Labels are letters, or in the interleaved
    form numbers from 0 up: 52 of them at most.

    Raises ProgramError where subscripts do not fit operands, ValueError for too many labels, TypeError where `casting`
    forbids a conversion.

    >>> a, b = np.arange(6.0).reshape(2, 3), np.ones((3, 2))
    >>> einsum("ij,jk->ik", a, b).tolist()
    [[3.0, 3.0], [12.0, 12.0]]
    >>> einsum("ik,jk->ij", a, a, join="sq(x-y)", reduce="max").tolist()
    [[0.0, 9.0], [9.0, 0.0]]
    """
    if not arguments:
        raise ValueError("einsum needs subscripts and operands")
    for name, text, like in (("join", join, "sq(x-y)"), ("reduce", reduce, "max")):
        if text is not None and not isinstance(text, str):
            raise TypeError(f"{name}={text!r} is no text of the language, such as {like!r}")
    if isinstance(arguments[0], str):
        subscripts, operands = _in_ascii(arguments[0]), list(arguments[1:])
    else:
        subscripts, operands = _from_interleaved(arguments)
    if not (out is None and dtype is None and order == "K" and casting == "safe"):
        return _with_options(subscripts, operands, out, dtype, order, casting, join, reduce)
    return _of_one_type(subscripts, [Array(node_of(operand)) for operand in operands], None, join, reduce)


def _of_one_type(
    subscripts: str, arrays: Sequence[Array], dtype: npt.DTypeLike | None, join: str | None, reduce: str | None
) -> Array:
    common = promoted(*[array.dtype for array in arrays]) if dtype is None and arrays else dtype
    nodes = [array._node if common is None else astype(array, common, copy=False)._node for array in arrays]
    return Array(apply(_einsum(subscripts, join, reduce, *[node.type for node in nodes]), *nodes))


def _with_options(
    subscripts: str,
    operands: Sequence[Any],
    out: Any,
    dtype: npt.DTypeLike | None,
    order: str,
    casting: Any,
    join: str | None,
    reduce: str | None,
) -> Any:
    if order not in ("C", "F", "A", "K", "c", "f", "a", "k"):
        raise ValueError(f"order {order!r}: it is one of C, F, A and K")
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise ValueError(f"casting {casting!r}: it is one of no, equiv, safe, same_kind and unsafe")
    arrays = [Array(node_of(operand)) for operand in operands]
    given = np.result_type(*[getattr(operand, "dtype", array.dtype) for operand, array in zip(operands, arrays)])
    if dtype is not None:
        wanted = dtype_of(dtype)
        _check_cast(given, wanted, casting)
        given = wanted
        if wanted.kind != "c":  # as NumPy casts them, where that is asked for
            arrays = [real(array) if array.dtype.kind == "c" else array for array in arrays]
    result = _of_one_type(subscripts, arrays, None if dtype is None else computed_as(given), join, reduce)
    if out is None:
        return result
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is an array of NumPy's, not {out!r}")
    if out.shape != result.shape:
        raise ValueError(f"a result of shape {result.shape} for an array of shape {out.shape}")
    _check_cast(given, out.dtype, casting)
    np.copyto(out, result._elements(), casting="unsafe")
    return left_graph(out, [result._node], "written to an array of NumPy's")


def _check_cast(own: np.dtype[Any], wanted: np.dtype[Any], casting: Any) -> None:
    if not np.can_cast(own, wanted, casting):
        raise TypeError(f"einsum of {own} as {wanted} under the rule {casting!r}")
