"""Checkpoints in one file of the format GGUF, also with elements in blocks of few bits each."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .._array import Array, asarray
from .._creation import from_function
from .._dtypes import bfloat16, float32
from ._checkpoint import Checkpoint, Weight
from ._errors import ModelError, needed

# Types that are computed with as they lie in the file; all others become f32.
_STORED: Final = {"F32": "f32", "F16": "f16", "BF16": "bf16"}
_QUANTISED: Final = ("Q8_0", "Q4_0", "Q4_1", "Q4_K", "Q6_K")
_MAGIC: Final = b"GGUF"
_LEAST_ITEM: Final = 8  # bytes of a text or an array in an array: its length
# What damaged files make of the reader of the package gguf.
_DAMAGE: Final = (ValueError, KeyError, IndexError, TypeError, OverflowError, RecursionError, AttributeError)


def open_gguf(path: Path) -> Checkpoint:
    """The checkpoint in a file; weights are mapped, not read.

    A tensor that the file does not hold to its end, or of a type that is not supported, is an error with its name.
    """
    gguf = needed("gguf", f"{path}: a GGUF file")
    if path.stat().st_size == 0:
        raise ModelError(f"{path}: the file is empty")
    with path.open("rb") as file:
        if not _MAGIC.startswith(file.read(len(_MAGIC))):
            raise ModelError(f"{path}: no GGUF file; of a model in .safetensors give the folder")
    try:
        reader = _checked(gguf, path)
        metadata = {name: field.contents() for name, field in reader.fields.items()}
    except ModelError:
        raise
    except _DAMAGE as error:
        raise ModelError(f"{path}: damaged GGUF file: {error}") from None
    weights = {tensor.name: _weight(gguf, path, tensor) for tensor in reader.tensors}
    return Checkpoint(str(path), metadata, weights, is_gguf=True)


def _checked(gguf: Any, path: Path) -> Any:
    """The reader of the package gguf, which says of each tensor whether the file holds all of it."""
    called = set()

    class Reader(gguf.GGUFReader):  # type: ignore[misc]
        data: Any

        def _get(self, offset: int, dtype: npt.DTypeLike, count: int = 1, override_order: Any = None) -> Any:
            called.add("_get")
            if isinstance(self.data, np.memmap):
                self.data = self.data.view(np.ndarray)  # of which parts are taken in a third of the time
            end = int(offset) + np.dtype(dtype).itemsize * int(count)
            if end > len(self.data):
                raise ModelError(f"{path}: damaged GGUF file: it ends at byte {len(self.data)}, in its header")
            return super()._get(offset, dtype, count, override_order)

        def _get_field_parts(self, orig_offs: int, raw_type: int) -> tuple[int, list[Any], list[int], list[Any]]:
            called.add("_get_field_parts")
            if raw_type != gguf.GGUFValueType.ARRAY:
                result: tuple[int, list[Any], list[int], list[Any]] = super()._get_field_parts(orig_offs, raw_type)
                return result
            kind, length = self._get(orig_offs, np.uint32), self._get(orig_offs + 4, np.uint64)
            start, scalar = orig_offs + 12, self.gguf_scalar_to_np.get(int(kind[0]))
            if scalar is not None:  # one part, which may have many elements, instead of a part for each
                elements = self._get(start, scalar, length[0])
                types = [gguf.GGUFValueType.ARRAY, gguf.GGUFValueType(kind[0])]
                return 12 + int(elements.nbytes), [kind, length, elements], [2], types
            if int(length[0]) * _LEAST_ITEM > len(self.data) - start:
                raise ModelError(
                    f"{path}: damaged GGUF file: an array of {int(length[0])} elements at byte {start}, but the file "
                    f"ends at byte {len(self.data)}"
                )
            result = super()._get_field_parts(orig_offs, raw_type)
            return result

        def _build_tensors(self, start_offs: int, fields: list[Any]) -> None:
            called.add("_build_tensors")
            if self.byte_order != "I" or start_offs % 8 != 0:
                raise ModelError(
                    f"{path}: big-endian files, and an alignment that is no multiple of 8, are not supported"
                )
            for field in fields:
                _check_tensor(gguf, path, field, len(self.data) - int(start_offs))
            super()._build_tensors(start_offs, fields)

    reader = Reader(path)
    if all(name.startswith("GGUF.") for name in reader.fields):
        raise ModelError(f"{path}: the file has no metadata")
    if called != {"_get", "_get_field_parts", "_build_tensors"}:
        raise ModelError(f"{path}: this version of the package gguf reads files unchecked: pip install gguf==0.19.0")
    return reader


def _check_tensor(gguf: Any, path: Path, field: Any, size: int) -> None:
    """An error unless a tensor is of a type that is supported, and lies within the `size` bytes of data."""
    _, _, _, dims, code, offset = field.parts
    where = f"{path}: the tensor '{field.name}'"
    types = {kind.value: kind for kind in gguf.GGMLQuantizationType}
    kind = types.get(int(code[0]))
    if kind is None or (kind.name not in _STORED and kind.name not in _QUANTISED):
        of = kind.name if kind else f"number {int(code[0])}"
        raise ModelError(f"{where} is of type {of}; supported are {', '.join((*_STORED, *_QUANTISED))}")
    extents = [int(extent) for extent in dims]
    block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    count = int(np.prod(np.array(extents, dtype=object)))
    if not extents or 0 in extents or extents[0] % block:
        raise ModelError(f"{where} has extents {extents}; {kind.name} needs whole blocks of {block}")
    first, bytes_needed = int(offset[0]), count // block * block_bytes
    if first % 8 or first + bytes_needed > size:
        raise ModelError(
            f"{where} lies at bytes {first} to {first + bytes_needed} of the data, but {max(size, 0)} are there: "
            "the file was cut off or damaged"
        )


def _weight(gguf: Any, path: Path, tensor: Any) -> Weight:
    shape = tuple(int(extent) for extent in reversed(tensor.shape))
    kind = tensor.tensor_type
    dtype = _STORED.get(kind.name, "f32")
    if kind.name in _STORED:
        data = tensor.data.view(bfloat16) if dtype == "bf16" else tensor.data
        stored = partial(asarray, data)
        return Weight(str(path), dtype, shape, stored, stored, is_stored=True)
    part = partial(_dequantised, gguf, tensor.data, kind)

    def kept() -> Array:
        return asarray(part(tuple(slice(0, extent) for extent in shape)))

    lazy = partial(from_function, shape, part, dtype=float32)
    return Weight(str(path), dtype, shape, lazy, kept, is_stored=False)


def _dequantised(gguf: Any, data: npt.NDArray[np.uint8], kind: Any, region: tuple[slice, ...]) -> npt.NDArray[Any]:
    """The elements of a region of a tensor, of which only the blocks that the region touches are read."""
    block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    *rows, columns = region
    first, last = columns.start // block, -(-columns.stop // block)
    blocks = data[(*rows, slice(first * block_bytes, last * block_bytes))]
    elements: npt.NDArray[Any] = gguf.dequantize(np.ascontiguousarray(blocks), kind)
    return elements[..., columns.start - first * block : columns.stop - first * block]
