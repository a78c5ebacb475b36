"""Einrel: programs over large tensors in extended Einstein notation, planned and run by themselves.

>>> import numpy as np, einrel as er
>>> a, b = np.ones((2, 3)), np.ones((3, 2))
>>> np.asarray(er.einsum("ik,kj->ij", a, b))
array([[3., 3.],
       [3., 3.]])

Functions have the names of the array API standard, and NumPy's rules of broadcasting and types. They make lazy arrays,
which are computed when their elements are asked for.
"""

import atexit
import importlib
import os
from math import e, inf, nan, pi
from typing import TYPE_CHECKING

from ._bundled import take_mpi_of_the_job as _take_mpi_of_the_job

_take_mpi_of_the_job()

from . import _native
from ._array import Array, asarray
from ._compute import bytes_of, calibrate, compute, explain, html, plan, planners
from ._creation import (
    arange,
    empty,
    empty_like,
    eye,
    from_dlpack,
    from_file,
    from_function,
    fromfunction,
    full,
    full_like,
    geomspace,
    identity,
    indices,
    linspace,
    logspace,
    meshgrid,
    ones,
    ones_like,
    tri,
    tril,
    triu,
    zeros,
    zeros_like,
)
from ._derivatives import hessian, jacobian, jvp, vjp
from ._division import floor_divide, remainder
from ._dtypes import TYPES as _TYPES
from ._elementwise import BINARY as _BINARY
from ._elementwise import UNARY as _UNARY
from ._functions import (
    Unsupported as _Unsupported,
)
from ._functions import (
    astype,
    bitwise_invert,
    ceil,
    clip,
    conj,
    imag,
    floor,
    isfinite,
    isinf,
    log2,
    log10,
    pow,
    real,
    round,
    trunc,
    where,
)
from ._indexing import take, take_along_axis
from ._info import __array_namespace_info__, can_cast, finfo, iinfo, isdtype, promote_types, result_type
from ._einsum import einsum
from ._export import jax_source, to_jax, to_torch, torch_source
from ._jit import jit
from ._bits import bitwise_and, bitwise_or, bitwise_xor
from ._checkpoint import checkpoint
from ._loops import fori_loop, scan, while_loop
from ._linalg import matmul, outer, tensordot, vecdot
from ._native import Bug, Epoch, ProgramError, RunError, RunReport, State, TensorInfo, TrainResult
from ._names import named
from ._program import Program, Results, load_program, program, program_of
from ._ranks import rank, ranks
from ._train import train
from ._reductions import (
    all,
    any,
    argmax,
    argmin,
    count_nonzero,
    isin,
    layer_norm,
    log_softmax,
    logsumexp,
    max,
    mean,
    min,
    prod,
    rms_norm,
    softmax,
    std,
    sum,
    sumsq,
    var,
)
from ._joining import append, block, column_stack, concat, diff, dstack, hstack, roll, stack, unstack, vstack
from ._shapes import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    expand_dims,
    flip,
    fliplr,
    flipud,
    matrix_transpose,
    moveaxis,
    permute_dims,
    ravel,
    repeat,
    reshape,
    rollaxis,
    rot90,
    squeeze,
    swapaxes,
    tile,
    transpose,
)
from ._transform import grad, value_and_grad
from ._vmap import vmap
from . import (
    _aliases,
    _cumulative,
    _indexing,
    _mathematics,
    _missing,
    _numpy,
    _parameters,
    _pieces,
    _products,
    _signals,
    _statistics,
)
from . import linalg, optim, random
from ._aliases import *
from ._cumulative import *
from ._mathematics import *
from ._pieces import *
from ._products import *
from ._signals import *
from ._statistics import *

__version__ = "0.1.0"
__array_api_version__ = "2025.12"

newaxis = None

bfloat16 = _TYPES["bfloat16"]
bool = _TYPES["bool"]
complex64 = _TYPES["complex64"]
complex128 = _TYPES["complex128"]
float16 = _TYPES["float16"]
float32 = _TYPES["float32"]
float64 = _TYPES["float64"]
int32 = _TYPES["int32"]
int64 = _TYPES["int64"]

