"""What bench/execution and bench/papers share: running Einrel and its peers, samples in turn, ratios, tables, goals."""
import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from kernel_bench import workers

ROOT = Path(__file__).resolve().parent.parent
BLOCKS = (64, 128, 256)  # of ScaLAPACK
FILES_BYTES = 2 << 30


def is_there(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def has_scalapack():
    return any(Path("/usr/lib").glob("*/libscalapack-openmpi.so"))


def core_seen():
    """What OpenBLAS takes this processor for; None without OpenBLAS."""
    started = subprocess.run([sys.executable, "-c", "import numpy"], env=workers.environment() | {"OPENBLAS_VERBOSE": "2"},
                             capture_output=True, text=True, check=True)
    seen = re.search(r"Core: (\S+)", started.stdout + started.stderr)
    return seen and seen.group(1)


def core_types():
    """What OpenBLAS is told: nothing, and the best when it does not see that for itself."""
    best = workers.best_core_type()
    seen = core_seen()
    return [None] if best is None or seen is None or seen.lower() == best.lower() else [None, best]


def launcher(ranks):
    return (ROOT / "tools/mpirun", "-n", str(ranks))


def run_process(command, environment):
    """What it prints."""
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise workers.Failure(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def run_einrel(einrel, program, *options, launched_by=(), environment=None):
    """The report of `einrel run`."""
    command = [*launched_by, einrel, "run", program, "--json", "--progress", "never", *options]
    return json.loads(run_process(command, environment or workers.environment()))


WARM_UP = 2  # runs; in some processes the second still takes half as long again as those after it


def repeat(samples, option="--repeat"):
    """Options of `einrel run` for so many repeated_seconds; of programs with state --steps."""
    return option, str(WARM_UP + samples + 1)


def repeated_seconds(report):
    """Samples of what computing takes in a process that has computed the same before, as that of its peers has. The first
    times touch memory and files; the last writes or summarises the result."""
    return report["measured"]["seconds_of_runs"][WARM_UP:-1]


def first_seconds(report):
    """What it takes in a new process."""
    return report["measured"]["seconds_of_runs"][0]


def bound(files):
    return [option for name, file in files.items() for option in ("--in", f"{name}={file}")]


def write_inputs(folder, dtype, shapes, largest=lambda _name, _shape: 1, whole=()):
    """{name: file} of uniform values from -1 to 1, or those that largest() gives; of the whole ones, numbers below that."""
    import numpy
    generator = numpy.random.default_rng(1)
    files = {}
    for name, shape in shapes.items():
        files[name] = str(folder / f"{name}.npy")
        most = largest(name, shape)
        values = generator.integers(most, size=shape) if name in whole else (
            (2 * generator.random(shape, dtype=dtype) - 1) * numpy.dtype(dtype).type(most))
        numpy.save(files[name], values)
    return files


def states_file(folder, files):
    """One file of several tensors, for --load."""
    import numpy
    file = str(folder / "states.npz")
    numpy.savez(file, **{name: numpy.load(of) for name, of in files.items()})
    return file


def scale_of(result):
    """How large the sum of a result may be, by what `run --json` says of it: what differences are compared with."""
    elements = 1
    for extent in result["shape"]:
        elements *= extent
    return max(abs(result["min"]), abs(result["max"])) * elements ** 0.5


# ---- ScaLAPACK.

def build_pdgemm(folder):
    program = folder / "pdgemm"
    compile_mpi("pdgemm.cpp", "moved_bytes.cpp", "-lscalapack-openmpi", "-o", program)
    return program


def compile_mpi(*arguments):
    """Sources are named from the folder of this file."""
    command = ["mpicxx", "-std=c++20", "-O2", "-DOMPI_SKIP_MPICXX", *arguments]
    subprocess.run(command, cwd=ROOT / "bench", check=True)


def nearest_to_square(ranks):
    rows = int(ranks ** 0.5)
    while ranks % rows:
        rows -= 1
    return rows, ranks // rows


def pdgemm(program, grid, extents, blocks, core_type):
    """[(seconds, bytes moved)] for each size of blocks, one after the other."""
    ranks, sides = grid[0] * grid[1], f"{grid[0]}x{grid[1]}"
    command = [*launcher(ranks), program, sides, "x".join(map(str, extents)), *map(str, blocks)]
    printed = run_process(command, workers.environment(1, core_type))
    lines = re.findall(r"^(\d+) ([0-9.]+) (\d+)$", printed, re.MULTILINE)
    return [(float(seconds), int(moved)) for _, seconds, moved in lines]


# ---- Figures.

def interleaved(contenders, rounds):
    """{name: seconds in each round}"""
    samples = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, measure in contenders.items():
            samples[name].append(measure())
    return samples


def ratios(other, own):
    """The median of those of each round, and that of the least seconds."""
    return statistics.median(theirs / ours for theirs, ours in zip(other, own)), min(other) / min(own)


def fastest(samples, start=""):
    """Of those whose names start so, by medians."""
    return min((name for name in samples if name.startswith(start)), key=lambda name: statistics.median(samples[name]))


def middle_and_least(values):
    return statistics.median(values), min(values)


def cells(values, digits):
    return [f"{value:.{digits}f}" for value in values]


def goal(name, median, least, low=None, high=None):
    """A row of the table of goals: by medians, and by the least of all samples, which others disturb less."""
    wanted = f"at most {high:g}" if low is None else f"at least {low:g}" if high is None else f"{low:g} to {high:g}"
    is_met = [(low is None or value >= low) and (high is None or value <= high) for value in (median, least)]
    return name, wanted, f"{median:.2f}", f"{least:.2f}", *("yes" if met else "NO" for met in is_met)


GOAL_HEADS = ("goal", "wanted", "by medians", "by least", "reached by medians", "by least")


def head(*heads):
    return f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}"


def line(*values):
    return f"| {' | '.join(map(str, values))} |"


# ---- The machine.

def place():
    """Where files are: in memory where there is room."""
    memory = "/dev/shm"
    return memory if os.path.isdir(memory) and shutil.disk_usage(memory).free > FILES_BYTES else None


def load():
    return "load of the machine " + ", ".join(f"{value:.1f}" for value in os.getloadavg()) + " (1, 5, 15 minutes)"
