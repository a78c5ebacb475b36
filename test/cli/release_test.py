"""The command and its libraries, as tools/make-release puts them into a tarball, in another folder without an environment.

python3 release_test.py BUILD: installs it from a build folder; with --installed, the folder is where it is installed.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SYSTEM = re.compile(r"linux-vdso|ld-linux|lib(c|m|mvec|dl|rt|pthread|resolv|util|anl)\.so")  # the C library's


def check(root):
    """Raises unless all but the C library is found there, and a program runs."""
    command = root / "bin/einrel"
    libraries = subprocess.run([command], env={"LD_TRACE_LOADED_OBJECTS": "1"}, cwd="/", capture_output=True, text=True,
                               check=True).stdout
    foreign = [line.strip() for line in libraries.splitlines() if not SYSTEM.match(line.strip().split("/")[-1].split()[0])
               and f"=> {root}/" not in line]
    assert "libfmt" in libraries and not foreign, foreign
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "sums.ein"
        program.write_text("input A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\nS[] = sum[i,k] C[i,k]\noutput S\n")
        options = ["--random", "1", "--sites", "2", "--dim", "i=30", "--dim", "j=20", "--dim", "k=10"]
        done = subprocess.run([command, "run", program, *options], env={}, cwd="/", capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert done.stdout.startswith("S  f32"), done.stdout


def main():
    if sys.argv[1] == "--installed":
        check(Path(sys.argv[2]).resolve())
        return
    with tempfile.TemporaryDirectory() as folder:
        for component in ("command", "libraries"):
            subprocess.run(["cmake", "--install", sys.argv[1], "--component", component, "--prefix", f"{folder}/einrel"],
                           check=True, capture_output=True)
        check(Path(folder).resolve() / "einrel")


if __name__ == "__main__":
    main()
