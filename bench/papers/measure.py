"""Checks and times one case after the other."""
import json
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

import measuring
import peers
import strategies
from kernel_bench import workers

AUTOMATIC = "automatic"
PEER_NAMES = {"numpy": "NumPy", "dask": "Dask", "torch": "PyTorch"}
CHUNKS = {False: (1000, "auto"), True: (peers.HALVES, 1000)}  # of Dask, by whether it is distributed
THREADS = 2  # of all processes together
CALIBRATIONS = 3
MESSAGE = 1_000_000  # bytes, by the modelled time of which networks are compared
FINALISTS = 2  # of ScaLAPACK's grids and blocks, the fastest of which are measured again and again
MAX_SLOWDOWN, ENOUGH = 4, 3  # what takes so many times as long as the automatic plan is not measured more often


class Timed:
    """What has samples of its `seconds`."""

    @property
    def median(self):
        return statistics.median(self.seconds)

    @property
    def least(self):
        return min(self.seconds)


@dataclass
class Measured(Timed):
    """One way of running a case on a number of processes."""
    name: str
    seconds: list
    cost: dict = field(default_factory=dict)  # as `run --json` has it
    simulated: float | None = None  # seconds of the same plan, its tasks replayed by `explain --simulate`
    bytes_moved: int | None = None
    plan: tuple = ()  # what each vertex is cut along: (name, ((label, sites), ...), label that it is shared out along)

    @property
    def is_ours(self):
        return bool(self.cost)


def ratio(other, own):
    """Another's seconds over ours: the median of the rounds that both have, and of the least."""
    return measuring.ratios(other.seconds, own.seconds)


@dataclass
class Table:
    """A case on a number of processes; the automatic plan comes first."""
    case: object
    dims: dict
    processes: int
    rows: list
    least_bytes: float | None
    scalapack_bytes: int | None = None  # of all grids and blocks that were tried, the least

    @property
    def automatic(self):
        return self.rows[0]

    def row(self, start):
        """The fastest of those whose names start so; None if there is none."""
        return min((row for row in self.rows if row.name.startswith(start)), key=lambda row: row.median, default=None)

    def ours(self):
        """Einrel by other ways than the automatic one, the fastest first."""
        return sorted((row for row in self.rows[1:] if row.is_ours), key=lambda row: row.median)

    def against_others(self):
        """Of the other plans the one that was fastest by medians, and the automatic one's time over that; by least, over
        the fastest by least. None where all plans are the same."""
        others = [row for row in self.ours() if row.plan != self.automatic.plan]
        if not others:
            return None
        middle, _ = ratio(self.automatic, others[0])
        return others[0], middle, self.automatic.least / min(row.least for row in others)


