"""What bench/kernels prints: the table, row by row, and then what the rows say together."""
import math

LIBRARIES = ("NumPy", "PyTorch")
WORST = 12


def peer_columns(settings):
    names = [library if setting == "installed" else f"{library} best" for setting in settings for library in LIBRARIES]
    return [*names, "oneDNN", "OpenBLAS"]


def duration(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}" if seconds < 1000 * scale else f"{seconds / scale:.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def ratio(result, peer):
    """Seconds of a peer for each second of Einrel; None when it was not measured."""
    return result["ratios"].get(peer)


def against_libraries(result, setting):
    """The same for the faster of NumPy and PyTorch."""
    suffix = "" if setting == "installed" else " best"
    ratios = [ratio(result, library + suffix) for library in LIBRARIES]
    return min((value for value in ratios if value is not None), default=None)


def roof_share(result):
    return result["roof"]


def flop_rate(result):
    return result["flops"] / result["seconds"]["Einrel"] / 1e9


def rate(result):
    if result["compute_bound"]:
        return f"{flop_rate(result):.3g} Gflop/s"
    return f"{result['bytes'] / result['seconds']['Einrel'] / 1e9:.3g} GB/s"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


class Table:
    """Prints a Markdown table that is aligned as text, too."""

    def __init__(self, heads, widths):
        self.widths = widths
        self.row(heads)
        self.row(["-" * width for width in widths])

    def row(self, cells):
        first, *others = cells
        padded = [first.ljust(self.widths[0]), *(cell.rjust(width) for cell, width in zip(others, self.widths[1:]))]
        print("| " + " | ".join(padded) + " |", flush=True)


class CaseTable:
    def __init__(self, settings):
        self.settings, self.peers, self.group = settings, peer_columns(settings), None
        heads = ["case", "Einrel", "rate", "of roof", *self.peers, *(f"× {setting}" for setting in settings), "kernels"]
        self.table = Table(heads, [46, 8, 13, 7, *(14 for _ in self.peers), *(11 for _ in settings), 22])

    def _group(self, group):
        if group != self.group:
            self.group = group
            self.table.row([f"**{group}**", *("" for _ in self.table.widths[1:])])

    def row(self, result):
        self._group(result["group"])
        cells = [result["name"], duration(result["seconds"]["Einrel"]), rate(result), f"{roof_share(result):.2f}"]
        for peer in self.peers:
            value = ratio(result, peer)
            cells.append("" if value is None else f"{duration(result['seconds'][peer])} {value:.2f}")
        ratios = [against_libraries(result, setting) for setting in self.settings]
        kernels = dict.fromkeys(kernel["name"] for kernel in result["kernels"])
        self.table.row([*cells, *("" if value is None else f"{value:.2f}" for value in ratios), ", ".join(kernels)])

    def failure(self, case, message):
        self._group(case.group)
        self.table.row([case.name, "failed"] + [""] * (len(self.table.widths) - 2))
        print(f"  {message}")


def contraction_table(results):
    """Contractions beside what they are measured by: a product of two matrices as large; the contraction as products,
    with transpositions where it needs them; a loop."""
    chosen = [result for result in results if "equal gemm" in result["seconds"]]
    if not chosen:
        return
    print("\nOpenBLAS on one product of the same size, with transpositions by oneDNN around it, and nested loops:\n")
    peers = ("equal gemm", "transposed gemm", "direct loop")
    table = Table(["contraction", "Einrel", *peers], [46, 8, 16, 16, 16])
    for result in chosen:
        products = "transposed gemm" if "transposed gemm" in result["seconds"] else "OpenBLAS"
        cells = [(result["seconds"].get(peer), ratio(result, peer)) for peer in (peers[0], products, peers[2])]
        table.row([result["name"], duration(result["seconds"]["Einrel"]),
                   *("" if value is None else f"{duration(seconds)} {value:.2f}" for seconds, value in cells)])


def means(results, settings):
    print("\nGeometric means of the ratios to the faster of NumPy and PyTorch:\n")
    table = Table(["group", "cases", *settings, "of roof"], [30, 5, 9, 9, 7] if len(settings) == 2 else [30, 5, 9, 7])
    groups = list(dict.fromkeys(result["group"] for result in results))
    for group in [*groups, "all"]:
        chosen = [result for result in results if group in ("all", result["group"])]
        columns = []
        for setting in settings:
            ratios = [value for value in (against_libraries(result, setting) for result in chosen) if value is not None]
            columns.append(f"{geometric_mean(ratios):.2f}" if ratios else "")
        table.row([group, str(len(chosen)), *columns, f"{geometric_mean([roof_share(result) for result in chosen]):.2f}"])


def worst(results, settings):
    for setting in settings:
        ratios = [(against_libraries(result, setting), f"{result['group']}: {result['name']}") for result in results]
        lowest = sorted(pair for pair in ratios if pair[0] is not None)[:WORST]
        print(f"\nWorst against the faster of NumPy and PyTorch, {setting}:")
        for value, name in lowest:
            print(f"  {value:6.2f}  {name}")


def _lowest(results, value_of):
    """The smallest value and where; None when no result has one."""
    values = [(value_of(result), result["name"]) for result in results]
    return min((pair for pair in values if pair[0] is not None), default=None)


def _over_baselines(result):
    ratios = [ratio(result, peer) for peer in ("OpenBLAS", "transposed gemm", "direct loop")]
    return min((value for value in ratios if value is not None), default=None)


def goals(results, settings, threads):
    """(what, target, lowest value and its case, or None where no case was measured) of each goal."""
    def in_group(*groups):
        return [result for result in results if result["group"] in groups]

    strict = settings[-1]
    suffix = "" if strict == "installed" else " best"
    lines = [
        ("square sgemm, share of peak", 0.90, _lowest(in_group("square sgemm"), roof_share)),
        ("square dgemm, share of peak", 0.80, _lowest(in_group("square dgemm"), roof_share)),
        ("one product, against OpenBLAS", 0.95, _lowest(results, lambda result: ratio(result, "OpenBLAS"))),
    ]
    for setting, target in (("installed", 1.5), ("best", 1.0)):
        ratios = [value for result in results if (value := against_libraries(result, setting)) is not None]
        if setting in settings and ratios:
            cases = f"{len(ratios)} case{'s' if len(ratios) > 1 else ''}"
            lines.append((f"geometric mean, {setting}", target, (geometric_mean(ratios), cases)))
            lines.append((f"every case, {setting}", 0.7,
                          _lowest(results, lambda result, s=setting: against_libraries(result, s))))
    return [
        *lines,
        ("compute-bound contractions, against an equal gemm", 0.8,
         _lowest(in_group("contraction, compute-bound"), lambda result: ratio(result, "equal gemm"))),
        ("bandwidth-bound contractions, against the better of both", 1.0,
         _lowest(in_group("contraction, bandwidth-bound"), _over_baselines)),
        (f"batched 4x4x4, Gflop/s on {threads} thread{'s' if threads > 1 else ''}", 20,
         _lowest([result for result in results if result["name"] == "4x4x4 x 4096"], flop_rate)),
        ("join + reduce, against NumPy's broadcast", 5,
         _lowest(in_group("distances"), lambda result: ratio(result, "NumPy" + suffix))),
        ("element-wise and softmax beyond cache, of copy bandwidth", 0.8,
         _lowest([result for result in results if result["beyond_cache"]], roof_share)),
    ]


def must_reach(results, settings, threads):
    """The goals beside what was measured: by medians, which count, and by minima."""
    print("\nGoals of the project (docs/performance.md), by the worst case of each:\n")
    table = Table(["what", "target", "medians", "reached", "where", "minima", "where"], [58, 6, 7, 7, 34, 6, 34])
    of_minima = goals([{**result, **result["minima"]} for result in results], settings, threads)
    for (what, target, found), (_, _, least) in zip(goals(results, settings, threads), of_minima):
        if found is not None:
            table.row([what, f"{target:g}", f"{found[0]:.2f}", "yes" if found[0] >= target else "NO", found[1],
                       f"{least[0]:.2f}", least[1]])


def summary(results, settings, threads):
    contraction_table(results)
    means(results, settings)
    worst(results, settings)
    must_reach(results, settings, threads)
