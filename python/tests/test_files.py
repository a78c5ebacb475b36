"""Arrays in files, and arrays that a function makes."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import einrel as er

X = np.arange(24.0).reshape(4, 6)


def safetensors(arrays: dict[str, np.ndarray], names: dict[str, str]) -> bytes:
    """The format as its documentation has it: a length, a header in JSON, elements."""
    header, data = {}, b""
    for name, array in arrays.items():
        begin = len(data)
        data += array.tobytes()
        header[name] = {"dtype": names[name], "shape": list(array.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def test_files_of_every_format(tmp_path: Path) -> None:
    half = X.astype(ml_dtypes.bfloat16)
    bytes_of_pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    idx = b"\0\0\x08\x02" + b"".join(n.to_bytes(4, "big") for n in (3, 4)) + bytes_of_pixels.tobytes()
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "columns.npy", np.asfortranarray(X))
    np.save(tmp_path / "big_endian.npy", X.astype(">f8"))
    np.savez(tmp_path / "two.npz", a=X, b=X + 1)
    np.savez_compressed(tmp_path / "packed.npz", a=X, b=X + 1)
    (tmp_path / "w.safetensors").write_bytes(safetensors({"x": X, "half": half}, {"x": "F64", "half": "BF16"}))
    (tmp_path / "pixels.idx").write_bytes(idx)
    (tmp_path / "pixels.idx.gz").write_bytes(gzip.compress(idx))
    for file, name, expected in [
        ("x.npy", None, X),
        ("columns.npy", None, X),
        ("big_endian.npy", None, X),
        ("two.npz", "b", X + 1),
        ("packed.npz", "b", X + 1),
        ("w.safetensors", "x", X),
        ("w.safetensors", "half", half),
        ("pixels.idx", None, bytes_of_pixels.astype("i4")),
        ("pixels.idx.gz", None, bytes_of_pixels.astype("i4")),
    ]:
        array = er.from_file(tmp_path / file, name)
        assert (array.shape, array.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(np.asarray(array), expected)
        np.testing.assert_array_equal(np.asarray(array * 2), expected * 2)


def test_a_file_is_mapped(tmp_path: Path) -> None:
    file = tmp_path / "sparse.npy"
    np.lib.format.open_memmap(file, mode="w+", dtype="f4", shape=(1 << 20, 1 << 10)).flush()  # 4 GiB that are not there
    before = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    array = er.from_file(file)
    assert not np.asarray(array).flags.writeable
    assert array[7, :5].tolist() == [0.0] * 5
    after = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    assert after - before < 100_000_000


def test_names_of_files_are_pythons(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3.0))
    (tmp_path / "p.ein").write_text("input x[i]\ny[i] = x[i]\n")
    for name in (str, os.fsencode, Path):
        assert er.from_file(name(tmp_path / "x.npy")).tolist() == [0.0, 1.0, 2.0]
        assert er.load_program(name(tmp_path / "p.ein")).inputs[0].name == "x"
    for read in (er.from_file, er.load_program):
        with pytest.raises(TypeError, match="os.PathLike object, not int"):
            read(3)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", first=X, second=X)
    with pytest.raises(er.ProgramError, match="none.npy"):
        er.from_file(tmp_path / "none.npy")
    with pytest.raises(er.ProgramError, match="first"):
        er.from_file(tmp_path / "two.npz", "third")
    (tmp_path / "damaged.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{")
    with pytest.raises(er.ProgramError, match="damaged.npy"):
        er.from_file(tmp_path / "damaged.npy")


class Asked:
    """Gives parts of an array, and notes which."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.regions: list[tuple[slice, ...]] = []
        self.threads: set[int] = set()

    def __call__(self, region: tuple[slice, ...]) -> np.ndarray:
        self.regions.append(region)
        self.threads.add(threading.get_ident())
        return self.array[region]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "?", "f2", ml_dtypes.bfloat16])
def test_a_function_makes_an_array(dtype: str) -> None:
    expected = (X > 5 if dtype == "?" else X).astype(dtype)
    asked = Asked(expected)
    array = er.from_function(X.shape, asked, dtype=dtype)
    assert (array.shape, array.dtype) == (X.shape, np.dtype(dtype))
    assert not asked.regions
    np.testing.assert_array_equal(np.asarray(array[1]), expected[1])
    np.testing.assert_array_equal(np.asarray(array), expected)
    assert asked.regions == [(slice(1, 2), slice(0, 6)), (slice(0, 4), slice(0, 6))]


def test_a_plan_asks_a_function_for_parts() -> None:
    matrix = np.random.default_rng(1).random((256, 256))
    asked = Asked(matrix)
    array = er.from_function(matrix.shape, asked)
    product = er.matmul(array, array).compute(sites=4)
    np.testing.assert_allclose(np.asarray(product), matrix @ matrix)
    assert len(asked.regions) > 1
    assert all(asked.array[region].size < matrix.size for region in asked.regions)