class Bench:
    """Whom to measure, a folder in memory, and what was found wrong."""

    def __init__(self, einrel, level, rounds, ranks, libraries, with_scalapack, folder):
        self.with_distributed = measuring.is_there("distributed")
        self.einrel, self.level, self.rounds, self.ranks, self.folder = einrel, level, rounds, ranks, Path(folder)
        self.faults, self.peers, self.machines, self.turns = [], {}, {}, 0
        self.samples = 2 if level == "quick" else 1  # in a round: starting processes takes most of the time of short ones
        self.is_quick = level == "quick"
        self.simulates = self.einrel.with_name("einrel-simgrid").is_file()
        self.core_types = measuring.core_types()[-1 if self.is_quick else 0:]
        self.pdgemm = measuring.build_pdgemm(self.folder) if with_scalapack else None
        self.counter = self.folder / "libmoved_bytes.so"
        measuring.compile_mpi("moved_bytes.cpp", "-shared", "-fPIC", "-o", self.counter)
        for core_type in self.core_types:
            for library in libraries:
                threads = 1 if library == "dask" else THREADS  # Dask has two threads of its own
                command = [sys.executable, str(Path(__file__).with_name("peers.py")), library, str(THREADS), folder]
                self.peers[library, core_type] = workers.Worker(command, workers.environment(threads, core_type))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for peer in self.peers.values():
            peer.end()

    def calibrate(self):
        """Finds a machine for each number of processes, since they share its cores; yields what is known of each. Others
        disturb the figures, so that the middle ones of several calibrations count."""
        for processes in self.ranks:
            command = [*self.launcher(processes), self.einrel, "calibrate", "--threads", self.threads(processes)]
            file = self.folder / f"machine_{processes}" / "einrel" / "machine.json"
            file.parent.mkdir(parents=True)
            self.machines[processes] = file.parent.parent
            found = []
            for _ in range(1 if self.level in ("tiny", "quick") else CALIBRATIONS):
                measuring.run_process(command, self.environment(processes))
                calibrated = json.loads(file.read_text(encoding="utf-8"))
                found += calibrated["measured"]  # one set: this file is of one number of processes
            # Latency is what bandwidth leaves of the time of a message: they stay together.
            found.sort(key=lambda machine: machine["network_latency"] + MESSAGE / machine["network_bandwidth"])
            machine = found[len(found) // 2]
            for name in ("flops_per_core", "memory_bandwidth", "task_seconds"):
                machine[name] = statistics.median(other[name] for other in found)
            file.write_text(json.dumps(calibrated | {"measured": [machine]}), encoding="utf-8")
            yield processes, machine

    def environment(self, processes):
        return workers.environment() | {"XDG_CONFIG_HOME": str(self.machines[processes])}

    @staticmethod
    def threads(processes):
        return str(THREADS if processes == 1 else 1)

    @staticmethod
    def launcher(processes):
        return measuring.launcher(processes) if processes > 1 else ()

    def fault(self, text):
        self.faults.append(text)

    # ---- Einrel.

    def run(self, setup, processes, options, counting=()):
        return measuring.run_einrel(self.einrel, setup.program, *measuring.bound(setup.bound), *setup.options, "--threads",
                                    self.threads(processes), *setup.loading, *options, launched_by=(*self.launcher(processes), *counting),
                                    environment=self.environment(processes))

    def ways(self, case, setup, processes):
        """{name: options}; in one process with two sites that share its memory, and without any."""
        sites = max(processes, 2)
        on_sites = ("--sites", str(sites)) if processes == 1 else ()
        found = {AUTOMATIC: ()} | ({f"{AUTOMATIC}, {sites} sites": on_sites} if processes == 1 else {})
        for name, way in (case.ways | (case.on_four if sites == 4 else {})).items():
            if callable(way):
                file = self.folder / f"plan_{sites}_{len(found)}.json"
                strategies.write_plan(setup.explained[sites], sites, way(sites), file)
                found[name] = ("--plan", str(file))
            else:
                found[name] = (*on_sites, *way)
        return found

    # ---- Checks.

    def check(self, case):
        """Every way of running it, at a tiny size: all elements against NumPy's in doubles; and what went from rank to
        rank, counted below, against what the run says."""
        with Setup(self, case, "tiny") as setup:
            expected = peers.reference(case.formula, setup.files)
            for processes in {self.ranks[0], self.ranks[-1]} if self.is_quick else self.ranks:
                for name, options in self.ways(case, setup, processes).items():
                    self.check_way(f"{case.name}, {name} on {processes}", setup, processes, options, expected)

    def check_way(self, who, setup, processes, options, expected):
        import numpy
        files = {name: self.folder / f"result_{name}.npy" for name in expected}
        outs = [option for name, file in files.items() for option in ("--out", f"{name}={file}")]
        counted = self.folder / "counted"
        counting = ("env", f"LD_PRELOAD={self.counter}", f"MOVED_BYTES={counted}") if processes > 1 else ()
        report = self.run(setup, processes, (*options, *outs), counting)
        for name, file in files.items():
            wrong = abs(numpy.load(file) - expected[name]).max() / abs(expected[name]).max()
            if not wrong <= setup.tolerance:
                self.fault(f"{who}: {name} differs from NumPy's by {wrong:.2g} of the largest")
        if processes > 1:
            sent = sum(int(Path(f"{counted}.{rank}").read_text(encoding="utf-8").split()[1]) for rank in range(processes))
            if sent != report["measured"]["bytes_moved"]:
                self.fault(f"{who}: {sent} bytes went from rank to rank, but the run says {report['measured']['bytes_moved']}")

    # ---- Timing.

    def measure(self, case):
        """A table for each number of processes."""
        with Setup(self, case, self.level) as setup:
            for processes in self.ranks:
                yield self.table(case, setup, processes)

    def table(self, case, setup, processes):
        contenders = {}
        rows = {}
        for name, options in self.ways(case, setup, processes).items():
            rows[name] = Measured(name, [], simulated=self.simulated(setup, processes, options))
            contenders[name] = lambda row=rows[name], options=options: self.sample(setup, processes, row, options)
        peers_here = self.peers_of(case, setup, processes)
        least_bytes, finalists = self.scalapack(case, setup, processes)
        for name, measure in (peers_here | finalists).items():
            rows[name] = Measured(name, [])
            contenders[name] = lambda row=rows[name], measure=measure: add_samples(row, measure())
        names = list(contenders)
        for at in range(self.rounds):
            first = self.turns % len(names)  # each time another one: who comes first, or after whom, is slower at times
            self.turns += 1
            for name in names[first:] + names[:first]:
                if at < ENOUGH or rows[name].least < MAX_SLOWDOWN * rows[AUTOMATIC].least:
                    if at == 0 and name in peers_here:
                        peers_here[name]()  # files read, memory touched
                    contenders[name]()
        return Table(case, setup.dims, processes, list(rows.values()), setup.least_bytes(processes), least_bytes)

    def sample(self, setup, processes, row, options):
        report = self.run(setup, processes, (*options, *measuring.repeat(self.samples, setup.again)))
        for name, output in report["outputs"].items():
            setup.compare(name, output, f"{row.name} on {processes}")
        row.seconds += measuring.repeated_seconds(report)
        row.cost = report["cost"] | {"seconds": report["tasks_seconds"]}
        row.bytes_moved = report["measured"]["bytes_moved"] if processes > 1 else None
        row.plan = tuple((vertex["name"], tuple(sorted(vertex["sites"].items())), vertex.get("scatter"))
                         for vertex in report["vertices"])

    def simulated(self, setup, processes, options):
        """Of sites with a process each. None where the sites of one process share its memory, and where this build has no SimGrid."""
        if not self.simulates or (processes == 1 and options):
            return None
        sites = ("--sites", str(processes)) if processes > 1 else ()
        explained = strategies.explain(self.einrel, self.environment(processes), setup.program, *setup.extents, *sites, "--simulate", *options)
        return explained["simulated"]["seconds"]

    def peers_of(self, case, setup, processes):
        """{name: what measures it}; on several processes Dask, by OpenBLAS at its best."""
        found, is_distributed = {}, processes > 1
        for (library, core_type), peer in self.peers.items():
            if library not in case.peers:
                continue
            if is_distributed and (library != "dask" or not self.with_distributed or core_type != self.core_types[-1]):
                continue
            if is_distributed and self.is_quick and not case.scalapack:
                continue  # it takes seconds to place what it computes with
            chunkings = CHUNKS[is_distributed][:1 if self.is_quick else 2] if library == "dask" else (None,)
            for chunks in chunkings:
                name = PEER_NAMES[library] + (" distributed" if is_distributed else "")
                name += (f", chunks {chunks}" if chunks else "") + (f", {core_type}" if core_type else "")
                request = {"case": case.name, "formula": case.formula, "files": setup.files, "chunks": chunks,
                           "processes": processes}
                found[name] = lambda peer=peer, name=name, request=request: [
                    self.ask(peer, setup, name, request) for _ in range(self.samples)]
        return found

    @staticmethod
    def ask(peer, setup, name, request):
        reply = peer.ask(**request)
        for output, summary in reply["outputs"].items():
            setup.compare(output, summary, name)
        return reply["seconds"], None

    def scalapack(self, case, setup, processes):
        """The least bytes that it moves, and {name: what measures it} of the fastest grids and blocks."""
        if self.pdgemm is None or not case.scalapack or processes == 1:
            return None, {}
        extents = [setup.dims[label] for label in case.scalapack]
        blocks = measuring.BLOCKS[-2 if self.is_quick else 0:]
        tried = {}
        for rows in (rows for rows in range(1, processes + 1) if processes % rows == 0):
            for core_type in self.core_types:
                grid = (rows, processes // rows)
                measured = measuring.pdgemm(self.pdgemm, grid, extents, blocks, core_type)
                tried |= {(grid, block, core_type): one for block, one in zip(blocks, measured)}
        finalists = {}
        for grid, block, core_type in sorted(tried, key=lambda way: tried[way][0])[:1 if self.is_quick else FINALISTS]:
            name = f"ScaLAPACK, {grid[0]}x{grid[1]}, blocks of {block}" + (f", {core_type}" if core_type else "")
            finalists[name] = lambda grid=grid, block=block, core_type=core_type: (
                measuring.pdgemm(self.pdgemm, grid, extents, self.samples * (block,), core_type))
        return min(moved for _, moved in tried.values()), finalists

    def forget(self):
        """Peers give back the memory of the case that they have computed last."""
        for peer in self.peers.values():
            peer.ask(forget=True)


def add_samples(row, measured):
    for seconds, row.bytes_moved in measured:
        row.seconds.append(seconds)


class Setup:
    """The files of a case at a size, what explain says of it, and results to compare with. A context."""

    def __init__(self, bench, case, level):
        self.bench, self.case, self.dims = bench, case, case.dims[level]
        self.options = case.options(self.dims)
        self.tolerance = workers.TOLERANCES[{"f4": "f32", "f8": "f64"}[case.dtype]]
        self.program = bench.folder / "program.ein"
        self.program.write_text(case.program, encoding="utf-8")
        self.extents = [option for label, extent in self.dims.items() for option in ("--dim", f"{label}={extent}")]
        self.explained = {}  # by sites
        for processes in bench.ranks:
            sites = max(processes, 2)
            environment = bench.environment(processes)
            self.explained[sites] = strategies.explain(bench.einrel, environment, self.program, *self.extents, "--sites", str(sites))
        inputs = next(iter(self.explained.values()))["inputs"]
        shapes = {name: described["shape"] for name, described in inputs.items()}
        whole = [name for name, described in inputs.items() if described["dtype"].startswith("i")]
        self.files = measuring.write_inputs(bench.folder, case.dtype, shapes, case.largest, whole)
        states = {name: file for name, file in self.files.items() if inputs[name].get("state")}
        self.bound = {name: file for name, file in self.files.items() if name not in states}
        self.again = "--steps" if states else "--repeat"
        self.loading = ("--load", measuring.states_file(bench.folder, states)) if states else ()
        self.first = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.bench.forget()
        for file in self.files.values():
            Path(file).unlink()

    def compare(self, output, summary, who):
        """Everybody's result with that of Einrel's first run."""
        if "shape" in summary:
            self.first.setdefault(output, summary)
        first = self.first.get(output)
        if first and not abs(summary["sum"] - first["sum"]) <= self.tolerance * measuring.scale_of(first):
            self.bench.fault(f"{self.case.name}: the sum of {output} is {summary['sum']} by {who}, but was {first['sum']}")

    def least_bytes(self, processes):
        """The least that any plan moves, where explain says it of the one product that there is."""
        if processes == 1:
            return None
        known = [vertex["least_bytes"] for vertex in self.explained[processes]["vertices"] if vertex["least_bytes"]]
        return known[0] if len(known) == 1 and len(self.explained[processes]["vertices"]) == 1 else None
