"""What parameters of functions mean and which errors they raise, for docstrings that say only what is their own."""

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
    "function": "the function",
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
    "angle.deg": "whether the angle is in degrees",
    "append.values": "what comes behind",
    "arange.start": "the first number, or, alone, the end; then 0 is the first",
    "arange.stop": "the end, which is not reached",
    "arange.step": "the distance; ValueError of 0",
    "average.returned": "whether the sum of the weights is given, too",
    "average.weights": "the weight of each element, or of each position of the dimension",
    "bernoulli.p": "the probability, or an array of them",
    "calibrate.database": "the URL of a database, which is measured instead",
    "clip.min": "the least value, or None",
    "clip.max": "the largest value, or None",
    "clip.a_min": "another name of `min`",
    "clip.a_max": "another name of `max`",
    "compress.condition": "which positions stay",
    "convolve.v": "the other vector",
    "corrcoef.rowvar": "whether rows are the variables, not columns",
    "correlate.v": "the other vector",
    "cov.bias": "whether sums are divided by the number of observations, not by one less",
    "cov.rowvar": "whether rows are the variables, not columns",
    "cumulative_prod.include_initial": "whether 1 comes first",
    "cumulative_sum.include_initial": "whether 0 comes first",
    "diag.k": "which diagonal, as of `eye`",
    "diff.n": "how many times; ValueError below 0",
    "einsum.join": "a formula in place of the product",
    "einsum.optimize": "not followed: the order is planned",
    "einsum.reduce": "a reduction in place of the sum",
    "extract.condition": "which elements are taken",
    "eye.k": "which diagonal: 0 the main one, above it from 1 on, below it from -1 on",
    "fori_loop.body": "body(i, value) makes the next value",
    "fori_loop.lower": "the first i",
    "fori_loop.upper": "the end, which i does not reach",
    "from_file.name": "which array of the file",
    "from_function.function": "function(region) gives the elements of a tuple of slices",
    "fromfunction.function": "function(i, j, ...) takes the positions as arrays",
    "geomspace.endpoint": "whether the last number is `stop`",
    "geomspace.num": "how many numbers",
    "geomspace.start": "the first number",
    "geomspace.stop": "the last number, or the end",
    "grad.has_aux": "whether the function gives a pair, of which the first part is differentiated",
    "grad.of": "a function, or a number that was made of arrays",
    "hessian.has_aux": "whether the function gives a pair, of which the first part is differentiated",
    "indices.sparse": "whether only the edges of the grid are given",
    "insert.values": "what is inserted",
    "interp.fp": "the values at `xp`",
    "interp.left": "the value before the first point; that of the first without it",
    "interp.right": "the value after the last point; that of the last without it",
    "interp.xp": "the points, in order",
    "isclose.atol": "the distance that is close, beside the share",
    "isclose.rtol": "the distance that is close, as a share of b",
    "isdtype.kind": "a type, the name of a kind as the standard has it, or several in a tuple",
    "jacobian.has_aux": "whether the function gives a pair, of which the first part is differentiated",
    "jit.backend": "'einrel' or 'jax', which computes",
    "jit.static_argnames": "arguments by name that are part of the program",
    "jit.static_argnums": "positions of arguments that are part of the program",
    "layer_norm.eps": "what is added to the variance",
    "linspace.endpoint": "whether the last number is `stop`",
    "linspace.num": "how many numbers; ValueError below 0",
    "linspace.retstep": "whether the distance is given, too",
    "linspace.start": "the first number",
    "linspace.stop": "the last number, or the end",
    "load_program.file": "the name of the file",
    "logspace.base": "what is taken to the exponents",
    "meshgrid.sparse": "whether only the edges of the grid are given",
    "moveaxis.destination": "where these go",
    "moveaxis.source": "a dimension, or several",
    "pad.constant_values": "the number around the elements",
    "pad.pad_width": "how many elements before and behind, for all dimensions or for each",
    "program.dims": "extents by label, which override and complete those of the program",
    "program_of.outputs": "what the program makes, by name",
    "randint.minval": "the least number",
    "randint.maxval": "the end, which is not drawn",
    "rms_norm.eps": "what is added to the mean of the squares",
    "rollaxis.start": "the dimension that it comes before",
    "rot90.k": "how many quarters of a turn",
    "scan.function": "function(value, x) gives the next value and what stands beside the others",
    "scan.length": "how many steps, where there are no xs",
    "scan.reverse": "whether the last x comes first",
    "scan.xs": "arrays with an x for each step, in containers if need be",
    "select.default": "what stands where no condition holds",
    "stack.axis": "the new dimension of the result; AxisError of one that it has not",
    "take.mode": "'raise', 'wrap' or 'clip': what becomes of positions outside",
    "take_along_axis.indices": "positions, with as many dimensions as x",
    "transpose.axes": "the order of the dimensions; the other way round without it",
    "trapezoid.dx": "the distance of the samples",
    "tri.k": "the diagonal up to which there are ones",
    "uniform.minval": "the least number",
    "uniform.maxval": "the end, which is not drawn",
    "value_and_grad.has_aux": "whether the function gives a pair, of which the first part is differentiated",
    "vector_norm.ord": "the order",
    "vjp.has_aux": "whether the function gives a pair, of which the first part is differentiated",
    "while_loop.body": "body(value) makes the next value",
    "while_loop.condition": "condition(value) is one truth value: whether there is another step",
}

