"""What parameters mean that many functions have, for docstrings that say only what is their own."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from typing import Any, Final

# Of all functions that have one of that name, unless it stands in _OWN.
_COMMON: Final = {
    "x": "an array, or what `asarray` makes one of",
    "x1": "an array or a number, which broadcasts with x2",
    "x2": "an array or a number, which broadcasts with x1",
    "y": "an array or a number, which broadcasts with x",
    "a": "an array",
    "b": "an array",
    "arrays": "arrays, or what `asarray` makes them of",
    "axis": "a dimension, -1 for the last, or in reductions several in a tuple; another one raises AxisError",
    "axis1": "the first of the two dimensions",
    "axis2": "the second of the two dimensions",
    "dtype": "the type of the elements of the result, as NumPy takes it",
    "out": "None: an array does not change, and another value raises TypeError",
    "keepdims": "whether dimensions that are reduced stay, with extent 1",
    "where": "a mask, which broadcasts with x: elements where it is False do not count",
    "initial": "a number that is reduced together with the elements",
    "ddof": "what the number of elements is lessened by, before it divides",
    "correction": "as `ddof`, under the standard's name",
    "mean": "the mean, where it is known already",
    "device": "'cpu' or None; another one raises ValueError",
    "order": "not followed: elements lie in row-major order",
    "subok": "not followed: there are no classes below Array",
    "copy": "whether elements are copied, so that what is written to NumPy's array later is not seen",
    "casting": "the rule of `numpy.can_cast` that conversions keep; TypeError where one does not",
    "shape": "extents, or one for a vector",
    "options": "further options, which are those of `compute`, or of `Array.explain` where nothing runs",
    "indices_or_sections": "how many parts, or the positions at which another one begins",
    "path": "the name of the file or folder",
    "init": "the value before the first step: arrays and numbers, in containers if need be",
    "argnums": "the position of the argument that derivatives are by, or several",
    "n_rows": "the number of rows",
    "n_cols": "the number of columns; that of rows without it",
    "fill_value": "the number, or an array that broadcasts",
    "value": "elements: an array, a number, or nested lists of them",
    "program": "a `Program`",
    "key": "a key of random numbers, of `random.key`, `random.split` or `random.fold_in`",
    "equal_nan": "whether NaN equals NaN",
    "offset": "which diagonal: 0 the main one, above it from 1 on, below it from -1 on",
}

# Of one function.
_OWN: Final = {
    "ediff1d.to_end": "elements after the differences",
    "grad.wrt": "of a number instead of a function: the arrays that the gradient is by",
    "meshgrid.indexing": "'xy', where the first vector runs along the second dimension, or 'ij'",
    "nan_to_num.nan": "the number in place of NaN",
    "nan_to_num.posinf": "the number in place of infinity",
    "tensordot.axes": "how many dimensions, the last of x1 and the first of x2; or a pair of lists of dimensions",
    "append.axis": "the dimension; all elements in one without it",
    "array_equal.a1": "an array",
    "array_equal.a2": "an array of any shape",
    "array_equiv.a1": "an array",
    "array_equiv.a2": "an array of any shape",
    "allclose.rtol": "the distance that is close, as a share of b",
    "allclose.atol": "the distance that is close, beside that share",
    "angle.z": "an array of complex or real numbers",
    "array.ndmin": "the least number of dimensions; further ones come first, with extent 1",
    "broadcast_shapes.shapes": "tuples of extents; ValueError where they have none together",
    "bytes_of.memory": "a number, a text such as '2GiB', or None; ValueError where it is none of these",
    "calibrate.threads": "how many threads compute meanwhile; all cores without it",
    "can_cast.from_": "a type or an array",
    "can_cast.to": "a type",
    "compress.axis": "the dimension; all elements in one without it",
    "cov.m": "an array of variables by observations, or a vector of one variable",
    "cov.y": "further variables",
    "cov.fweights": "how often each observation counts: whole numbers",
    "cov.aweights": "weights of the observations",
    "corrcoef.y": "further variables",
    "cross.axis": "the dimension of the vectors in all three, in place of axisa, axisb and axisc",
    "cross.axisa": "the dimension of the vectors in a",
    "cross.axisb": "the dimension of the vectors in b",
    "cross.axisc": "the dimension of the vectors in the result",
    "cond.p": "the order of the norm",
    "convolve.mode": "'full', 'same' or 'valid'; ValueError of another one",
    "correlate.mode": "'valid', 'same' or 'full'; ValueError of another one",
    "delete.obj": "a position, a slice, an array of positions, or a mask",
    "insert.obj": "a position, a slice, an array of positions, or a mask",
    "diff.prepend": "what comes before the elements",
    "diff.append": "what comes behind the elements",
    "ediff1d.to_begin": "what comes before the differences",
    "einsum.arguments": "subscripts and arrays, as numpy.einsum takes them; ProgramError where extents differ",
    "fold_in.data": "the whole number",
    "fromfunction.options": "further arguments of the function",
    "gradient.f": "the samples",
    "gradient.varargs": "distances or positions, for all dimensions or for each; 1 apart without them",
    "gradient.edge_order": "1, or 2 for a slope by three samples at the edges",
    "identity.n": "the number of rows, and of columns",
    "indices.dimensions": "the extents of the grid",
    "interp.period": "the length after which the points come again",
    "isdtype.dtype": "a type",
    "key.seed": "the whole number",
    "load_program.dims": "extents by label, as of `program`",
    "logspace.start": "the exponent of the first number",
    "logspace.stop": "the exponent of the last number",
    "logspace.num": "how many numbers",
    "logspace.endpoint": "whether the last exponent is `stop`",
    "meshgrid.arrays": "vectors: the positions along each dimension",
    "multi_dot.arrays": "matrices, or vectors at both ends; ProgramError where extents differ",
    "nan_to_num.neginf": "the number in place of minus infinity",
    "matrix_norm.ord": "the order",
    "norm.ord": "the order: of vectors a number, of matrices 'fro', 1, -1, inf or -inf",
    "pad.mode": "one of numpy.pad's; NotImplementedError where only NumPy has it",
    "pad.reflect_type": "'even', or 'odd' for twice the edge less what is reflected",
    "piecewise.condlist": "masks of the shape of x",
    "piecewise.funclist": "a function or a number for each mask",
    "piecewise.arguments": "further arguments of the functions",
    "piecewise.options": "further arguments of the functions, by name",
    "polyval.p": "the coefficients",
    "program.text": "the program; ProgramError with line and column of what is wrong in it",
    "program.name": "what errors call it",
    "program_of.inputs": "arrays by name, of which the outputs are made",
    "promote_types.type1": "a type",
    "promote_types.type2": "a type; TypeError where there is none for both",
    "repeat.repeats": "how often: a number, or one for each position",
    "result_type.operands": "arrays, types and numbers",
    "roll.shift": "how many positions, or as many numbers as dimensions",
    "rot90.axes": "two dimensions",
    "round.decimals": "how many digits behind the point; before it, if negative",
    "select.condlist": "masks, which broadcast with the choices",
    "select.choicelist": "an array or a number for each mask",
    "split.num": "how many keys",
    "take.indices": "positions: whole numbers of any shape; IndexError of one outside",
    "tile.repetitions": "how often along each dimension, or along the last",
    "trapezoid.y": "the samples",
    "vjp.primals": "the arguments",
}


# Words that stand in sentences without the parameter of that name being meant: they count in code alone.
_WORDS: Final = frozenset({"a", "axis", "options", "shape", "where"})


def speaks_of(doc: str, parameter: str) -> bool:
    """Whether a docstring says something of a parameter before its examples, or has an entry of it."""
    text = doc.partition(">>>")[0]
    if re.search(rf"^ *{parameter}: ", text, re.MULTILINE):
        return True
    code = " ".join(re.findall(r"`([^`]*)`", text)) if parameter in _WORDS else text
    return re.search(rf"\b{parameter}\b", code) is not None


def _described(function: Any, name: str, doc: str) -> str:
    """The docstring, in which parameters that it does not speak of come before the examples."""
    code = inspect.unwrap(function).__code__
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    lines = []
    for parameter in code.co_varnames[:count]:
        meaning = _OWN.get(f"{name}.{parameter}", _COMMON.get(parameter))
        if meaning is not None and not speaks_of(doc, parameter):
            lines += textwrap.wrap(f"{parameter}: {meaning}", 100, initial_indent="    ", subsequent_indent="        ")
    if not lines:
        return doc
    text, examples, rest = doc.partition(">>>")
    return f"{text.rstrip()}\n\nParameters:\n" + "\n".join(lines) + (f"\n\n{examples}{rest}" if examples else "")


def describe(functions: Mapping[str, Any]) -> None:
    """Completes the docstrings of functions, by what parameters mean that they do not speak of."""
    for name, function in functions.items():
        if inspect.isfunction(function) and function.__doc__ and "\nParameters:\n" not in function.__doc__:
            function.__doc__ = _described(function, name, inspect.cleandoc(function.__doc__))
