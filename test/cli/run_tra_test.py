"""Running programs in the tensor relational algebra, and plans of relations: on sites, on ranks, within memory.

Usage: run_tra_test.py EINREL
"""

import json
import os
import re
import sys

import numpy as np

sys.dont_write_bytecode = True
import einrel_process as process  # noqa: E402

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
SITES = (1, 2, 3, 4, 6)
RANKS = (2, 3)
PLANNERS = ((), ("--planner", "table-1"), ("--planner", "ia-rules"))
PRODUCT = """input A[7,11] cut <2,3> on <1>
input B[11,5] cut <3,2> on <0>
C = aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(A, B))
"""
LANGUAGE = """dims i=7 j=11 k=5
input A[i,j], B[j,k]
C[i,k] = relu(sum[j] A[i,j] * B[j,k])
m[] = mean[i,k] C[i,k]
output C, m
"""


def matmul(a):
    return {"C": a["A"] @ a["B"]}


def diag(a):
    return {"Z": np.diag(a["X"] + a["Y"])}


def nearest_neighbour(a):
    difference = a["Q"] - a["X"]
    distances = ((difference @ a["A"]) * difference).sum(axis=1)
    return {"nearest": np.array([distances.min(), distances.argmin()])}


def distances(a):
    return {"D": np.sqrt(((a["X"][:, None] - a["Y"]) ** 2).sum(axis=2))}


def two_layer_step(a):
    a1 = np.maximum(a["X"] @ a["W1"], 0)
    a2 = 1 / (1 + np.exp(-(a1 @ a["W2"])))
    d2 = a2 - a["Y"]
    d1 = (a1 > 0) * (d2 @ a["W2"].T)
    return {"V1": a["W1"] - 0.01 * a["X"].T @ d1, "V2": a["W2"] - 0.01 * a1.T @ d2}


# Each with smaller extents, uneven ones where the program allows it, and what it computes.
SMALL = {"matmul": ({10000: 23, 640000: 31}, matmul), "diag": ({40000: 27}, diag),
         "nearest_neighbour": ({1500000: 37, 6000: 16}, nearest_neighbour),
         "distances": ({1000: 21, 700: 13, 300: 12}, distances),
         "two_layer_step": ({10000: 20, 1600: 17, 100000: 12}, two_layer_step)}


class TraTest(process.ProgramTest):
    def bound(self, text):
        """The inputs of a program in files: arguments, and values by name."""
        random = np.random.default_rng(3)
        arguments, values = [], {}
        for name, extents in re.findall(r"^input (\w+)\[([\d,]+)\]", text, re.MULTILINE):
            values[name] = random.standard_normal([int(n) for n in extents.split(",")]).astype(np.float32)
            np.save(self.path(f"{name}.npy"), values[name])
            arguments += ["--in", f"{name}={self.path(name)}.npy"]
        return arguments, {name: value.astype(float) for name, value in values.items()}

    def expect(self, expected, run, *arguments):
        outputs = [word for name in expected for word in ("--out", f"{name}={self.path('out_' + name)}.npy")]
        done = run(*arguments, *outputs)
        self.assertEqual(done.code, 0, done)
        for name, value in expected.items():
            got = np.load(self.path(f"out_{name}.npy"))
            np.testing.assert_allclose(got, value, rtol=1e-4, atol=1e-4, err_msg=f"{name} {arguments}")
            os.unlink(self.path(f"out_{name}.npy"))
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(".")], [])
        return done


def run(*arguments):
    return process.einrel("run", *arguments)


def on_ranks(ranks):
    return lambda *arguments: process.job(ranks, "run", *arguments)