# Errors that functions raise besides those of a wrong type, where their docstrings name none.
_RAISES: Final = {
    "append": "ValueError where shapes do not fit behind each other",
    "broadcast_arrays": "ValueError where shapes have none together",
    "broadcast_to": "ValueError where the shape of x does not broadcast to it",
    "checkpoint": "ProgramError where the function asks for elements and is differentiated or traced",
    "compute": (
        "ProgramError where options or shapes are wrong, RunError where memory or a disk is full, IndexError of a "
        "position outside, LinAlgError of a singular matrix"
    ),
    "concat": "ValueError of no arrays, or of shapes that differ in other dimensions",
    "expand_dims": "AxisError of a dimension that the result has not",
    "explain": "ProgramError where options do not go together or no plan is found",
    "plan": "ProgramError as of `explain`",
    "html": "ProgramError as of `explain`",
    "flip": "AxisError of a dimension that x has not",
    "jit": (
        "ProgramError where the function asks for elements of its arguments, as `if` does, and where options do "
        "not go together; TypeError of arguments without a hash that are part of the program"
    ),
    "jvp": "TypeError where forms or types do not fit, ValueError where shapes do not",
    "vjp": (
        "TypeError where an argument or a result is not of floating point; what it gives raises ValueError where "
        "forms or shapes do not fit"
    ),
    "value_and_grad": (
        "TypeError where the function gives no single number of floating point, and where an argument is not of "
        "floating point"
    ),
    "grad": (
        "TypeError where the function gives no single number of floating point, and where an argument is not of "
        "floating point"
    ),
    "hessian": (
        "TypeError where an argument or a result is not of floating point, NotImplementedError of complex numbers"
    ),
    "load_program": "OSError where the file cannot be read, ProgramError of what is wrong in it",
    "matmul": "ValueError where extents differ, and of arrays without dimensions",
    "tensordot": "ValueError where extents differ",
    "vecdot": "ValueError where extents differ",
    "inner": "ValueError where extents differ",
    "cross": "ValueError where vectors have other extents than 2 and 3",
    "meshgrid": "ValueError of another `indexing`",
    "moveaxis": "AxisError of dimensions that x has not",
    "permute_dims": "ValueError where axes do not name each dimension once",
    "transpose": "ValueError where axes do not name each dimension once",
    "pow": (
        "ValueError of integers to negative powers, NotImplementedError of complex numbers to others than whole powers"
    ),
    "program_of": "ProgramError where outputs are not made of the inputs alone",
    "remainder": "NotImplementedError of bools",
    "floor_divide": "NotImplementedError of bools",
    "reshape": "ValueError where the numbers of elements differ",
    "ravel": "ValueError of another `order`",
    "result_type": "NotImplementedError of types that nothing is computed in",
    "rot90": "ValueError where `axes` is one dimension twice",
    "roll": "AxisError of dimensions that x has not",
    "squeeze": "ValueError of a dimension whose extent is not 1",
    "stack": "ValueError where shapes differ, and of no arrays",
    "swapaxes": "AxisError of dimensions that x has not",
    "tile": "ValueError of a number below 0",
    "tril": "ValueError of an array without dimensions",
    "triu": "ValueError of an array without dimensions",
    "unstack": "AxisError of a dimension that x has not",
    "where": "ValueError where shapes do not broadcast, NotImplementedError without x and y",
    "select": "ValueError where there are not as many choices as conditions",
    "piecewise": "ValueError where there are not as many functions as conditions, or one more",
    "diagonal": "ValueError of less than two dimensions",
    "hsplit": "ValueError where parts would not be of one extent",
    "vsplit": "ValueError where parts would not be of one extent",
    "dsplit": "ValueError where parts would not be of one extent",
    "ldexp": "TypeError of exponents that are no integers",
    "nan_to_num": "NotImplementedError of complex numbers",
    "cov": "ValueError of complex numbers, and of more than two dimensions",
    "corrcoef": "ValueError of complex numbers, and of more than two dimensions",
    "inv": "LinAlgError where a matrix is not square, and, where it is computed, of one that has no inverse",
    "solve": "LinAlgError where a matrix is not square, and, where it is computed, of one that has no inverse",
    "matrix_power": "LinAlgError where a matrix is not square, and of powers below 0 of one that has no inverse",
    "matrix_norm": "LinAlgError of less than two dimensions, NotImplementedError of other orders",
    "qr": "LinAlgError of less than two dimensions",
    "vmap": "ValueError where numbers of samples differ",
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


def _listed(function: Any, name: str, doc: str) -> list[str]:
    """An entry for each parameter, where the docstring does not speak of all of them."""
    code = inspect.unwrap(function).__code__
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    own = [one for one in code.co_varnames[:count] if f"{name}.{one}" in _OWN or one in _COMMON]
    if all(speaks_of(doc, parameter) for parameter in own):
        return []
    lines = ["", "Parameters:"]
    for parameter in own:
        meaning = _OWN.get(f"{name}.{parameter}", _COMMON.get(parameter))
        lines += textwrap.wrap(f"{parameter}: {meaning}", 100, initial_indent="    ", subsequent_indent="        ")
    return lines


def _described(function: Any, name: str, doc: str) -> str:
    """The docstring with errors and parameters that it does not speak of, before the examples."""
    text, examples, rest = doc.partition(">>>")
    lines = [text.rstrip()]
    if name in _RAISES and "Error" not in text:
        lines += ["", *textwrap.wrap(f"Raises {_RAISES[name]}.", 100)]
    lines += _listed(function, name, doc)
    return "\n".join(lines) + (f"\n\n{examples}{rest}" if examples else "") if len(lines) > 1 else doc


def describe(functions: Mapping[str, Any]) -> None:
    """Completes the docstrings of functions, by errors, and by what parameters mean that they do not speak of."""
    for name, function in functions.items():
        if inspect.isfunction(function) and function.__doc__ and "\nParameters:\n" not in function.__doc__:
            function.__doc__ = _described(function, name, inspect.cleandoc(function.__doc__))
