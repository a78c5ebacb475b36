"""Programs with state: --steps, --save and --load, in one process, on sites, on ranks and within a limit of memory."""

import json

import numpy as np

from einrel_process import ProgramTest, job, main

SIZE = 1500
# One step of training of two layers, with momentum, and numbers that are new in each step.
TRAINING = """dims b=40 f=30 h=20 l=10
input X[b,f], Y[b,l]
scalar eta = 0.05
state W1[f,h] = 0.3 * normal(1)
state W2[h,l] = 0.3 * normal(2)
state V1[f,h] = 0
A[b,h] = max(sum[f] X[b,f] * W1[f,h], 0) * (uniform(3) < 0.8)
loss[] = sum[b,l] sq(sum[h] (A[b,h] * W2[h,l]) - Y[b,l]) / 40
gradient G1, G2 = loss wrt W1, W2
next V1[f,h] = 0.9 * V1[f,h] + G1[f,h]
next W1[f,h] = W1[f,h] - eta * next_V1[f,h]
next W2[h,l] = W2[h,l] - eta * G2[h,l]
output loss
"""
POWER = """dims i=60 j=60
input A[i,j] : f64  # not near 0, so that one eigenvalue is far from the others
state x[i] = f64(1)
y[i] = sum[j] (A[i,j] + A[j,i] + 3) * x[j]
norm[] = sqrt(sum[i] sq(y[i]))
next x[i] = y[i] / norm[]
change[] = sum[i] abs(next_x[i] - x[i])
until change[] < 1e-10
output norm, change
"""