class Examples(TraTest):
    def small(self, name):
        extents, computes = SMALL[name]
        with open(os.path.join(EXAMPLES, name + ".tra"), encoding="utf-8") as file:
            text = re.sub(r"\d+", lambda n: str(extents.get(int(n[0]), n[0])), file.read())
        arguments, values = self.bound(text)
        return [self.text_file(name + ".tra", text), *arguments], computes(values)

    def test_every_example_gives_what_numpy_gives_on_any_number_of_sites(self):
        self.assertEqual({name + ".tra" for name in SMALL},
                         {name for name in os.listdir(EXAMPLES) if name.endswith(".tra")})
        for name in SMALL:
            program, expected = self.small(name)
            for sites in SITES:
                for planner in PLANNERS:
                    with self.subTest(name=name, sites=sites, planner=planner):
                        self.expect(expected, run, *program, "--sites", str(sites), *planner)

    def test_and_on_ranks(self):
        for name in SMALL:
            program, expected = self.small(name)
            for ranks in RANKS:
                for planner in PLANNERS[1:]:
                    with self.subTest(name=name, ranks=ranks, planner=planner):
                        self.expect(expected, on_ranks(ranks), *program, *planner)

    def test_kernels_that_run_together_meet_the_chunks_that_they_are_for(self):
        # Other keys turn the chunks, 3 and 2 elements, round; steps of a kernel run with different others.
        turned = """input A[5] cut <2>
Q = transform(exp)(A)
R = rekey(<k0> -> <1-k0>)(Q)
V = rekey(<k0> -> <1-k0>)(transform(sigmoid)(A))
T = join(<0>, <0>, matAdd)(R, V)
output T
"""
        crossed = """input X[8] cut <1>
input Y[8,8] cut <1,1>
kernel ex(A[i]) -> [i] = exp(A[i])
kernel rr(A[i,j]) -> [i,j] = A[i,j] * A[i,j]
kernel pp(A[i], B[k,j]) -> [k] = max[j] P[j] * B[k,j] given P[i] = A[i] + 1
kernel ss(A[i], B[i,j]) -> [i] = sum[j] (A[i] + B[i,j])
O = transform(ex)(X)
R = rekey(<k0,k1> -> <k0>)(transform(rr)(Y))
P = join(<0>, <0>, pp)(O, R)
S = join(<0>, <0>, ss)(P, R)
output S
"""
        def of_turned(a):
            whole = np.exp(a["A"]) + 1 / (1 + np.exp(-a["A"]))
            return {"T": np.concatenate([whole[3:], whole[:3]])}

        def of_crossed(a):
            squares = a["Y"] ** 2
            return {"S": (((np.exp(a["X"]) + 1) * squares).max(axis=1)[:, None] + squares).sum(axis=1)}

        for text, expected in ((turned, of_turned), (crossed, of_crossed)):
            arguments, values = self.bound(text)
            for sites in SITES:
                for planner in PLANNERS:
                    with self.subTest(text=text, sites=sites, planner=planner):
                        self.expect(expected(values), run, self.text_file("p.tra", text), *arguments, "--sites",
                                    str(sites), *planner)

    def test_programs_are_checked(self):
        self.assertIn("no errors", self.succeed("check", self.text_file("p.tra", PRODUCT)).out)
        self.refuse(1, "check", self.text_file("w.tra", PRODUCT.replace("(A, B)", "(A, D)")), mentions=["w.tra:3", "D"])
        self.refuse(1, "check", self.path("p.tra"), "--dim", "i=3", mentions=["--dim", ".tra"])

    def test_what_is_asked_for_is_all_that_has_to_be_a_tensor(self):
        text = "input A[4,6] cut <2,2>\nT = transform(negate)(A)\nJ = join(<1>,<1>,elemMul)(T,A)\n"
        arguments, values = self.bound(text)
        self.expect({"T": -values["A"]}, run, self.text_file("p.tra", text), *arguments)
        self.refuse(1, "run", self.text_file("p.tra", text), *arguments, mentions=["'J'", "no tensor"])

    def test_a_scalar_is_given_for_the_run(self):
        program, _ = self.small("two_layer_step")
        values = {name: np.load(self.path(name + ".npy")) for name in ("W1", "W2")}
        self.expect({"V1": values["W1"], "V2": values["W2"]}, run, *program, "--scalar", "eta=0")
        self.refuse(1, "run", *program, "--scalar", "etta=0", mentions=["etta", "did you mean 'eta'?"])


