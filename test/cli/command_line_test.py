"""The program as its users meet it: what it prints, where, with which exit code, and what it leaves behind.

Usage: command_line_test.py EINREL
"""

import json
import os
import re
import resource
import signal
import subprocess
import sys

import numpy as np

sys.dont_write_bytecode = True
import einrel_process as process  # noqa: E402

PROGRAM = """\
dims i=4 j=3
input X[i,j], W[j]
scalar eta = 0.5
scalar bias
Z[i] = eta * (sum[j] X[i,j] * W[j]) + bias
M[j] = max[i] X[i,j]
output Z, M
"""
RANDOM = ("--random", "1", "--scalar", "bias=2")
SUMMARY = re.compile(r"(\S+)  (\w+) \((.*)\)  min (\S+)  max (\S+)  mean (\S+)  sum (\S+)\n")

# 5-interfaces: what --json holds at least.
EXPLAINED_KEYS = {"program", "sites", "planner", "inputs", "outputs", "cost", "peak_memory", "vertices"}
COST_KEYS = {"bound", "floats", "bytes", "seconds"}
VERTEX_KEYS = {"name", "labels", "parts", "sites", "bytes"}
MEASURED_KEYS = {"seconds", "seconds_of_runs", "plan_seconds", "bytes_moved", "bytes_moved_per_site", "tasks"}


def not_a_number(text):
    raise ValueError(f"JSON has no {text}")


def parse_json(text):
    """Strictly: NaN and Infinity, which Python would accept, are no JSON."""
    return json.loads(text, parse_constant=not_a_number)


def numbers_in(line):
    """One line of the summary: name, dtype, shape, and min, max, mean, sum."""
    name, dtype, shape, *numbers = SUMMARY.fullmatch(line).groups()
    return name, dtype, tuple(int(n) for n in shape.split(",") if n), [float(n) for n in numbers]


class CommandLineTest(process.ProgramTest):
    def setUp(self):
        super().setUp()
        self.program = self.text_file("p.ein", PROGRAM)

    def array(self, name, values):
        np.save(self.path(name), values)
        return self.path(name)

    def left_in_folder(self):
        return sorted(os.listdir(self.folder))


class Subcommands(CommandLineTest):
    def test_without_or_with_an_unknown_subcommand_it_fails(self):
        self.refuse(1, mentions=["run", "einsum"])
        self.refuse(1, "rnu", self.program, mentions=["'rnu'"])
        self.refuse(1, "list", mentions=["functions"])
        self.refuse(1, "list", "colours", mentions=["'colours'"])

    def test_unknown_options_and_surplus_arguments_are_named(self):
        for command in (["run", self.program], ["explain", self.program], ["check", self.program],
                        ["einsum", "i", "x.npy"], ["list", "functions"], []):
            self.refuse(1, *command, "--bogus", mentions=["--bogus"])
        self.refuse(1, "run", self.program, "second.ein", mentions=["second.ein"])
        self.refuse(1, "run", mentions=["PROGRAM"])
        self.refuse(1, "einsum", "i", mentions=["FILES"])

    def test_help_and_version(self):
        for command in ([], ["run"], ["explain"], ["check"], ["einsum"], ["list"]):
            self.assertIn("Usage:", self.succeed(*command, "--help").out)
        self.assertRegex(self.succeed("--version").out, r"\Aeinrel \d+\.\d+\.\d+\n\Z")

    def test_list_functions_names_what_the_language_has(self):
        listed = self.succeed("list", "functions").out
        for name in ("exp", "relu", "where", "pad", "f32", "bool", "sum", "argmax", "logsumexp", "softmax",
                     "layernorm"):
            self.assertRegex(listed, rf"\b{name}\b")

    def test_check_says_which_extents_are_open(self):
        self.assertEqual(self.succeed("check", self.program).out, f"{self.program}: no errors\n")
        open_program = self.text_file("o.ein", "input X[a,b], Y[b,c]\nZ[a,c] = sum[b] X[a,b] * Y[b,c]\n")
        self.assertRegex(self.succeed("check", open_program).out, r"no errors.*\ba, b, c\n")
        self.assertRegex(self.succeed("check", open_program, "--dim", "a=2").out, r"no errors.*: b, c\n")
        x = self.array("x.npy", np.zeros((2, 3), np.float32))
        self.assertRegex(self.succeed("check", open_program, "--in", f"X={x}").out, r"no errors.*: c\n")
        self.refuse(1, "check", open_program, "--in", f"X={x}", "--dim", "b=4", mentions=["'b'", "3", "4"])

    def test_explain_shows_every_vertex_and_no_data(self):
        shown = self.succeed("explain", self.program).out
        for text in ("input X[4,3] : f32", "input W[3] : f32", "Z", "M[j] = max[i] X[i,j]", "outputs     Z, M\n"):
            self.assertIn(text, shown)
        self.refuse(1, "explain", self.program, "--random", "1")