class Steps(ProgramTest):
    def states(self, name):
        with np.load(self.path(name)) as file:
            return dict(file)

    def assert_close(self, got, expected, tolerance=2e-5):
        self.assertEqual(set(got), set(expected))
        for name, values in expected.items():
            self.assertEqual(got[name].shape, values.shape)
            np.testing.assert_allclose(got[name], values, rtol=tolerance, atol=tolerance, err_msg=name)

    def trained(self, run, name, *arguments):
        """The states after training, and what a JSON report says."""
        program = self.text_file("training.ein", TRAINING)
        result = run("run", program, "--random", "5", "--json", "--save", self.path(name), "--overwrite", *arguments)
        self.assertEqual(result.code, 0, result)
        return self.states(name), json.loads(result.out)

    def test_first_values_have_the_same_bits_on_ranks_and_on_sites(self):
        program = self.text_file("first.ein", """dims a=601 e=3
input X[a,e] : f64, Y[a,e]
state S[] = sum[a] X[a,2]
state M[e] = mean[a] Y[a,e] * Y[a,e]
next S[] = 0.5 * S[]
next M[e] = 2 * M[e]
output next_S, next_M
""")
        for sites in (2, 3):
            for more in (["--cost", "bytes"], ["--planner", "sqrt"], []):
                with self.subTest(sites=sites, more=more):
                    arguments = ["run", program, "--random", "1", "--overwrite", "--threads", "1", *more, "--save"]
                    result = job(sites, *arguments, self.path("ranks.npz"))
                    self.assertEqual(result.code, 0, result)
                    self.succeed(*arguments, self.path("sites.npz"), "--sites", str(sites))
                    ranks, here = self.states("ranks.npz"), self.states("sites.npz")
                    for name, values in here.items():
                        self.assertEqual(values.tobytes(), ranks[name].tobytes(), name)

    def test_ranks_and_sites_do_what_one_process_does(self):
        alone, report = self.trained(self.succeed, "alone.npz", "--steps", "6")
        self.assertEqual(alone["iteration"], 6)
        self.assertEqual(len(report["measured"]["seconds_of_runs"]), 6)
        loss = report["outputs"]["loss"]["value"]
        options = ([], ["--cost", "bytes"], ["--planner", "data"], ["--planner", "tensor"])
        for ranks in (1, 2, 3, 4, 6):
            for more in options:
                with self.subTest(ranks=ranks, more=more):
                    states, report = self.trained(lambda *arguments, n=ranks: job(n, *arguments), "job.npz", "--steps",
                                                  "6", "--threads", "1", *more)
                    self.assert_close(states, alone)
                    self.assertAlmostEqual(report["outputs"]["loss"]["value"], loss, delta=1e-4 * loss)
                    measured = report["measured"]["bytes_moved"] if ranks > 1 else 0
                    self.assertEqual(measured, report["cost"]["bytes"], "bytes of a step, as they were predicted")
                    sites, _ = self.trained(self.succeed, "sites.npz", "--steps", "6", "--sites", str(ranks), *more)
                    self.assert_close(sites, alone)

    def test_state_that_is_cut_stays_on_its_rank(self):
        program = self.text_file("decay.ein", "dims i=1000 j=1000\ninput X[i,j]\nstate s[i,j] = X[i,j]\n"
                                              "next s[i,j] = tanh(s[i,j]) * 0.999 + exp(-sq(s[i,j]))\n"
                                              "level[] = sum[i,j] s[i,j]\noutput level\n")
        result = job(4, "run", program, "--random", "1", "--steps", "3", "--json", "--cost", "bytes")
        self.assertEqual(result.code, 0, result)
        report = json.loads(result.out)
        planned = report["plans"][0]["vertices"]
        state = next(vertex for vertex in planned if vertex["name"] == "s")
        self.assertEqual(state["feedback_bytes"], 0, "nothing of it moves between steps")
        self.assertLess(report["measured"]["bytes_moved"], 100, "only partial sums of the level move")

    def test_bytes_between_steps_are_charged_and_counted(self):
        # What is made of the rows becomes the columns: on ranks, most of the state has to move.
        program = self.text_file("turn.ein", "dims i=64 j=64\ninput X[i,j]\nstate s[i,j] = X[i,j]\n"
                                             "next s[i,j] = exp(-s[j,i])\n")
        whole = self.succeed("run", program, "--random", "1", "--steps", "5", "--out", f"next_s={self.path('w.npy')}")
        self.assertIn("5 steps", whole.out)
        result = job(4, "run", program, "--random", "1", "--steps", "5", "--json", "--planner", "sqrt",
                     "--out", f"next_s={self.path('j.npy')}")
        self.assertEqual(result.code, 0, result)
        report = json.loads(result.out)
        self.assertGreater(report["cost"]["bytes"], 0)
        self.assertEqual(report["measured"]["bytes_moved"], report["cost"]["bytes"])
        np.testing.assert_array_equal(np.load(self.path("j.npy")), np.load(self.path("w.npy")))

    def test_inputs_that_stay_are_moved_once(self):
        program = self.text_file("serve.ein", """dims b=16 i=64 j=64
input W[i,j]
state X[b,i] = 1
H[b,j] = relu(sum[i] X[b,i] * W[i,j])
next X[b,i] = sum[j] 0.01 * H[b,j] * W[i,j]
total[] = sum[b,j] H[b,j]
output total
""")
        weights = 64 * 64 * 4
        for ranks in (2, 3, 4):
            bytes_of = {}
            for steps in (1, 2, 20):
                with self.subTest(ranks=ranks, steps=steps):
                    result = job(ranks, "run", program, "--random", "3", "--steps", str(steps), "--cost", "bytes", "--json")
                    self.assertEqual(result.code, 0, result)
                    report = json.loads(result.out)
                    cost, measured = report["cost"], report["measured"]
                    self.assertEqual(measured["bytes_moved"], cost["bytes"])
                    once = cost["once"]["bytes"] if steps > 1 else 0
                    self.assertEqual(measured.get("bytes_moved_once", 0), once)
                    if steps > 1:
                        self.assertEqual(cost["steps"], steps)
                        self.assertEqual(cost["each_step"]["bytes"], cost["bytes"] - once)
                    bytes_of[steps] = (once, cost["bytes"] - once)
            # Of many steps, none but the first moves weights: each site has them all, and its part of the batch.
            self.assertEqual(bytes_of[20][0], (ranks - 1) * weights)
            self.assertLess(bytes_of[20][1], bytes_of[1][1])
        result = self.succeed("explain", program, "--sites", "4", "--steps", "1000", "--cost", "bytes")
        self.assertRegex(result.out, r"moved +once 49\.2 kB; each step [^;]+; at most [^;]+ to a site in the first of 1000\n")
        result = job(4, "run", program, "--random", "3", "--steps", "20", "--cost", "bytes", "--analyze")
        self.assertIn(f"; of these only in the first step: predicted {3 * weights}, counted {3 * weights}\n", result.out)

    def test_which_inputs_are_fed_is_said_with_steps(self):
        program = self.text_file("z.ein", "dims i=4 j=6 k=5\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n")
        report = json.loads(self.succeed("explain", program, "--sites", "2", "--steps", "7", "--feed", "X", "--json").out)
        self.assertEqual(report["cost"]["steps"], 7)
        unread = self.text_file("unread.ein", "dims i=4\ninput X[i], U[i]\nstate s[i] = 0\nY[i] = X[i] + s[i]\nnext s[i] = Y[i]\noutput Y\n")
        self.succeed("explain", unread, "--sites", "2", "--steps", "3", "--feed", "U", "--feed", "X")
        self.refuse(1, "explain", program, "--sites", "2", "--feed", "X", mentions=["--feed", "add --steps N"])
        self.refuse(1, "explain", program, "--sites", "2", "--steps", "7", "--feed", "x", mentions=["'x'", "did you mean 'X'"])
        self.refuse(1, "explain", program, "--sites", "2", "--steps", "0", mentions=["--steps"])

    def test_a_run_that_was_stopped_goes_on_to_the_bit(self):
        for run, more in ((self.succeed, []), (self.succeed, ["--sites", "3"]),
                          (lambda *arguments: job(3, *arguments), ["--threads", "1"])):
            with self.subTest(more=more):
                alone, _ = self.trained(run, "alone.npz", "--steps", "7", *more)
                self.trained(run, "half.npz", "--steps", "3", *more)
                rest, _ = self.trained(run, "rest.npz", "--steps", "4", "--load", self.path("half.npz"), *more)
                for name, values in alone.items():
                    np.testing.assert_array_equal(rest[name], values, err_msg=name)

    def test_a_limit_of_memory_is_kept(self):
        program = self.text_file("large.ein", f"dims i={SIZE} j={SIZE} k={SIZE}\ninput A[i,k]\nstate s[i,j] = normal(1)\n"
                                              "next s[i,j] = tanh(0.01 * sum[k] A[i,k] * s[k,j])\n")
        save = ["--random", "2", "--steps", "3", "--save"]
        self.succeed("run", program, *save, self.path("free.npz"))
        limited = self.succeed("run", program, *save, self.path("limited.npz"), "--memory", "20MB", "--json")
        self.assert_close(self.states("limited.npz"), self.states("free.npz"))
        ran = json.loads(limited.out)
        anonymous = ran["peak_memory"]["measured"] - ran["measured"]["file_pages_per_rank"][0]
        self.assertLess(anonymous, 20e6 + 24e6)
        result = job(2, "run", program, *save, self.path("job.npz"), "--memory", "40MB", "--threads", "1")
        self.assertEqual(result.code, 0, result)
        self.assert_close(self.states("job.npz"), self.states("free.npz"))

    def test_steps_end_where_the_condition_holds(self):
        program = self.text_file("power.ein", POWER)
        alone = self.succeed("run", program, "--random", "3", "--steps", "5000", "--json", "--save", self.path("a.npz"))
        steps = len(json.loads(alone.out)["measured"]["seconds_of_runs"])
        self.assertLess(steps, 5000)
        self.assertEqual(self.states("a.npz")["iteration"], steps)
        for ranks in (2, 3):
            with self.subTest(ranks=ranks):
                result = job(ranks, "run", program, "--random", "3", "--steps", "5000", "--planner", "sqrt", "--save",
                             self.path("b.npz"), "--overwrite")
                self.assertEqual(result.code, 0, result)
                self.assertLessEqual(abs(int(self.states("b.npz")["iteration"]) - steps), 1, "but for rounding")

    def test_outputs_that_ranks_keep_are_told_once(self):
        program = self.text_file("kept.ein", "dims i=400 j=300 k=200\ninput A[i,j], B[j,k]\nstate t[] = f32(0)\n"
                                             "Z[i,k] = (sum[j] A[i,j] * B[j,k]) + t[]\nnext t[] = t[] + 1\n"
                                             "output next_t, Z\n")
        result = job(3, "run", program, "--random", "1", "--steps", "3")
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"next_t +f32 +3\n")

    def test_without_outputs_states_are_what_a_program_gives(self):
        program = self.text_file("halve.ein", "state x[] = f64(64)\nnext x[] = x[] / 2\nuntil next_x[] < 3\n")
        self.assertRegex(self.succeed("run", program, "--steps", "100").out, r"next_x +f64 +2\n5 steps")
        refused = self.refuse(1, "run", program, "--out", f"initial_x={self.path('x.npy')}")
        self.assertIn("before the first step", refused.err)
        refused = self.refuse(1, "run", program, "--out", f"next_x={self.path('s.npz')}:next_x", "--save",
                              self.path("s.npz"))
        self.assertIn("name another file", refused.err)

    def test_wrong_options_are_refused(self):
        program = self.text_file("power.ein", POWER)
        stateless = self.text_file("plain.ein", "input X[i]\nZ[i] = X[i] * 2\ndims i=3\n")
        random = ["--random", "1"]
        for option in (["--steps", "2"], ["--save", self.path("s.npz")], ["--load", self.path("s.npz")]):
            self.refuse(1, "run", stateless, *random, *option)
        self.refuse(1, "run", stateless, *random, "--steps", "2", mentions=["programs with state", "next X[i]"])
        self.refuse(1, "run", program, *random, "--repeat", "2", mentions=["--steps"])
        for wrong in ("0", "-1", "1.5", "many", ""):
            self.refuse(1, "run", program, *random, "--steps", wrong, mentions=["--steps"])
        self.refuse(1, "run", program, *random, "--save", self.path("s.npy"), mentions=["FILE.safetensors"])
        self.refuse(1, "run", program, *random, "--load", self.path("s.npy"), mentions=["FILE.safetensors"])
        self.refuse(1, "run", program, *random, "--load", self.path("none.npz"), mentions=["none.npz"])
        self.refuse(1, "run", program, *random, "--scalar", "iteration=3", mentions=["iteration"])
        self.refuse(1, "run", program, *random, "--in", f"x={self.path('none.npy')}", mentions=["none.npy"])
        np.savez(self.path("other.npz"), y=np.zeros(60))
        self.refuse(1, "run", program, *random, "--load", self.path("other.npz"), mentions=["state x", "other.npz"])
        np.savez(self.path("short.npz"), x=np.zeros(59))
        self.refuse(1, "run", program, *random, "--load", self.path("short.npz"), mentions=["(60,)", "(59,)"])
        np.savez(self.path("good.npz"), x=np.ones(60))
        self.refuse(1, "run", program, *random, "--load", self.path("good.npz"), "--save", self.path("good.npz"),
                    mentions=["--overwrite"])
        self.succeed("run", program, *random, "--load", self.path("good.npz"), "--save", self.path("good.npz"),
                     "--overwrite")
        self.assertEqual(self.states("good.npz")["iteration"], 1)

    def test_a_state_is_no_input(self):
        program = self.text_file("power.ein", POWER)
        np.save(self.path("x.npy"), np.ones(60))
        self.refuse(1, "run", program, "--random", "1", "--in", f"x={self.path('x.npy')}", mentions=["no input 'x'"])


if __name__ == "__main__":
    main()