def test_functions_make_inputs_of_whatever_runs() -> None:
    array = er.from_function((4, 6), lambda region: X[region])
    np.testing.assert_array_equal(np.asarray(er.jit(lambda x: x + 1)(array)), X + 1)
    np.testing.assert_array_equal(np.asarray(er.jit(lambda: array + 1)()), X + 1)
    program = er.program("input A[i,j] : f64\nZ[i] = sum[j] A[i,j]")
    np.testing.assert_array_equal(np.asarray(program.run(A=array).Z), X.sum(1))
    np.testing.assert_array_equal(np.asarray(er.grad((array * array).sum(), array)), 2 * X)
    np.testing.assert_array_equal(
        np.asarray(er.from_function((0, 3), lambda region: np.zeros((0, 3)))), np.zeros((0, 3))
    )
    assert er.from_function((), lambda region: 3.0).item() == 3
    with pytest.raises(NotImplementedError):  # of NumPy's, which computes it
        er.sort(array)


def test_what_a_function_raises_reaches_who_computes() -> None:
    def missing(region: tuple[slice, ...]) -> np.ndarray:
        raise KeyError("the disk is gone")

    array = er.from_function((400, 400), missing)
    runs = [
        lambda: np.asarray(array),
        lambda: np.asarray(array + 1),
        lambda: (array @ array).compute(sites=2),
        lambda: (array @ array).compute(memory="10MB"),
    ]
    for run in runs * 2:
        with pytest.raises(KeyError, match="the disk is gone") as raised:
            run()
        assert "in missing" in "".join(traceback.format_exception(raised.value))
    with pytest.raises(ValueError, match=r"the function gave \(2,\) for the region .*whose shape is \(3,\)"):
        er.from_function((3,), lambda region: np.zeros(2)).compute()
    with pytest.raises(TypeError, match="same_kind"):
        er.from_function((3,), lambda region: np.zeros(3), dtype="i4").compute()
    with pytest.raises(er.ProgramError, match="0 or more"):
        er.from_function((-1,), lambda region: np.zeros(3))


CUT = """
import json, os, sys, numpy as np, einrel as er
name, size, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
a = np.arange(size * 1.0)
if name.endswith(".npy"):
    np.save(name, a)
else:
    text = json.dumps({"a": {"dtype": "F64", "shape": [size], "data_offsets": [0, a.nbytes]}}).encode().ljust(88)
    open(name, "wb").write(len(text).to_bytes(8, "little") + text + a.tobytes())
x = er.from_file(name, None if name.endswith(".npy") else "a")
whole = er.from_file(name, None if name.endswith(".npy") else "a")
assert float(er.sum(whole)) == a.sum()
os.truncate(name, os.path.getsize(name) - 8 if how == "a little" else 500)
attempts = {
    "sum": lambda: float(er.sum(x)),
    "a little": lambda: float(er.sum(x)),
    "threads": lambda: er.sum(x).compute(threads=1),
    "sites": lambda: er.sum(x).compute(sites=2),
    "memory": lambda: er.sum(x).compute(memory="1MB"),
    "elements": lambda: np.asarray(x),
    "jit": lambda: er.jit(lambda x: er.sum(x))(x),
    "program": lambda: er.program("input x[i] : f64\\nz[] = sum[i] x[i]").run(x=x),
    "train": lambda: er.train(er.program("input x[b] : f64\\nstate w[] = f64(0)\\nloss[] = mean[b] sq(w[] - x[b])\\n"
        "minimize loss over w by sgd(0.1)\\noutput loss"), {"x": x}, batch={"b": size // 4}, epochs=1),
}
for again in range(2):
    try:
        attempts[how]()
    except er.RunError as error:
        assert os.path.basename(name) in str(error) and "shorter" in str(error), error
    else:
        print("wrong: no error")
print("goes on:", float(er.sum(er.asarray(a))) == a.sum())
"""


WAYS = ["sum", "a little", "threads", "sites", "memory", "elements", "jit", "program", "train"]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("name", ["x.npy", "x.safetensors"])
def test_a_file_that_is_cut_short_is_an_error_that_names_it(tmp_path: Path, name: str, how: str) -> None:
    command = [sys.executable, "-c", CUT, str(tmp_path / name), "500000", how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr, done.stdout.split("\n")[0]) == (0, "", "goes on: True")


def test_elements_of_a_file_stay_when_it_is_cut(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(100000.0))
    x = er.from_file(tmp_path / "x.npy")
    elements = np.asarray(x)
    os.truncate(tmp_path / "x.npy", 200)
    assert elements.sum() == float(er.sum(x)) == np.arange(100000.0).sum()


def test_programs_are_texts_of_limited_length(tmp_path: Path) -> None:
    (tmp_path / "p.ein").write_bytes(b"input A[i]\r\nZ[i] = A[i] + 1\r\n")
    assert er.load_program(tmp_path / "p.ein").run(A=np.ones(2, "f4")).Z.tolist() == [2, 2]
    with pytest.raises(er.ProgramError, match="'/dev/zero' is longer than 4 MiB"):
        er.load_program("/dev/zero")