class Programs(TraTest):
    def setUp(self):
        super().setUp()
        self.program = self.text_file("p.tra", PRODUCT)
        self.files, self.values = self.bound(PRODUCT)
        self.product = self.values["A"] @ self.values["B"]

    def test_what_an_aggregate_without_keys_gives_is_one_array(self):
        text = "input A[6,4] cut <3,2>\nS = aggregate(<>, matAdd)(A)\nD = rekey(<> -> <0>)(S)\n"
        files, values = self.bound(text)
        blocks = values["A"].reshape(3, 2, 2, 2).sum(axis=(0, 2))
        for sites in ("1", "3"):
            self.expect({"S": blocks, "D": blocks}, run, self.text_file("s.tra", text), *files, "--sites", sites)

    def test_tensors_of_a_program_can_be_asked_for(self):
        text = PRODUCT + "Z = transform(relu)(C)\n"
        program = self.text_file("z.tra", text)
        self.expect({"Z": np.maximum(self.product, 0), "C": self.product, "A": self.values["A"]}, run, program,
                    *self.files, "--sites", "2")
        self.refuse(1, "run", program, *self.files, "--out", "CC=x.npy", mentions=["'CC'", "C"])

    def test_inputs_come_from_archives_and_at_random(self):
        np.savez(self.path("all.npz"), **{name: value.astype(np.float32) for name, value in self.values.items()})
        self.expect({"C": self.product}, run, self.program, "--in", self.path("all.npz"))
        alone = self.succeed("run", self.program, "--random", "7").out
        same = self.text_file("p.ein", "input A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\n")
        for done in (process.job(2, "run", self.program, "--random", "7"),
                     self.succeed("run", self.program, "--random", "7", "--sites", "4"),
                     self.succeed("run", same, "--random", "7", *[f"--dim={label}" for label in ("i=7", "j=11", "k=5")])):
            self.assertEqual(done.out.split("mean")[0], alone.split("mean")[0])

    def test_chunks_go_to_disk_where_memory_is_scarce(self):
        size = 1200
        text = f"input A[{size},{size}] cut <6,6>\nC = aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(A, A))\n" \
               "D = aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(A, C))\n"
        program = self.text_file("large.tra", text)
        files, values = self.bound(text)
        scaled = (values["A"] / 32).astype(np.float32)
        np.save(self.path("A.npy"), scaled.astype(">f4"))  # converted when it is read
        limit = ["--memory", "12MB", "--threads", "2", "--json"]
        done = self.expect({"D": np.linalg.matrix_power(scaled.astype(float), 3)}, run, program, *files, *limit)
        self.assertGreater(json.loads(done.out)["measured"]["bytes_spilled"], 0)
        whole = self.text_file("whole.tra", text.replace(" cut <6,6>", ""))
        self.refuse(1, "run", whole, *files, *limit, mentions=["--memory 12 MB is too little", "takes 17.3 MB",
                                                               "cut its inputs into more parts", "help: give at least"])

    def test_limits_of_ranks(self):
        text = "input A[900,900] cut <3,3>\nC = aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(A, A))\n"
        program = self.text_file("large.tra", text)
        files, values = self.bound(text)
        refused = process.job(2, "run", program, *files, "--memory", "2MB")
        self.assertEqual(refused.code, 1, refused)
        self.assertIn("--spill", refused.err)
        self.expect({"C": values["A"] @ values["A"]}, on_ranks(2), program, *files, "--memory", "12MB", "--spill",
                    self.folder)

    def test_plans_of_relations_of_a_program_in_the_language_run(self):
        program = self.text_file("p.ein", LANGUAGE)
        c = np.maximum(self.product, 0)
        for planner in PLANNERS[1:]:
            for sites in SITES:
                self.expect({"C": c, "m": c.mean()}, run, program, *self.files, "--sites", str(sites), *planner)
            for ranks in RANKS:
                self.expect({"C": c, "m": c.mean()}, on_ranks(ranks), program, *self.files, *planner)


class Reports(TraTest):
    def setUp(self):
        super().setUp()
        self.program = self.text_file("p.tra", PRODUCT)

    def test_explain_and_analyze_name_the_operations(self):
        done = self.succeed("run", self.program, "--random", "1", "--sites", "4", "--explain", "--analyze", "--repeat", "3",
                            "--planner", "ia-rules")
        shown = self.succeed("explain", self.program, "--sites", "4", "--planner", "ia-rules").out
        self.assertTrue(done.out.startswith(shown), done)
        rest = done.out[len(shown):]
        for text in ("C  f32 (7, 5)", "3 runs", "input A[7,11]", "t5 = local_join(<1>, <0>, matMul)(A, B)", "in all", "tasks",
                     "sites share this process's memory"):
            self.assertIn(text, rest)

    def test_bytes_between_ranks_are_those_that_were_predicted(self):
        for planner in PLANNERS[1:]:
            done = process.job(3, "run", self.program, "--random", "1", "--analyze", *planner)
            predicted, counted = re.search(r"bytes received: predicted (\d+), counted (\d+)", done.out).groups()
            self.assertEqual(predicted, counted, done)
            self.assertGreater(int(counted), 0)

    def test_json_holds_the_operations_with_what_they_took(self):
        report = json.loads(process.job(2, "run", self.program, "--random", "1", "--json").out)
        self.assertEqual((report["sites"], report["planner"]), (2, "table-1"))
        self.assertEqual(report["inputs"]["A"], {"shape": [7, 11], "dtype": "f32"})
        self.assertEqual(report["outputs"]["C"]["shape"], [7, 5])
        self.assertEqual(set(report["outputs"]["C"]), {"shape", "dtype", "min", "max", "mean", "sum"})
        operations = report["ia"][:-1]  # the last line says what is put out
        for line in operations:
            self.assertEqual(set(line), {"text", "placement", "floats", "bytes", "bytes_moved", "seconds", "peak_memory"})
            self.assertEqual(line["bytes"], line["bytes_moved"])
        self.assertEqual(sum(line["bytes"] for line in operations), report["cost"]["bytes"])
        self.assertEqual(report["measured"]["bytes_moved"], report["cost"]["bytes"])
        self.assertGreater(report["measured"]["tasks"], 0)
        self.assertGreater(report["peak_memory"]["predicted"], 0)

    def test_a_trace_and_progress_name_the_operations(self):
        done = self.succeed("run", self.program, "--random", "1", "--sites", "2", "--trace", self.path("t.json"),
                            "--progress", "always")
        self.assertIn("100 %", done.err)
        with open(self.path("t.json"), encoding="utf-8") as file:
            names = {event["name"] for event in json.load(file)["traceEvents"] if event["ph"] == "X"}
        self.assertIn("t2", names)