class Programs(CommandLineTest):
    def test_standard_input_is_a_program(self):
        result = self.succeed("run", "-", *RANDOM, stdin=PROGRAM)
        self.assertEqual(result.out, self.succeed("run", self.program, *RANDOM).out)
        self.succeed("check", "-", stdin=PROGRAM)
        self.assertIn("<standard input>:1:1", self.refuse(1, "check", "-", stdin="1 = 2").err)

    def test_what_is_no_program_is_refused(self):
        for command in ("run", "check", "explain"):
            self.refuse(1, command, self.folder, mentions=[self.folder, "folder"])
            self.refuse(1, command, self.path("missing.ein"), mentions=["missing.ein", "No such file"])
            for text in ("", "\n\n", "# a comment\n", "dims i=3\n", "input X[i]\n"):
                self.refuse(1, command, "-", stdin=text, mentions=["computes nothing"])
            self.refuse(1, command, "-", stdin=b"input X[i]\nY[i] = X[i] + \xff\n", mentions=["UTF-8", ":2:15"])

    def test_a_file_that_is_no_text_is_one_error(self):
        x = self.array("x.npy", np.zeros(3, np.float32))
        numbers = np.random.default_rng(5).integers(1, 256, 3000, np.uint8).tobytes()
        files = {"zeros": bytes(100_000), "numbers": numbers, "array": open(x, "rb").read(), "empty": b"",
                 "utf-16": PROGRAM.encode("utf-16"), "latin-1": "input größe[i]\nZ[i] = größe[i]\n".encode("latin-1")}
        remedies = {"array": "--in NAME=FILE", "utf-16": "save it as UTF-8", "latin-1": "in UTF-8",
                    "numbers": "in UTF-8", "zeros": "in UTF-8", "empty": ""}
        for name, content in files.items():
            for ending in ("ein", "tra"):
                with self.subTest(name=name, ending=ending):
                    path = self.path(f"{name}.{ending}")
                    with open(path, "wb") as file:
                        file.write(content)
                    commands = [["explain"]]
                    if ending == "ein":
                        commands += [["check"], ["run", "--in", f"X={x}"], ["check", "--dim", "q=3"]]
                    for command, *options in commands:
                        result = self.refuse(1, command, path, *options, mentions=[remedies[name]])
                        self.assertEqual(result.err.count("error:"), 1)
                        self.assertLess(len(result.err), 2_000)
        path = self.path("comment.ein")
        with open(path, "wb") as file:
            file.write(b"dims i=3  # gr\xf6\xdfe\nZ[i] = 2 * i\n")
        self.succeed("check", path)

    def test_line_ends_and_marks_of_other_systems_are_read(self):
        for text in (PROGRAM.replace("\n", "\r\n"), PROGRAM.rstrip("\n"), "\ufeff" + PROGRAM):
            with self.subTest(text=text):
                self.succeed("run", "-", *RANDOM, stdin=text)

    def test_names_are_any_letters(self):
        program = "input größe[α,β]\n合計[α] = sum[β] größe[α,β]\noutput 合計\n"
        result = self.succeed("run", "-", "--random", "1", "--dim", "α=2", "--dim", "β=3", "--out",
                              f"合計={self.path('ü.npy')}", stdin=program)
        self.assertIn("合計", result.out)
        self.assertEqual(np.load(self.path("ü.npy")).shape, (2,))

    def test_paths_that_are_no_text_are_read_all_the_same(self):
        program = os.path.join(os.fsencode(self.folder), b"p\xff.ein")
        with open(program, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        x = os.path.join(os.fsencode(self.folder), b"x\xff.npy")
        with open(x, "wb") as file:
            np.save(file, np.zeros((4, 3), np.float32))
        for options in ((), ("--json",)):
            result = self.succeed("run", program, *RANDOM, "--in", b"X=" + x, *options)
            if options:
                self.assertEqual(parse_json(result.out)["outputs"]["M"]["sum"], 0)
        parse_json(self.succeed("explain", program, "--json").out)
        parse_json(self.succeed("einsum", "ij->i", x, "--json").out)

    def test_all_errors_are_reported_together(self):
        text = ("dims i=4 j=3\ninput X[i,j]\n"
                "A[i] = X[i,j]\nB[i] = Q[i]\nC[i,j] = X[j,i]\nD[i,j] = foo(X[i,j])\nE[i,j] = X[i,j] 3\n")
        result = self.refuse(1, "check", "-", stdin=text, mentions=["sum[j]", "'Q'", "'foo'"])
        self.assertEqual(sorted(set(re.findall(r"<standard input>:(\d+):", result.err))), ["3", "4", "5", "6", "7"])
        self.assertEqual(self.refuse(1, "run", "-", "--random", "1", stdin=text).err, result.err)

    def test_many_errors_are_cut_short(self):
        text = "input X[i]\n" + "".join(f"Y{k}[i] = Q{k}[i]\n" for k in range(5000))
        result = self.refuse(1, "check", "-", stdin=text, mentions=["and 4980 more errors"])
        self.assertEqual(result.err.count("error:"), 20)
        lines = text.splitlines(keepends=True)
        self.refuse(1, "check", "-", stdin="".join(lines[:22]), mentions=["and 1 more error\n"])
        self.assertNotIn("more", self.refuse(1, "check", "-", stdin="".join(lines[:21])).err)

    def test_garbage_is_read_no_further_than_errors_are_kept(self):
        for garbage in ("@", "@\n", "Z[i] = ? +\n", "\u00d7 "):
            found = []
            for count in (20_000, 200_000):
                with self.subTest(garbage=garbage, count=count):
                    result = self.refuse(1, "check", "-", stdin=garbage * count, mentions=["and at least 9"])
                    self.assertEqual(result.err.count("error:"), 20)
                    found.append(result.err.splitlines()[-1])  # as much was looked at, however much there is
            self.assertEqual(len(set(found)), 1, found)

    def test_an_error_in_a_very_long_line_is_cut_short(self):
        result = self.refuse(1, "check", "-", stdin="input X[i]\nY[i] = X[i]" + " + X[i]" * 50_000 + " + Q[i]\n")
        self.assertIn("'Q'", result.err)
        self.assertLess(len(result.err), 5_000)
        result = self.refuse(1, "check", "-", stdin="input X[i]\nY[i] = " + "Q" * 1_000_000 + "[i]\n")
        self.assertLess(len(result.err), 20_000)

    def test_control_characters_in_a_program_do_not_reach_the_terminal(self):
        result = self.refuse(1, "check", "-", stdin="input X[i]\nY[i] = X[i] \x1b[31m + 1\n")
        self.assertNotIn("\x1b", result.err)
        result = self.refuse(1, "einsum", "\x1b[31m", self.array("x.npy", np.zeros(3)))
        self.assertNotIn("\x1b", result.err)


class Inputs(CommandLineTest):
    def test_missing_inputs_are_all_named(self):
        self.refuse(1, "run", self.program, "--scalar", "bias=1", mentions=["X[", "--in X=", "--in W=", "--random"])
        x = self.array("x.npy", np.zeros((4, 3), np.float32))
        result = self.refuse(1, "run", self.program, "--scalar", "bias=1", "--in", f"X={x}", mentions=["--in W="])
        self.assertNotIn("--in X=", result.err)

    def test_wrong_names_are_said_before_inputs_that_are_missing(self):
        body = "input X[i,j], Y[j,k]\nscalar eta = 1\nZ[i,k] = sum[j] eta * X[i,j] * Y[j,k]\n"
        x = self.array("x.npy", np.zeros((2, 3), np.float32))
        for extents in ("", "dims i=2 j=3 k=4\n"):
            for option, value, named in (("--in", f"XX={x}", "no input 'XX'"), ("--dim", "ii=3", "no label 'ii'"),
                                         ("--scalar", "etaa=3", "no scalar 'etaa'; did you mean 'eta'?"),
                                         ("--out", "ZZ=z.npy", "no tensor 'ZZ'; did you mean 'Z'?"),
                                         ("--planner", "eindekomp", "no planner 'eindekomp'"),
                                         ("--plannr", "eindecomp", "no option '--plannr'")):
                for others in ([], ["--in", f"X={x}"]):
                    with self.subTest(option=option, value=value, extents=extents, others=others):
                        result = self.refuse(1, "run", "-", option, value, *others, stdin=extents + body,
                                             mentions=[named])
                        self.assertNotIn("missing", result.err)

    def test_an_unknown_input_gets_a_suggestion(self):
        program = "input weights[i], bias[i]\nY[i] = weights[i] + bias[i]\n"
        x = self.array("x.npy", np.zeros(3, np.float32))
        self.refuse(1, "run", "-", "--random", "1", "--in", f"wieghts={x}", stdin=program,
                    mentions=["'wieghts'", "'weights'"])
        self.refuse(1, "run", "-", "--random", "1", "--in", f"qqq={x}", stdin=program, mentions=["weights", "bias"])

    def test_files_that_do_not_fit_are_refused(self):
        wrong_rank = self.array("rank.npy", np.zeros(3, np.float32))
        wrong_type = self.array("type.npy", np.zeros((4, 3)))
        wrong_extent = self.array("extent.npy", np.zeros((4, 5), np.float32))
        for name, path, mentions in (("rank", wrong_rank, ["X[i,j]", "rank.npy", ":2:7"]),
                                     ("dtype", wrong_type, ["'X'", "f32", "f64", "type.npy", ":2:7"]),
                                     ("extent", wrong_extent, ["'j'", "3", "5", "extent.npy", ":2:"]),
                                     ("missing", self.path("no.npy"), ["no.npy", "No such file"]),
                                     ("folder", self.folder, [self.folder, "folder"]),
                                     ("fifo", "/dev/null", ["/dev/null"]),
                                     ("not a tensor", self.program, ["p.ein"])):
            with self.subTest(name=name):
                self.refuse(1, "run", self.program, *RANDOM, "--in", f"X={path}", mentions=mentions)

    def test_in_wants_name_and_file_once(self):
        for given in ("X", "X=", "=x.npy", ""):
            self.refuse(1, "run", self.program, *RANDOM, "--in", given, mentions=["--in"])
        x = self.array("x.npy", np.zeros((4, 3), np.float32))
        self.refuse(1, "run", self.program, *RANDOM, "--in", f"X={x}", "--in", f"X={x}", mentions=["'X'", "twice"])

    def test_extents_come_from_the_data(self):
        program = "input X[i,j]\nS[j] = sum[i] X[i,j]\n"
        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        result = self.succeed("run", "-", "--in", f"X={self.array('x.npy', values)}", stdin=program)
        self.assertEqual(numbers_in(result.out), ("S", "f32", (3,), [3, 7, 5, 15]))


class Dims(CommandLineTest):
    def test_dim_overrides_and_completes(self):
        shape = numbers_in(self.succeed("run", self.program, *RANDOM, "--dim", "i=7").out.splitlines(True)[0])[2]
        self.assertEqual(shape, (7,))
        program = "input X[i]\nY[i] = X[i]\n"
        self.refuse(1, "run", "-", "--random", "1", stdin=program, mentions=["--dim i="])
        self.succeed("run", "-", "--random", "1", "--dim", "i=2", stdin=program)
        self.succeed("run", "-", "--random", "1", "--dim", "i=0", stdin=program)

    def test_wrong_dims_are_refused(self):
        for given, mentions in (("k=3", ["'k'"]), ("i=x", ["'x'"]), ("i=-1", ["whole number"]), ("i=1.5", ["'1.5'"]),
                                ("i=", ["--dim"]), ("i", ["--dim"]),
                                ("i=99999999999999999999", ["99999999999999999999"]),
                                ("i=3 ", ["'3 '"]),
                                ("i=9223372036854775807", ["X[i,j]", "63 bits"])):
            with self.subTest(given=given):
                self.refuse(1, "run", self.program, *RANDOM, "--dim", given, mentions=mentions)
        self.refuse(1, "run", self.program, *RANDOM, "--dim", "i=1", "--dim", "i=2", mentions=["'i'", "twice"])
        self.refuse(1, "check", "-", "--dim", "hight=2", stdin="input X[height]\nY[height] = X[height]\n",
                    mentions=["'hight'", "'height'"])

    def test_data_and_dim_must_agree(self):
        x = self.array("x.npy", np.zeros((4, 3), np.float32))
        self.refuse(1, "run", self.program, *RANDOM, "--in", f"X={x}", "--dim", "i=5", mentions=["'i'", "4", "5"])

    def test_more_memory_than_there_is_ends_the_run_before_it_begins(self):
        program = "input X[i] : f64\nY[i] = X[i] + 1\noutput Y\n"
        self.refuse(2, "run", "-", "--random", "1", "--dim", "i=1000000000000", stdin=program,
                    mentions=["memory", "TB"])
        program = "dims i=1000000 j=1000000000\ninput X[i] : f64\nY[i,j] = X[i] + 1\noutput Y\n"
        self.refuse(2, "run", "-", "--random", "1", stdin=program, mentions=["'Y'", "memory", "PB"])

    def test_bytes_of_all_tensors_together_overflow_by_name(self):
        self.refuse(1, "explain", "-", "--dim", "i=922337203685477580", stdin="input X[i] : f64\nY[i] = X[i] + 1\n",
                    mentions=["Y"])


class Scalars(CommandLineTest):
    def value(self, *options):
        program = "dims i=1\nscalar a = 3\nscalar b\ninput X[i] : f64\nY[i] = a + b + 0 * X[i]\noutput Y\n"
        return numbers_in(self.succeed("run", "-", "--random", "1", *options, stdin=program).out)[3][3]

    def test_values(self):
        self.assertEqual(self.value("--scalar", "b=2"), 5)
        self.assertEqual(self.value("--scalar", "b=2", "--scalar", "a=-1.5e1"), -13)
        self.assertEqual(self.value("--scalar", "b=.5"), 3.5)
        self.assertEqual(self.value("--scalar", "b=-inf"), -np.inf)
        self.assertTrue(np.isnan(self.value("--scalar", "b=nan")))

    def test_wrong_scalars_are_refused(self):
        for given, mentions in (([], ["'bias'", "--scalar bias="]), (["bias=x"], ["bias=x", "'x'"]),
                                (["bias="], ["--scalar"]),
                                (["bais=1"], ["'bais'", "'bias'"]), (["bias=1", "bias=2"], ["'bias'", "twice"]),
                                (["bias=1", "lr=1"], ["'lr'"]), (["bias=1e999"], ["1e999"]), (["bias=1,5"], ["'1,5'"])):
            with self.subTest(given=given):
                options = [text for value in given for text in ("--scalar", value)]
                self.refuse(1, "run", self.program, "--random", "1", *options, mentions=mentions)
        # The one missing and the one unknown, together.
        self.refuse(1, "run", self.program, "--random", "1", "--scalar", "qq=1", mentions=["'bias'", "'qq'"])

    def test_integers_want_whole_scalars(self):
        program = "dims i=2\nscalar s\ninput X[i] : i64\nY[i] = X[i] * s\noutput Y\n"
        self.succeed("run", "-", "--random", "1", "--scalar", "s=2", stdin=program)
        for value in ("2.5", "inf", "-inf", "nan", "1e+300"):
            self.refuse(1, "run", "-", "--random", "1", "--scalar", f"s={value}", stdin=program,
                        mentions=["'s'", value])
        self.refuse(1, "check", "-", stdin=program.replace("scalar s", "scalar s = 2.5"), mentions=["s"])


class RandomInputs(CommandLineTest):
    def values(self, program, names, seed="1"):
        outs = [text for name in names for text in ("--out", f"{name}={self.path(name)}.npy")]
        self.succeed("run", "-", "--random", seed, *outs, stdin=program)
        return [np.load(self.path(f"{name}.npy")) for name in names]

    def test_values_depend_on_seed_and_name_only(self):
        first = "dims i=50 j=40\ninput X[i,j], W[j]\nY[i] = sum[j] X[i,j] * W[j]\n"
        other = "dims a=50 b=40\ninput W[b]\ninput V[a]\ninput X[a,b]\nQ[b] = sum[a] X[a,b] * W[b] * V[a]\n"
        x, w = self.values(first, "XW")
        for program in (first, other):
            again = self.values(program, "XW")
            np.testing.assert_array_equal(again[0], x)
            np.testing.assert_array_equal(again[1], w)
        self.assertFalse(np.array_equal(self.values(first, "X", "2")[0], x))
        self.assertFalse(np.array_equal(x[0], w))
        # bound from a file, the others stay as they are
        self.succeed("run", "-", "--random", "1", "--in", f"X={self.array('x.npy', x)}", "--out",
                     f"W={self.path('w.npy')}", stdin=first)
        np.testing.assert_array_equal(np.load(self.path("w.npy")), w)

    def test_floats_are_uniform_between_minus_one_and_one(self):
        n = 200_000
        for dtype in ("f32", "f64"):
            x = self.values(f"dims i={n}\ninput X[i] : {dtype}\nY[i] = X[i]\n", "X")[0].astype(np.float64)
            self.assertTrue(np.all(np.abs(x) < 1))
            # Kolmogorov and Smirnov: above 1.95/sqrt(n) once in 1000 seeds; this seed is fixed.
            empirical = np.arange(1, n + 1) / n
            self.assertLess(np.max(np.abs((np.sort(x) + 1) / 2 - empirical)), 1.95 / np.sqrt(n))
            self.assertLess(abs(np.corrcoef(x[1:], x[:-1])[0, 1]), 4 / np.sqrt(n))

    def test_other_types_are_random_too(self):
        program = "dims i=5000\ninput X[i] : i32, B[i] : bool, H[i] : f16\nY[i] = X[i]\nZ[i] = B[i]\nV[i] = H[i]\n"
        x, b, h = self.values(program, "XBH")
        self.assertEqual((x.dtype, b.dtype, h.dtype), (np.int32, np.bool_, np.float16))
        self.assertGreater(len(np.unique(x)), 10)
        self.assertTrue(2300 < b.sum() < 2700)
        self.assertTrue(np.all(np.abs(h) <= 1) and len(np.unique(h)) > 1000)

    def test_wrong_seeds_are_refused(self):
        for seed in ("x", "1.5", "-1", "18446744073709551616", ""):
            with self.subTest(seed=seed):
                self.refuse(1, "run", self.program, "--scalar", "bias=1", f"--random={seed}", mentions=["--random"])


class Outputs(CommandLineTest):
    def test_summaries_are_those_of_the_written_file(self):
        summaries = self.succeed("run", self.program, *RANDOM).out.splitlines(True)
        result = self.succeed("run", self.program, *RANDOM, "--json")
        printed = parse_json(result.out)["outputs"]
        self.succeed("run", self.program, *RANDOM, "--out", f"Z={self.path('Z.npy')}", "--out",
                     f"M={self.path('M.npy')}")
        self.assertEqual(len(summaries), 2)
        for line, name in zip(summaries, "ZM"):
            written = np.load(self.path(f"{name}.npy"))
            wide = written.astype(np.float64)
            expected = [wide.min(), wide.max(), wide.mean(), wide.sum()]
            got_name, dtype, shape, numbers = numbers_in(line)
            self.assertEqual((got_name, dtype, shape), (name, "f32", written.shape))
            np.testing.assert_allclose(numbers, expected, rtol=1e-5)
            in_json = [printed[name][key] for key in ("min", "max", "mean", "sum")]
            np.testing.assert_allclose(in_json, expected, rtol=1e-14)
            self.assertEqual(printed[name]["shape"], list(shape))

    def test_summaries_of_nan_infinity_nothing_and_bool(self):
        program = "input X[i] : f64\nY[i] = X[i]\n"
        for values, expected in (([1, np.nan, 3], [np.nan] * 4), ([], [np.nan, np.nan, np.nan, 0]),
                                 ([np.inf, 1], [1, np.inf, np.inf, np.inf]),
                                 ([np.inf, -np.inf], [-np.inf, np.inf, np.nan, np.nan])):
            with self.subTest(values=values):
                x = self.array("x.npy", np.array(values, float))
                result = self.succeed("run", "-", "--in", f"X={x}", stdin=program)
                np.testing.assert_array_equal(numbers_in(result.out)[3], expected)
                parse_json(self.succeed("run", "-", "--in", f"X={x}", "--json", stdin=program).out)
        b = self.array("b.npy", np.array([True, False, True]))
        result = self.succeed("run", "-", "--in", f"X={b}", stdin="input X[i] : bool\nY[i] = X[i]\n")
        np.testing.assert_allclose(numbers_in(result.out)[3], [0, 1, 2 / 3, 2], rtol=1e-5)

    def test_a_number_is_said_so_that_it_reads_back(self):
        program = ("input X[i] : f64, N[i] : i64, F[i] : f32, H[i] : f16\na[] = sum[i] X[i] / 3\nb[] = sum[i] F[i] / 3\nc[] = sum[i] N[i]\n"
                   "d[] = 1 / (sum[i] F[i] * 0)\ne[] = max[i] H[i]\nf[] = X[0] > 0.5\noutput a, b, c, d, e, f\n")
        rng = np.random.default_rng(3)
        given = []
        for name, values in (("X", rng.random(1)), ("F", rng.random(1, np.float32)), ("N", np.array([2**53 + 1])),
                             ("H", np.array([0.1], np.float16))):
            given += ["--in", f"{name}={self.array(name + '.npy', values)}"]
        for how in ((), ("--sites", "2"), ("--memory", "1MB")):
            lines = [line.split() for line in self.succeed("run", "-", *given, *how, stdin=program).out.splitlines()]
            said = {name: text for name, _, text in lines}
            report = parse_json(self.succeed("run", "-", *given, *how, "--json", stdin=program).out)["outputs"]
            for name, dtype, _ in lines:
                written = self.path(f"{name}.out.npy")
                self.succeed("run", "-", *given, *how, "--out", f"{name}={written}", "--overwrite", stdin=program)
                exact = np.load(written)[()]
                with self.subTest(how=how, name=name):
                    self.assertEqual(exact.dtype.type(int(said[name]) if dtype == "i64" else float(said[name])), exact)
                    value = report[name]["value"]
                    self.assertEqual(np.inf if value is None else exact.dtype.type(value), exact)
            self.assertEqual((said["c"], said["e"], report["c"]["value"], report["e"]["value"]), (str(2**53 + 1), "0.1", 2**53 + 1, 0.1))

    def test_any_tensor_can_be_written_even_an_input(self):
        self.succeed("run", self.program, *RANDOM, "--out", f"X={self.path('x.npy')}", "--out",
                     f"M={self.path('m.npy')}")
        np.testing.assert_array_equal(np.load(self.path("x.npy")).max(0), np.load(self.path("m.npy")))

    def test_every_format_can_be_written(self):
        for name in ("z.npy", "z.npz:Z", "z.safetensors:Z", "z.idx", "z.idx.gz"):
            result = self.succeed("run", self.program, *RANDOM, "--out", f"Z={self.path(name)}")
            self.assertEqual(result.out, f"wrote Z f32 (4,) to {self.path(name)}\n")
            self.succeed("einsum", "i", self.path(name))

    def test_impossible_outputs_are_refused_before_any_work(self):
        os.mkdir(self.path("folder.npy"))
        for given, mentions in (("Z=missing/z.npy", ["missing"]), (f"Z={self.path('folder.npy')}", ["folder"]),
                                ("Z=z.txt", ["z.txt", ".npy"]),
                                ("Z=z", [".npy"]), ("Z=z.npz", ["z.npz:"]), ("Z=z.npy:Z", ["z.npy:Z"]),
                                ("Q=q.npy", ["'Q'"]),
                                ("Z", ["--out"]), ("Z=", ["--out"]), ("=z.npy", ["--out"]),
                                ("Z=/dev/full", ["/dev/full"])):
            with self.subTest(given=given):
                result = self.refuse(1, "run", self.program, *RANDOM, "--progress", "always", "--out", given,
                                     mentions=mentions, cwd=self.folder)
                self.assertNotIn("%", result.err)  # no step has been taken
        self.refuse(1, "run", self.program, *RANDOM, "--out", "Z=z.npy", "--out", "M=./z.npy", mentions=["z.npy"],
                    cwd=self.folder)
        self.refuse(1, "run", self.program, *RANDOM, "--out", "Z=z.npy", "--out", "Z=y.npy", mentions=["'Z'"],
                    cwd=self.folder)
        self.refuse(1, "einsum", "i", self.array("x.npy", np.zeros(3)), "--out", "missing/z.npy", mentions=["missing"])
        self.assertEqual(self.left_in_folder(), ["folder.npy", "p.ein", "x.npy"])

    def test_a_folder_that_may_not_be_written_is_refused(self):
        os.mkdir(self.path("closed"), 0o500)
        if os.geteuid() == 0:
            # root may write anywhere but into a file system without files
            self.refuse(1, "run", self.program, *RANDOM, "--out", "Z=/proc/z.npy", mentions=["/proc/z.npy"])
        else:
            self.refuse(1, "run", self.program, *RANDOM, "--out", f"Z={self.path('closed/z.npy')}", mentions=["closed"])

    def test_a_failing_run_leaves_the_old_file_as_it_was(self):
        old = self.array("z.npy", np.arange(7))
        with open(old, "rb") as file:
            content = file.read()
        before = os.stat(old)
        out = ("--out", f"Z={old}")
        self.refuse(1, "run", self.program, "--random", "1", *out)  # no value for a scalar
        self.refuse(1, "run", self.program, "--scalar", "bias=1", *out)  # no data
        self.refuse(1, "run", self.program, *RANDOM, *out, "--out", "Q=q.npy")
        self.refuse(2, "run", self.program, *RANDOM, *out, "--dim", "i=1000000000000")
        self.refuse(1, "run", "-", *RANDOM, *out, stdin=PROGRAM + "Q[i] = nothing\n")
        with open(old, "rb") as file:
            self.assertEqual(file.read(), content)
        self.assertEqual(os.stat(old).st_mtime_ns, before.st_mtime_ns)
        self.assertEqual(os.stat(old).st_ino, before.st_ino)
        self.assertEqual(self.left_in_folder(), ["p.ein", "z.npy"])

    def test_a_file_that_is_read_is_only_replaced_when_asked_for(self):
        values = np.arange(12, dtype=np.float32).reshape(4, 3)
        x = self.array("x.npy", values)
        os.symlink("x.npy", self.path("soft.npy"))
        os.link(x, self.path("hard.npy"))
        program = "input X[i,j]\nY[j,i] = X[i,j] + 1\noutput Y\n"
        for given, out in ((x, x), (x, self.path("soft.npy")), (self.path("soft.npy"), x), (x, self.path("hard.npy")),
                           (x, self.path("./x.npy"))):
            for options in ((), ("--sites", "2")):
                with self.subTest(given=given, out=out, options=options):
                    self.refuse(1, "run", "-", "--in", f"X={given}", "--out", f"Y={out}", *options, stdin=program,
                                mentions=[out, "--overwrite"])
                    self.refuse(1, "einsum", "ij->ji", given, "--out", out, *options, mentions=[out, "--overwrite"])
        np.testing.assert_array_equal(np.load(x), values)
        self.succeed("run", "-", "--in", f"X={x}", "--out", f"Y={x}", "--overwrite", stdin=program)
        np.testing.assert_array_equal(np.load(x), values.T + 1)
        self.succeed("einsum", "ij->ji", x, "--out", self.path("soft.npy"), "--overwrite", "--sites", "2")
        np.testing.assert_array_equal(np.load(x), values + 1)
        self.assertTrue(os.path.islink(self.path("soft.npy")))

    def test_an_archive_that_is_read_is_only_replaced_when_asked_for(self):
        np.savez(self.path("w.npz"), Y=np.arange(3, dtype=np.float32))
        w = self.path("w.npz")
        program = "input X[i]\nY[i] = X[i] + 1\noutput Y\n"
        arguments = ("run", "-", "--in", f"X={w}:Y", "--out", f"Y={w}:Y")
        self.refuse(1, *arguments, stdin=program, mentions=["w.npz", "--overwrite"])
        self.succeed(*arguments, "--overwrite", stdin=program)
        np.testing.assert_array_equal(np.load(w)["Y"], [1, 2, 3])

    def test_what_is_no_tensor_never_replaces_a_file_that_is_read(self):
        x = self.array("x.npy", np.zeros((4, 3), np.float32))
        for trace in (x, self.program):
            self.refuse(1, "run", self.program, *RANDOM, "--in", f"X={x}", "--trace", trace, "--overwrite",
                        mentions=[trace])
        for page in (x, self.program):
            self.refuse(1, "explain", self.program, "--in", f"X={x}", "--html", page, mentions=[page])
        self.assertEqual(np.load(x).shape, (4, 3))
        with open(self.program, encoding="utf-8") as file:
            self.assertEqual(file.read(), PROGRAM)


class Archives(CommandLineTest):
    """--in FILE.npz without a name."""

    TEXT = "input X[i,j], W[j], eta[]\nZ[i] = eta[] * sum[j] X[i,j] * W[j]\noutput Z\n"

    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(1)
        self.x, self.w = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 3), (3,)))
        self.expected = 2 * self.x @ self.w

    def expect(self, *inputs):
        result = self.succeed("run", "-", *[text for file in inputs for text in ("--in", file)], "--out",
                              f"Z={self.path('z.npy')}", stdin=self.TEXT)
        np.testing.assert_allclose(np.load(self.path("z.npy")), self.expected, rtol=1e-5)
        return result

    def test_all_inputs_of_its_names_are_bound(self):
        for save in (np.savez, np.savez_compressed):
            save(self.path("w.npz"), X=self.x, W=self.w, eta=np.float32(2))
            self.assertEqual(self.expect(self.path("w.npz")).err, "")
        self.succeed("check", "-", "--in", self.path("w.npz"), stdin=self.TEXT)
        self.assertIn("X[4,3]", self.succeed("explain", "-", "--in", self.path("w.npz"), stdin=self.TEXT).out)

    def test_tensors_without_an_input_are_said(self):
        np.savez(self.path("w.npz"), X=self.x, W=self.w, eta=np.float32(2), bias=self.w, epoch=np.int64(3))
        said = self.expect(self.path("w.npz")).err
        for text in ("w.npz", "bias", "epoch"):
            self.assertIn(text, said)
        self.assertNotRegex(said, r"\b[XW]\b")

    def test_several_archives_and_single_files(self):
        np.savez(self.path("w.npz"), W=self.w, eta=np.float32(5))
        np.savez(self.path("x.npz"), X=self.x)
        eta = self.array("eta.npy", np.float32(2))
        said = self.expect(self.path("w.npz"), f"eta={eta}", self.path("x.npz")).err
        self.assertIn("1 tensor not taken, since another --in gives the input of that name: eta\n", said)
        self.assertNotIn("no input", said)
        np.savez(self.path("w.npz"), W=self.w, eta=np.float32(5), epoch=np.int64(3), bias=self.w)
        said = self.expect(f"eta={eta}", self.path("w.npz"), self.path("x.npz")).err
        self.assertRegex(said, "2 tensors for which there is no input: (epoch, bias|bias, epoch)\n")
        self.assertIn("1 tensor not taken, since another --in gives the input of that name: eta\n", said)
        np.savez(self.path("y.npz"), X=self.x)
        self.refuse(1, "run", "-", "--in", self.path("x.npz"), "--in", self.path("y.npz"), stdin=self.TEXT,
                    mentions=["'X'", "x.npz", "y.npz"])

    def test_an_archive_for_no_input_is_refused(self):
        np.savez(self.path("w.npz"), weights=self.w)
        self.refuse(1, "run", "-", "--random", "1", "--in", self.path("w.npz"), stdin=self.TEXT,
                    mentions=["weights", "X", "W"])
        self.refuse(1, "run", "-", "--in", self.path("none.npz"), stdin=self.TEXT, mentions=["none.npz"])
        self.refuse(1, "run", "-", "--in", self.path("x.npy"), stdin=self.TEXT, mentions=["--in NAME="])

    def test_safetensors_too(self):
        header = json.dumps({"W": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]},
                             "eta": {"dtype": "F32", "shape": [], "data_offsets": [12, 16]},
                             "a.b": {"dtype": "F32", "shape": [], "data_offsets": [16, 20]}}).encode()
        with open(self.path("w.safetensors"), "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header + self.w.tobytes() + np.float32([2, 0]).tobytes())
        said = self.expect(self.path("w.safetensors"), f"X={self.array('x.npy', self.x)}").err
        self.assertIn("a.b", said)


class Einsum(CommandLineTest):
    def test_it_is_computed_as_a_program_is(self):
        rng = np.random.default_rng(2)
        a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((300, 200), (200, 100)))
        files = self.array("a.npy", a), self.array("b.npy", b)
        out = ("--out", self.path("c.npy"))
        for options in ((), ("--threads", "1"), ("--sites", "4"), ("--sites", "4", "--planner", "data", "--batch", "i"),
                        ("--memory", "10M", "--threads", "1"), ("--analyze",), ("--explain",)):
            with self.subTest(options=options):
                said = self.succeed("einsum", "ij,jk->ik", *files, *out, *options).out
                np.testing.assert_array_equal(np.load(self.path("c.npy")), a @ b)
                self.assertIn("wrote result f32 (300, 100)", said)
                self.assertEqual("predicted | measured" in said, "--analyze" in options)
                self.assertEqual("result[i,k] = sum[j] x[i,j] * y[j,k]" in said, "--explain" in options)
        report = parse_json(self.succeed("einsum", "ij,jk->ik", *files, "--sites", "4", "--json").out)
        self.assertEqual((report["sites"], report["outputs"]["result"]["sum"]), (4, (a @ b).sum()))
        for option in (("--join", "x+"), ("--join", "nothing(x)")):
            self.refuse(1, "einsum", "ij,jk->ik", *files, *option, "--sites", "2", mentions=["<join>"])


