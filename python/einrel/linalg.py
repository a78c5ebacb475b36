"""Linear algebra, under the names of the array API standard; what the language cannot say is an error."""

from ._functions import Unsupported
from ._linalg import (
    diagonal,
    inv,
    matmul,
    matrix_norm,
    matrix_power,
    outer,
    qr,
    solve,
    tensordot,
    trace,
    vecdot,
    vector_norm,
)
from ._shapes import matrix_transpose

cholesky = Unsupported("linalg.cholesky")
cross = Unsupported("linalg.cross")
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
    "cholesky",
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
