"""Tables as Markdown and CSV, what the automatic plan chose, and the goals that were set."""
import csv
import statistics
from collections import Counter

from measure import ratio
from measuring import GOAL_HEADS, goal, head, line

NEAR = 1.05  # the automatic plan counts as fastest when another is not faster by more
HEADS = ("by", "floats", "bytes", "seconds", "simulated", "bytes moved", "of least", "median s", "least s", "× automatic", "of least s")
FIELDS = ("experiment", "case", "extents", "processes", "by", "predicted_floats", "predicted_bytes", "predicted_seconds", "simulated_seconds",
          "bytes_moved", "least_bytes", "median_seconds", "least_seconds", "samples", "plan")
SHOWN_VERTICES = 12


def title(table):
    processes = "1 process, 2 threads" if table.processes == 1 else f"{table.processes} ranks, a thread each"
    dtype = {"f4": "f32", "f8": "f64"}[table.case.dtype]
    return f"{table.case.name}, {processes} ({extents_of(table)}, {dtype})"


def extents_of(table):
    return " ".join(f"{label}={extent}" for label, extent in table.dims.items())


def markdown(table):
    lines = [f"\n### {title(table)}", head(*HEADS)]
    for row in table.rows:
        middle, least = ratio(row, table.automatic)
        lines.append(line(row.name, *(short(row.cost.get(name)) for name in ("floats", "bytes", "seconds")),
                          short(row.simulated), short(row.bytes_moved), share(row.bytes_moved, table.least_bytes), short(row.median),
                          short(row.least), f"{middle:.2f}", f"{least:.2f}"))
    lines += ["", *sentences(table)]
    return "\n".join(lines)


def short(value):
    return "" if value is None else f"{value:.3g}"


def share(value, of):
    return "" if value is None or not of else f"{value / of:.2f}"


def sentences(table):
    same = [row.name for row in table.ours() if row.plan == table.automatic.plan]
    yield f"The automatic plan: {chosen(table.automatic)}" + (f"; the same as {', '.join(same)}." if same else ".")
    if (found := table.against_others()) is None:
        return
    best, middle, least = found
    took = f"it took {middle:.2f} times as long by medians, {least:.2f} by least."
    if max(middle, least) <= 1:
        yield f"It was the fastest of Einrel's plans. Beside the next, {best.name}, {took}"
    elif max(middle, least) <= NEAR:
        yield f"It was within 5 % of the fastest of Einrel's plans. Beside {best.name} {took}"
    else:
        yield f"It was NOT the fastest of Einrel's plans. Beside {best.name} {took}"


def chosen(row):
    """What its vertices are cut along; of many vertices, how many each way."""
    words = []
    for name, sites, scatter in row.plan:
        cut = " ".join(f"{label}={count}" for label, count in sites) or "one site"
        words.append((name, cut + (f", result shared out along {scatter}" if scatter else "")))
    if all(cut == "one site" for _, cut in words):
        return "everything on one site"
    if len(words) <= SHOWN_VERTICES:
        return "; ".join(f"{name} by {cut}" for name, cut in words)
    counts = Counter(cut for _, cut in words).most_common(SHOWN_VERTICES)
    return f"{len(words)} vertices, of which " + "; ".join(f"{count} by {cut}" for cut, count in counts)


# ---- Goals.

def goals(table):
    letter, case = table.case.experiment, table.case
    name = f"{case.name}, {table.processes} {'process' if table.processes == 1 else 'ranks'}"
    own = table.automatic
    if letter in "ad" and table.processes > 1:
        yield from at_least(f"{name}: ScaLAPACK's time over ours", table.row("ScaLAPACK"), own, 1.15)
        if table.scalapack_bytes:
            share_moved = own.bytes_moved / table.scalapack_bytes
            yield goal(f"{name}: our bytes moved over ScaLAPACK's least", share_moved, share_moved, high=1)
    if letter in "ad":
        yield from at_least(f"{name}: Dask's time over ours", table.row("Dask"), own, 3)
    if letter in "ad" and table.processes == 1:
        yield from at_least(f"{name}: NumPy's time over ours", table.row("NumPy"), own, 1)
    if letter == "c" and table.processes == 1:
        yield from at_least(f"{name}: PyTorch's time over ours", table.row("PyTorch"), own, 1)
    if letter == "c" and case.name == "AmazonCat" and table.processes > 1:
        data = table.row("data parallel")
        predicted = data.cost["seconds"] / own.cost["seconds"]
        factors = [factor / predicted for factor in ratio(data, own)]
        yield goal(f"{name}: data parallel's time over ours, over the {predicted:.2f} predicted", *factors, 0.75, 1.25)
    if (found := table.against_others()) is not None:
        yield goal(f"{name}: our time over that of Einrel's fastest other plan", *found[1:], high=NEAR)


def of_predictions(tables):
    """How far predicted and simulated seconds are from measured ones, of all of Einrel's ways of computing all programs."""
    for processes in sorted({table.processes for table in tables}):
        rows = [row for table in tables if table.processes == processes for row in table.rows if row.is_ours]
        kind = "process" if processes == 1 else "ranks"
        for word, said in (("predicted", lambda row: row.cost["seconds"]), ("simulated", lambda row: row.simulated)):
            told = [row for row in rows if said(row) is not None]
            far = [statistics.median(abs(said(row) / seconds(row) - 1) for row in told)
                   for seconds in (lambda row: row.median, lambda row: row.least) if told]
            if far:
                yield goal(f"{processes} {kind}: how far {word} seconds are from measured ones, the median of {len(told)}", *far, high=0.15)


def at_least(name, other, own, limit):
    if other is not None:
        yield goal(name, *ratio(other, own), limit)


def goals_table(reached):
    return "\n".join(["\n### Goals", head(*GOAL_HEADS), *(line(*row) for row in reached)])


# ---- For other programs.

def write_csv(tables, file):
    with open(file, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(FIELDS)
        for table in tables:
            for row in table.rows:
                writer.writerow((table.case.experiment, table.case.name, extents_of(table), table.processes, row.name,
                                 *(row.cost.get(name) for name in ("floats", "bytes", "seconds")), row.simulated, row.bytes_moved,
                                 table.least_bytes, f"{row.median:.6f}", f"{row.least:.6f}", len(row.seconds),
                                 chosen(row) if row.is_ours else ""))
