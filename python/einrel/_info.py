"""What the array API standard asks of a namespace about itself, and about types."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._array import Array
from ._dtypes import BY_NAME, DType, ElementType, bfloat16, computed_as, dtype_of, promoted
from ._elementwise import together

_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int32", "int64"),
    "integral": ("int32", "int64"),
    "real floating": ("float16", "bfloat16", "float32", "float64"),
    "numeric": ("int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    "unsigned integer": (),
    "complex floating": ("complex64", "complex128"),
}


def result_type(*operands: Any) -> DType:
    """The type of what is computed of these arrays, types, names of types and numbers.

    >>> result_type("int32", np.dtype("float32"))
    dtype('float64')
    """
    if not operands:
        raise ValueError("give one array, type or number at least")
    like = [np.zeros((), computed_as(dtype_of(x))) if _is_type(x) else x for x in operands]
    return promoted(*[BY_NAME[node.type.dtype] for node in together(like)])


def _is_type(x: Any) -> bool:
    return isinstance(x, (np.dtype, type, str, ElementType))


def promote_types(type1: npt.DTypeLike, type2: npt.DTypeLike) -> DType:
    """The type in which elements of these are computed together.

    >>> promote_types("float32", "int32")
    dtype('float64')
    """
    return promoted(computed_as(dtype_of(type1)), computed_as(dtype_of(type2)))


def can_cast(from_: Array | npt.DTypeLike, to: npt.DTypeLike, /, casting: Any = "safe") -> bool:
    """Whether all values of one type are values of the other; or what else a rule of NumPy's allows.

    >>> can_cast(np.int32, np.int64)
    True
    """
    own = from_.dtype if isinstance(from_, Array) else dtype_of(from_)
    wanted = dtype_of(to)
    if bfloat16 in (own, wanted):
        return bool(promoted(own, wanted) == wanted)
    return bool(np.can_cast(own, wanted, casting))


def isdtype(dtype: npt.DTypeLike, kind: Any) -> bool:
    """Whether a type is of a kind, "real floating" for example, or one of several.

    >>> isdtype(np.float32, ("integral", "real floating"))
    True
    """
    own = dtype_of(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(own, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"there is no kind {kind!r} of types; kinds are {', '.join(_KINDS)}")
        return own.name in _KINDS[kind]
    return bool(own == dtype_of(kind))


def finfo(type: Any, /) -> Any:
    """The limits of a type of floats, as NumPy's.

    >>> float(finfo(np.float32).max) > 3e38
    True
    """
    dtype = type.dtype if isinstance(type, Array) else dtype_of(type)
    if dtype == bfloat16:
        import ml_dtypes  # slow to import where nobody asks

        return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return np.finfo(dtype)


def iinfo(type: Any, /) -> Any:
    """The limits of a type of integers, as NumPy's.

    >>> iinfo(np.int32).max
    2147483647
    """
    return np.iinfo(type.dtype if isinstance(type, Array) else dtype_of(type))


class _NamespaceInfo:
    """What there is."""

    def capabilities(self) -> dict[str, Any]:
        """Indexing by truth values computes them; no shape depends on elements otherwise."""
        return {"boolean indexing": True, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> str:
        """The only one."""
        return "cpu"

    def devices(self) -> list[str]:
        """All of them."""
        return ["cpu"]

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        """What is taken where no type is given."""
        return {
            "real floating": BY_NAME["f64"],
            "complex floating": BY_NAME["c128"],
            "integral": BY_NAME["i64"],
            "indexing": BY_NAME["i64"],
        }

    def dtypes(self, *, device: str | None = None, kind: Any = None) -> dict[str, DType]:
        """Types by name, of a kind or all."""
        return {
            dtype.name: dtype
            for dtype in BY_NAME.values()
            if dtype != bfloat16 and (kind is None or isdtype(dtype, kind))
        }


def __array_namespace_info__() -> _NamespaceInfo:
    """What the array API standard asks of a namespace about itself.

    >>> __array_namespace_info__().default_device()
    'cpu'
    """
    return _NamespaceInfo()
