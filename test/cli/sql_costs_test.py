"""What formats are predicted to cost is what a script does: counted in SQLite by functions that stand before Einrel's own.

Every statement runs with them: they count calls, and bytes of arrays without their heads, and let a second connection with the
extension compute. What is counted comes from what functions see and from tables, and never from how Einrel predicts:

    tuples        calls of einrel_kernel, rows that einrel_fold takes, chunks that einrel_gather makes
    read          bytes of arrays that a function takes and that no function of this statement gave
    intermediate  bytes of arrays that functions give; once more those that another one takes; and those that a sort for GROUP BY
                  carries, since the function that takes them is called behind it
    pieces        rows that einrel_box cuts out or einrel_place takes, and chunks that einrel_place gives
    stored        bytes in the table that is made
    statements    tables that are made; the index of one, and the check whether an input is whole, are a part of it
    compute       elements that einrel_fold takes, and the operations of a formula: they stand here, since kernels do not count them

The network is that of PostgreSQL's workers, of which scripts have none: it is 0.

Usage: sql_costs_test.py EINREL EXTENSION
"""

import json
import math
import random
import re
import struct
import sys
from collections import Counter
from dataclasses import dataclass, field

from einrel_process import ProgramTest, main, sqlite_with

EXTENSION = sys.argv.pop(2)
COMPONENTS = ("compute", "network", "tuples", "read", "intermediate", "statements", "pieces", "stored")
FORMATS = ("single", "row", "column", "row-strip-10", "column-strip-10", "row-strip-7", "tile-10-10", "tile-7-4", "tile-4-30", "element")
EXTENTS = {"i": 25, "j": 30, "k": 20, "l": 20, "b": 30, "n": 6, "d": 9}
INPUTS = {"X": ("ij", "f64"), "Z": ("ij", "f64"), "V": ("ij", "f64"), "Y": ("jk", "f64"), "S": ("kl", "f64"), "r": ("j", "f64"), "c": ("i", "f64"),
          "e": ("i", "f64"), "T": ("ndk", "f32"), "h": ("ndk", "f16"), "B": ("ij", "i32")}
