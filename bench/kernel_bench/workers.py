"""The processes that measure, one for each library and setting, and what is asked of them."""
import json
import os
import signal
import statistics
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# Slow computations get fewer rounds: none after so many seconds of samples, the second when there are fewer than three.
ENOUGH_SECONDS, ENOUGH_ANYWAY_SECONDS = 1, 2.5
FIRST_COUNTS_SECONDS = 1  # the first call of a peer is a sample when it takes so long
SETTINGS = ("OPENBLAS", "GOTO", "OMP", "GOMP", "MKL", "BLIS", "ATEN", "DNNL", "ONEDNN")
# The largest difference between two results, relative to the largest value.
TOLERANCES = {"f32": 1e-4, "f64": 1e-10, "bf16": 2e-2, "f16": 4e-3, "i32": 0, "i64": 0}
BYTES = {"f32": 4, "f64": 8, "bf16": 2, "f16": 2, "i32": 4, "i64": 8, "bool": 1}


class Failure(Exception):
    """A worker cannot do what was asked; the message says why."""


def processor():
    """(model name, set of flags) of the first processor."""
    fields = {}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(":")
            fields.setdefault(name.strip(), value.strip())
    return fields.get("model name", "unknown"), set(fields.get("flags", "").split())


def best_core_type():
    """What OPENBLAS_CORETYPE should be here; None: OpenBLAS knows best."""
    flags = processor()[1]
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"} <= flags:
        return "SkylakeX"
    return "Haswell" if {"avx2", "fma"} <= flags else None


