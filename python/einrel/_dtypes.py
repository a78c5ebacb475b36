"""The types of elements: NumPy's, under the names of the language."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

import einrel as er

DType = np.dtype[Any]

float32: Final[DType] = np.dtype(np.float32)
float64: Final[DType] = np.dtype(np.float64)
float16: Final[DType] = np.dtype(np.float16)
bfloat16: Final[DType] = np.dtype(ml_dtypes.bfloat16)
HALVES: Final = (float16, bfloat16)
int32: Final[DType] = np.dtype(np.int32)
int64: Final[DType] = np.dtype(np.int64)
bool_: Final[DType] = np.dtype(np.bool_)
complex64: Final[DType] = np.dtype(np.complex64)
complex128: Final[DType] = np.dtype(np.complex128)

# By the language's names.
BY_NAME: Final[dict[str, DType]] = {
    "f32": float32,
    "f64": float64,
    "bf16": bfloat16,
    "f16": float16,
    "i32": int32,
    "i64": int64,
    "bool": bool_,
    "c64": complex64,
    "c128": complex128,
}
NAMES: Final[dict[DType, str]] = {dtype: name for name, dtype in BY_NAME.items()}

# What comes in is widened to the first type that holds all its values.
_WIDENED: Final[dict[DType, DType]] = {
    np.dtype(np.int8): int32,
    np.dtype(np.uint8): int32,
    np.dtype(np.int16): int32,
    np.dtype(np.uint16): int32,
    np.dtype(np.uint32): int64,
}


def dtype_of(dtype: Any) -> DType:
    """A type, also one under a name of the package, as NumPy's."""
    return dtype.dtype if isinstance(dtype, ElementType) else np.dtype(dtype)


class ElementType:
    """A type of elements, wherever NumPy takes one; called with elements, it makes an array of that type.

    >>> np.zeros(2, TYPES["float32"]).dtype
    dtype('float32')
    """

    def __init__(self, name: str, dtype: DType) -> None:
        self.__name__ = name
        self.__module__ = "einrel"
        self.dtype = dtype

    def __call__(self, value: Any = 0, /) -> Any:
        return er.asarray(value, dtype=self.dtype)

    def __eq__(self, other: object) -> bool:
        return bool(self.dtype == (other.dtype if isinstance(other, ElementType) else other))

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"einrel.{self.__name__}"

    def __reduce__(self) -> str:
        return self.__name__

    def __getattr__(self, name: str) -> Any:  # its size, for example, as NumPy's
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dtype, name)


# What the package has under these names: they can be called, as NumPy's.
TYPES: Final = {
    "bool" if dtype == bool_ else dtype.name: ElementType("bool" if dtype == bool_ else dtype.name, dtype)
    for dtype in BY_NAME.values()
}


def computed_as(dtype: DType) -> DType:
    """The type that elements of `dtype` are computed in: itself, or i32 or i64 for small integers.

    >>> computed_as(np.dtype("uint8"))
    dtype('int32')
    """
    native = dtype.newbyteorder("=")
    if native in NAMES:
        return native
    if native in _WIDENED:
        return _WIDENED[native]
    raise NotImplementedError(f"arrays of {dtype}: Einrel computes with {', '.join(map(str, NAMES))}")


def cast_allowed(own: DType, wanted: Any, casting: Any) -> DType:
    """The wanted type, computed with; or an error where the rule `casting` forbids it."""
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise ValueError(f"casting {casting!r}: it is one of no, equiv, safe, same_kind and unsafe")
    dtype = computed_as(dtype_of(wanted))
    if casting != "unsafe" and bfloat16 not in (own, dtype) and not np.can_cast(own, dtype, casting):
        raise TypeError(f"elements of {own} as {dtype} under the rule {casting!r}")
    return dtype


def is_floating(dtype: DType) -> bool:
    """Whether it is one of the four types of real numbers, or of complex ones, whose parts are such."""
    return dtype == bfloat16 or dtype.kind in "fc"


def is_complex(dtype: DType) -> bool:
    """Whether it is one of complex numbers."""
    return dtype.kind == "c"


def promoted(*dtypes: DType) -> DType:
    """The type in which elements of these are computed together, as in NumPy.

    >>> promoted(int32, float32)
    dtype('float64')
    """
    common = dtypes[0]
    for dtype in dtypes[1:]:
        if common == dtype or dtype == bool_:
            continue
        if common == bool_:
            common = dtype
        elif bfloat16 in (common, dtype):
            other = dtype if common == bfloat16 else common
            common = {float16: float32, int32: float64, int64: float64}.get(other, other)  # of complex numbers: theirs
        else:
            common = np.promote_types(common, dtype)
    return computed_as(common)


def number_as(value: complex, dtype: DType) -> np.ndarray[Any, Any]:
    """A Python number as an array of that type; bfloat16 by itself refuses whole numbers of more than 64 bits.

    >>> float(number_as(2**70, bfloat16)) == 2.0**70
    True
    """
    return np.asarray(float(value) if dtype == bfloat16 and isinstance(value, int) else value, dtype)


def number_dtype(value: complex, beside: DType) -> DType:
    """The type of a Python number beside an array of type `beside`: the array's, unless that is of a lower kind."""
    if isinstance(value, complex):
        return beside if is_complex(beside) else complex64 if beside in (float32, *HALVES) else complex128
    if isinstance(value, bool):
        return beside
    if isinstance(value, int):
        return int64 if beside == bool_ else beside
    return beside if is_floating(beside) else float64
