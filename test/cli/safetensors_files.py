"""Checkpoints, read and written without einrel."""

import json
import zlib

import numpy as np

TYPES = {"F32": ("f32", np.float32), "F64": ("f64", np.float64), "I64": ("i64", np.int64)}


def load(path):
    """Names, in the order of the file, to arrays."""
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[8 + length + begin:8 + length + end], TYPES[entry["dtype"]][1])
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def dump(path, tensors):
    names = {np.dtype(values): name for name, (_, values) in TYPES.items()}
    header, data = {}, b""
    for name, array in tensors.items():
        elements = array.tobytes()
        header[name] = {"dtype": names[array.dtype], "shape": array.shape, "data_offsets": [len(data), len(data) + len(elements)]}
        data += elements
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def signed(tensors):
    """With the check sum that docs/training.md describes."""
    names = {np.dtype(values): name for name, values in TYPES.values()}
    tensors = {name: np.asarray(array) for name, array in tensors.items() if name != "train.check"}
    total = 0
    for name in sorted(tensors, key=str.encode):
        array = tensors[name]
        total = zlib.crc32(f"{name} {names[array.dtype]} {tuple(array.shape)};".encode() + array.tobytes(), total)
    return {**tensors, "train.check": np.array(total, np.int64)}