class Refusals(TraTest):
    def setUp(self):
        super().setUp()
        self.program = self.text_file("p.tra", PRODUCT)

    def test_outputs_that_are_no_tensors(self):
        for declared, statement, mentions in (
                ("A[6,6] cut <3,3>", "C = join(<1>, <0>, matMul)(A, A)",
                 ["keys have 3 positions, but its arrays 2 dimensions", "aggregate(<0,1>"]),
                ("A[6,6] cut <3,3>", "C = aggregate(<0>, matAdd)(A)",
                 ["1 position, but its arrays 2 dimensions", "concat(0, 0)(C)"]),
                ("A[5,6] cut <2,3>", "C = rekey(<a,b> -> <b,a>)(A)", ["along dimension 0", "rekey"])):
            program = self.text_file("c.tra", f"input {declared}\n{statement}\n")
            for arguments in ((), ("--random", "1"), ("--random", "1", "--out", f"C={self.path('c.npy')}")):
                refused = self.refuse(1, "run", program, *arguments, mentions=["c.tra:2:5", "'C'", "help: ", *mentions])
                self.assertEqual(os.path.exists(self.path("c.npy")), False, refused)
        done = process.job(2, "run", program, "--random", "1")
        self.assertEqual((done.code, done.err.count("error: ")), (1, 1), done)

    def test_inputs_that_do_not_fit(self):
        np.save(self.path("long.npy"), np.zeros((7, 12), np.float32))
        np.save(self.path("wide.npy"), np.zeros((7, 11)))
        np.save(self.path("good.npy"), np.zeros((7, 11), np.float32))
        for arguments, mentions in (
                ((), ["missing input A[7,11] : f32", "missing input B[11,5] : f32", "--in B=FILE", "--random"]),
                (("--in", f"A={self.path('good.npy')}"), ["missing input B[11,5] : f32"]),
                (("--in", f"A={self.path('long.npy')}", "--random", "1"), ["p.tra:1:7", "(7, 11)", "(7, 12)"]),
                (("--in", f"A={self.path('wide.npy')}", "--random", "1"), ["p.tra:1:7", "declared f32", "f64"]),
                (("--in", f"Q={self.path('good.npy')}", "--random", "1"), ["no input 'Q'", "A, B"]),
                (("--in", f"A={self.path('none.npy')}", "--random", "1"), ["none.npy"])):
            self.refuse(1, "run", self.program, *arguments, mentions=mentions)

    def test_options_that_are_for_programs_in_the_language(self):
        for arguments, mentions in ((("--dim", "i=3"), ["--dim", ".ein"]),
                                    (("--planner", "eindecomp"), ["table-1 and ia-rules", "eindecomp"]),
                                    (("--planner", "magic"), ["table-1 and ia-rules", "magic"]),
                                    (("--cost", "bytes"), ["--cost"]), (("--batch", "b"), ["--batch"]),
                                    (("--plan", "p.json"), ["--plan"]), (("--html", "p.html"), ["--html"])):
            self.refuse(1, "run", self.program, "--random", "1", *arguments, mentions=mentions)

    def test_options_that_plans_of_relations_do_not_have(self):
        program = self.text_file("p.ein", LANGUAGE)
        for arguments, mentions in ((("--cost", "bytes"), ["--cost"]), (("--batch", "b"), ["--batch"]),
                                    (("--plan", "p.json"), ["--plan"]), (("--html", "p.html"), ["--html"])):
            self.refuse(1, "run", program, "--random", "1", "--planner", "ia-rules", *arguments, mentions=mentions)
        self.refuse(1, "run", program, "--random", "1", "--planner", "magic", mentions=["magic", "ia-rules"])

    def test_a_plan_for_more_sites_than_ranks(self):
        done = process.job(2, "run", self.program, "--random", "1", "--sites", "3")
        self.assertEqual(done.code, 1, done)
        self.assertIn("3 sites, but the job has 2 ranks", done.err)


if __name__ == "__main__":
    process.main()
