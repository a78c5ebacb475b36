"""Every file format in both directions, against what NumPy reads and writes or what is composed here by hand.

Usage: files_against_numpy.py EINREL
"""

import gzip
import io
import itertools
import json
import os
import struct
import sys
import warnings
import zipfile

import numpy as np

sys.dont_write_bytecode = True
import einrel_process as process  # noqa: E402

OURS = {np.dtype("f4"): "f32", np.dtype("f8"): "f64", np.dtype("f2"): "f16", np.dtype("i4"): "i32",
        np.dtype("i8"): "i64", np.dtype("?"): "bool"}
WIDENED = {np.dtype("u1"): "i32", np.dtype("i1"): "i32", np.dtype("u2"): "i32", np.dtype("i2"): "i32",
           np.dtype("u4"): "i64"}
SHAPES = [(), (1,), (7,), (2, 3), (3, 1, 4), (2, 3, 2, 2), (0,), (2, 0, 3)]


def sample(dtype, shape, seed=1):
    """Values that use the dtype's whole range: every bit pattern must come through."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        values = np.asarray(rng.integers(bounds.min, bounds.max, shape, dtype.newbyteorder("="), endpoint=True))
        values.flat[:2] = [bounds.min, bounds.max][: min(values.size, 2)]
        return values.astype(dtype)
    values = np.asarray(rng.standard_normal(shape), dtype)
    special = [np.nan, np.inf, -np.inf, -0.0, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal]
    values.flat[: len(special)] = special[: values.size]
    return values


def npy_bytes(array, version):
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns that old readers do not know versions 2 and 3
        np.lib.format.write_array(stream, array, version=version, allow_pickle=False)
    return stream.getvalue()


def bf16_bits(values):
    """bfloat16 as u16: f32 rounded to nearest even."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def safetensors_bytes(tensors, metadata=None):
    """tensors: name -> (dtype as safetensors writes it, shape, little-endian bytes)."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(path):
    """What safetensors' rules say: name -> (dtype, shape, bytes); the tensors fill the file without gaps."""
    with open(path, "rb") as file:
        content = file.read()
    (size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + size])
    data = content[8 + size:]
    header.pop("__metadata__", None)
    assert sorted(v["data_offsets"] for v in header.values()) == [v["data_offsets"] for v in sorted(
        header.values(), key=lambda v: v["data_offsets"])]
    assert sum(v["data_offsets"][1] - v["data_offsets"][0] for v in header.values()) == len(data)
    return {name: (v["dtype"], tuple(v["shape"]), data[slice(*v["data_offsets"])]) for name, v in header.items()}


IDX_CODES = {np.dtype("u1"): 0x08, np.dtype("i1"): 0x09, np.dtype("i2"): 0x0B, np.dtype("i4"): 0x0C,
             np.dtype("f4"): 0x0D, np.dtype("f8"): 0x0E}


def idx_bytes(array):
    header = bytes([0, 0, IDX_CODES[array.dtype.newbyteorder("=")], array.ndim])
    header += struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


def read_idx(content):
    dtype = {code: dtype for dtype, code in IDX_CODES.items()}[content[2]]
    assert content[:2] == b"\0\0"
    shape = struct.unpack_from(f">{content[3]}I", content, 4)
    body = content[4 + 4 * len(shape):]
    assert len(body) == dtype.itemsize * int(np.prod(shape))
    return np.frombuffer(body, dtype.newbyteorder(">")).reshape(shape).astype(dtype)


