"""What a wheel is made of, apart from where it was built."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from on_ranks import run_on

import einrel

PACKAGE = Path(einrel.__file__).resolve().parent
BUILD = Path(einrel._native.__file__).resolve().parent.parent.parent
SYSTEM = (
    "libc.so",
    "libm.so",
    "libmvec.so",
    "libdl.so",
    "librt.so",
    "libpthread.so",
    "libgcc_s.so",
    "libstdc++.so",
    "ld-linux",
)

PROGRAM = """
import numpy as np, einrel as er
a = np.arange(6.0).reshape(2, 3)
assert np.array_equal(er.einsum("ij,kj->ik", a, a), a @ a.T)
big = er.asarray(np.ones((512, 2048)))
assert float((big + 1).sum().compute(memory="9MiB", sites=2)) == 2 * 512 * 2048
"""


LOADED = 'print(*{line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}, sep="\\n")\n'


def loaded_by(program, root):
    """Runs a program with what is installed there and nothing else; the files of libraries that it loaded."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"} | {
        "PYTHONPATH": str(root)
    }
    done = subprocess.run(
        [sys.executable, "-c", program + LOADED], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [Path(line) for line in done.stdout.split()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A folder with what a wheel has."""
    root = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        ["cmake", "--install", BUILD, "--component", "python", "--prefix", root], check=True, capture_output=True
    )
    for module in PACKAGE.rglob("*.py"):
        (root / "einrel" / module.relative_to(PACKAGE)).parent.mkdir(exist_ok=True)
        shutil.copy(module, root / "einrel" / module.relative_to(PACKAGE))
    return root


def test_a_wheel_brings_its_libraries(wheel):
    libraries = loaded_by(PROGRAM, wheel)
    before = {path.name.split(".so")[0] for path in loaded_by("import ctypes, zlib, numpy\n", wheel)}
    bundled = {path.name.split(".so")[0] for path in (wheel / "einrel" / "libs").iterdir()}
    assert any(name.startswith("libstarpu-") for name in bundled)
    assert not any(f"{name}.so".startswith(SYSTEM) for name in bundled)
    bundled -= before  # those of Python's own modules come first
    needed = [path for path in libraries if path.name.split(".so")[0] in bundled]
    assert needed and all(path.is_relative_to(wheel) for path in needed), needed


def test_ranks_speak_through_the_mpi_of_the_system(wheel):
    """Which mpirun starts. The wheel's own would look for parts that are not there."""
    program = "import numpy as np, einrel as er\ntotal = float(er.sum(np.ones((4, 6))))\nprint(er.ranks(), total)"
    done = run_on(2, "-c", program, packages=wheel)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2", "24.0"] * 2
