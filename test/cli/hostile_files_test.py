"""Files that no program, plan or machine is in, however large, and pipes and devices: an error, soon and in little memory.

Usage: hostile_files_test.py EINREL    (an EINREL without sanitizers, which need memory of their own)
"""

import json
import os
import subprocess
import tempfile

import einrel_process
from einrel_process import ProgramTest, main

PRODUCT = "dims i=10 j=10 k=10\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\n"
MEMORY = 120e6  # bytes: what the program takes itself, and a little


class HostileFiles(ProgramTest):
    def setUp(self):
        super().setUp()
        self.program = self.text_file("product.ein", PRODUCT)

    def measured(self, *arguments):
        """What came of it, and the most bytes that it had in memory which are no pages of files."""
        einrel_process.cases += 1
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            run = subprocess.Popen([einrel_process.PROGRAM, *map(os.fspath, arguments)], stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=err)
            _, status, used = os.wait4(run.pid, 0)
            run.returncode = os.waitstatus_to_exitcode(status)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read())
        return einrel_process.Result(subprocess.CompletedProcess(arguments, run.returncode, *texts)), used

    def refuse_soon(self, words, *arguments, file_bytes=0):
        result, used = self.measured(*arguments)
        self.assertEqual((result.code, result.out), (1, ""), result)
        self.assertRegex(result.err, r"\Aerror: ")
        self.assertLess(len(result.err), 2000)
        self.assertIn(words, result.err)
        self.assertLess(used.ru_maxrss * 1024, MEMORY + file_bytes, arguments)
        self.assertLess(used.ru_utime + used.ru_stime, 60, arguments)

    def sparse(self, name, size):
        with open(self.path(name), "wb") as file:
            file.truncate(size)
        return self.path(name)

    def repeated(self, name, begin, piece, count, end):
        with open(self.path(name), "wb") as file:
            file.write(begin)
            for _ in range(count >> 10):
                file.write(piece * 1024)
            file.write(end)
        return self.path(name)

    def test_programs(self):
        os.mkfifo(self.path("pipe.ein"))
        os.mkdir(self.path("folder.ein"))
        for path, words in (("/dev/zero", "more than 4 MiB"), (self.sparse("large.ein", 10 << 30), "more than 4 MiB"),
                            (self.path("folder.ein"), "is a folder"), (self.path("none.ein"), "No such file"),
                            (self.path("pipe.ein"), "no whole program has come in 10 s"), ("/dev/null", "")):
            for command in (("run",), ("check",), ("explain", "--sites", "2"), ("sql",)):
                if path.endswith("pipe.ein") and command != ("run",):
                    continue
                with self.subTest(path=path, command=command):
                    self.refuse_soon(words, *command, path)

    def test_a_program_through_a_pipe(self):
        os.mkfifo(self.path("pipe.ein"))
        run = subprocess.Popen([einrel_process.PROGRAM, "run", self.path("pipe.ein"), "--random", "1"],
                               stdout=subprocess.PIPE)
        einrel_process.cases += 1
        with open(self.path("pipe.ein"), "w", encoding="utf-8") as pipe:
            for line in PRODUCT.splitlines(keepends=True):
                pipe.write(line)
                pipe.flush()
        out, _ = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0)
        self.assertEqual(out.decode(), self.succeed("run", self.program, "--random", "1").out)

    def test_plans(self):
        megabytes = 64
        million = 1 << 20
        plan = self.succeed("explain", self.program, "--sites", "2", "--json").out
        vertex = json.dumps(json.loads(plan)["plans"][0]["vertices"][0]).encode()
        cases = ((b"[", b"0,", b"0]"), (b"", b"[", b""), (b'{"plans":[{"sites":2,"vertices":[', b"0,", b"0]}]}"),
                 (b'{"sites":[', b"{},", b"0]}"), (b'{"program":{', b'"a":0,', b'"b":0}}'),
                 (b'{"plans":[', b'{"sites":2},', b"0]}"),
                 (b'{"sites":2,"vertices":[{"parts":{', b'"i":1,', b'"j":1}}]}'),
                 (b'{"sites":2,"vertices":[', vertex + b",", vertex + b"]}"), (b'{"sites":2,"x":"', b"aa", b'"}'))
        for begin, piece, end in cases:
            with self.subTest(begin=begin, piece=piece[:20]):
                path = self.repeated("plan.json", begin, piece, megabytes * million // len(piece), end)
                self.refuse_soon("plan", "explain", self.program, "--plan", path, file_bytes=3 * os.path.getsize(path))
        for path, words in ((self.sparse("large.json", 10 << 30), "larger than 256 MiB"), ("/dev/zero", "a device"),
                            (self.folder, "a folder")):
            self.refuse_soon(words, "explain", self.program, "--plan", path)

    def test_a_plan_among_much_else(self):
        report = json.loads(self.succeed("explain", self.program, "--sites", "2", "--planner", "sqrt", "--json").out)
        expected = self.succeed("run", self.program, "--random", "1", "--sites", "2", "--planner", "sqrt", "--analyze", "--json").out
        much = {"much": [[0] * 1000, {"vertices": [{"name": "x"}], "plans": {"sites": 3}}] * 2000}
        first, second = report["plans"][0], dict(report["plans"][0], sites=7)
        first = {**much, **first, "more": much}
        first["vertices"] = [{**much, **vertex} for vertex in first["vertices"]]
        self.text_file("plan.json", json.dumps({**much, **report, "plans": [first, second], "last": much}))
        for plan in (self.path("plan.json"), self.text_file("only.json", json.dumps(first))):
            ran = self.succeed("run", self.program, "--random", "1", "--plan", plan, "--json").out
            self.assertEqual(json.loads(ran)["outputs"], json.loads(expected)["outputs"])
            self.assertEqual([vertex["sites"] for vertex in json.loads(ran)["plans"][0]["vertices"]],
                             [vertex["sites"] for vertex in json.loads(expected)["plans"][0]["vertices"]])

    def test_machines(self):
        for path, words in ((self.sparse("large.json", 10 << 30), "larger than 1 MiB"), ("/dev/zero", "a device"),
                            (self.repeated("list.json", b"[", b"0,", 1 << 18, b"0]"), "not an object"),
                            (self.repeated("deep.json", b"", b"[", 1 << 19, b""), "not JSON")):
            self.refuse_soon(words, "explain", self.program, "--sites", "2", "--machine", path)

    def test_inputs_and_samples(self):
        large = self.sparse("large.npy", 10 << 30)
        for path in ("/dev/zero", self.folder, large):
            self.refuse_soon("", "einsum", "ij->i", path)
            self.refuse_soon("", "run", self.program, "--in", f"A={path}", "--random", "1")
        os.rename(large, self.path("large.csv"))
        os.symlink("/dev/zero", self.path("zero.csv"))
        program = self.text_file("learns.ein", "dims f=3\ninput X[b,f]\nstate W[f] = 0\n"
                                 "loss[] = mean[b] sq(sum[f] X[b,f] * W[f])\nminimize loss over W by sgd(0.1)\n")
        for name in ("large.csv", "zero.csv"):
            self.refuse_soon("", "train", program, "--batch", "b=2", "--epochs", "1", "--feed", f"X={self.path(name)}")


if __name__ == "__main__":
    main()