IJ, IJK, KK, NDK = 25 * 30, 25 * 30 * 20, 20 * 20, 6 * 9 * 20
# Statements, and how many operations the formula of each tensor has; None where a program has more tensors than it says.
COMPUTATIONS = {
    "multiply": ("P[i,k] = sum[j] X[i,j] * Y[j,k]", {"P": 2 * IJK}),
    "multiply_chain": ("P[i,k] = sum[j] X[i,j] * Y[j,k]\nQ[i,l] = sum[k] P[i,k] * S[k,l]", {"P": 2 * IJK, "Q": 2 * 25 * KK}),
    "transpose_and_multiply": ("P[j,b] = sum[i] X[i,j] * X[i,b]", {"P": 2 * IJ * 30}),
    "product_with_a_vector": ("P[i] = sum[j] X[i,j] * r[j]", {"P": 2 * IJ}),
    "outer_product": ("P[i,j] = c[i] * r[j]", {"P": IJ}),
    "plus": ("P[i,j] = X[i,j] + Z[i,j]", {"P": IJ}),
    "divide": ("P[i,j] = X[i,j] / (Z[i,j] + 10)", {"P": 2 * IJ}),
    "of_three": ("P[i,j] = X[i,j] * Z[i,j] + V[i,j]", {"P": 2 * IJ}),
    "of_integers": ("P[i,j] = B[i,j] * B[i,j]\nQ[i] = sum[j] P[i,j]", {"P": IJ, "Q": IJ}),
    "transpose": ("P[j,i] = X[i,j]", {"P": 0}),
    "with_the_transpose": ("P[k,l] = S[k,l] - S[l,k]", {"P": KK}),
    "relu": ("P[i,j] = relu(X[i,j])", {"P": IJ}),
    "where": ("P[i,j] = where(X[i,j] > 1.5, Z[i,j], 0)", {"P": 2 * IJ}),
    "read_twice": ("P[i,j] = relu(X[i,j])\nQ[i,j] = exp(X[i,j])", {"P": IJ, "Q": IJ}),
    "reduce_to_row": ("P[j] = sum[i] X[i,j]", {"P": IJ}),
    "reduce_to_column": ("P[i] = max[j] X[i,j]", {"P": IJ}),
    "reduce_to_number": ("P[] = sum[i,j] X[i,j]", {"P": IJ}),
    "mean_of_columns": ("P[i] = mean[j] X[i,j]", None),
    "mean": ("P[] = mean[i,j] X[i,j]", None),
    "sum_of_halves": ("P[n,d] = sum[k] h[n,d,k]", {"P": NDK}),
    "add_row": ("P[i,j] = X[i,j] + r[j]", {"P": IJ}),
    "times_column": ("P[i,j] = X[i,j] * c[i]", {"P": IJ}),
    "part_of_fewer_labels": ("P[i,j] = X[i,j] * (c[i] + e[i])", None),
    "where": ("P[i,j] = where(X[i,j] > 1.5, Z[i,j], V[i,j])", None),
    "reduce_three": ("P[i] = sum[j] abs(X[i,j] * Z[i,j] + V[i,j])", None),
    "inverse": ("P[k,l] = inverse[k,l](S[k,l])", {"P": 2 * 20 * KK}),
    "rank_3": ("P[n,d] = sum[k] T[n,d,k] * T[n,d,k]\nQ[d,k,n] = exp(T[n,d,k])", {"P": 2 * NDK, "Q": NDK}),
    "softmax_of_rows": ("P[i,j] = softmax[j](X[i,j])", None),
    "a_layer": ("H[i,k] = relu(sum[j] X[i,j] * Y[j,k])\nM[k] = max[i] H[i,k]\nP[i,k] = H[i,k] - M[k]", None),
}
# What ADR 24 says to be no more than about right.
ABOUT = ("P[i] = argmax[j] X[i,j]", "P[] = argmin[i,j] abs(X[i,j])", "P[i,j] = c[i] + f64(j)")


def data_bytes(array):
    """Of an array, without its head (array_bytes.h)."""
    return len(array) - 8 - 8 * array[5]


