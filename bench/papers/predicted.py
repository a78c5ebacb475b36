"""SoyBean's own experiments as its machine's model has them: bytes and seconds of plans that nothing runs."""
import csv
import json
from dataclasses import dataclass

from cases import ROOT, convolution_dims, dense_dims
from kernel_bench import workers
from measuring import goal, head, line, run_process

EXPERIMENT = "f"
MACHINE = "p2-server"
DEVICES = (2, 4, 8)
HYBRIDS = {2: (), 4: ("hybrid:2x2",), 8: ("hybrid:2x4", "hybrid:4x2")}
FIELDS = ("network", "size", "devices", "by", "bytes", "seconds", "seconds_on_one")


@dataclass(frozen=True)
class Network:
    name: str
    example: str
    sizes: dict  # {name: extents}


# Batches of Figure 10 that the text does not name are powers of two around those that it does.
NETWORKS = (
    Network("AlexNet (Figure 10a)", "alexnet", {f"batch {b}": {"b": b} for b in (128, 256, 512, 1024, 2048)}),
    Network("VGG-16 (Figure 10b)", "vgg16", {f"batch {b}": {"b": b} for b in (32, 64, 128, 256)}),
    Network("Four dense layers (Figure 8)", "dense_layers",
            {f"batch {b}, {h} units": dense_dims(b, h) for b, h in ((512, 8192), (2048, 8192), (2048, 12288))}),
    Network("Five convolutions (Figure 9)", "convolution_layers",
            {f"images {side} x {side}, {c} filters": convolution_dims(256, side, c) for side, c in ((6, 2048), (24, 512))}),
)
QUICKLY_PLANNED = NETWORKS[2:3]


@dataclass(frozen=True)
class Row:
    """A network on some devices by all ways."""
    network: str
    size: str
    devices: int
    seconds_on_one: float
    plans: dict  # {way: what explain says}

    def seconds(self, way):
        return self.plans[way]["cost"]["seconds"]

    @property
    def hybrid(self):
        """The fastest one; None where there is none."""
        return min(HYBRIDS[self.devices], key=self.seconds, default=None)

    @property
    def others(self):
        return ("data", "model", *HYBRIDS[self.devices])


def predict(einrel, networks=NETWORKS):
    for network in networks:
        for size, dims in network.sizes.items():
            (single,) = plans(einrel, network, dims, 1, ["single"]).values()
            for devices in DEVICES:
                ways = ["kcut", "eindecomp", "data", "model", *HYBRIDS[devices]]
                yield Row(network.name, size, devices, single["cost"]["seconds"], plans(einrel, network, dims, devices, ways))


def plans(einrel, network, dims, devices, ways):
    """Without a limit of memory: one device has too little for most."""
    command = [einrel, "explain", str(ROOT / f"examples/{network.example}.ein"), "--machine", MACHINE, "--sites", str(devices),
               "--memory", "none", "--json"]
    command += [option for label, extent in dims.items() for option in ("--dim", f"{label}={extent}")]
    command += [option for way in ways for option in ("--planner", way)]
    found = json.loads(run_process(command, workers.environment()))["plans"]
    return {plan["planner"]: plan for plan in found}


# ---- What is written.

HEADS = ("size", "devices", "data", "model", "best hybrid", "kcut", "eindecomp", "data over kcut", "one device over kcut",
         "one device over data")


def markdown(rows):
    lines = [f"\n## Predicted on the paper's machine ({MACHINE})\n",
             "Bytes that a step moves between all devices, and seconds of a step, modelled for f32; nothing was run. On one device "
             "nothing moves, and memory is not limited."]
    for name in dict.fromkeys(row.network for row in rows):
        lines += [f"\n### {name}", head(*HEADS)]
        for row in (row for row in rows if row.network == name):
            hybrid = f"{row.hybrid}: {cell(row, row.hybrid)}" if row.hybrid else ""
            kcut = row.seconds("kcut")
            lines.append(line(row.size, row.devices, cell(row, "data"), cell(row, "model"), hybrid, cell(row, "kcut"),
                              cell(row, "eindecomp"), f"{row.seconds('data') / kcut:.2f}", f"{row.seconds_on_one / kcut:.2f}",
                              f"{row.seconds_on_one / row.seconds('data'):.2f}"))
    return "\n".join([*lines, *by_server(rows), "", *changes(rows)])


