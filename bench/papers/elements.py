"""Of (g): `--formats element` in SQLite beside Einstein summation in SQL, which Python's sqlite3 runs on the same tables.

Its queries have the form that sql-einsum writes (github.com/ti2-group/sql-einsum): products of coordinate tables that
WHERE joins, sums of groups, a CTE for each contraction; without the ORDER BY, by which it sorts results."""
import sqlite3
import time
from dataclasses import dataclass

import measuring
from kernel_bench import workers
from measuring import goal, head, line

HEADS = ("computation", "Einrel, median s", "least s", "SQL, median s", "least s", "SQL's time over ours", "of least s")


@dataclass(frozen=True)
class ElementCase:
    name: str
    program: str
    query: str  # that makes the result of tables with the names of inputs
    result: str  # the labels of Z
    shapes: dict  # {level: {input: (labels, shape)}}
    density: float = 1  # of inputs; where it is less, their tables have no rows for zeros


def cases():
    def product(n):
        return {"A": ("ij", (n, n)), "B": ("jk", (n, n))}

    def batches(b, n):
        return {"A": ("bij", (b, n, n)), "B": ("bjk", (b, n, n))}

    def three(n):
        return {"A": ("ij", (n, n)), "B": ("jk", (n, n)), "C": ("kl", (n, n))}

    def levels(of, *sizes):
        return {level: of(*size) for level, size in zip(("tiny", "quick", "default", "full"), sizes, strict=True)}
    yield ElementCase(
        "product", "input A[i,j], B[j,k] : f64\nZ[i,k] = sum[j] A[i,j] * B[j,k]\n",
        "SELECT A.i AS i, B.k AS k, SUM(A.value * B.value) AS value FROM A, B WHERE A.j = B.j GROUP BY A.i, B.k", "ik",
        levels(product, (5,), (100,), (150,), (200,)))
    yield ElementCase(
        "products of a batch", "input A[b,i,j], B[b,j,k] : f64\nZ[b,i,k] = sum[j] A[b,i,j] * B[b,j,k]\n",
        "SELECT A.b AS b, A.i AS i, B.k AS k, SUM(A.value * B.value) AS value FROM A, B WHERE A.b = B.b AND A.j = B.j "
        "GROUP BY A.b, A.i, B.k", "bik", levels(batches, (2, 4), (20, 35), (40, 40), (80, 40)))
    yield ElementCase(
        "product of three", "input A[i,j], B[j,k], C[k,l] : f64\nZ[i,l] = sum[j,k] A[i,j] * B[j,k] * C[k,l]\n",
        "WITH T AS (SELECT A.i AS i, B.k AS k, SUM(A.value * B.value) AS value FROM A, B WHERE A.j = B.j GROUP BY A.i, B.k) "
        "SELECT T.i AS i, C.l AS l, SUM(T.value * C.value) AS value FROM T, C WHERE T.k = C.k GROUP BY T.i, C.l", "il",
        levels(three, (5,), (80,), (120,), (160,)))
    yield ElementCase(
        "rows of a sparse product", "input A[i,j], B[j,k] : f64\nZ[i] = sum[k] sq(sum[j] A[i,j] * B[j,k])\n",
        "WITH T AS (SELECT A.i AS i, B.k AS k, SUM(A.value * B.value) AS value FROM A, B WHERE A.j = B.j GROUP BY A.i, B.k) "
        "SELECT i, SUM(value * value) AS value FROM T GROUP BY i", "i",
        levels(product, (20,), (1000,), (2000,), (4000,)), density=0.005)


@dataclass
class Elements:
    """One computation, measured."""
    case: ElementCase
    ours: list
    plain: list


def measure(bench, rounds):
    """Each in turn; results are compared. `bench` as in formats.py."""
    for case in cases():
        file = bench.folder / "elements.db"
        bench.program.write_text(case.program, encoding="utf-8")
        fill(file, case.shapes[bench.level], case.density)
        contenders = {"ours": lambda: by_einrel(bench, file, case), "plain": lambda: by_sql(file, case)}
        samples = measuring.interleaved(contenders, rounds)
        wrong = difference(file, case)
        if wrong is None or not wrong <= workers.TOLERANCES["f64"]:
            bench.faults.append(f"elements, {case.name}: differs from plain SQL's by {wrong}")
        file.unlink()
        yield Elements(case, samples["ours"], samples["plain"])


def fill(file, tables, density):
    import numpy
    database = sqlite3.connect(file)
    generator = numpy.random.default_rng(1)
    for name, (labels, shape) in tables.items():
        values = generator.random(shape)
        is_there = generator.random(shape) < density
        is_there[..., 0] = True  # no row is empty: SQL's result would lack it
        database.execute(f"CREATE TABLE {name} ({', '.join(labels)}, value)")
        rows = ((*map(int, at), float(values[tuple(at)])) for at in numpy.argwhere(is_there))
        database.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * (len(shape) + 1))})", rows)
    database.commit()
    database.close()


def by_einrel(bench, file, case):
    with_table(file, "DROP TABLE IF EXISTS Z")
    kind = "table" if case.density == 1 else "sparse:table"
    inputs = [word for name in case.shapes[bench.level] for word in ("--in", f"{name}={kind}:{name}")]
    begin = time.perf_counter()
    measuring.run_process([bench.einrel, "run", bench.program, "--database", f"sqlite:{file}", "--formats", "element", *inputs,
                           "--out", "Z=table:Z"], bench.environment)
    return time.perf_counter() - begin


def by_sql(file, case):
    with_table(file, "DROP TABLE IF EXISTS plain")
    begin = time.perf_counter()
    with_table(file, f"CREATE TABLE plain AS {case.query}")
    return time.perf_counter() - begin


def with_table(file, statement):
    database = sqlite3.connect(file)
    with database:
        database.execute(statement)
    database.close()


def difference(file, case):
    """The largest one, over the largest value; None where elements are missing."""
    database = sqlite3.connect(file)
    same = " AND ".join(f"Z.{label} = plain.{label}" for label in case.result)
    query = f"SELECT count(*), max(abs(Z.value - plain.value)), max(abs(plain.value)) FROM Z JOIN plain ON {same}"
    count, wrong, largest = database.execute(query).fetchone()
    all_of = [database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("Z", "plain")]
    database.close()
    return wrong / largest if all_of == [count, count] else None


def markdown(measured):
    lines = ["\n### Elements in SQLite, beside plain SQL as sql-einsum writes it (run by Python's sqlite3)", head(*HEADS)]
    for each in measured:
        seconds = [*measuring.middle_and_least(each.ours), *measuring.middle_and_least(each.plain)]
        lines.append(line(each.case.name, *(f"{value:.3g}" for value in seconds),
                          *measuring.cells(measuring.ratios(each.plain, each.ours), 2)))
    return "\n".join(lines)


def goals(measured):
    for each in measured:
        yield goal(f"elements, {each.case.name}: plain SQL's time over ours", *measuring.ratios(each.plain, each.ours), 1)