def parts_in(name, shape):
    """Into how many chunks each dimension of a tensor is cut, by the name of its format."""
    if name.startswith("chunks of "):
        sizes = [shape[d] if size == "all" else int(size) for d, size in enumerate(name.removeprefix("chunks of ").split(" x "))]
    else:
        numbers = [int(number) for number in re.findall(r"\d+", name)]
        rows, columns = {"single": (None, None), "row": (1, None), "column": (None, 1), "element": (1, 1), "row-strip": (*numbers, None),
                         "column-strip": (None, *numbers), "tile": numbers}[re.sub(r"-\d+", "", name)]
        sizes = list(shape)
        if len(shape) == 1:
            sizes[0] = rows or shape[0]
        elif shape:
            sizes[-2:] = rows or shape[-2], columns or shape[-1]
    return tuple(-(-extent // size) for extent, size in zip(shape, sizes, strict=True))


@dataclass
class Counts:
    """What the functions of one statement did."""

    calls: Counter = field(default_factory=Counter)
    rows: Counter = field(default_factory=Counter)  # that aggregates took
    from_tables: int = 0
    given: int = 0
    handed_on: int = 0
    folded: int = 0  # elements
    made: set = field(default_factory=set)  # arrays that functions gave
    latest: tuple = (None, 0)  # what a function gave, and bytes that it took
    carried: int = 0  # bytes that a sort had to carry, if there was one
    before_sort: bool = False  # arrays that aggregates took were made before all rows were sorted

    def take(self, arrays):
        for array in arrays:
            if array in self.made:
                self.handed_on += data_bytes(array)
            else:
                self.from_tables += data_bytes(array)

    def give(self, function, array, taken=0):
        self.calls[function] += 1
        if isinstance(array, bytes):
            self.given += data_bytes(array)
            self.made.add(array)
            self.latest = array, taken
        return array

    def step(self, function, arrays):
        """A row of an aggregate."""
        self.rows[function] += 1
        for array in arrays:
            if array == self.latest[0]:
                self.carried += self.latest[1]
            elif array in self.made:
                self.before_sort = True
            else:
                self.carried += data_bytes(array)
            if function == "einrel_fold":
                self.folded += math.prod(struct.unpack_from(f"<{array[5]}q", array, 8))
        self.take(arrays)


def arrays_in(values):
    return [value for value in values if isinstance(value, bytes)]


class CountingDatabase:
    """SQLite with functions that count. `counts` is of the statement that runs."""

    def __init__(self):
        self.own = sqlite_with(EXTENSION)
        self.database = sqlite_with(EXTENSION)
        self.counts = Counts()
        listed = self.own.execute("SELECT DISTINCT name, type, narg FROM pragma_function_list WHERE name GLOB 'einrel_*' AND name <> 'einrel_version'")
        for name, kind, count in listed.fetchall():
            if kind == "s":
                self.database.create_function(name, count, self.scalar(name), deterministic=True)
            else:
                self.database.create_aggregate(name, count, self.aggregate(name))

    def close(self):
        self.own.close()
        self.database.close()

    def scalar(self, name):
        def call(*values):
            arrays = arrays_in(values)
            self.counts.take(arrays)
            marks = ", ".join("?" * len(values))
            found, = self.own.execute(f"SELECT {name}({marks})", values).fetchone()
            return self.counts.give(name, found, sum(map(data_bytes, arrays)))

        return call

    def aggregate(self, name):
        counting = self

        class Aggregate:
            def __init__(self):
                self.rows = []

            def step(self, *values):
                counting.counts.step(name, arrays_in(values))
                self.rows.append(values)

            def finalize(self):
                own = counting.own
                columns = [f"c{at}" for at in range(len(self.rows[0]))]
                own.execute(f"CREATE TEMP TABLE rows ({', '.join(columns)})")
                own.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * len(columns))})", self.rows)
                found, = own.execute(f"SELECT {name}({', '.join(columns)}) FROM rows").fetchone()
                own.execute("DROP TABLE rows")
                return counting.counts.give(name, found)

        return Aggregate

    def run(self, statement):
        self.counts = Counts()
        is_sorted = any("TEMP B-TREE FOR GROUP BY" in row[3] for row in self.database.execute("EXPLAIN QUERY PLAN " + statement))
        self.database.execute(statement)
        if not is_sorted or self.counts.before_sort:
            self.counts.carried = 0
        return self.counts

    def fill(self, name, labels, shape, dtype):
        draw = random.Random(name)
        self.database.execute(f"CREATE TABLE {name} ({', '.join(labels)}, value)")
        keys = [()]
        for extent in shape:
            keys = [(*key, index) for key in keys for index in range(extent)]
        for key in keys:  # a matrix has an inverse
            value = draw.randrange(1, 2**30) if dtype == "i32" else draw.uniform(1, 2) + 100 * (len(set(key)) == 1)
            self.database.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * (len(key) + 1))})", (*key, value))


def statements_in(script):
    """Each with the comment above it; what stands between BEGIN and COMMIT."""
    found, about = [], ""
    for block in script.split("\n\n")[1:-1]:
        lines = block.strip().split("\n")
        while lines[0].startswith("-- "):
            about = lines.pop(0).removeprefix("-- ")
        found.append((about, "\n".join(lines)))
    return found