def cell(row, way):
    return f"{row.seconds(way):.3g} s, {row.plans[way]['cost']['bytes']:.3g} B"


def by_server(rows):
    """The same data parallelism as section 2.2 counts it: all exchange all parameters with one place."""
    compared = [row for row in rows if row.devices == 8 and "Figure 10" in row.network]
    if not compared:
        return
    bandwidth = json.loads((ROOT / f"machines/{MACHINE}.json").read_text(encoding="utf-8"))["network_bandwidth"]
    yield "\n### Data parallelism, by who adds up gradients"
    yield (f"\n`data` shares the sums out: each device adds up an eighth of the gradients, and sends the new parameters to the others. With one "
           f"parameter server (the paper's section 2.2, which names both) each of 8 devices sends it all gradients and receives all parameters, "
           f"over its one link of {bandwidth:.3g} B/s. The paper, of its measurements: 1.5 to 4 times kcut.")
    yield head("network", "size", "data, s", "with one server, s", "exchanged with it, B", "kcut, s", "data over kcut", "with one server over kcut")
    for row in compared:
        exchanged = row.plans["kcut"]["parameter_server"]["data"]
        seconds, kcut = row.seconds_on_one / row.devices + exchanged / bandwidth, row.seconds("kcut")
        yield line(row.network, row.size, f"{row.seconds('data'):.3g}", f"{seconds:.3g}", f"{exchanged:.3g}", f"{kcut:.3g}",
                   f"{row.seconds('data') / kcut:.2f}", f"{seconds / kcut:.2f}")


def changes(rows):
    """Where plans turn from cutting images to cutting units."""
    for row in rows:
        if row.devices != 8 or "Figure 10" not in row.network:
            continue
        forward = [vertex for vertex in row.plans["kcut"]["vertices"]
                   if vertex["name"].startswith(("C", "H", "Z")) and vertex["sites"] and "_" in vertex["name"]]
        other = next((vertex for vertex in forward if set(vertex["sites"]) != {"b"}), None)
        if other:
            cut = " ".join(f"{label}={count}" for label, count in other["sites"].items())
            yield (f"- {row.network}, {row.size}, 8 devices, kcut: the first product that is not cut by images alone is "
                   f"{other['name']}, by {cut}.")


def goals(rows):
    """What the paper claims, and that Einrel's own plan is no slower than any; kernel calls for pieces are not counted."""
    for network in dict.fromkeys(row.network for row in rows):
        most = max(row.seconds("eindecomp") / min(map(row.seconds, (*row.others, "kcut"))) for row in rows
                   if row.network == network)
        yield both(f"predicted: {network}: eindecomp's seconds over the best of all others, at most", most, high=1.01)
    for row in (row for row in rows if row.devices == 8):
        name, over_kcut = f"predicted: {row.network}, {row.size}, 8 devices", row.seconds("data") / row.seconds("kcut")
        if (row.network.split()[0], row.size) in (("AlexNet", "batch 256"), ("VGG-16", "batch 64")):
            yield both(f"{name}: data's seconds over kcut's (the paper: 1.5 to 4)", over_kcut, low=1.5)
        if row.network.startswith("AlexNet") and row.size == "batch 256":
            yield both(f"{name}: times as fast as one by kcut (the paper: more than 7)",
                       row.seconds_on_one / row.seconds("kcut"), low=7)
        if row.network.startswith("AlexNet") and row.size == "batch 1024":
            yield both(f"{name}: times as fast as one by data (the paper: less than 7)",
                       row.seconds_on_one / row.seconds("data"), high=7)


def both(name, value, low=None, high=None):
    return goal(name, value, value, low, high)


def write_csv(rows, file):
    with open(file, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(FIELDS)
        for row in rows:
            for way, plan in row.plans.items():
                writer.writerow((row.network, row.size, row.devices, way, plan["cost"]["bytes"],
                                 f"{plan['cost']['seconds']:.6f}", f"{row.seconds_on_one:.6f}"))
