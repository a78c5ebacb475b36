"""Checkpoints as Hugging Face keeps them: a folder with config.json and one or more .safetensors."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any, Final

from .._creation import from_file
from .._native import ProgramError
from ._checkpoint import Checkpoint, Weight
from ._errors import ModelError

_INDEX: Final = "model.safetensors.index.json"
_WEIGHTS: Final = "model.safetensors"
_LONGEST_TEXT: Final = 64 * 2**20  # bytes of a JSON file that is read
_LONGEST_HEADER: Final = 100_000_000  # the format's own limit
# Of the format's codes those of types that weights have; those of others are named as they are.
_DTYPES: Final = {"F32": "f32", "F16": "f16", "BF16": "bf16"}


def _read(path: Path) -> Any:
    """What is in a JSON file."""
    if not path.is_file():
        raise ModelError(f"{path}: there is no such file")
    if path.stat().st_size > _LONGEST_TEXT:
        raise ModelError(f"{path}: longer than 64 MiB")
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: no valid JSON: {error}") from None


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    value = _read(path)
    if not isinstance(value, dict):
        raise ModelError(f"{path}: no JSON object")
    return value


def read_list(path: Path) -> list[Any]:
    """The list in a JSON file."""
    value = _read(path)
    if not isinstance(value, list):
        raise ModelError(f"{path}: no JSON list")
    return value


def open_folder(folder: Path) -> Checkpoint:
    """The checkpoint in a folder; weights are mapped, not read.

    Headers are checked before anything is computed: a file that ends before a tensor does is an error with its name.
    """
    metadata = read_json(folder / "config.json")
    weights: dict[str, Weight] = {}
    for file, names in _shards(folder).items():
        found = _weights(folder / file)
        for name in names:
            if name not in found:
                raise ModelError(f"{folder / file}: the tensor '{name}' is missing, which {_INDEX} says is here")
        weights |= found
    return Checkpoint(str(folder), metadata, weights, is_gguf=False)


def _shards(folder: Path) -> dict[str, list[str]]:
    """The files with weights, and of each the tensors that the index says it has."""
    if not (folder / _INDEX).exists():
        if not (folder / _WEIGHTS).exists():
            others = sorted(file.name for file in folder.glob("pytorch_model*.bin"))
            remedy = f"; {others[0]} is of PyTorch, which is not read: save the model as .safetensors" if others else ""
            raise ModelError(f"{folder}: there is neither {_WEIGHTS} nor {_INDEX}{remedy}")
        return {_WEIGHTS: []}
    places = read_json(folder / _INDEX).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise ModelError(f"{folder / _INDEX}: has no weight_map")
    shards: dict[str, list[str]] = {}
    for name, file in places.items():
        if not isinstance(file, str) or os.path.basename(file) != file or not (folder / file).is_file():
            raise ModelError(f"{folder / _INDEX}: the tensor '{name}' is in {file!r}, and there is no such file here")
        shards.setdefault(file, []).append(name)
    return shards


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """What a file says of its tensors, and how many bytes of elements it has."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if length > min(size - 8, _LONGEST_HEADER):
            raise ModelError(f"{path}: no .safetensors file, or one that was cut off in its header")
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{path}: damaged .safetensors header: {error}") from None
    if not isinstance(header, dict):
        raise ModelError(f"{path}: damaged .safetensors header: no object")
    return {name: entry for name, entry in header.items() if name != "__metadata__"}, size - 8 - length


def _weights(path: Path) -> dict[str, Weight]:
    header, size = _header(path)
    for name, entry in header.items():
        match entry:
            case {"dtype": str(), "shape": [*extents], "data_offsets": [int(), int(end)]}:
                if end > size:
                    raise ModelError(
                        f"{path}: the tensor '{name}' ends at byte {end} of the data, but {size} are there: "
                        "the file was cut off"
                    )
                if not all(isinstance(extent, int) for extent in extents):
                    raise ModelError(f"{path}: the tensor '{name}' has no valid shape")
            case _:
                raise ModelError(f"{path}: the tensor '{name}' has no valid dtype, shape and data_offsets")
    weights = {name: _weight(path, name, entry) for name, entry in header.items()}
    try:
        for weight in list(weights.values())[:1]:
            weight.lazy()  # checks the whole header: overlaps, gaps, names that come twice
    except ProgramError as error:
        raise ModelError(str(error).removeprefix("error: ")) from None
    return weights


def _weight(path: Path, name: str, entry: dict[str, Any]) -> Weight:
    dtype = entry["dtype"]
    lazy = lambda: from_file(path, name)  # noqa: E731
    return Weight(str(path), _DTYPES.get(dtype, dtype), tuple(entry["shape"]), lazy, lazy, is_stored=True)
