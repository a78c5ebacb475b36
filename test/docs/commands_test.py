"""Every command that the documents show, run as a reader would: in order, in a copy of the repository, with this build's einrel.

Usage: commands_test.py EINREL
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import document  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
EINREL = Path(sys.argv.pop(1)).resolve()

# Commands that this test does not run: all of the command, and why.
NOT_RUN = [
    (r"\./check.*", "it builds everything, and runs this test"),
    (r"\./quickstart.*", "it builds einrel"),
    (r"(sudo )?cmake .*", "it builds einrel"),
    (r"ctest .*", "it runs this test"),
    (r"build/dev/test/.*", "other tests, which a build may not have yet"),
    (r"tools/check-python.*", "it needs PyPI; ./check runs it"),
    (r"tools/format", "it needs git; ./check runs it"),
    (r"tools/tidy.*", "minutes; ./check runs it"),
    (r"sudo apt install dataset-fashion-mnist", "it installs"),
    (r"einrel train .*=\$F/.*", "minutes, and it needs that package"),
    (r"bench/.*", "minutes, and only for a quiet machine"),
    (r"tools/planning-tables .*", "docs.planning_tables runs it"),
    (r"mpirun .*--hostfile .*", "it needs several machines"),
    (r"(einrel run|python3|psql) .*postgresql://.*", "it needs a server; those of test/postgres start one"),
    (r"einrel calibrate --database .*", "half a minute, and only for a quiet machine"),
    (r"(salloc|sbatch|srun) .*", "it needs Slurm"),
]


def reason_not_to_run(command):
    bare = re.sub(r"\s+# .*", "", command.text)
    return next((pattern for pattern, _ in NOT_RUN if re.fullmatch(pattern, bare)), None)


def documents():
    """(name, commands) of every document that shows some, in order of names."""
    found = {}
    for pattern, blocks in (("**/*.md", document.code_blocks), ("examples/**/*", document.comment_blocks)):
        for path in ROOT.glob(pattern):
            name = path.relative_to(ROOT)
            if path.is_file() and name.parts[0] != "build" and "__pycache__" not in name.parts and not name.parts[0].startswith("."):
                lines = path.read_text(encoding="utf-8").split("\n")
                commands = list(document.commands_of(lines, blocks))
                if commands:
                    found[str(name)] = commands
    return sorted(found.items())


class Reader:
    """Someone who types commands in a fresh copy of the repository."""

    def __init__(self, folder):
        self.folder = Path(folder) / "einrel"
        shutil.copytree(ROOT, self.folder, ignore=lambda at, names: {
            name for name in names if name == "__pycache__" or (at == str(ROOT) and (name == "build" or name.startswith(".")))})
        programs = Path(folder) / "bin"
        for place in (programs, self.folder / "build/release/apps/cli", self.folder / "build/dev/apps/cli"):
            place.mkdir(parents=True)
            (place / "einrel").symlink_to(EINREL)
        python = programs / "python3"  # one that has NumPy
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        self.environment = {
            **os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "XDG_CONFIG_HOME": str(Path(folder) / "config"),
            "OPENBLAS_NUM_THREADS": "1",
            # What tools/mpirun adds for ranks that share no cores, for the lines that say mpirun.
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_mpi_yield_when_idle": "1"}

    def types(self, text):
        """The exit code and all that is printed."""
        done = subprocess.run(["bash", "-c", text], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)
        return done.returncode, done.stdout.decode("utf-8", "backslashreplace").split("\n")


class Documents(unittest.TestCase):
    maxDiff = None

    def run_in_order(self, name, commands):
        with tempfile.TemporaryDirectory(prefix="einrel-docs-") as folder:
            reader = Reader(folder)
            for command in commands:
                start = time.monotonic()
                code, lines = reader.types(command.text)
                while lines and not lines[-1]:
                    lines.pop()
                where = f"{name}:{command.line}: {command.text}"
                self.assertEqual(code, command.code, "\n".join([where, *lines]))
                if command.output is not None and not document.same_output(command.output, lines):
                    self.fail("\n".join([where, "--- the document says", *command.output, "--- it prints", *lines]))
                print(f"{time.monotonic() - start:6.2f} s  {where.splitlines()[0]}", flush=True)

    def test_every_command_does_what_its_document_says(self):
        run = 0
        for name, commands in documents():
            commands = [command for command in commands if not command.is_usage() and not reason_not_to_run(command)]
            if not commands:
                continue
            with self.subTest(document=name):
                self.run_in_order(name, commands)
                run += len(commands)
        print(f"{run} commands")
        self.assertGreater(run, 0)

    def test_what_is_not_run_is_still_in_a_document(self):
        used = {reason_not_to_run(command) for _, commands in documents() for command in commands}
        self.assertEqual([pattern for pattern, _ in NOT_RUN if pattern not in used], [])

    def test_usage_names_all_options_there_are(self):
        lines = (ROOT / "docs/language.md").read_text(encoding="utf-8").split("\n")
        (usage,) = ["\n".join(block) for _, block in document.code_blocks(lines) if block[0].startswith("einrel check PROGRAM")]
        for command in ("run", "train", "explain", "check", "einsum", "calibrate"):
            with self.subTest(command=command):
                told = {option for form in re.findall(rf"(?ms)^einrel {command} .*?(?=^\S|\Z)", usage)
                        for option in re.findall(r"(--[a-z][a-z-]*)", form)}
                shown = subprocess.run([EINREL, command, "--help"], check=True, capture_output=True, text=True).stdout
                self.assertEqual(told, set(re.findall(r"^  (--[a-z][a-z-]*)", shown, re.M)))

    def test_the_picture_of_a_plan_is_what_einrel_explains(self):
        with tempfile.TemporaryDirectory(prefix="einrel-docs-") as folder:
            reader = Reader(folder)
            code, lines = reader.types("einrel explain examples/layers.ein --sites 4 --json | python3 tools/draw-plan")
        self.assertEqual(code, 0, lines)
        self.assertEqual("\n".join(lines), (ROOT / "docs/pictures/plan.svg").read_text(encoding="utf-8"))


class Comparison(unittest.TestCase):
    """That what a document quotes is compared at all."""

    def test_lines_must_be_all_there_and_in_order(self):
        self.assertTrue(document.same_output(["a", "b"], ["a", "b"]))
        for found in (["a"], ["a", "b", "c"], ["b", "a"], []):
            self.assertFalse(document.same_output(["a", "b"], found), found)

    def test_three_dots_stand_for_lines_and_words(self):
        self.assertTrue(document.same_output(["a", "...", "d"], ["a", "b", "c", "d"]))
        self.assertTrue(document.same_output(["...", "c x ...", "..."], ["a", "c x y z", "d"]))
        self.assertFalse(document.same_output(["a", "...", "d"], ["a", "b", "c"]))
        self.assertFalse(document.same_output(["a ... c"], ["a b"]))
        self.assertTrue(document.same_output(["sum 8.46...e+10"], ["sum 8.4692e+10"]))
        self.assertFalse(document.same_output(["sum 8.46...e+10"], ["sum 8.4592e+10"]))

    def test_seconds_kernels_and_rounding_may_differ_but_nothing_else(self):
        self.assertTrue(document.same_output(["b=4  12 B  160 us"], ["b=4 12 B 1.3 ms"]))
        self.assertFalse(document.same_output(["b=4  12 B  160 us"], ["b=4 16 B 160 us"]))
        self.assertTrue(document.same_output(["sum 51.196565"], ["sum 51.196564"]))
        self.assertFalse(document.same_output(["sum 51.196565"], ["sum 51.296565"]))
        self.assertFalse(document.same_output(["7 inputs"], ["8 inputs"]))
        kernel = "      by packed (packed 13x32 (AVX-512), 8 parts), 9.6 ms on one thread, workspace 1.54 MB"
        self.assertTrue(document.same_output([kernel], ["      by direct (direct 4x4), 1 us on one thread, workspace 0 B"]))

    def test_commands_are_found(self):
        lines = ["text", "", "    $ einrel check x.ein   # exit code 1", "    error: no", "", "    cat > f <<'END'", "    a",
                 "    END", "    Z[i] = 1", "", "text `einrel x`", "```", "tools/mpirun -n 2 einrel", "```"]
        found = [(each.line, each.text.split()[0], each.output, each.code)
                 for each in document.commands_of(lines, document.code_blocks)]
        self.assertEqual(found, [(3, "einrel", ["error: no", "", "cat > f <<'END'", "a", "END", "Z[i] = 1"], 1),
                                 (13, "tools/mpirun", None, 0)])
        found = list(document.commands_of([line.replace("$ ", "") for line in lines], document.code_blocks))
        self.assertEqual([(each.line, each.text.split("\n")) for each in found],
                         [(3, ["einrel check x.ein   # exit code 1"]), (6, ["cat > f <<'END'", "a", "END"]),
                          (13, ["tools/mpirun -n 2 einrel"])])


if __name__ == "__main__":
    unittest.main()
