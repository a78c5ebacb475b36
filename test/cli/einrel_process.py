"""What the tests in Python share: the program under test, a folder of their own, and counting."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

MPIRUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "mpirun")
PROGRAM = ""  # set by main()
cases = 0  # how many calls of the program were compared with something


class Result:
    def __init__(self, completed):
        self.code = completed.returncode
        self.out = completed.stdout.decode("utf-8", "backslashreplace")
        self.err = completed.stderr.decode("utf-8", "backslashreplace")

    def __repr__(self):
        return f"exit code {self.code}\nstdout: {self.out}\nstderr: {self.err}"


def einrel(*arguments, stdin="", **options):
    """Runs the program; `stdin` is text or bytes, options are those of subprocess.run."""
    global cases
    cases += 1
    given = stdin.encode() if isinstance(stdin, str) else stdin
    # Small tensors: starting OpenBLAS's threads takes longer. No machine that somebody has calibrated.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "XDG_CONFIG_HOME": os.devnull}
    completed = subprocess.run(
        [PROGRAM, *map(os.fspath, arguments)], input=given, capture_output=True, timeout=options.pop("timeout", 120),
        env=options.pop("env", environment), **options)
    return Result(completed)


def job(ranks, *arguments, **options):
    """Runs the program as a job of several ranks; options are those of subprocess.run."""
    global cases
    cases += 1
    return Result(subprocess.run([MPIRUN, "-n", str(ranks), PROGRAM, *map(os.fspath, arguments)], capture_output=True,
                                 timeout=100, **options))


class ProgramTest(unittest.TestCase):
    """Every test has an empty folder, self.folder."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="einrel-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def text_file(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def succeed(self, *arguments, **options):
        result = einrel(*arguments, **options)
        self.assertEqual(result.code, 0, f"{arguments}\n{result}")
        return result

    def refuse(self, code, *arguments, mentions=(), **options):
        """The program must end with `code`, print nothing on stdout, and say each of `mentions` on stderr: what it said."""
        result = einrel(*arguments, **options)
        self.assertEqual(result.code, code, f"{arguments}\n{result}")
        self.assertEqual(result.out, "", f"{arguments}\n{result}")
        self.assertRegex(result.err, r"\Aerror: .+\n", f"{arguments}\n{result}")
        for text in mentions:
            self.assertIn(text, result.err, f"{arguments}\n{result}")
        return result


def sqlite_with(extension, **options):
    """An empty database in memory that has Einrel's functions, and begins no transactions by itself."""
    database = sqlite3.connect(":memory:", isolation_level=None, **options)
    database.enable_load_extension(True)
    database.load_extension(extension)
    return database


class ProductInDatabase:
    """Of a test with `run_product`, which computes Z of X and Y in a database, and `content`, all that is in there."""

    def refused(self, words, *arguments, code=1, **options):
        before = self.content()
        result = self.run_product("--out", "Z=table:Z", *arguments, **options)
        self.assertEqual(result.code, code, result)
        for word in words:
            self.assertIn(word, result.err)
        self.assertEqual(self.content(), before)


def main():
    """SCRIPT PROGRAM [unittest's options]: exits non-zero on any failure."""
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    outcome = unittest.main(exit=False).result
    print(f"{cases} runs of einrel")
    sys.exit(0 if outcome.wasSuccessful() and outcome.testsRun > 0 and cases > 0 else 1)
