"""Tables of chunks as inputs and outputs: what holds in every database, against NumPy.

A test of a database has self.url, self.execute(statement) -> rows (arrays as bytes), self.literal(bytes) in its SQL,
self.name(table) as a statement writes it, self.content(), which is equal while nothing changed, and self.destroy_chunks(table, is_lost),
which calls self.destroy_pages of the file where its chunks lie.
"""

import itertools
import json
import os
import struct

import numpy as np

from einrel_process import einrel

DTYPES = ("f32", "f64", "bf16", "f16", "i32", "i64", "bool")  # as array_bytes.h numbers them
NUMPY = {"f32": "<f4", "f64": "<f8", "f16": "<f2", "i32": "<i4", "i64": "<i8", "bool": "?"}
PRODUCT = "input X[i,j] : f64\ninput Y[j,k] : f64\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n"


def array_bytes(array, dtype="f64"):
    """As array_bytes.h says."""
    head = b"ERA1" + bytes((DTYPES.index(dtype), array.ndim, 0, 0)) + struct.pack(f"<{array.ndim}q", *array.shape)
    return head + np.ascontiguousarray(array, NUMPY[dtype]).tobytes()


def array_in(data):
    dtype, rank = DTYPES[data[4]], data[5]
    assert data[:4] == b"ERA1" and data[6:8] == b"\0\0"
    shape = struct.unpack_from(f"<{rank}q", data, 8)
    return np.frombuffer(data, NUMPY[dtype], offset=8 + 8 * rank).reshape(shape)


def cut(array, parts):
    """The chunks by key: of equal size up to one, the larger first."""
    edges = [np.array_split(np.arange(extent), count) for extent, count in zip(array.shape, parts)]
    return {key: array[np.ix_(*(edges[d][k] for d, k in enumerate(key)))] for key in itertools.product(*map(range, parts))}