abs = _UNARY["abs"]
acosh = _UNARY["acosh"]
add = _BINARY["add"]
asinh = _UNARY["asinh"]
atanh = _UNARY["atanh"]
copysign = _BINARY["copysign"]
cos = _UNARY["cos"]
cosh = _UNARY["cosh"]
divide = _BINARY["divide"]
equal = _BINARY["equal"]
erf = _UNARY["erf"]
erfc = _UNARY["erfc"]
exp = _UNARY["exp"]
expm1 = _UNARY["expm1"]
gelu = _UNARY["gelu"]
greater = _BINARY["greater"]
greater_equal = _BINARY["greater_equal"]
hypot = _BINARY["hypot"]
isnan = _UNARY["isnan"]
less = _BINARY["less"]
less_equal = _BINARY["less_equal"]
log = _UNARY["log"]
log1p = _UNARY["log1p"]
logaddexp = _BINARY["logaddexp"]
logical_and = _BINARY["logical_and"]
logical_not = _UNARY["logical_not"]
logical_or = _BINARY["logical_or"]
logical_xor = _BINARY["logical_xor"]
maximum = _BINARY["maximum"]
minimum = _BINARY["minimum"]
multiply = _BINARY["multiply"]
negative = _UNARY["negative"]
not_equal = _BINARY["not_equal"]
positive = _UNARY["positive"]
relu = _UNARY["relu"]
rsqrt = _UNARY["rsqrt"]
sigmoid = _UNARY["sigmoid"]
sign = _UNARY["sign"]
signbit = _UNARY["signbit"]
silu = _UNARY["silu"]
sin = _UNARY["sin"]
sinh = _UNARY["sinh"]
sqrt = _UNARY["sqrt"]
square = _UNARY["square"]
stop_gradient = _UNARY["stop_gradient"]
subtract = _BINARY["subtract"]
tan = _UNARY["tan"]
tanh = _UNARY["tanh"]

# What the language cannot say: no bits, no order, and no shapes that depend on elements.
argsort = _Unsupported("argsort")
nextafter = _Unsupported("nextafter")
nonzero = _Unsupported("nonzero")
searchsorted = _Unsupported("searchsorted")
sort = _Unsupported("sort")
unique_all = _Unsupported("unique_all")
unique_counts = _Unsupported("unique_counts")
unique_inverse = _Unsupported("unique_inverse")
unique_values = _Unsupported("unique_values")

for _error in (ProgramError, RunError, Bug):
    _error.__module__ = "einrel"

# Threads are not in the child of a fork, which makes its own.
os.register_at_fork(after_in_child=_native.forked)
atexit.register(_native.end_runs)

__all__ = [
    "Array",
    "Bug",
    "Epoch",
    "Program",
    "ProgramError",
    "Results",
    "RunError",
    "RunReport",
    "State",
    "TensorInfo",
    "TrainResult",
    "__array_api_version__",
    "__array_namespace_info__",
    "__version__",
    "abs",
    "acosh",
    "add",
    "all",
    "any",
    "append",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asinh",
    "astype",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "bfloat16",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_or",
    "bitwise_xor",
    "block",
    "bool",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "bytes_of",
    "calibrate",
    "can_cast",
    "ceil",
    "checkpoint",
    "clip",
    "column_stack",
    "complex64",
    "complex128",
    "compute",
    "concat",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "diff",
    "divide",
    "dstack",
    "e",
    "einsum",
    "empty",
    "empty_like",
    "equal",
    "erf",
    "erfc",
    "exp",
    "expand_dims",
    "explain",
    "expm1",
    "eye",
    "finfo",
    "flip",
    "fliplr",
    "flipud",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "fori_loop",
    "from_dlpack",
    "from_file",
    "from_function",
    "fromfunction",
    "full",
    "full_like",
    "gelu",
    "geomspace",
    "grad",
    "greater",
    "greater_equal",
    "hessian",
    "hstack",
    "html",
    "hypot",
    "identity",
    "iinfo",
    "imag",
    "indices",
    "inf",
    "int32",
    "int64",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "jacobian",
    "jax_source",
    "jit",
    "jvp",
    "layer_norm",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "load_program",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_softmax",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logspace",
    "logsumexp",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "models",
    "moveaxis",
    "multiply",
    "named",
    "nan",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "optim",
    "outer",
    "permute_dims",
    "pi",
    "plan",
    "planners",
    "positive",
    "pow",
    "prod",
    "program",
    "program_of",
    "promote_types",
    "random",
    "rank",
    "ranks",
    "ravel",
    "real",
    "relu",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "rms_norm",
    "roll",
    "rollaxis",
    "rot90",
    "round",
    "rsqrt",
    "scan",
    "searchsorted",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinh",
    "softmax",
    "sort",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "stop_gradient",
    "subtract",
    "sum",
    "sumsq",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "to_jax",
    "to_torch",
    "torch_source",
    "train",
    "transpose",
    "tri",
    "tril",
    "triu",
    "trunc",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "value_and_grad",
    "var",
    "vecdot",
    "vjp",
    "vmap",
    "vstack",
    "where",
    "while_loop",
    "zeros",
    "zeros_like",
]
__all__ += _aliases.__all__
__all__ += _cumulative.__all__
__all__ += _mathematics.__all__
__all__ += _pieces.__all__
__all__ += _products.__all__
__all__ += _signals.__all__
__all__ += _statistics.__all__

for _module in (linalg, optim, random):
    _parameters.describe({_name: getattr(_module, _name) for _name in _module.__all__})
_parameters.describe({_name: globals()[_name] for _name in __all__ if _name in globals()})


if TYPE_CHECKING:
    from . import models


def __getattr__(name: str) -> object:
    if name == "models":  # takes a tenth of the time of all others, and few need it
        return importlib.import_module("einrel.models")
    raise AttributeError(_missing.message_of("einrel", name, __all__))