class Counted:
    """What a script does: `tensors`, counts by name, and `changes`, those of bringing a tensor to so many parts."""

    def __init__(self, script, inputs):
        self.database = CountingDatabase()
        for name, about in inputs.items():
            self.database.fill(name, *about)
        self.tensors, self.changes = {}, {}
        waiting = Counter()
        for about, statement in statements_in(script):
            if about.endswith(", element by element"):
                break
            table = re.match(r'CREATE TABLE temp\."([^"]+)"', statement)
            waiting.update(self.counts_of(statement, table and table[1]))
            change = re.match(r"the repartition of ([^;]+);", about)
            if table and change:
                place = change[1], self.parts_of(table[1])
                assert place not in self.changes, place
                self.changes[place] = waiting
            elif (table and not table[1].startswith("step")) or statement.startswith("SELECT einrel_whole"):
                self.tensors.setdefault(re.match(r"\w+", about)[0], Counter()).update(waiting)
            else:
                continue
            waiting = Counter()
        self.database.close()

    def parts_of(self, table):
        keys = [row[1] for row in self.database.database.execute(f'PRAGMA temp.table_info("{table}")') if row[1] != "chunk"]
        return self.database.database.execute(f"""SELECT {', '.join(f'max({key}) + 1' for key in keys)} FROM temp."{table}" """).fetchone()

    def counts_of(self, statement, table):
        counts = self.database.run(statement)
        chunks = self.database.database.execute(f'SELECT chunk FROM temp."{table}"') if table else ()
        placed = counts.calls["einrel_place"]
        return {"compute": counts.folded, "network": 0, "read": counts.from_tables, "statements": 1 if table else 0,
                "tuples": counts.calls["einrel_kernel"] + counts.rows["einrel_fold"] + counts.calls["einrel_gather"],
                "intermediate": counts.given + counts.handed_on + counts.carried,
                "pieces": (counts.rows["einrel_place"] or counts.calls["einrel_box"]) + placed,
                "stored": sum(data_bytes(chunk) for chunk, in chunks)}