class Options(CommandLineTest):
    def test_a_misspelt_option_gets_a_suggestion(self):
        for command, given, wanted in ((["run"], "--memmory", "--memory"), (["run", self.program], "--memmory=40MB", "--memory"),
                                       (["run", self.program], "-memory", "--memory"),
                                       (["run", self.program, "--in", "X=no.npy"], "--thread", "--threads"),
                                       (["einsum", "ij"], "--jion", "--join"), (["explain"], "--planer", "--planner"),
                                       (["check"], "--dims", "--dim"), (["calibrate"], "--treads", "--threads"), ([], "--hlep", "--help")):
            with self.subTest(command=command, given=given):
                self.refuse(1, *command, given, mentions=[f"'{given.split('=')[0]}'", f"did you mean '{wanted}'?"])
        self.refuse(1, "explain", self.program, "--random", "1", mentions=["'--random'", "einrel run has it"])
        self.refuse(1, "check", self.program, "--spill", "1", mentions=["einrel run, einrel train and einrel einsum have it"])

    def test_an_option_that_takes_one_value_is_named_when_it_is_given_twice(self):
        for command, option in (("run", "--memory"), ("run", "--random"), ("explain", "--cost"), ("einsum", "--out")):
            given = ("ij", self.program) if command == "einsum" else (self.program,)
            self.refuse(1, command, *given, option, "1M", f"{option}=2M", mentions=[f"{option} is given 2 times"])

    def test_an_option_with_an_empty_value_is_refused(self):
        for command in ("run", "train", "explain", "check", "einsum", "sql", "calibrate"):
            taking = re.findall(r"^  (--[a-z-]+) [A-Z]", self.succeed(command, "--help").out, re.MULTILINE)
            self.assertGreater(len(taking), 0)
            given = {"einsum": ("ij", self.program), "calibrate": ()}.get(command, (self.program,))
            for option in taking:
                with self.subTest(command=command, option=option):
                    self.refuse(1, command, *given, option, "", mentions=[f"{option}: the value is empty"])

    def test_random_inputs_need_extents(self):
        program = self.text_file("open.ein", "input D[b,h,c], E[c]\nY[b] = sum[h,c] D[b,h,c] * E[c]\n")
        said = self.refuse(1, "run", program, "--random", "1", "--dim", "b=2", mentions=["--random", "c, h", "--dim c=N --dim h=N"])
        self.assertNotIn("missing", said.err)
        self.succeed("run", program, "--random", "1", "--dim", "b=2", "--dim", "c=3", "--dim", "h=4")

    def test_a_misspelt_command_gets_a_suggestion(self):
        self.refuse(1, "exlpain", self.program, mentions=["did you mean 'explain'?"])
        self.refuse(1, "list", "kernel", mentions=["did you mean 'kernels'?"])

    def test_wrong_options_are_said_before_missing_inputs(self):
        missing = ("--in", f"X={self.path('missing.npy')}")
        program = self.text_file("open.ein", "input X[i,j]\nY[i] = sum[j] X[i,j]\n")
        for options in (("--memory", "40X"), ("--sites", "0"), ("--threads", "0"), ("--planner", "nobody"),
                        ("--cost", "time"), ("--machine", "nobody"), ("--progress", "sometimes"), ("--repeat", "0"),
                        ("--timeout", "0"), ("--spill", "/tmp"), ("--random", "x"), ("--dim", "i"), ("--scalar", "s=x"),
                        ("--out", "Y")):
            for inputs in ((), missing):
                with self.subTest(options=options, inputs=inputs):
                    result = self.refuse(1, "run", program, *inputs, *options, mentions=[options[0][2:]])
                    self.assertNotIn("missing", result.err)
        for options in (("--memory", "40X"), ("--sites", "0"), ("--planner", "nobody"), ("--reduce", "nobody")):
            result = self.refuse(1, "einsum", "ij", self.path("missing.npy"), *options, mentions=[options[1]])
            self.assertNotIn("missing", result.err)
        for options in (("--memory", "40X"), ("--sites", "0"), ("--planner", "nobody"), ("--html", "/none/x.html")):
            result = self.refuse(1, "explain", program, *missing, *options, mentions=[options[1]])
            self.assertNotIn("missing", result.err)

    def test_sizes(self):
        program = self.text_file("small.ein", "dims i=8\ninput X[i]\nY[i] = X[i]\n")
        for given, size in (("40000000", 40e6), ("40000000B", 40e6), ("40M", 40e6), ("40MB", 40e6), ("40mb", 40e6),
                            ("40m", 40e6), ("40 MB", 40e6), ("40MiB", 40 * 2**20), ("40mib", 40 * 2**20),
                            ("40Mi", 40 * 2**20), ("1.5G", 1.5e9), ("1.5GiB", 1.5 * 2**30), ("512k", 512e3),
                            ("2T", 2e12), ("1KiB", 1024), ("1e3kB", 1e6)):
            with self.subTest(given=given):
                result = self.succeed("explain", program, "--memory", given, "--json")
                self.assertEqual(parse_json(result.out)["memory_limit"], size)
        for given in ("", "M", "40X", "40MBB", "40iB", "1.5", "-1M", "0", "0.1", "1e30G", "40M 2", "infG", "1", "512"):
            with self.subTest(given=given):
                self.refuse(1, "run", program, "--random", "1", f"--memory={given}", mentions=["--memory", "40" if "40" in given else given])
        self.refuse(1, "run", program, "--random", "1", "--memory", "20,5MB", mentions=["--memory 20,5MB: '20,5MB' is not a size"])
        for given in ("none", "NONE"):
            self.assertIsNone(parse_json(self.succeed("explain", program, "--memory", given, "--json").out)["memory_limit"])


