"""(g): formats of matrices in databases, chosen and by hand: predicted seconds, measured ones, and the goals.

A run in a database loads its inputs, computes, and says what came of it. What computing takes alone is the difference of a
run of several steps and one of one step, over the steps between: the inputs stay from step to step. For that the programs
get a state that counts steps.
"""
import csv
import itertools
import json
import math
import re
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import measuring
from kernel_bench import workers
from measuring import goal, head, line

from format_cases import TILES_OF_512, format_cases
from measure import Timed, ratio
from report import extents_of

sys.path.insert(0, str(measuring.ROOT / "test/postgres"))
from server import Server  # noqa: E402

EXPERIMENT = "g"
COUNTING = "state turn[] = f64(0)\nnext turn[] = turn[] + 1\n"
AUTOMATIC, TILES, OUTSIDE = "automatic", "all tiles", "without a database"
ENOUGH_SECONDS, MOST_STEPS = 0.5, 10  # as many steps more as take so long, or so many
FAR = 1.5  # formats whose times differ by so much should be predicted in the right order
HEADS = ("by", "predicted s", "median s", "least s", "× automatic", "of least s", "loading and the rest, s")
FIELDS = ("experiment", "case", "extents", "database", "by", "formats", "predicted_seconds", "median_seconds", "least_seconds",
          "other_seconds", "samples", "plan")


@dataclass
class Row(Timed):
    name: str
    formats: str
    predicted: float | None
    plan: tuple  # (tensor, format); () without a database
    seconds: list = field(default_factory=list)  # of a step
    others: list = field(default_factory=list)  # of all the rest of a run

    def add(self, one, more, steps):
        """A sample: seconds of a run of one step, and of one of so many steps more. Where noise makes the longer run the
        faster one, a step's share of all of it, which is at most too much."""
        self.seconds.append((more - one) / steps if more > one else more / (1 + steps))
        self.others.append(max(one - self.seconds[-1], 0))

    @property
    def is_ours(self):
        return bool(self.plan)


@dataclass
class Table:
    """A case in a database; the automatic formats come first."""
    case: object
    dims: dict
    database: str
    rows: list

    @property
    def automatic(self):
        return self.rows[0]


# ---- Measuring.