class Costs(ProgramTest):
    def run_program(self, statements, inputs, formats, extents):
        """What is explained of a program, what is counted, and the shapes of its tensors. `inputs`: labels, shape, type by name."""
        lines = ["dims " + " ".join(f"{label}={extent}" for label, extent in extents.items())]
        lines += [f"input {name}[{','.join(labels)}] : {dtype}" for name, (labels, _, dtype) in inputs.items()]
        program = self.text_file("program.ein", "\n".join([*lines, statements, ""]))
        given = ["--formats", ",".join(f"{tensor}={name}" if tensor else name for tensor, name in formats.items())] if formats else []
        explained = json.loads(self.succeed("sql", program, *given, "--explain", "--json").out)
        shapes = {name: shape for name, (_, shape, _) in inputs.items()}
        for tensor in explained["tensors"]:
            labels = re.match(r"\w+\[([\w,]*)\] = ", tensor["formula"])
            if labels:
                shapes[tensor["name"]] = tuple(extents[label] for label in labels[1].split(",") if label)
        return explained["tensors"], Counted(self.succeed("sql", program, *given).out, inputs), shapes

    def compare(self, statements, inputs, formats, operations, extents):
        """Of each component the prediction with the count. Returns how many changes of formats cut chunks, put some together, or both."""
        tensors, counted, shapes = self.run_program(statements, inputs, formats, extents)
        changes, kinds = {}, Counter()
        for tensor in tensors:
            found = counted.tensors[tensor["name"]]
            if operations is not None and tensor["name"] not in inputs:
                found["compute"] += operations[tensor["name"]]
            elif operations is None:
                self.assertGreaterEqual(tensor["cost"]["compute"], found["compute"])
                found["compute"] = tensor["cost"]["compute"]
            self.expect_equal(tensor["name"], tensor["cost"], found)
            for change in tensor["transformations"]:
                shape = shapes[change["tensor"]]
                place = change["tensor"], parts_in(change["to"], shape)
                self.assertEqual(changes.setdefault(place, change["cost"]), change["cost"])  # what two need is charged twice, and done once
                old, new = math.prod(parts_in(change["from"], shape)), math.prod(place[1])
                is_put_together = change["cost"]["pieces"] > new
                kinds[change["cost"]["pieces"] - (new if is_put_together else 0) > old, is_put_together] += 1
        self.assertEqual(changes.keys(), counted.changes.keys())
        for place, cost in changes.items():
            self.expect_equal(f"{place[0]} to {place[1]}", cost, counted.changes[place])
        return kinds

    def expect_equal(self, name, predicted, counted):
        for component in COMPONENTS:
            if not math.isclose(predicted[component], counted[component], rel_tol=1e-9, abs_tol=1e-6):
                self.fail(f"{name}: {component} is predicted as {predicted[component]}, but counted as {counted[component]}")

    @staticmethod
    def inputs_of(statements):
        read = set(re.findall(r"\b(\w)\[", statements))
        return {name: (labels, tuple(EXTENTS[label] for label in labels), dtype) for name, (labels, dtype) in INPUTS.items() if name in read}

    @staticmethod
    def some_formats(draw, statements, inputs):
        """All chosen; tiles, which cut every label; some of inputs; of all tensors, but those that cannot be cut in every way."""
        yield from ({"": "tile-10"}, {"": "tile-4"})
        made = [] if re.search("inverse|softmax", statements) else re.findall(r"^(\w+)\[", statements, re.M)
        for count, tensors in ((1, ()), (2, inputs), (4, (*inputs, *made))):
            for _ in range(count):
                yield {tensor: draw.choice(FORMATS) for tensor in tensors}

    def test_of_computations(self):
        for name, (statements, operations) in COMPUTATIONS.items():
            inputs = self.inputs_of(statements)
            for formats in self.some_formats(random.Random(name), statements, inputs):
                with self.subTest(computation=name, formats=formats):
                    self.compare(statements, inputs, formats, operations, EXTENTS)

    def test_of_changes_of_formats(self):
        """From each format to each, of matrices whose chunks differ in size, a vector and a tensor of rank 3."""
        kinds = Counter()
        of_tall = ("single", "row", "column", "row-strip-100", "row-strip-60", "column-strip-3", "tile-100-3", "tile-60-4", "element")
        for labels, shape, formats in (("ij", (25, 30), FORMATS), ("ij", (250, 7), of_tall), ("i", (47,), ("single", "row", "row-strip-10", "row-strip-9")),
                                       ("ndk", (4, 9, 20), FORMATS)):
            extents = dict(zip(labels, shape, strict=True))
            index = ",".join(labels)
            statements = "\n".join(f"P{number}[{index}] = X[{index}] + {number + 1}" for number in range(len(formats)))
            operations = {f"P{number}": math.prod(shape) for number in range(len(formats))}
            for old in formats:
                with self.subTest(shape=shape, old=old):
                    given = {"X": old} | {f"P{number}": new for number, new in enumerate(formats)}
                    kinds += self.compare(statements, {"X": (labels, shape, "f64")}, given, operations, extents)
        for kind in ((True, False), (False, True), (True, True)):
            self.assertGreater(kinds[kind], 30, kinds)

    def test_of_what_is_about_right(self):
        """At most what is predicted, but three times the arrays that are handed on; and at least a fifth."""
        for statements in ABOUT:
            inputs = self.inputs_of(statements)
            for formats in self.some_formats(random.Random(statements), statements, inputs):
                with self.subTest(statements=statements, formats=formats):
                    tensors, counted, _ = self.run_program(statements, inputs, formats, EXTENTS)
                    for tensor in tensors:
                        found = counted.tensors[tensor["name"]]
                        for component in ("tuples", "read", "intermediate", "stored", "statements"):
                            most = tensor["cost"][component] * (3 if component == "intermediate" else 1)
                            self.assertLessEqual(found[component], most * (1 + 1e-9), (tensor["name"], component))
                            self.assertGreaterEqual(found[component], tensor["cost"][component] * (1 - 1e-9) / 5, (tensor["name"], component))


if __name__ == "__main__":
    main()