class ChunkTables:
    def run_there(self, text, *arguments, **options):
        return einrel("run", self.text_file("program.ein", text), "--database", self.url, *arguments, **options)

    def done(self, *arguments, **options):
        result = self.run_there(*arguments, **options)
        self.assertEqual(result.code, 0, result)
        return result

    def store(self, table, array, parts, dtype="f64"):
        keys = "".join(f"k{d} bigint, " for d in range(array.ndim))
        self.execute(f"CREATE TABLE {self.name(table)} ({keys}chunk {self.array_type})")
        rows = [f"({''.join(f'{k}, ' for k in key)}{self.literal(array_bytes(chunk, dtype))})" for key, chunk in cut(array, parts).items()]
        np.random.default_rng(1).shuffle(rows)  # tables have no order
        self.execute(f"INSERT INTO {self.name(table)} VALUES {', '.join(rows)}")

    def chunks(self, table):
        return {tuple(key): array_in(data) for *key, data in self.execute(f"SELECT * FROM {self.name(table)}")}

    def assert_chunks(self, table, array, parts):
        found, wanted = self.chunks(table), cut(np.asarray(array), parts)
        self.assertEqual(set(found), set(wanted))
        for key, chunk in wanted.items():
            np.testing.assert_allclose(found[key], chunk, rtol=1e-12, err_msg=str(key))
            self.assertEqual(found[key].shape, chunk.shape)

    def test_outputs_in_chunks_are_inputs_that_stay_as_they_lie(self):
        random = np.random.default_rng(2)
        x, y, w = random.standard_normal((25, 13)), random.standard_normal((13, 7)), random.standard_normal((7, 5))
        for name, array in (("x", x), ("y", y), ("w", w)):
            np.save(self.path(name + ".npy"), array)
        for number, (format, parts) in enumerate((("single", (1, 1)), ("row", (25, 1)), ("column", (1, 7)), ("row-strip-4", (7, 1)),
                                                  ("tile-10-3", (3, 3)), ("element", (25, 7)))):
            with self.subTest(format=format):
                said = self.done(PRODUCT, "--in", f"X={self.path('x.npy')}", "--in", f"Y={self.path('y.npy')}", "--formats", f"Z={format}", "--out",
                                 f"Z=chunks:made {number}").out
                self.assertEqual(said, f"wrote Z f64 (25, 7) to table 'made {number}', in chunks\n")
                self.assert_chunks(f"made {number}", x @ y, parts)
                columns = f"query:SELECT chunk, k1, k0 FROM {self.name(f'made {number}')} ORDER BY k1"
                for source, formats in ((f"table:made {number}", ()), (columns, ("--formats", f"X={format},tile-4"))):
                    result = self.done(PRODUCT, "--in", "X=" + source, "--in", f"Y={self.path('w.npy')}", "--out", f"Z={self.path('z.npy')}", "--analyze",
                                       "--json", *formats)
                    np.testing.assert_allclose(np.load(self.path("z.npy")), x @ y @ w, rtol=1e-12)
                    tensor = json.loads(result.out)["tensors"][0]
                    self.assertEqual((tensor["name"], tensor["format"], tensor["given"], tuple(tensor["parts"].values())), ("X", format, True, parts))
                text = self.done(PRODUCT, "--in", f"X=table:made {number}", "--in", f"Y={self.path('w.npy')}", "--analyze").out
                self.assertIn("as it lies", text)

    def test_every_type_and_rank_is_kept_and_read(self):
        random = np.random.default_rng(3)
        shapes = (((), ()), ((9,), (4,)), ((5, 3, 4), (2, 1, 3)), ((2, 3, 2, 3), (2, 2, 1, 2)), ((0, 5), (1, 2)), ((1,), (1,)))
        number = 0
        for dtype in ("f32", "f64", "f16", "i32", "i64", "bool"):
            for shape, parts in shapes:
                with self.subTest(dtype=dtype, shape=shape):
                    number += 1
                    array = random.integers(0, 2 if dtype == "bool" else 100, shape).astype(NUMPY[dtype])
                    self.store(f"t{number}", array, parts, dtype)
                    labels = ",".join("abcd"[: len(shape)])
                    self.done(f"input X[{labels}] : {dtype}\nZ[{labels}] = X[{labels}]\noutput Z\n", "--in", f"X=table:t{number}", "--out",
                              f"Z=chunks:u{number}", "--formats", "tile-1")
                    whole = {key: array_in(array_bytes(chunk, dtype)) for key, chunk in cut(array, [max(extent, 1) for extent in shape]).items()}
                    found = self.chunks(f"u{number}")
                    self.assertEqual(set(found), set(whole))
                    for key, chunk in whole.items():
                        np.testing.assert_array_equal(found[key], chunk)
                        self.assertEqual(found[key].dtype, chunk.dtype)

    def test_states_begin_with_chunks_and_end_as_such(self):
        text = ("input A[i,j] : f64\ndims i=9 j=9\nstate x[i] = f64(1)\nP[i] = sum[j] A[i,j] * x[j]\nnext x[i] = P[i] / 10\noutput next_x\n")
        a = np.random.default_rng(4).standard_normal((9, 9))
        np.save(self.path("a.npy"), a)
        given = ("--in", f"A={self.path('a.npy')}", "--formats", "x=row-strip-4,next_x=row-strip-2")
        self.done(text, *given, "--steps", "3", "--out", "next_x=chunks:x3")
        self.assert_chunks("x3", np.linalg.matrix_power(a / 10, 3) @ np.ones(9), (5,))
        result = self.run_there(text, *given, "--steps", "4", "--in", "x=table:x3")
        self.assertEqual(result.code, 1, result)
        self.assertIn("row-strip-2; leave that out", result.err)
        self.done(text, *given[:2], "--steps", "4", "--in", "x=table:x3", "--out", "next_x=chunks:x7")
        np.testing.assert_allclose(np.concatenate([chunk for _, chunk in sorted(self.chunks("x7").items())]),
                                   np.linalg.matrix_power(a / 10, 7) @ np.ones(9), rtol=1e-10)
        self.store("short", np.ones(8), (2,))
        self.store("single", np.ones(9), (2,), "f32")
        for table, words in (("short", ("table 'short' is (8,)", "state x", "(9,)")), ("single", ("table 'single' is f32", "state x", "f64"))):
            result = self.run_there(text, *given[:2], "--in", "x=table:" + table)
            self.assertEqual(result.code, 1, result)
            for word in words:
                self.assertIn(word, result.err)

    def test_first_values_of_states_are_computed_of_chunks(self):
        text = "input A[i] : f64, B[i] : f64\nstate x[i] = A[i] * 2\nnext x[i] = x[i] + B[i]\noutput next_x\n"
        a = np.random.default_rng(6).standard_normal(9)
        self.store("a", a, (3,))
        for formats in ((), ("--formats", "tile-2"), ("--formats", "x=row")):
            self.done(text, "--in", "A=table:a", "--in", "B=table:a", "--steps", "3", "--out", f"next_x={self.path('x.npy')}", *formats)
            np.testing.assert_allclose(np.load(self.path("x.npy")), 5 * a, rtol=1e-12)
        result = self.run_there(text, "--in", "A=table:a", "--in", "B=table:a", "--formats", "Q=row")
        self.assertEqual(result.code, 1, result)
        self.assertIn("no tensor 'Q'", result.err)

    def test_results_of_views_are_inputs_again(self):
        x = np.arange(7.0 * 6)
        self.store("flat", x, (3,))
        for number, formats in enumerate(((), ("--formats", "tile-4"), ("--formats", "tile-1"))):
            table = f"v{number}"
            self.done("dims h=7 d=6\ninput X[f] : f64\nV[h,d] = view X[(h d)]\nT[d,h] = V[h,d] + 1\nM[(d h)] = view T[d,h]\noutput V, M\n", "--in",
                      "X=table:flat", "--out", f"V=chunks:{table}", "--out", f"M=chunks:m{table}", *formats)
            self.done("input V[h,d] : f64, M[f] : f64\nA[h,d] = V[h,d]\nB[f] = M[f]\noutput A, B\n", "--in", f"V=table:{table}", "--in",
                      f"M=table:m{table}", "--out", f"A={self.path('a.npy')}", "--out", f"B={self.path('b.npy')}")
            np.testing.assert_array_equal(np.load(self.path("a.npy")), x.reshape(7, 6))
            np.testing.assert_array_equal(np.load(self.path("b.npy")), (x.reshape(7, 6) + 1).T.reshape(-1))

    def test_a_view_is_kept_in_one_chunk(self):
        self.store("whole", np.arange(6.0), (3,))
        text = "dims h=2 d=3\ninput X[f] : f64\nV[h,d] = view X[(h d)]\n"
        result = self.run_there(text, "--in", "X=table:whole", "--out", "V=chunks:inrows", "--formats", "V=row")
        self.assertEqual(result.code, 1, result)
        self.assertIn("--formats V=row: V is a view, which is kept in one chunk", result.err)
        self.done(text, "--in", "X=table:whole", "--out", "V=chunks:inone", "--formats", "V=single")

    def test_an_analysis_of_a_view_in_a_table_is_of_what_was_done(self):
        self.store("lies", np.arange(42.0), (3,))
        text = "dims h=7 d=6\ninput X[f] : f64\nV[h,d] = view X[(h d)]\nT[d,h] = V[h,d] + 1\nM[(d h)] = view T[d,h]\noutput V, M\n"
        for number, formats in enumerate(((), ("--formats", "tile-4"), ("--formats", "tile-1"))):
            with self.subTest(formats=formats):
                outputs = ("--out", f"V=chunks:vs{number}", "--out", f"M=chunks:ms{number}")
                found = json.loads(self.done(text, "--in", "X=table:lies", *outputs, *formats, "--analyze", "--json").out)
                tensors = {tensor["name"]: tensor for tensor in found["tensors"]}
                for name in "VM":
                    self.assertEqual((tensors[name]["format"], tensors[name]["given"]), ("single", True))
                changes = [change["measured"] for tensor in found["tensors"] for change in tensor["transformations"]]
                self.assertTrue(all(seconds is not None for seconds in changes), found)
                self.assertEqual({rest["about"] for rest in found["measured"]["rest"]}, {"V put out", "M put out", "all else"})
        said = self.done(text, "--in", "X=table:lies", "--out", "V=chunks:said", "--analyze").out
        self.assertIn("kept in one chunk", said)
        self.assertIn("as it lies", said)
        self.assertNotIn("gathered", said)

    def test_queries_take_some_of_the_chunks(self):
        x = np.random.default_rng(9).standard_normal((12, 8))
        np.save(self.path("y.npy"), np.eye(8))
        self.store("x", x, (4, 2))
        x_name = self.name("x")
        for query, wanted in ((f"SELECT k0 - 1 AS k0, k1, chunk FROM {x_name} WHERE k0 IN (1, 2)", x[3:9]),
                              (f"SELECT 3 - k0 AS k0, k1, chunk FROM {x_name}", np.vstack([x[9:], x[6:9], x[3:6], x[:3]])),
                              (f"SELECT x.k0, k1, chunk FROM {x_name} AS x JOIN (SELECT 1 AS k0 UNION ALL SELECT 0) AS wanted ON x.k0 = wanted.k0", x[:6])):
            with self.subTest(query=query):
                self.done(PRODUCT, "--in", "X=query:" + query, "--in", f"Y={self.path('y.npy')}", "--out", f"Z={self.path('z.npy')}")
                np.testing.assert_array_equal(np.load(self.path("z.npy")), wanted)

    def destroy_pages(self, path, page_bytes, is_lost):
        """On the disk, those that pass."""
        lost = 0
        with open(path, "r+b") as file:
            for at, page in enumerate(iter(lambda: file.read(page_bytes), b"")):
                if is_lost(page):
                    os.pwrite(file.fileno(), b"\xff" * page_bytes, at * page_bytes)
                    lost += 1
        self.assertGreater(lost, 10)

    def test_chunks_that_a_query_leaves_out_are_not_read(self):
        x = np.random.default_rng(10).standard_normal((1200, 20))
        wanted, others = x[300:500], np.vstack([x[:300], x[500:]])

        def is_of_others(page):
            numbers = np.concatenate([np.frombuffer(page, "<f8", (len(page) - at) // 8, at) for at in range(8)])
            return np.isin(numbers, others).any() and not np.isin(numbers, wanted).any()

        np.save(self.path("x.npy"), x)
        np.save(self.path("y.npy"), np.eye(20))
        for table in ("replaced", "destroyed"):
            self.done("input X[i,j] : f64\nZ[i,j] = X[i,j]\n", "--in", f"X={self.path('x.npy')}", "--formats", "Z=row-strip-100", "--out",
                      f"Z=chunks:{table}")
        self.execute(f"UPDATE {self.name('replaced')} SET chunk = {self.literal(b'no array')} WHERE k0 NOT IN (3, 4)")
        self.destroy_chunks("destroyed", is_of_others)
        for table in ("replaced", "destroyed"):
            with self.subTest(table=table):
                query = f"query:SELECT k0 - 3 AS k0, k1, chunk FROM {self.name(table)} WHERE k0 BETWEEN 3 AND 4"
                self.done(PRODUCT, "--in", "X=" + query, "--in", f"Y={self.path('y.npy')}", "--out", f"Z={self.path('z.npy')}")
                np.testing.assert_array_equal(np.load(self.path("z.npy")), wanted)
                self.assertNotEqual(self.run_there(PRODUCT, "--in", "X=table:" + table, "--in", f"Y={self.path('y.npy')}").code, 0)

    def test_bad_chunks_are_named_and_nothing_changes(self):
        x = np.random.default_rng(5).standard_normal((10, 6))
        np.save(self.path("y.npy"), np.eye(6))
        good = array_bytes(cut(x, (3, 2))[1, 1])
        at = "WHERE k0 = 1 AND k1 = 1"
        other = lambda data: f"UPDATE {{}} SET chunk = {self.literal(data)} {at}"  # noqa: E731
        key = ("table 'bad'", "column 'chunk'", "k0=1, k1=1")
        changes = [
            (other(b""), (*key, "no array")), (other(b"ERA1"), (*key, "no array")), (other(b"garbage that is long enough " * 20), (*key, "no array")),
            (other(good[:-1]), (*key, "no array", "bytes of elements")), (other(good + b"x"), (*key, "bytes of elements")),
            (other(good[:4] + b"\x63" + good[5:]), (*key, "type is unknown")), (other(good[:8] + b"\xff" * 8 + good[16:]), (*key, "extent -1")),
            (other(good[:8] + struct.pack("<2q", 1 << 61, 1 << 61) + good[24:]), (*key,)),
            (other(array_bytes(cut(x, (3, 2))[1, 1], "f32")), (*key, "f32", "f64")),
            (other(array_bytes(cut(x, (3, 2))[1, 1].reshape(-1))), (*key, "1 dimension", "2 columns")),
            (other(array_bytes(np.ones((4, 3)))), ("table 'bad'", "column 'chunk'", "along dimension 0")),
            (other(array_bytes(np.ones((3, 2)))), (*key, "2 along dimension 1")), (other(array_bytes(np.ones((3, 0)))), (*key, "0 along dimension 1")),
            (f"UPDATE {{}} SET chunk = NULL {at}", (*key, "NULL")), (f"DELETE FROM {{}} {at}", ("table 'bad'", "no row for k0=1, k1=1", "hole")),
            ("DELETE FROM {} WHERE k0 = 0 AND k1 = 0", ("table 'bad'", "no row for k0=0, k1=0")), ("DELETE FROM {}", ("table 'bad'", "no rows")),
            (f"INSERT INTO {{}} SELECT * FROM {{}} {at}", ("table 'bad'", "two rows for k0=1, k1=1")),
            (f"UPDATE {{}} SET k1 = 7 {at}", ("table 'bad'", "hole", "k0=0, k1=2")), (f"UPDATE {{}} SET k1 = -1 {at}", ("table 'bad'", "'k1'", "-1")),
            (f"UPDATE {{}} SET k1 = 9223372036854775807 {at}", ("table 'bad'", "'k1'", "9223372036854775807")),
            (f"UPDATE {{}} SET k1 = 1099511627775 {at}", ("table 'bad'", "hole", "k0=0, k1=2")),
            (f"UPDATE {{}} SET k0 = NULL {at}", ("table 'bad'", "'k0'", "NULL"))]
        for statement, words in (*changes, *self.own_changes(at)):
            with self.subTest(statement=statement[:200]):
                self.store("bad", x, (3, 2))
                self.execute(statement.replace("{}", self.name("bad")))
                before = self.content()
                for source in ("table:bad", f"query:SELECT * FROM {self.name('bad')}"):
                    result = self.run_there(PRODUCT, "--in", "X=" + source, "--in", f"Y={self.path('y.npy')}", "--out", "Z=chunks:Z")
                    self.assertEqual(result.code, 1, result)
                    for word in words:
                        self.assertIn(word.replace("table 'bad'", "the query") if source.startswith("query") else word, result.err)
                    self.assertEqual(self.content(), before)
                self.execute(f"DROP TABLE {self.name('bad')}")

    def test_what_cannot_be_of_chunks_is_said(self):
        x = np.ones((250, 4))
        keys = ((100, 4), (100, 4), (50, 4))
        self.store("cut", x, (3, 1))
        self.store("strips", x, (3, 1))
        for key, shape in enumerate(keys):
            self.execute(f"UPDATE {self.name('strips')} SET chunk = {self.literal(array_bytes(np.ones(shape)))} WHERE k0 = {key}")
        np.save(self.path("y.npy"), np.eye(4))
        before = self.content()
        for source, words, arguments in (
                ("table:strips", ("k0=0", "100 along dimension 0", "84 to 83"), ()), ("table:cut", ("X=row", "row-strip-", "leave that out"), ("--formats", "X=row")),
                ("table:cut", ("holds chunks", "--formats element"), ("--formats", "element")), ("chunks:cut", ("write table:cut",), ()),
                ("table:cut", ("--formats element", "Z"), ("--formats", "element", "--out", "Z=chunks:Z")),
                ("table:cut", ("table 'cut' already",), ("--out", "Z=chunks:cut")), ("table:cut", ("no name",), ("--out", "Z=chunks:")),
                ("table:cut", ("extent 9",), ("--dim", "i=9"))):
            with self.subTest(source=source, arguments=arguments):
                result = self.run_there(PRODUCT, "--in", "X=" + source, "--in", f"Y={self.path('y.npy')}", *arguments)
                self.assertEqual(result.code, 1, result)
                for word in words:
                    self.assertIn(word, result.err)
        for text, words in (("input X[i,j] : f32\nZ[i] = sum[j] X[i,j]\n", ("declared f32", "table 'cut'", "f64")),
                            ("input X[i] : f64\nZ[] = sum[i] X[i]\n", ("table 'cut'", "(250, 4)", "1 dimension"))):
            result = self.run_there(text, "--in", "X=table:cut")
            self.assertEqual(result.code, 1, result)
            for word in words:
                self.assertIn(word, result.err)
        self.assertEqual(self.content(), before)