class FormatBench:
    """Where databases are, a folder, and what was found wrong."""

    def __init__(self, einrel, level, rounds, folder, urls):
        self.einrel, self.level, self.rounds, self.folder, self.urls = einrel, level, rounds, Path(folder), urls
        self.faults = []
        self.program = self.folder / "formats.ein"
        self.environment = workers.environment() | {"XDG_CONFIG_HOME": str(self.folder)}

    def calibrate(self):
        """Fits the weights of each database, by which formats are then chosen; yields what that says. It takes minutes."""
        if self.level == "tiny":
            return
        yield "Formats are chosen, and seconds predicted, by weights that `einrel calibrate --database` found just before:"
        for database, url in self.urls.items():
            printed = measuring.run_process([self.einrel, "calibrate", "--database", url], self.environment)
            r_squared = re.search(r"R\^2 (\S+)", printed).group(1)
            worst = " ".join(re.search(r"worst: (.*)\n *(predicted .*)", printed).groups())
            yield f"- {database}: R^2 {r_squared}; the query that they miss most: {worst}"

    def write(self, case, level):
        """The program and its inputs; options that bind them, and arrays."""
        import numpy
        self.program.write_text(case.program + COUNTING, encoding="utf-8")
        dims = case.dims[level]
        given = re.search(r"^input (.*) : f64$", case.program, re.MULTILINE).group(1)
        fixed = {label: int(extent) for label, extent in re.findall(r"^dims (\w+)=(\d+)$", case.program, re.MULTILINE)}
        shapes = {name: tuple((fixed | dims)[label] for label in labels.split(","))
                  for name, labels in re.findall(r"(\w+)\[([\w,]+)\]", given)}
        files = measuring.write_inputs(self.folder, "f8", shapes, case.largest)
        return measuring.bound(files), {name: numpy.load(file) for name, file in files.items()}

    def explained(self, database, bound, formats):
        """Seconds of a run of one step; what is predicted without gathering inputs, and the format of each tensor."""
        seconds, printed = self.run(database, bound, *given(formats), "--analyze", "--json")
        tensors = json.loads(printed)["tensors"]
        computed = [tensor for tensor in tensors if not tensor["formula"].startswith("input ")]
        predicted = sum(tensor["cost"]["seconds"] + sum(each["cost"]["seconds"] for each in tensor["transformations"])
                        for tensor in computed)
        return seconds, predicted, tuple((tensor["name"], tensor["format"]) for tensor in tensors)

    def run(self, database, bound, *options):
        """Seconds of a run, and what it prints."""
        command = [self.einrel, "run", self.program, "--database", self.urls[database], *bound, *options]
        begin = time.perf_counter()
        printed = measuring.run_process(command, self.environment)
        return time.perf_counter() - begin, printed

    def check(self, case):
        """Every format in every database at a tiny size, element by element."""
        import numpy
        bound, arrays = self.write(case, "tiny")
        expected = case.by_numpy(numpy, arrays)
        file = self.folder / "result.npy"
        for database, (name, formats) in itertools.product(self.urls, ways(case).items()):
            self.run(database, bound, *given(formats), "--out", f"{case.result}={file}")
            wrong = abs(numpy.load(file) - expected).max()
            if not wrong <= workers.TOLERANCES["f64"] * abs(expected).max():
                self.faults.append(f"{case.name}, {name} in {database}: differs from NumPy's by {wrong:.3g}")

    def measure(self, case):
        """A table for each database."""
        bound, _ = self.write(case, self.level)
        plain = self.without_database(bound, case.result)
        for database in self.urls:
            rows, steps = [], {}
            for name, formats in ways(case).items():
                one, predicted, plan = self.explained(database, bound, formats)
                rows.append(Row(name, formats, predicted, plan))
                steps[name] = self.steps(case, database, bound, rows[-1], one, plain["sum"])
            for number in range(self.rounds):
                for row in rows:
                    if len(row.seconds) <= number:
                        self.sample(database, bound, row, steps[row.name])
            rows.append(Row(OUTSIDE, "", None, (), plain["seconds"]))
            yield Table(case, case.dims[self.level], database, rows)

    def steps(self, case, database, bound, row, one, expected):
        """How many steps more than one take long enough; the first runs tell, whose result is compared. They are a sample
        if one more is enough."""
        two, printed = self.run(database, bound, *given(row.formats), "--steps", "2")
        found, spread = summary_of(case.result, printed)
        if not abs(found - expected) <= 1e-6 * spread:
            self.faults.append(f"{case.name}: the sum of {case.result} is {found} by {row.name} in {database}, not {expected}")
        if two - one >= ENOUGH_SECONDS or self.level == "tiny":
            row.add(one, two, 1)
            return 1
        return min(math.ceil(ENOUGH_SECONDS / max(two - one, 1e-3)), MOST_STEPS)

    def sample(self, database, bound, row, steps):
        one, _ = self.run(database, bound, *given(row.formats))
        more, _ = self.run(database, bound, *given(row.formats), "--steps", str(1 + steps))
        row.add(one, more, steps)

    def without_database(self, bound, result):
        report = measuring.run_einrel(self.einrel, self.program, *bound, *measuring.repeat(self.rounds, "--steps"))
        return {"sum": report["outputs"][result]["sum"], "seconds": measuring.repeated_seconds(report)}


def ways(case):
    return {AUTOMATIC: case.given, **case.others}


def given(formats):
    return ("--formats", formats) if formats else ()


def summary_of(output, printed):
    """The sum of an output, and how large it may be, as `run` prints them."""
    found = re.search(rf"^{output}  f64 \(([\d, ]*)\)  min (\S+)  ?max (\S+)  ?mean \S+  ?sum (\S+)$", printed, re.MULTILINE)
    shape, low, high, total = found.groups()
    elements = math.prod(int(extent) for extent in shape.split(",") if extent.strip())
    return float(total), max(abs(float(low)), abs(float(high))) * elements ** 0.5


# ---- Reporting.

def title(table):
    return f"{table.case.name}, {table.database} ({extents_of(table)}, f64)"


