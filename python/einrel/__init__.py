"""Einrel: programs over large tensors in extended Einstein notation, planned and run by themselves.

>>> import numpy as np, einrel as er
>>> a, b = np.ones((2, 3)), np.ones((3, 2))
>>> np.asarray(er.einsum("ik,kj->ij", a, b))
array([[3., 3.],
       [3., 3.]])

Functions have the names of the array API standard, and NumPy's rules of broadcasting and types. They make lazy arrays,
which are computed when their elements are asked for.
"""

import os
from math import e, inf, nan, pi

from . import _native
from ._array import Array, asarray
from ._compute import bytes_of, compute, grad, jit
from ._creation import (
    arange,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from ._dtypes import bfloat16, float16, float32, float64, int32, int64
from ._dtypes import bool_ as bool
from ._elementwise import FUNCTIONS as _FUNCTIONS
from ._functions import (
    Unsupported as _Unsupported,
)
from ._functions import (
    astype,
    bitwise_and,
    bitwise_invert,
    bitwise_or,
    bitwise_xor,
    ceil,
    clip,
    conj,
    floor,
    floor_divide,
    isfinite,
    isinf,
    pow,
    real,
    remainder,
    round,
    trunc,
    where,
)
from ._indexing import take, take_along_axis
from ._info import __array_namespace_info__, can_cast, finfo, iinfo, isdtype, result_type
from ._einsum import einsum
from ._linalg import diagonal, matmul, outer, tensordot, trace, vecdot
from ._native import Bug, ProgramError, RunError
from ._program import Program, Results, load_program, program
from ._reductions import (
    all,
    any,
    argmax,
    argmin,
    count_nonzero,
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
    var,
)
from ._shapes import (
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    tile,
    transpose,
    unstack,
)
from . import _indexing, _numpy, linalg

__version__ = "0.1.0"
__array_api_version__ = "2025.12"

newaxis = None

abs = _FUNCTIONS["abs"]
acosh = _FUNCTIONS["acosh"]
add = _FUNCTIONS["add"]
asinh = _FUNCTIONS["asinh"]
atanh = _FUNCTIONS["atanh"]
copysign = _FUNCTIONS["copysign"]
cos = _FUNCTIONS["cos"]
cosh = _FUNCTIONS["cosh"]
divide = _FUNCTIONS["divide"]
equal = _FUNCTIONS["equal"]
erf = _FUNCTIONS["erf"]
exp = _FUNCTIONS["exp"]
expm1 = _FUNCTIONS["expm1"]
gelu = _FUNCTIONS["gelu"]
greater = _FUNCTIONS["greater"]
greater_equal = _FUNCTIONS["greater_equal"]
hypot = _FUNCTIONS["hypot"]
isnan = _FUNCTIONS["isnan"]
less = _FUNCTIONS["less"]
less_equal = _FUNCTIONS["less_equal"]
log = _FUNCTIONS["log"]
log10 = _FUNCTIONS["log10"]
log1p = _FUNCTIONS["log1p"]
log2 = _FUNCTIONS["log2"]
logaddexp = _FUNCTIONS["logaddexp"]
logical_and = _FUNCTIONS["logical_and"]
logical_not = _FUNCTIONS["logical_not"]
logical_or = _FUNCTIONS["logical_or"]
logical_xor = _FUNCTIONS["logical_xor"]
maximum = _FUNCTIONS["maximum"]
minimum = _FUNCTIONS["minimum"]
multiply = _FUNCTIONS["multiply"]
negative = _FUNCTIONS["negative"]
not_equal = _FUNCTIONS["not_equal"]
positive = _FUNCTIONS["positive"]
reciprocal = _FUNCTIONS["reciprocal"]
relu = _FUNCTIONS["relu"]
rsqrt = _FUNCTIONS["rsqrt"]
sigmoid = _FUNCTIONS["sigmoid"]
sign = _FUNCTIONS["sign"]
signbit = _FUNCTIONS["signbit"]
silu = _FUNCTIONS["silu"]
sin = _FUNCTIONS["sin"]
sinh = _FUNCTIONS["sinh"]
sqrt = _FUNCTIONS["sqrt"]
square = _FUNCTIONS["square"]
stop_gradient = _FUNCTIONS["stop_gradient"]
subtract = _FUNCTIONS["subtract"]
tan = _FUNCTIONS["tan"]
tanh = _FUNCTIONS["tanh"]

# What the language cannot say: no inverses of sine, cosine and tangent, no bits, no complex numbers, no order, no
# running results, and no shapes that depend on elements.
acos = _Unsupported("acos")
asin = _Unsupported("asin")
atan = _Unsupported("atan")
atan2 = _Unsupported("atan2")
argsort = _Unsupported("argsort")
bitwise_left_shift = _Unsupported("bitwise_left_shift")
bitwise_right_shift = _Unsupported("bitwise_right_shift")
cumulative_prod = _Unsupported("cumulative_prod")
cumulative_sum = _Unsupported("cumulative_sum")
imag = _Unsupported("imag")
nextafter = _Unsupported("nextafter")
nonzero = _Unsupported("nonzero")
searchsorted = _Unsupported("searchsorted")
sort = _Unsupported("sort")
unique_all = _Unsupported("unique_all")
unique_counts = _Unsupported("unique_counts")
unique_inverse = _Unsupported("unique_inverse")
unique_values = _Unsupported("unique_values")

# Threads are not in the child of a fork, which makes its own.
os.register_at_fork(after_in_child=_native.forked)