class FilesAgainstNumPy(process.ProgramTest):
    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def copy(self, source, target, rank, dtype, **options):
        """X in file `source` becomes Y in file `target`, unchanged."""
        labels = ",".join("abcdef"[:rank])
        program = f"input X[{labels}] : {dtype}\nY[{labels}] = X[{labels}]\noutput Y\n"
        return self.succeed("run", "-", "--in", f"X={source}", "--out", f"Y={target}", stdin=program, **options)

    def expect_npy(self, path, expected):
        """NumPy reads the file, without pickle and mapped, and finds `expected` to the last bit."""
        for options in ({"allow_pickle": False}, {"mmap_mode": "r", "allow_pickle": False}):
            if "mmap_mode" in options and expected.size == 0:
                continue  # an empty file cannot be mapped, says mmap
            got = np.load(path, **options)
            self.assertEqual(got.dtype, expected.dtype)
            self.assertEqual(got.shape, expected.shape)
            self.assertEqual(got.tobytes(), np.ascontiguousarray(expected).tobytes())
            self.assertTrue(got.flags.c_contiguous)

    def test_npy_of_every_version_order_dtype_and_shape(self):
        choices = itertools.cycle(itertools.product([(1, 0), (2, 0), (3, 0)], ["C", "F"], ["<", ">"]))
        for dtype, shape in itertools.product(OURS, SHAPES):
            for version, order, byte_order in itertools.islice(choices, 5):  # 5 and 12 are coprime: all come up
                array = sample(dtype, shape)
                stored = np.array(array, dtype.newbyteorder(byte_order), order=order, copy=True)
                with self.subTest(dtype=dtype, shape=shape, version=version, order=order, byte_order=byte_order):
                    self.copy(self.write("x.npy", npy_bytes(stored, version)), self.path("y.npy"), len(shape),
                              OURS[dtype])
                    self.expect_npy(self.path("y.npy"), array)

    def test_transposed_arrays_keep_their_elements(self):
        array = sample(np.float32, (2, 3, 4))
        np.save(self.path("x.npy"), np.asfortranarray(array))
        program = "input X[a,b,c]\nY[c,a,b] = X[a,b,c]\noutput Y"
        self.succeed("run", "-", "--in", f"X={self.path('x.npy')}", "--out", f"Y={self.path('y.npy')}", stdin=program)
        self.expect_npy(self.path("y.npy"), array.transpose(2, 0, 1))

    def test_small_integers_are_widened_to_every_type_that_holds_them(self):
        integers = {"i32": np.iinfo(np.int32), "i64": np.iinfo(np.int64)}
        floats = {"f16": 11, "f32": 24, "f64": 53}  # bits of an integer they hold exactly
        types = {"i32": np.int32, "i64": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64}
        for dtype, byte_order in itertools.product([*WIDENED, np.dtype("i4")], "<>"):
            array = sample(dtype, (3, 4)).astype(dtype.newbyteorder(byte_order))
            path = self.write("x.npy", npy_bytes(array, (1, 0)))
            bounds = np.iinfo(dtype)
            for ours, target in types.items():
                with self.subTest(dtype=array.dtype, target=ours):
                    if ours in integers:
                        fits = integers[ours].min <= bounds.min and bounds.max <= integers[ours].max
                    else:
                        fits = bounds.max < 2 ** floats[ours]
                    program = f"input X[a,b] : {ours}\nY[a,b] = X[a,b]\noutput Y"
                    arguments = ("run", "-", "--in", f"X={path}", "--out", f"Y={self.path('y.npy')}")
                    if fits:
                        self.succeed(*arguments, stdin=program)
                        self.expect_npy(self.path("y.npy"), array.astype(target))
                    else:
                        self.refuse(1, *arguments, stdin=program, mentions=["'X'", "x.npy", ours])

    def test_einsum_reads_small_integers_as_the_smallest_of_our_integers(self):
        for dtype, ours in WIDENED.items():
            path = self.write("x.npy", npy_bytes(sample(dtype, (5,)), (1, 0)))
            result = self.succeed("einsum", "i->i", path)
            self.assertTrue(result.out.startswith(f"result  {ours} (5,)"), result)

    def test_complex_numbers_come_and_go(self):
        rng = np.random.default_rng(5)
        for (ours, dtype), byte_order, layout in itertools.product((("c64", "c8"), ("c128", "c16")), "<>", "CF"):
            values = rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))
            array = np.asarray(values, byte_order + dtype, order=layout)
            path = self.write("x.npy", npy_bytes(array, (1, 0)))
            program = f"input Z[a,b] : {ours}\nY[b,a] = conj(Z[a,b])\nS[] = sum[a,b] Z[a,b]\noutput Y, S"
            with self.subTest(dtype=array.dtype, layout=layout):
                self.succeed("run", "-", "--in", f"Z={path}", "--out", f"Y={self.path('y.npy')}",
                             "--out", f"S={self.path('s.npz:S')}", stdin=program)
                self.expect_npy(self.path("y.npy"), array.T.conj().astype(dtype))
                with np.load(self.path("s.npz")) as archive:
                    self.assertEqual(archive["S"].dtype, np.dtype(dtype))
                    np.testing.assert_allclose(archive["S"], array.sum(), rtol=1e-5)
                shown = self.succeed("run", "-", "--in", f"Z={path}", stdin=program)
                self.assertIn(f"Y  {ours} (4, 3)  parts min", shown.out)
                self.succeed("einsum", "ij,kj->ik", path, path, "--out", self.path("p.npy"))
                self.assertEqual(np.load(self.path("p.npy")).dtype, np.dtype(dtype))
                np.testing.assert_allclose(np.load(self.path("p.npy")), array @ array.T, rtol=1e-4)
                self.refuse(1, "run", "-", "--in", f"Z={path}", stdin="input Z[a,b] : f32\nY[a,b] = Z[a,b]",
                            mentions=["'Z' is declared f32", ours])

    def test_complex_safetensors(self):
        values = np.array([[1 + 2j, 3], [-1j, 0.5]], "c8")
        path = self.write("x.safetensors", safetensors_bytes({"Z": ("C64", (2, 2), values.tobytes())}))
        program = "input Z[a,b] : c64\nY[a,b] = Z[a,b] * Z[a,b]\nW[a] = c128(Z[a,0])\noutput Y, W"
        self.succeed("run", "-", "--in", path, "--out", f"Y={self.path('y.safetensors:Y')}", stdin=program)
        dtype, shape, content = read_safetensors(self.path("y.safetensors"))["Y"]
        self.assertEqual((dtype, tuple(shape)), ("C64", (2, 2)))
        np.testing.assert_allclose(np.frombuffer(content, "c8").reshape(2, 2), values * values, rtol=1e-6)
        self.refuse(1, "run", "-", "--in", path, "--out", f"W={self.path('w.safetensors:W')}", stdin=program,
                    mentions=["hold no c128"])

    def test_types_that_no_tensor_has_are_named(self):
        for array in (np.zeros(3, np.clongdouble), np.zeros(3, "S4"), np.zeros(3, "U2"), np.zeros(3, np.uint64),
                      np.zeros(3, "M8[s]"), np.zeros(3, [("a", "f4"), ("b", "i4")]), np.zeros(3, np.longdouble)):
            with self.subTest(dtype=array.dtype):
                path = self.write("x.npy", npy_bytes(array, (1, 0)))
                self.refuse(1, "einsum", "i->i", path, mentions=["x.npy"])
        np.save(self.path("o.npy"), np.array([{}, []], dtype=object), allow_pickle=True)
        self.refuse(1, "einsum", "i->i", self.path("o.npy"), mentions=["o.npy"])

    def test_bf16_is_two_bytes_in_npy(self):
        floats = sample(np.float32, (3, 4))
        np.save(self.path("x.npy"), floats)
        bf16, back = self.path("bf16.npy"), self.path("back.npy")
        program = "input X[a,b]\nY[a,b] = bf16(X[a,b])\noutput Y"
        self.succeed("run", "-", "--in", f"X={self.path('x.npy')}", "--out", f"Y={bf16}", stdin=program)
        written = np.load(bf16, allow_pickle=False)
        self.assertEqual((written.dtype, written.shape), (np.dtype("V2"), (3, 4)))
        bits = written.view(np.uint16)
        np.testing.assert_array_equal(bits[~np.isnan(floats)], bf16_bits(floats)[~np.isnan(floats)])
        program = "input X[a,b] : bf16\nY[a,b] = f32(X[a,b])\noutput Y"
        self.succeed("run", "-", "--in", f"X={bf16}", "--out", f"Y={back}", stdin=program)
        np.testing.assert_array_equal(np.load(back), (bits.astype(np.uint32) << 16).view(np.float32))

    def test_type_names_as_numpy_takes_them(self):
        for dtype, descr in itertools.product(OURS, ("{0.char}", "{0.kind}{0.itemsize}", "|{0.kind}{0.itemsize}",
                                                     "{0.name}")):
            array, descr = sample(dtype, (2, 3)), descr.format(dtype)
            text = repr({"descr": descr, "fortran_order": False, "shape": (2, 3)}).encode() + b"\n"
            path = self.write("x.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + array.tobytes())
            with self.subTest(descr=descr):
                self.expect_npy(path, array)  # that NumPy reads it
                self.copy(path, self.path("y.npy"), 2, OURS[dtype])
                self.expect_npy(self.path("y.npy"), array)

    def test_of_several_arrays_in_one_npy_the_first_is_read(self):
        first, second = sample(np.float32, (2, 3), 1), sample(np.int64, (5,), 2)
        with open(self.path("x.npy"), "wb") as file:
            np.save(file, first)
            np.save(file, second)
        np.testing.assert_array_equal(np.load(self.path("x.npy")), first)
        self.copy(self.path("x.npy"), self.path("y.npy"), 2, "f32")
        self.expect_npy(self.path("y.npy"), first)
        with zipfile.ZipFile(self.path("x.npz"), "w") as archive:
            archive.write(self.path("x.npy"), "a.npy")
        self.copy(self.path("x.npz"), self.path("z.npy"), 2, "f32")
        self.expect_npy(self.path("z.npy"), first)

    def test_npz_members_without_the_ending_npy(self):
        bare, ending = sample(np.float32, (2, 3), 1), sample(np.float32, (4,), 2)
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            with zipfile.ZipFile(self.path("x.npz"), "w", method) as archive:
                archive.writestr("bare", npy_bytes(bare, (1, 0)))
                archive.writestr("both", npy_bytes(bare, (1, 0)))
                archive.writestr("both.npy", npy_bytes(ending, (1, 0)))
                archive.writestr("notes.txt", "hello")
            for name in ("bare", "both", "both.npy"):
                with self.subTest(method=method, name=name), np.load(self.path("x.npz")) as archive:
                    wanted = archive[name]
                    self.copy(f"{self.path('x.npz')}:{name}", self.path("y.npy"), wanted.ndim, "f32")
                    self.expect_npy(self.path("y.npy"), wanted)
            self.refuse(1, "einsum", "i->i", self.path("x.npz:notes.txt"), mentions=["bare", "both"])

    def test_npz_stored_and_compressed(self):
        arrays = {f"a{i}": sample(dtype, shape, i) for i, (dtype, shape) in enumerate(itertools.product(OURS, SHAPES))}
        arrays["größe"] = sample(np.float64, (5, 2))
        arrays["fortran"] = np.asfortranarray(sample(np.float32, (4, 5)))
        arrays["layer.0/weight"] = sample(np.int32, (3,))
        for save in (np.savez, np.savez_compressed):
            save(self.path("x.npz"), **arrays)
            for name, array in list(arrays.items())[::3] + list(arrays.items())[-3:]:
                with self.subTest(save=save, name=name):
                    self.copy(f"{self.path('x.npz')}:{name}", self.path("y.npy"), array.ndim, OURS[array.dtype])
                    self.expect_npy(self.path("y.npy"), np.ascontiguousarray(array).reshape(array.shape))

    def test_npz_written_by_einrel_is_read_by_numpy(self):
        arrays = {f"X{i}": sample(dtype, (2, 3), i) for i, dtype in enumerate(OURS)}
        program, arguments = "", []
        for name, array in arrays.items():
            np.save(self.path(f"{name}.npy"), array)
            program += f"input {name}[a,b] : {OURS[array.dtype]}\nY{name}[b,a] = {name}[a,b]\n"
            arguments += ["--in", f"{name}={self.path(name)}.npy", "--out", f"Y{name}={self.path('y.npz')}:{name}.t"]
        program += "output " + ", ".join(f"Y{name}" for name in arrays)
        self.succeed("run", "-", *arguments, stdin=program)
        with zipfile.ZipFile(self.path("y.npz")) as archive:
            self.assertIsNone(archive.testzip())
            self.assertEqual(sorted(archive.namelist()), sorted(f"{name}.t.npy" for name in arrays))
        with np.load(self.path("y.npz"), allow_pickle=False) as written:
            for name, array in arrays.items():
                self.assertEqual(written[f"{name}.t"].dtype, array.dtype)
                self.assertEqual(written[f"{name}.t"].tobytes(), array.T.tobytes())
        # and by einrel again
        self.copy(f"{self.path('y.npz')}:X0.t", self.path("y.npy"), 2, "f32")
        self.expect_npy(self.path("y.npy"), arrays["X0"].T)

    def test_a_member_that_is_missing_is_refused_with_the_nearest_name(self):
        np.savez(self.path("x.npz"), weight=np.zeros(3), bias=np.zeros(2))
        self.refuse(1, "einsum", "i->i", self.path("x.npz:wieght"), mentions=["'wieght'", "'weight'", "bias"])
        self.refuse(1, "einsum", "i->i", self.path("x.npz"), mentions=["x.npz:", "weight", "bias"])
        self.refuse(1, "einsum", "i->i", self.path("x.npz:"), mentions=["x.npz:"])
        np.savez(self.path("one.npz"), only=np.arange(3.0))
        self.succeed("einsum", "i->i", self.path("one.npz"))

    def test_safetensors_composed_by_hand(self):
        floats = sample(np.float32, (3, 4))
        bf16 = bf16_bits(floats)
        widened = (bf16.astype(np.uint32) << 16).view(np.float32)
        tensors = {"f32": ("F32", (3, 4), floats.tobytes()), "bf16": ("BF16", (3, 4), bf16.tobytes())}
        for dtype, code in (("f8", "F64"), ("f2", "F16"), ("i8", "I64"), ("i4", "I32"), ("?", "BOOL")):
            tensors[OURS[np.dtype(dtype)]] = (code, (3, 4), sample(dtype, (3, 4)).tobytes())
        for dtype, code in (("u1", "U8"), ("i1", "I8"), ("u2", "U16"), ("i2", "I16"), ("u4", "U32")):
            tensors[code] = (code, (3, 4), sample(dtype, (3, 4)).tobytes())
        tensors["empty"] = ("F32", (0, 2), b"")
        tensors["scalar"] = ("F64", (), np.float64(2.5).tobytes())
        tensors["model.layers.0:weight é"] = ("F32", (2,), np.float32([1, 2]).tobytes())
        path = self.write("x.safetensors", safetensors_bytes(tensors, {"format": "pt"}))
        out = self.path("y.npy")
        for dtype, ours in OURS.items():
            with self.subTest(dtype=dtype):
                self.copy(f"{path}:{ours}", out, 2, ours)
                self.expect_npy(out, floats if ours == "f32" else sample(dtype, (3, 4)))
        for dtype, code in (("u1", "U8"), ("i1", "I8"), ("u2", "U16"), ("i2", "I16"), ("u4", "U32")):
            with self.subTest(dtype=dtype):
                self.copy(f"{path}:{code}", out, 2, "i64")
                self.expect_npy(out, sample(dtype, (3, 4)).astype(np.int64))
        program = "input X[a,b] : bf16\nY[a,b] = f32(X[a,b])\noutput Y"
        self.succeed("run", "-", "--in", f"X={path}:bf16", "--out", f"Y={out}", stdin=program)
        np.testing.assert_array_equal(np.load(out), widened)
        self.copy(f"{path}:empty", out, 2, "f32")
        self.expect_npy(out, np.zeros((0, 2), np.float32))
        self.copy(f"{path}:scalar", out, 0, "f64")
        self.expect_npy(out, np.asarray(2.5))
        self.copy(f"{path}:model.layers.0:weight é", out, 1, "f32")
        self.expect_npy(out, np.float32([1, 2]))

    def test_safetensors_written_by_einrel(self):
        codes = {"f32": "F32", "f64": "F64", "f16": "F16", "i32": "I32", "i64": "I64", "bool": "BOOL"}
        arrays = {f"X{i}": sample(dtype, shape, i)
                  for i, (dtype, shape) in enumerate(itertools.product(OURS, [(2, 3), (), (0, 2), (5,)]))}
        program, arguments = "", []
        for name, array in arrays.items():
            np.save(self.path(f"{name}.npy"), array)
            labels = ",".join("ab"[:array.ndim])
            labels = labels.replace("a", f"a{name}").replace("b", f"b{name}")
            program += f"input {name}[{labels}] : {OURS[array.dtype]}\nY{name}[{labels}] = {name}[{labels}]\n"
            arguments += ["--in", f"{name}={self.path(name)}.npy", "--out",
                          f"Y{name}={self.path('y.safetensors')}:{name}.ü"]
        floats = sample(np.float32, (7,), 9)
        np.save(self.path("F.npy"), floats)
        program += "input F[f]\nB[f] = bf16(F[f])\n"
        arguments += ["--in", f"F={self.path('F.npy')}", "--out", f"B={self.path('y.safetensors')}:bf16"]
        program += "output B, " + ", ".join(f"Y{name}" for name in arrays)
        self.succeed("run", "-", *arguments, stdin=program)
        written = read_safetensors(self.path("y.safetensors"))
        self.assertEqual(set(written), {f"{name}.ü" for name in arrays} | {"bf16"})
        for name, array in arrays.items():
            self.assertEqual(written[f"{name}.ü"], (codes[OURS[array.dtype]], array.shape, array.tobytes()))
        code, shape, content = written["bf16"]
        self.assertEqual((code, shape), ("BF16", (7,)))
        got = (np.frombuffer(content, np.uint16).astype(np.uint32) << 16).view(np.float32)
        np.testing.assert_array_equal(got, (bf16_bits(floats).astype(np.uint32) << 16).view(np.float32))

    def test_idx_composed_by_hand(self):
        for dtype, pack in itertools.product(IDX_CODES, (bytes, gzip.compress)):
            array = sample(dtype, (3, 2, 4))
            name = "x.idx" if pack is bytes else "x.idx.gz"
            path = self.write(name, pack(idx_bytes(array)))
            ours = OURS.get(dtype) or WIDENED[dtype]
            with self.subTest(dtype=dtype, name=name):
                self.copy(path, self.path("y.npy"), 3, ours)
                self.expect_npy(self.path("y.npy"), array.astype({"i32": np.int32}.get(ours, dtype)))

    def test_mnist_without_our_extensions(self):
        images = sample(np.uint8, (4, 28, 28))
        for name, content in (("train-images-idx3-ubyte", idx_bytes(images)),
                              ("train-images-idx3-ubyte.gz", gzip.compress(idx_bytes(images)))):
            self.copy(self.write(name, content), self.path("y.npy"), 3, "f32")
            self.expect_npy(self.path("y.npy"), images.astype(np.float32))

    def test_idx_written_by_einrel(self):
        for dtype, shape in itertools.product(map(np.dtype, ("f4", "f8", "i4", "?")), [(2, 3), (5,), (0, 3)]):
            array = sample(dtype, shape)
            np.save(self.path("x.npy"), array)
            for name, unpack in (("y.idx", bytes), ("y.idx.gz", gzip.decompress)):
                with self.subTest(dtype=dtype, shape=shape, name=name):
                    self.copy(self.path("x.npy"), self.path(name), len(shape), OURS[dtype])
                    with open(self.path(name), "rb") as file:
                        got = read_idx(unpack(file.read()))
                    self.assertEqual(got.shape, shape)
                    self.assertEqual(got.tobytes(), array.tobytes())  # a bool is a byte 0 or 1 in both
        np.save(self.path("x.npy"), np.zeros(3, np.int64))
        self.refuse(1, "einsum", "i->i", self.path("x.npy"), "--out", self.path("y.idx"), mentions=["y.idx", "i64"])

    def test_what_stands_behind_an_array_in_a_compressed_member_is_left_alone(self):
        array = np.arange(10, dtype=np.float32)
        with zipfile.ZipFile(self.path("x.npz"), "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("A.npy", npy_bytes(array, (1, 0)) + bytes(1 << 24))
        with np.load(self.path("x.npz")) as archive:
            np.testing.assert_array_equal(archive["A"], array)
        self.copy(self.path("x.npz:A"), self.path("y.npy"), 1, "f32")
        np.testing.assert_array_equal(np.load(self.path("y.npy")), array)

    def test_gzip_of_several_members_is_read_as_gunzip_does(self):
        array = np.arange(10, dtype=np.int32)
        idx = idx_bytes(array)
        for content in (gzip.compress(idx[:20]) + gzip.compress(idx[20:]),
                        gzip.compress(b"") + gzip.compress(idx) + gzip.compress(b"") + bytes(100)):
            self.assertEqual(gzip.decompress(content), idx)
            self.copy(self.write("x.idx.gz", content), self.path("y.npy"), 1, "i32")
            np.testing.assert_array_equal(np.load(self.path("y.npy")), array)

    def test_damaged_files_are_refused_and_named(self):
        whole = npy_bytes(np.arange(6.0).reshape(2, 3), (1, 0))
        archive = io.BytesIO()
        np.savez_compressed(archive, x=np.arange(100.0))
        squeezed = bytearray(archive.getvalue())
        squeezed[80] ^= 0xFF
        tensors = safetensors_bytes({"x": ("F32", (3,), bytes(12))})
        idx = idx_bytes(np.arange(3, dtype=np.int32))
        for name, content in (("short.npy", whole[:-1]), ("empty.npy", b""),
                              ("magic.npy", b"NUMPY" + whole),
                              ("header.npy", whole[:40]), ("zip.npz", archive.getvalue()[:-30]),
                              ("crc.npz", bytes(squeezed)),
                              ("not.npz", b"hello"), ("short.safetensors", tensors[:-1]),
                              ("long.safetensors", tensors + b"\0"),
                              ("huge.safetensors", struct.pack("<Q", 1 << 60) + tensors[8:]),
                              ("text.safetensors", b"hello"),
                              ("short.idx", idx[:-1]), ("long.idx", idx + b"\0"), ("not.idx.gz", idx),
                              ("cut.idx.gz", gzip.compress(idx)[:-9]),
                              ("what.txt", b"hello"), ("what", b"")):
            with self.subTest(name=name):
                path = self.write(name, content)
                out = self.path("out.npy")
                self.refuse(1, "einsum", "...->...", path, "--out", out, mentions=[name])
                self.assertFalse(os.path.exists(out))


if __name__ == "__main__":
    process.main()
