"""Linear algebra, under the names of the array API standard and NumPy's; what the language cannot say is an error."""

from typing import Any

from numpy.linalg import LinAlgError

from ._functions import Unsupported
from ._linalg import inv, matmul, matrix_norm, matrix_power, outer, qr, solve, tensordot, vecdot, vector_norm
from ._linalg import matrix_diagonal as diagonal
from ._linalg import matrix_trace as trace
from ._missing import message_of
from ._products import cond, multi_dot, norm
from ._products import cross_of_the_standard as cross
from ._shapes import matrix_transpose

cholesky = Unsupported("linalg.cholesky")
det = Unsupported("linalg.det")
eig = Unsupported("linalg.eig")
eigh = Unsupported("linalg.eigh")
eigvals = Unsupported("linalg.eigvals")
eigvalsh = Unsupported("linalg.eigvalsh")
matrix_rank = Unsupported("linalg.matrix_rank")
pinv = Unsupported("linalg.pinv")
slogdet = Unsupported("linalg.slogdet")
svd = Unsupported("linalg.svd")
svdvals = Unsupported("linalg.svdvals")

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def __getattr__(name: str) -> Any:
    raise AttributeError(message_of("einrel.linalg", name, __all__))