def markdown(table):
    lines = [f"\n### {title(table)}", head(*HEADS)]
    for row in table.rows:
        middle, least = ratio(row, table.automatic)
        others = f"{statistics.median(row.others):.3g}" if row.others else ""
        lines.append(line(row.name, "" if row.predicted is None else f"{row.predicted:.3g}", f"{row.median:.3g}", f"{row.least:.3g}",
                          f"{middle:.2f}", f"{least:.2f}", others))
    same = [row.name for row in table.rows[1:] if row.plan == table.automatic.plan]
    lines += ["", f"Automatically: {chosen(table.automatic)}." + (f" The same as {', '.join(same)}." if same else "")]
    return "\n".join(lines)


def chosen(row):
    """"single for A, B; row-strip-100 for C"."""
    tensors = {}
    for name, form in row.plan:
        tensors.setdefault(form, []).append(name)
    return "; ".join(f"{form} for {', '.join(names)}" for form, names in tensors.items())


def goals(table):
    name = f"{table.case.name}, {table.database}"
    by_name = {row.name: row for row in table.rows}
    for row in table.rows[1:]:
        if row.name == TILES_OF_512:
            if table.database == "PostgreSQL":  # whose workers share the tiles
                yield goal(f"{name}: time by {row.name} over that {OUTSIDE}", *ratio(row, by_name[OUTSIDE]), high=2)
            continue
        if not row.is_ours or row.plan == table.automatic.plan:
            continue
        if row.name == "naively":
            yield goal(f"{name}: naive formats' time over the automatic ones'", *ratio(row, table.automatic), 5)
        else:
            high = 0.9 if row.name == TILES else 1.05
            yield goal(f"{name}: the automatic formats' time over that of formats {row.name}", *ratio(table.automatic, row),
                       high=high)


def order_goals(tables):
    """Of pairs of formats of a program whose times differ much, the share whose predicted seconds are in the right order."""
    for database in dict.fromkeys(table.database for table in tables):
        pairs = [(a, b) for table in tables if table.database == database
                 for a, b in itertools.combinations([row for row in table.rows if row.is_ours], 2) if a.plan != b.plan]
        shares = []
        for of in (lambda row: row.median, lambda row: row.least):
            far = [(a, b) for a, b in pairs if max(of(a), of(b)) >= FAR * min(of(a), of(b))]
            right = sum((of(a) < of(b)) == (a.predicted < b.predicted) for a, b in far)
            shares.append(right / len(far) if far else 1)
        yield goal(f"{database}: pairs in the right order, of those that differ by {FAR:g}", *shares, 0.9)


def write_csv(tables, file):
    with open(file, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(FIELDS)
        for table in tables:
            for row in table.rows:
                writer.writerow((EXPERIMENT, table.case.name, extents_of(table), table.database, row.name, row.formats, row.predicted,
                                 f"{row.median:.6f}", f"{row.least:.6f}",
                                 f"{statistics.median(row.others):.6f}" if row.others else "", len(row.seconds), chosen(row)))


def about(level, rounds, urls):
    yield (f"{workers.processor()[0]}; sizes: {level}; {rounds} rounds; {measuring.load()}. Databases: {', '.join(urls)}. "
           "Seconds are those of a step. PostgreSQL has two workers, and does not wait for its disk (fsync is off).")
    yield ("Extents are the thesis's over 20, with --quick over 40, of the two largest chains over 40 and 80; tiles have 100 rows "
           "and columns in place of 1000. `without a database` is `einrel run` on files.")


def tables_of(bench, say):
    """All cases, checked and measured."""
    for case in format_cases():
        if "tiny" in case.dims:
            bench.check(case)
        if bench.level not in case.dims:
            continue
        for table in bench.measure(case):
            say(markdown(table))
            yield table


def server_for(build):
    """A context that gives a server of PostgreSQL with the extension of that build; None where there is none."""
    module = build / "src/sql/postgres/extension/einrel.so"
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not module.is_file() or not programs:
        return None
    return Server(str(programs[-1].parent), "cmake", str(build))


def sqlite_in(folder):
    file = Path(folder) / "formats.db"
    file.touch()  # an empty file is an empty database
    return f"sqlite:{file}"