def limit_file_size(ignore_signal):
    """For the new process: no file above 64 KiB, as on a disk that is full then."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN if ignore_signal else signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
    return limit


class FullDisk(CommandLineTest):
    BIG = ("run", "-", "--random", "1", "--dim", "i=50000")
    TEXT = "input X[i]\nY[i] = 2 * X[i]\nS[] = sum[i] X[i]\noutput Y, S\n"

    def test_exit_code_2_and_nothing_left(self):
        for ignore in (True, False):
            for name in ("y.npy", "y.npz:Y", "y.safetensors:Y", "y.idx", "y.idx.gz"):
                with self.subTest(name=name, ignore=ignore):
                    self.refuse(2, *self.BIG, "--out", f"Y={self.path(name)}", stdin=self.TEXT, restore_signals=False,
                                preexec_fn=limit_file_size(ignore), mentions=["y.", "File too large"])
                    self.assertEqual(self.left_in_folder(), ["p.ein"])

    def test_no_output_appears_unless_all_can(self):
        self.array("y.npy", np.arange(3))
        before = os.stat(self.path("y.npy"))
        for order in (("S", "Y"), ("Y", "S")):
            outs = [text for name in order for text in ("--out", f"{name}={self.path(name.lower())}.npy")]
            self.refuse(2, *self.BIG, *outs, stdin=self.TEXT, restore_signals=False, preexec_fn=limit_file_size(True))
            self.assertEqual(self.left_in_folder(), ["p.ein", "y.npy"])
            self.assertEqual(os.stat(self.path("y.npy")).st_ino, before.st_ino)
        np.testing.assert_array_equal(np.load(self.path("y.npy")), np.arange(3))


class Json(CommandLineTest):
    def test_run_has_the_promised_keys(self):
        x = self.array("x.npy", np.ones((4, 3), np.float32))
        report = parse_json(self.succeed("run", self.program, *RANDOM, "--in", f"X={x}", "--json").out)
        self.assertLessEqual(EXPLAINED_KEYS | {"measured"}, set(report))
        self.assertEqual(report["program"], self.program)
        self.assertEqual(report["sites"], 1)
        self.assertEqual(report["inputs"]["X"], {"shape": [4, 3], "dtype": "f32", "source": x})
        self.assertLessEqual({"shape", "dtype", "sum"}, set(report["outputs"]["Z"]))
        self.assertEqual(report["outputs"]["M"]["sum"], 3)
        self.assertLessEqual(COST_KEYS, set(report["cost"]))
        self.assertLessEqual(MEASURED_KEYS, set(report["measured"]))
        self.assertEqual([vertex["name"] for vertex in report["vertices"]][-2:], ["Z", "M"])
        for vertex in report["vertices"]:
            self.assertLessEqual(VERTEX_KEYS | {"seconds"}, set(vertex))
            self.assertEqual(set(vertex["parts"]), set(vertex["labels"]))
            self.assertGreaterEqual(vertex["seconds"], 0)
        spent = sum(vertex["seconds"] for vertex in report["vertices"])
        self.assertLessEqual(spent, report["measured"]["seconds"])

    def test_peak_memory_is_that_of_the_run(self):
        ballast = np.ones(1 << 25)  # 256 MB here are not the program's
        report = parse_json(self.succeed("run", self.program, *RANDOM, "--json").out)
        self.assertEqual(ballast[-1], 1)
        self.assertLess(report["peak_memory"]["measured"], 200e6)
        self.assertGreater(report["peak_memory"]["measured"], report["peak_memory"]["predicted"])
        # all together: X, W and Z_1 (the sum), Z; then M
        self.assertGreaterEqual(report["peak_memory"]["predicted"], 4 * (12 + 3 + 4))

    def test_explain_and_einsum_print_one_object_too(self):
        report = parse_json(self.succeed("explain", self.program, "--json").out)
        self.assertLessEqual(EXPLAINED_KEYS, set(report))
        report = parse_json(self.succeed("einsum", "ij->i", self.array("x.npy", np.ones((2, 3))), "--json").out)
        self.assertLessEqual(EXPLAINED_KEYS | {"measured"}, set(report))
        (result,) = report["outputs"].values()
        self.assertEqual((result["shape"], result["dtype"], result["sum"]), ([2], "f64", 6))

    def test_json_is_all_that_stands_on_standard_output(self):
        for options in (["--explain"], ["--out", f"Z={self.path('z.npy')}"], ["--progress", "always"]):
            with self.subTest(options=options):
                parse_json(self.succeed("run", self.program, *RANDOM, "--json", *options).out)

    def test_errors_are_errors_with_json_too(self):
        self.refuse(1, "run", self.program, "--json", mentions=["bias"])


class Streams(CommandLineTest):
    def start(self, arguments, **options):
        process.cases += 1
        return subprocess.run([process.PROGRAM, *arguments], timeout=120, **options)

    def test_progress_goes_to_standard_error_only(self):
        quiet = self.succeed("run", self.program, *RANDOM)
        self.assertEqual(quiet.err, "")
        shown = self.succeed("run", self.program, *RANDOM, "--progress", "always")
        self.assertEqual(shown.out, quiet.out)
        self.assertIn("100 %", shown.err)
        self.assertEqual(self.succeed("run", self.program, *RANDOM, "--progress", "never").err, "")
        self.refuse(1, "run", self.program, *RANDOM, "--progress", "sometimes", mentions=["sometimes", "always"])

    def commands(self):
        x = self.array("x.npy", np.ones(3))
        return (["run", self.program, *RANDOM], ["run", self.program, *RANDOM, "--json"], ["explain", self.program],
                ["check", self.program], ["einsum", "i", x], ["list", "functions"], ["list", "rules"], ["--help"],
                ["--version"])

    def test_output_that_cannot_be_written_is_a_failed_run(self):
        for arguments in self.commands():
            with self.subTest(arguments=arguments), open("/dev/full", "w") as full:
                ended = self.start(arguments, stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(ended.returncode, 2)
                self.assertIn(b"standard output", ended.stderr)

    def test_streams_that_are_closed_or_full_do_not_crash_it(self):
        wrong = ["run", "missing.ein"]
        loud = ["run", self.program, *RANDOM, "--progress", "always"]
        with open("/dev/full", "w") as full:
            self.assertEqual(self.start(wrong, stderr=full).returncode, 1)
            self.assertIn(self.start(loud, stdout=subprocess.DEVNULL, stderr=full).returncode, (0, 2))
        for closed in (0, 1, 2), (1,), (2,):
            def close(closed=closed):
                for descriptor in closed:
                    os.close(descriptor)
            with self.subTest(closed=closed):
                self.assertEqual(self.start(wrong, stderr=subprocess.DEVNULL, preexec_fn=close).returncode, 1)
                out = self.path(f"z{len(closed)}.npy")
                ended = self.start([*loud, "--out", f"Z={out}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   preexec_fn=close)
                self.assertIn(ended.returncode, (0, 2))
                self.assertEqual(np.load(out).shape, (4,))  # nothing was printed into it

    def test_a_reader_that_left_does_not_crash_it(self):
        for ignore in (True, False):
            for arguments in self.commands():
                with self.subTest(arguments=arguments, ignore=ignore):
                    reader, writer = os.pipe()
                    os.close(reader)
                    handler = signal.SIG_IGN if ignore else signal.SIG_DFL
                    ended = self.start(arguments, stdout=writer, stderr=subprocess.PIPE, restore_signals=False,
                                       preexec_fn=lambda handler=handler: signal.signal(signal.SIGPIPE, handler))
                    os.close(writer)
                    self.assertIn(ended.returncode, (2,) if ignore else (2, -signal.SIGPIPE), ended.stderr)


if __name__ == "__main__":
    process.main()