def environment(threads=None, core_type=None):
    """Ours without settings of the libraries, but with these."""
    kept = {name: value for name, value in os.environ.items() if name.split("_")[0] not in SETTINGS}
    if threads is not None:
        kept.update({name: str(threads) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")})
    if core_type is not None:
        kept["OPENBLAS_CORETYPE"] = core_type
    return kept


class Worker:
    """A process that answers requests. It sleeps in between, with all that it has started, so that nothing of them runs
    beside others."""

    def __init__(self, command, environment):
        self.name = Path(command[0]).name
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        start_new_session=True)
        self.tell(signal.SIGSTOP)

    def tell(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass  # it has ended, which whoever asks it is told

    def ask(self, **request):
        self.tell(signal.SIGCONT)
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Failure(f"{self.name} ended with exit code {self.process.wait()}")
        self.tell(signal.SIGSTOP)
        reply = json.loads(line)
        if "error" in reply:
            raise Failure(reply["error"])
        return reply

    def end(self):
        self.tell(signal.SIGKILL)
        self.process.communicate()


class Workers:
    """All of them; a context."""

    def __init__(self, build, threads, settings):
        self.threads, self.settings = threads, settings
        core_types = {"installed": None, "best": best_core_type()}
        self.libraries = {}  # ("NumPy", "best") -> worker
        self.einrel = self.native = None
        folder = build / "bench"
        try:
            self.einrel = Worker([str(folder / "einrel_worker"), str(threads)], environment())
            self.native = Worker([str(folder / "native_worker")], environment(threads, core_types[settings[-1]]))
            for setting in settings:
                for library in ("numpy", "torch"):
                    command = [sys.executable, str(FOLDER / "python_worker.py"), library, str(threads)]
                    name = {"numpy": "NumPy", "torch": "PyTorch"}[library]
                    self.libraries[name, setting] = Worker(command, environment(threads, core_types[setting]))
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in (self.einrel, self.native, *self.libraries.values()):
            if worker is not None:
                worker.end()

    def machine(self):
        """What the machine could do at most, for the head of the table."""
        asked = {"f32": ("roof", "flops", {"width": 4}), "f64": ("roof", "flops", {"width": 8}),
                 "copy": ("roof", "bandwidth", {"width": 4}), "fresh copy": ("fresh copy", "bandwidth", {})}
        return {name: max(self.native.ask(do=what, bytes=2**29, threads=self.threads, **width)[key] for _ in range(3))
                for name, (what, key, width) in asked.items()}

    def measure(self, case, rounds, folder):
        """Everyone's medians for a case, and the roof at the same time. Throws Failure when Einrel does not compute it."""
        told = self.einrel.ask(do="load", case=case.name, program=case.text(), folder=folder)
        dtype = told["inputs"][0]["dtype"]
        told["bytes"] = sum(_size(tensor) for tensor in (*told["inputs"], told["output"]))
        result = {"name": case.name, "group": case.group, "beyond_cache": case.beyond_cache, "flops": told["flops"],
                  "bytes": told["bytes"], "kernels": told["kernels"], "wrong": {}, "refused": {}}
        peers = {"Einrel": (lambda: self.einrel.ask(do="sample"), told["first"]["Einrel"])}
        given = {"case": case.name, "folder": folder, "inputs": told["inputs"], "output": told["output"]}
        differences = self._load_libraries(case, given, peers, result["refused"])
        differences |= self._load_native(case, given, peers, result["refused"])
        for file in Path(folder).iterdir():
            file.unlink()
        if not differences:
            raise Failure("nobody else could compute it, so that nothing says whether the result is right")
        result["wrong"] = {name: value for name, value in differences.items() if not value <= TOLERANCES[dtype]}
        rounds = self._rounds(peers, rounds, max(4, BYTES[dtype]), told["bytes"])
        return result | _medians(rounds, told) | {"minima": _minima(rounds, told)}

    def _load_libraries(self, case, given, peers, refused):
        differences = {}
        for (library, setting), worker in self.libraries.items():
            formulation = {"NumPy": case.numpy, "PyTorch": case.torch}[library]
            if formulation is None:
                continue
            name = library if setting == "installed" else f"{library} best"
            try:
                reply = worker.ask(do="load", formulation=formulation, checked=setting == self.settings[0], **given)
            except Failure as failure:
                refused[name] = str(failure)
                continue
            differences |= {name: reply["difference"]} if "difference" in reply else {}
            peers[name] = lambda worker=worker: worker.ask(do="sample"), reply["first"]
        return differences

    def _load_native(self, case, given, peers, refused):
        inputs = [tensor["name"] for tensor in given["inputs"]]
        reply = self.native.ask(do="load", folder=given["folder"], inputs=inputs, output=given["output"]["name"],
                                peers=case.native)
        refused |= reply["refused"]
        for name, first in reply["first"].items():
            peers[name] = lambda name=name: self.native.ask(do="sample", peer=name), first
        return reply["differences"]

    def _rounds(self, peers, rounds, width, size):
        """Samples of the roof and of all in turn, one dictionary a round. The speed of a machine changes while others work
        on it; what stands in one round has met about the same."""
        done = [{peer: first for peer, (_, first) in peers.items() if peer != "Einrel" and first > FIRST_COUNTS_SECONDS}]
        for at in range(rounds):
            this = done[0] if at == 0 else {}
            roof = self.native.ask(do="roof", width=width, bytes=size, threads=self.threads)
            this |= {"peak flops": roof["flops"], "copy bandwidth": roof["bandwidth"]}
            for peer, (sample, _) in peers.items():
                before = [earlier[peer] for earlier in done if peer in earlier]
                enough = ENOUGH_SECONDS if len(before) >= 3 else ENOUGH_ANYWAY_SECONDS
                if peer not in this and sum(before) < enough:
                    this[peer] = sample()["seconds"]
            if at > 0:
                done.append(this)
            if "Einrel" not in this:
                break
        return [this for this in done if "Einrel" in this]


def _medians(rounds, told):
    """Medians of seconds; of the ratios to Einrel and of its share of the roof, each taken within a round. Of two in the
    middle the lower one."""
    peers = dict.fromkeys(peer for this in rounds for peer in this if not peer.startswith(("peak", "copy")))
    with_peer = {peer: [this for this in rounds if peer in this] for peer in peers}
    ideal = [(told["flops"] / this["peak flops"], told["bytes"] / this["copy bandwidth"]) for this in rounds]
    return {"seconds": {peer: statistics.median_low(this[peer] for this in those) for peer, those in with_peer.items()},
            "ratios": {peer: statistics.median_low(this[peer] / this["Einrel"] for this in those)
                       for peer, those in with_peer.items()},
            "roof": statistics.median_low(max(each) / this["Einrel"] for each, this in zip(ideal, rounds)),
            "compute_bound": sum(flops > memory for flops, memory in ideal) * 2 > len(ideal)}


def _minima(rounds, told):
    """The same from the shortest time of each, taken apart: what is left where another machine's work disturbs some of
    the rounds, and not all."""
    peers = dict.fromkeys(peer for this in rounds for peer in this)
    least = {peer: min(this[peer] for this in rounds if peer in this) for peer in peers if not peer.startswith(("peak", "copy"))}
    fastest = {limit: max(this[limit] for this in rounds) for limit in ("peak flops", "copy bandwidth")}
    ideal = max(told["flops"] / fastest["peak flops"], told["bytes"] / fastest["copy bandwidth"])
    return {"seconds": least, "ratios": {peer: seconds / least["Einrel"] for peer, seconds in least.items()},
            "roof": ideal / least["Einrel"]}


def _size(tensor):
    size = BYTES[tensor["dtype"]]
    for extent in tensor["shape"]:
        size *= extent
    return size
