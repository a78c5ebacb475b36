"""Runs by a plan: on virtual sites, on the ranks of a job and within a limit of memory."""

import json
import os
import resource
import shutil
import subprocess

import numpy as np

import einrel_process
from einrel_process import MPIRUN, ProgramTest, main

SIZE = 1900
LAYER = """dims b=37 f=29 h=23
input X[b,f], W[f,h], c[h]
Y[b,h] = relu((sum[f] X[b,f] * W[f,h]) + c[h])
S[b,h] = softmax[h](Y[b,h])
m[] = mean[b,h] sq(S[b,h])
output Y, S, m
"""
PROCESS = 26e6  # what the program and its libraries take themselves, those of databases among them
CHAIN = f"""dims i={SIZE} j={SIZE} k={SIZE}
input A[i,j], B[j,k]
C[i,k] = sum[j] A[i,j] * B[j,k]
D[i,k] = sum[j] C[i,j] * B[j,k]
E[i,k] = sum[j] D[i,j] * B[j,k]
output E
"""


def is_task(event):
    return event["ph"] == "X" and event["cat"] != "wait"


class RunTest(ProgramTest):
    """A layer of a network, its inputs in files, and what it gives."""

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(1)
        self.arrays = {"X": random.standard_normal((37, 29)), "W": random.standard_normal((29, 23)),
                       "c": random.standard_normal(23)}
        self.files = []
        for name, array in self.arrays.items():
            array = array.astype(np.float32)
            np.save(self.path(f"{name}.npy"), np.asfortranarray(array) if name == "W" else array)
            self.files += ["--in", f"{name}={self.path(name)}.npy"]
        x, w, c = self.arrays["X"], self.arrays["W"], self.arrays["c"]
        y = np.maximum(x @ w + c, 0)
        s = np.exp(y - y.max(axis=1, keepdims=True))
        s /= s.sum(axis=1, keepdims=True)
        self.expected = {"Y": y, "S": s, "m": np.array((s * s).mean())}
        self.program = self.text_file("layer.ein", LAYER)
        self.outputs = [word for name in self.expected for word in ("--out", f"{name}={self.path('out')}{name}.npy")]

    def job(self, ranks, *arguments, **options):
        return einrel_process.job(ranks, "run", *arguments, **options)

    def expect_outputs(self, what):
        for name, expected in self.expected.items():
            got = np.load(self.path(f"out{name}.npy"))
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5, err_msg=f"{what}: {name}")
            os.unlink(self.path(f"out{name}.npy"))
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(".")], [], what)


class PlannedRuns(RunTest):
    def test_any_number_of_sites_and_planner_gives_what_numpy_gives(self):
        for sites in (1, 2, 3, 4, 6, 64):
            self.succeed("run", self.program, *self.files, *self.outputs, "--sites", str(sites))
            self.expect_outputs(f"{sites} sites")
        for planner in ("eindecomp-paper", "single", "data", "sqrt", "all-tile"):
            self.succeed("run", self.program, *self.files, *self.outputs, "--sites", "4", "--planner", planner)
            self.expect_outputs(planner)

    def test_a_run_is_repeated_and_gives_what_one_run_gives(self):
        for options in ((), ("--sites", "4"), ("--sites", "4", "--threads", "1"),
                        ("--sites", "4", "--memory", "1kB", "--plan", self.plan_for_four())):
            report = json.loads(self.succeed("run", self.program, *self.files, *self.outputs, "--json", "--repeat", "3",
                                             *options).out)
            self.expect_outputs(f"repeated, {options}")
            measured = report["measured"]
            self.assertEqual(len(measured["seconds_of_runs"]), 3)
            self.assertEqual(measured["seconds_of_runs"][-1], measured["seconds"])
        once = self.succeed("run", self.program, *self.files)
        for done in (self.succeed("run", self.program, *self.files, "--repeat", "2"),
                     self.succeed("run", self.program, *self.files, "--repeat", "2", "--sites", "1")):
            self.assertEqual(done.out.splitlines()[:-1], once.out.splitlines())
            self.assertIn("2 runs: ", done.out.splitlines()[-1])
        done = self.job(2, self.program, *self.files, *self.outputs, "--repeat", "3", "--json", "--cost", "bytes")
        self.assertEqual(done.code, 0, done)
        self.expect_outputs("repeated on ranks")
        report = json.loads(done.out)
        self.assertEqual(len(report["measured"]["seconds_of_runs"]), 3)
        self.assertEqual(report["measured"]["bytes_moved"], report["cost"]["bytes"])
        self.assertEqual(len(json.loads(self.succeed("run", self.program, *self.files, "--json").out)["measured"]
                             ["seconds_of_runs"]), 1)
        for wrong in ("0", "-1", "1.5", "many"):
            self.refuse(1, "run", self.program, *self.files, "--repeat", wrong, mentions=["--repeat", wrong])

    def plan_for_four(self):
        return self.text_file("plan_for_four.json",
                              self.succeed("explain", self.program, "--sites", "4", "--json").out)

    def test_a_plan_from_a_file_is_run(self):
        plan = self.succeed("explain", self.program, "--sites", "6", "--cost", "bytes", "--json").out
        ran = self.succeed("run", self.program, "--random", "1", "--json",
                           "--plan", self.text_file("plan.json", plan)).out
        plan, ran = json.loads(plan), json.loads(ran)
        for vertex in (*plan["plans"][0]["vertices"], *ran["plans"][0]["vertices"]):
            vertex.pop("runner_up", None)  # by the cost asked for, which a plan does not bring
        self.assertEqual(plan["plans"][0]["vertices"], ran["plans"][0]["vertices"])
        self.assertEqual(ran["sites"], 6)
        self.refuse(1, "run", self.program, "--random", "1", "--plan", self.path("plan.json"), "--planner", "data",
                    mentions=["--plan", "--planner"])
        self.text_file("none.json", self.succeed("explain", self.program, "--planner", "table-1", "--json").out)
        self.refuse(1, "run", self.program, "--random", "1", "--plan", self.path("none.json"), mentions=["no plan"])
        self.refuse(1, "run", self.program, "--random", "1", "--plan", self.path("plan.json"), "--sites", "5",
                    mentions=["--sites 5", "6"])

    def test_a_label_that_data_cannot_cut_is_refused_whatever_the_planner(self):
        for planner in ((), ("--planner", "data"), ("--planner", "single")):
            self.refuse(1, "run", self.program, "--random", "1", "--sites", "2", "--batch", "bb", *planner,
                        mentions=["batch", "bb", "no label"])

    def test_memory_is_measured_as_it_was_predicted(self):
        ran = json.loads(self.succeed("run", self.text_file("chain.ein", CHAIN), "--random", "1", "--json",
                                      "--planner", "single", "--threads", "1").out)
        self.assertEqual(len(ran["vertices"]), 3)
        for vertex in ran["vertices"]:
            self.assertEqual(vertex["peak_memory"]["measured"], vertex["peak_memory"]["predicted"], vertex["name"])
        joins = self.text_file("max.ein", "dims i=40 j=50 k=60\ninput A[i,j], B[j,k], C[i,k]\n"
                                          "Z[i] = max[j,k] (A[i,j] + B[j,k]) * C[i,k]\n")
        (vertex,) = json.loads(self.succeed("run", joins, "--random", "1", "--json", "--planner", "single",
                                            "--threads", "1").out)["vertices"]
        # What would lie between its two joins stays in the cache: they run together.
        self.assertEqual(vertex["peak_memory"]["predicted"] - vertex["peak_memory"]["measured"], 4 * 40 * 50 * 60)

    def test_ranks_give_what_numpy_gives_and_move_what_was_predicted(self):
        for ranks in (1, 2, 3, 4):
            done = self.job(ranks, self.program, *self.files, *self.outputs, "--json", "--cost", "bytes")
            self.assertEqual(done.code, 0, done)
            self.expect_outputs(f"{ranks} ranks")
            report = json.loads(done.out)
            self.assertEqual(report["sites"], ranks)
            self.assertEqual(report["measured"]["bytes_moved"], report["cost"]["bytes"])
            if ranks > 1:
                self.assertEqual(report["measured"]["bytes_moved_per_site"], report["plans"][0]["received"])
                self.assertGreater(report["cost"]["bytes"], 0)

    def test_the_folder_of_the_starter_may_stand_on_the_path(self):
        own = os.path.dirname(os.path.abspath(MPIRUN))
        for folder in ("link", "copy"):
            os.mkdir(self.path(folder))
        os.symlink(os.path.abspath(MPIRUN), self.path("link/mpirun"))
        shutil.copy(MPIRUN, self.path("copy/mpirun"))
        for folder in (own, self.path("link"), f"{self.path('copy')}:{own}"):
            done = self.job(2, self.program, *self.files, *self.outputs,
                            env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
            self.assertEqual(done.code, 0, done)
            self.expect_outputs(folder)

    def test_random_inputs_are_the_same_everywhere(self):
        alone = self.succeed("run", self.program, "--random", "7").out
        sums = [line.split("sum")[0] for line in alone.splitlines()]
        for done in (self.job(3, self.program, "--random", "7"),
                     self.succeed("run", self.program, "--random", "7", "--sites", "5")):
            self.assertEqual([line.split("sum")[0] for line in done.out.splitlines()], sums)

    def test_a_job_writes_other_formats_too(self):
        done = self.job(2, self.program, *self.files, "--out", f"S={self.path('all.npz')}:S",
                        "--out", f"Y={self.path('all.npz')}:Y")
        self.assertEqual(done.code, 0, done)
        with np.load(self.path("all.npz")) as archive:
            np.testing.assert_allclose(archive["S"], self.expected["S"], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(archive["Y"], self.expected["Y"], rtol=1e-4, atol=1e-5)

    def test_a_program_on_standard_input_reaches_all_ranks(self):
        done = self.job(2, "-", "--random", "1", input=LAYER.encode())
        self.assertEqual((done.code, len(done.out.splitlines())), (0, 3), done)

    def test_an_error_is_said_once_for_all_ranks(self):
        wrong = self.text_file("wrong.ein", LAYER.replace("X[b,f], W", "X[b,b], W"))
        for arguments, mentions in (((wrong, "--random", "1"), "label"),
                                    ((self.program,), "missing input"),
                                    ((self.program, "--random", "1", "--sites", "5"), "5 sites"),
                                    ((self.program, "--random", "1", "--out", "Y=/nowhere/y.npy"), "/nowhere"),
                                    ((self.program, "--random", "1", "--timeout", "-1"), "--timeout -1"),
                                    ((self.program, "--random", "1", "--repeat", "0"), "--repeat 0"),
                                    (("of_algebra.tra",), "of_algebra.tra"),
                                    ((self.program, "--random", "1", "--memory", "1kB"), "limit is 1 kB"),
                                    ((self.program, "--random", "1", "--memory", "1MB", "--spill", "/nowhere"),
                                     "/nowhere")):
            done = self.job(2, *arguments)
            self.assertEqual(done.code, 1, done)
            self.assertEqual(done.err.count("error: "), 1, done)
            self.assertIn(mentions, done.err)
            self.assertEqual(done.out, "", done)


    def test_options_that_are_wrong_on_one_rank_end_the_job(self):
        good = [einrel_process.PROGRAM, "run", self.program, "--random", "1"]
        for wrong in (["--timeout", "abc"], ["--repeat", "0"]):
            einrel_process.cases += 1
            done = einrel_process.Result(subprocess.run(
                [MPIRUN, "-n", "1", *good, ":", "-n", "1", *good, *wrong], capture_output=True, timeout=100))
            self.assertEqual(done.code, 1, done)
            self.assertEqual(done.err.count("error: "), 1, done)
            self.assertIn(" ".join(wrong), done.err)


FIGURES = {"about": "before", "cores": 2, "flops_per_core": 1e9, "memory_bandwidth": 2e9, "network_bandwidth": 3e8,
           "network_latency": 1e-5, "task_seconds": 1e-6, "memory": 4 * 10**9}


class Calibration(RunTest):
    def calibrated(self, ranks, settings):
        start = [MPIRUN, "-n", str(ranks)] if ranks > 1 else []
        einrel_process.cases += 1
        done = einrel_process.Result(subprocess.run([*start, einrel_process.PROGRAM, "calibrate", "--threads", "1"],
                                                    capture_output=True, timeout=100, env=settings))
        self.assertEqual(done.code, 0, done)
        return done

    def found(self):
        with open(self.path("settings/einrel/machine.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_what_was_measured_is_what_plans_use(self):
        settings = {**os.environ, "XDG_CONFIG_HOME": self.path("settings")}
        ranks = 2
        done = self.calibrated(ranks, settings)
        self.assertTrue(done.out.endswith(f"; it has figures of {ranks} ranks\n"), done)
        found = self.found()
        self.assertEqual(found["name"], "calibrated")
        (machine,) = found["measured"]
        self.assertEqual(machine["ranks"], ranks)
        for field in ("flops_per_core", "memory_bandwidth", "task_seconds", "network_bandwidth", "network_latency", "memory"):
            self.assertGreater(machine[field], 0)
        self.assertEqual(machine["sites_per_node"], ranks)
        for field in ("flops_alone", "memory_alone", "network_alone"):
            self.assertGreaterEqual(machine[field], 1)
        self.assertLessEqual(machine["network_alone"], ranks)
        self.assertLessEqual({"packed", "blocks"}, set(machine["kernel_times"]))
        self.assertGreater(min(machine["kernel_times"].values()), 0)
        explained = json.loads(self.succeed("explain", self.program, "--sites", "2", "--json", env=settings).out)
        self.assertEqual((explained["machine"], explained["machine_ranks"]), ("calibrated", ranks))
        self.assertGreater(explained["tasks_seconds"], 0)
        named = self.succeed("explain", self.program, "--sites", "2", "--machine", "laptop", "--json", env=settings)
        self.assertEqual(json.loads(named.out)["machine"], "laptop")
        self.assertNotIn("tasks_seconds", json.loads(named.out))

    def test_each_number_of_ranks_keeps_its_own_figures(self):
        settings = {**os.environ, "XDG_CONFIG_HOME": self.path("settings")}
        ranks = 3
        os.makedirs(self.path("settings/einrel"))
        sets = [{"ranks": number, **FIGURES} for number in sorted({2, 4, ranks})]
        self.text_file("settings/einrel/machine.json", json.dumps({"name": "mine", "sites": 2, "measured": sets}))
        self.calibrated(ranks, settings)
        found = self.found()
        self.assertEqual((found["name"], found["sites"]), ("mine", 2))
        self.assertEqual([(one["ranks"], one["about"] == "before") for one in found["measured"]],
                         [(number, number != ranks) for number in sorted({2, 4, ranks})])
        if ranks > 1:
            for number in (ranks, 5):
                program = self.text_file("small.ein", "dims i=64\ninput A[i]\nB[i] = A[i] + 1\n")
                done = einrel_process.Result(subprocess.run(
                    [MPIRUN, "-n", str(number), einrel_process.PROGRAM, "run", program, "--random", "1", "--explain"],
                    capture_output=True, timeout=100, env=settings))
                self.assertEqual(done.code, 0, done)
                self.assertEqual("on machine mine, measured on 4 ranks" in done.out, number == 5, done)
        self.assertEqual(os.listdir(self.path("settings/einrel")), ["machine.json"])

    def test_figures_for_any_number_are_replaced_and_a_broken_file_is_not(self):
        settings = {**os.environ, "XDG_CONFIG_HOME": self.path("settings")}
        os.makedirs(self.path("settings/einrel"))
        self.text_file("settings/einrel/machine.json", "{")
        self.refuse(1, "explain", self.program, "--sites", "2", mentions=["machine.json"], env=settings)
        self.refuse(1, "calibrate", mentions=["machine.json", "not JSON", "mend", "delete"], env=settings)
        with open(self.path("settings/einrel/machine.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "{")
        self.text_file("settings/einrel/machine.json", json.dumps({"name": "mine", "sites": 2, **FIGURES}))
        done = self.calibrated(1, settings)
        self.assertIn("figures of 1 rank, in place of those for any number\n", done.out)
        found = self.found()
        self.assertEqual((found["name"], found["sites"], len(found["measured"])), ("calibrated", 1, 1))

    def test_a_trace_has_every_task_of_every_rank(self):
        done = self.job(2, self.program, "--random", "1", "--trace", self.path("trace.json"), "--json", "--cost", "bytes")
        self.assertEqual(done.code, 0, done)
        with open(self.path("trace.json"), encoding="utf-8") as file:
            events = [event for event in json.load(file)["traceEvents"] if is_task(event)]
        self.assertEqual(len(events), json.loads(done.out)["measured"]["tasks"])
        self.assertEqual({event["pid"] for event in events}, {0, 1})
        self.assertIn("Y", {event["name"] for event in events})

    def test_a_trace_has_every_message_on_both_sides_with_the_bytes_that_are_counted(self):
        for ranks, planner in ((2, "data"), (2, "eindecomp"), (3, "eindecomp"), (3, "sqrt")):
            options = ("--batch", "b") if planner == "data" else ("--cost", "bytes") if planner == "eindecomp" else ()
            done = self.job(ranks, self.program, "--random", "1", "--trace", self.path("trace.json"), "--json", "--planner",
                            planner, *options)
            self.assertEqual(done.code, 0, done)
            with open(self.path("trace.json"), encoding="utf-8") as file:
                events = json.load(file)["traceEvents"]
            measured = json.loads(done.out)["measured"]
            sides = {}
            for kind in ("send", "receive"):
                begun, ended = ([event for event in events if event["ph"] == phase and event["cat"] == kind] for phase in "be")
                self.assertEqual([event["id"] for event in begun], [event["id"] for event in ended])
                for begin, end in zip(begun, ended):
                    self.assertLessEqual(begin["ts"], end["ts"])
                    self.assertGreaterEqual(begin["ts"], 0)
                    self.assertEqual(begin["pid"], begin["args"]["from_rank" if kind == "send" else "to_rank"])
                    self.assertNotEqual(begin["args"]["from_rank"], begin["args"]["to_rank"])
                sides[kind] = {event["id"]: event["args"] for event in begun}
                self.assertEqual(len(sides[kind]), len(begun))
            self.assertEqual(sides["send"], sides["receive"])
            self.assertGreater(measured["bytes_moved"], 0)
            received = [sum(args["bytes"] for args in sides["receive"].values() if args["to_rank"] == rank)
                        for rank in range(ranks)]
            self.assertEqual(received, measured["bytes_moved_per_site"])
            self.expect_waits(events)

    def expect_waits(self, events):
        """Each on a thread between its tasks, for a message that arrived no sooner than it ended."""
        arrived = {event["id"]: event["ts"] for event in events if event["ph"] == "e" and event["cat"] == "receive"}
        for wait in (event for event in events if event.get("cat") == "wait"):
            end = wait["ts"] + wait["dur"]
            self.assertGreaterEqual(wait["dur"], 0)
            self.assertLessEqual(end, arrived[wait["args"]["task"]] + 1)  # microseconds, rounded
            for task in filter(is_task, events):
                if (task["pid"], task["tid"]) != (wait["pid"], wait["tid"]):
                    continue
                self.assertTrue(task["ts"] >= end - 1 or task["ts"] + task["dur"] <= wait["ts"] + 1, (task, wait))

    def test_an_input_in_one_piece_is_sent_from_where_it_lies(self):
        for order in ("C", "F"):
            np.save(self.path("W.npy"), np.asarray(self.arrays["W"], np.float32, order=order))
            done = self.job(2, self.program, *self.files, *self.outputs, "--planner", "data", "--batch", "b", "--trace",
                            self.path("trace.json"))
            self.assertEqual(done.code, 0, done)
            self.expect_outputs(order)
            with open(self.path("trace.json"), encoding="utf-8") as file:
                copied = {event["name"] for event in json.load(file)["traceEvents"] if is_task(event)}
            self.assertEqual("W" in copied, order == "F", copied)

    def test_a_repeated_run_traces_and_analyses_its_last_time(self):
        trace = self.path("repeated.json")
        for repeats in ("1", "3"):
            done = self.job(2, self.program, "--random", "1", "--repeat", repeats, "--trace", trace, "--analyze",
                            "--progress", "always")
            self.assertEqual(done.code, 0, done)
            with open(trace, encoding="utf-8") as file:
                tasks = [event["name"] for event in json.load(file)["traceEvents"] if is_task(event)]
            once = tasks if repeats == "1" else once
            # What repeats read is read by the first.
            self.assertEqual(sorted(tasks), sorted(name for name in once if repeats == "1" or name not in self.arrays))
            self.assertEqual("3 runs: " in done.out, repeats == "3")

    def test_pages_of_mapped_inputs_are_told_apart_from_what_a_run_takes(self):
        program = self.text_file("large.ein", "dims i=4096 j=4096\ninput A[i,j]\ns[] = sum[i,j] A[i,j]\n")
        np.save(self.path("large.npy"), np.ones((4096, 4096), np.float32))
        size = 4 * 4096 * 4096
        for mapped, given in ((size, ("--in", "A=" + self.path("large.npy"))), (0, ("--random", "1"))):
            one = json.loads(self.succeed("run", program, *given, "--sites", "1", "--json").out)["measured"]
            two = json.loads(self.job(2, program, *given, "--json", "--cost", "bytes").out)["measured"]
            pages = (one["file_pages_per_rank"][0], sum(two["file_pages_per_rank"]))
            for ran, of_files, ranks in ((one, pages[0], 1), (two, pages[1], 2)):
                self.assertEqual(len(ran["file_pages_per_rank"]), ranks)
                self.assertGreaterEqual(of_files, mapped)
                for peak, part in zip(ran["peak_memory_per_rank"], ran["file_pages_per_rank"]):
                    self.assertGreaterEqual(peak, part)
            if not mapped:  # of the program alone
                self.assertLess(pages[0], read_pages[0] - size // 2)
                self.assertLess(pages[1], read_pages[1] - size // 2)
            read_pages = pages
        text = self.succeed("run", program, *given, "--sites", "1", "--analyze").out
        self.assertRegex(text, r"peak memory of the process, with everything: \S+ \S+; of it pages of files \(.*\): \S+ MB")

    def test_progress_is_shown_when_asked_for(self):
        done = self.succeed("run", self.program, "--random", "1", "--sites", "2", "--progress", "always")
        self.assertRegex(done.err, r"100 %")


WINDOWS = """dims n=4 c=3 y=24 x=20 k=5 dy=3 dx=3
input X[n,c,y,x], W[k,c,dy,dx]
Z[n,k,y,x] = sum[c,dy,dx] pad(X[n,c,y+dy-1,x+dx-1], 0) * W[k,c,dy,dx]
A[n,k,y,x] = relu(Z[n,k,y,x])
M[k] = mean[n,y,x] A[n,k,y,x]
output A, M
"""
STATES = """dims i=60 j=60
input A[i,j]
state v[i] = f32(1)
Av[i] = sum[j] A[i,j] * v[j]
next v[i] = Av[i] / norm[i](Av[i])
n[] = norm[i](Av[i])
output n
"""


class PredictedMemory(RunTest):
    """Tensors never take more than was predicted, whatever a rank computes, sends and receives side by side."""

    def expect_bound(self, ranks, *arguments):
        done = self.job(ranks, *arguments, "--random", "1", "--json", "--threads", "2")
        self.assertEqual(done.code, 0, done)
        ran = json.loads(done.out)
        self.assertEqual(ran["sites"], ranks)
        predicted, measured = ran["peak_memory"]["predicted"], ran["measured"]["peak_memory"]
        self.assertLessEqual(measured, predicted, f"{ranks} ranks {arguments}")
        self.assertGreater(measured, 0)
        self.assertEqual(sum(tensor["bytes"] for tensor in ran["peak_memory"]["tensors"]), predicted)
        self.assertEqual(max(ran["peak_memory"]["by_site"]), predicted)
        return ran

    def test_ranks_hold_at_most_what_was_predicted(self):
        windows, states = self.text_file("windows.ein", WINDOWS), self.text_file("states.ein", STATES)
        for ranks in (1, 2, 3, 4):
            for how in ((), ("--planner", "sqrt"), ("--planner", "kcut"), ("--cost", "bytes")):
                self.expect_bound(ranks, self.program, *how)
                self.expect_bound(ranks, windows, *how)
                self.expect_bound(ranks, states, "--steps", "3", *how)

    def test_so_they_do_where_chunks_come_and_go(self):
        program = self.text_file("chain.ein", CHAIN)
        ran = self.expect_bound(2, program, "--memory", "24MB", "--spill", self.folder)
        self.assertGreater(ran["measured"]["bytes_spilled"], 0)

    def test_explain_says_the_same_as_a_run(self):
        windows = self.text_file("windows.ein", WINDOWS)
        for planner in ("eindecomp", "sqrt", "kcut"):
            said = json.loads(self.succeed("explain", windows, "--sites", "3", "--planner", planner, "--json").out)
            ran = self.expect_bound(3, windows, "--planner", planner)
            self.assertEqual(said["peak_memory"]["predicted"], ran["peak_memory"]["predicted"], planner)


class Limits(RunTest):
    def test_a_program_larger_than_memory_runs_through_the_disk(self):
        program = self.text_file("chain.ein", CHAIN)
        whole = json.loads(self.succeed("run", program, "--random", "1", "--json").out)
        within = json.loads(self.succeed("run", program, "--random", "1", "--json", "--threads", "2",
                                         "--memory", "24MB", "--spill", self.folder).out)
        self.assertGreater(within["sites"], 1)
        self.assertGreater(within["measured"]["bytes_spilled"], 0)
        for key in ("min", "max", "mean"):
            want = whole["outputs"]["E"][key]
            self.assertAlmostEqual(within["outputs"]["E"][key], want, delta=1e-3 * abs(want) + 1e-2)
        self.assertEqual(os.listdir(self.folder).count("chain.ein"), 1)
        self.assertEqual([name for name in os.listdir(self.folder) if "spill" in name], [])
        self.assertLess(within["peak_memory"]["measured"], 24e6 + 150e6)

    def test_any_number_of_chunks_goes_to_disk_with_few_open_files(self):
        def few_files():
            resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))

        program = self.text_file("chain.ein", CHAIN)
        arguments = ("run", program, "--random", "1", "--json", "--memory", "12MB", "--threads", "4")
        within = json.loads(self.succeed(*arguments, preexec_fn=few_files).out)
        self.assertGreater(within["measured"]["bytes_spilled"], 32 * 2**20)
        whole = json.loads(self.succeed("run", program, "--random", "1", "--json").out)
        for key in ("min", "max", "mean"):
            want = whole["outputs"]["E"][key]
            self.assertAlmostEqual(within["outputs"]["E"][key], want, delta=1e-3 * abs(want) + 1e-2)

    def test_views_of_views_are_cut_though_they_share_no_label_that_can_be(self):
        # V can be cut along a and j, W along b and a: each chunk of W has a part of every chunk of V along j.
        program = self.text_file("views.ein", "dims a=3 b=3000 j=1000 i=9000\ninput X[i,j]\nV[a,b,j] = view X[(a b),j]\n"
                                 "W[b,(a j)] = view V[a,b,j]\nQ[b] = sum[k] W[b,k] * k\noutput Q\n")
        whole, parts = self.path("whole.npy"), self.path("parts.npy")
        self.succeed("run", program, "--random", "1", "--out", f"Q={whole}")
        self.succeed("run", program, "--random", "1", "--threads", "2", "--memory", "9MB", "--out", f"Q={parts}")
        np.testing.assert_allclose(np.load(parts), np.load(whole), rtol=1e-4, atol=2)

    def test_a_view_that_cannot_be_cut_is_named_with_its_label(self):
        program = self.text_file("view.ein", "dims a=2 b=30000000 i=60000000\ninput X[i]\nV[a,b] = view X[(a b)]\n"
                                 "W[b] = sum[a] V[a,b] * a\noutput W\n")
        self.refuse(1, "run", program, "--random", "1", "--memory", "9MB",
                    mentions=["'V'", "label 'b' of V cannot be cut", "not the first label of the group (a b)"])

    def test_a_rank_whose_parts_do_not_fit_computes_smaller_ones(self):
        program = self.text_file("chain.ein", CHAIN)
        whole = json.loads(self.succeed("run", program, "--random", "1", "--json").out)
        done = self.job(2, program, "--random", "1", "--json", "--threads", "1", "--memory", "24MB",
                        "--spill", self.folder, "--repeat", "2")
        self.assertEqual(done.code, 0, done)
        within = json.loads(done.out)
        self.assertGreater(within["measured"]["bytes_spilled"], 0)
        self.assertEqual(within["measured"]["bytes_moved_per_site"], within["plans"][0]["received"])
        for key in ("min", "max", "mean"):
            want = whole["outputs"]["E"][key]
            self.assertAlmostEqual(within["outputs"]["E"][key], want, delta=1e-3 * abs(want) + 1e-2)

    def test_what_could_run_side_by_side_keeps_to_the_limit(self):
        # Each P is needed by one Q alone; all of them at a time would be 300 MB.
        lines = ["dims n=1000 m=1250", "input X[n,m]"]
        for i in range(60):
            lines += [f"P{i}[n,m] = X[n,m] * {i}", f"Q{i}[n] = max[m] P{i}[n,m]"]
        program = self.text_file("wide.ein", "\n".join([*lines, "output " + ", ".join(f"Q{i}" for i in range(60))]))
        ran = json.loads(self.succeed("run", program, "--random", "1", "--json", "--memory", "60MB", "--sites", "2",
                                      "--planner", "single", "--threads", "3").out)
        self.assertEqual(ran["measured"]["bytes_spilled"], 0)
        for vertex in ran["vertices"]:
            self.assertLess(vertex["peak_memory"]["measured"] or 0, 60e6, vertex["name"])

    def test_bookkeeping_that_takes_more_than_the_limit_is_named(self):
        lines = ["dims i=8 j=8", "input X[i,j], W[j,j]", "Y0[i,j] = X[i,j] * 1"]
        lines += [f"Y{t + 1}[i,j] = sum[k] Y{t}[i,k] * W[k,j]" for t in range(2000)]
        program = self.text_file("products.ein", "\n".join([*lines, "output Y2000"]))
        self.refuse(1, "run", program, "--random", "1", "--memory", "9MB",
                    mentions=["--memory 9 MB is too little", "the bookkeeping of 2004 tasks takes 14.6 MB",
                              "help: give at least"])

    def test_inputs_of_a_plan_that_is_given_are_read_when_they_are_needed(self):
        program = self.text_file("sums.ein", "dims i=2500 j=8000\ninput X[i,j]\nS[i] = sum[j] X[i,j]\noutput S\n")
        plan = self.text_file("plan.json", self.succeed("explain", program, "--json", "--sites", "128").out)
        ran = json.loads(self.succeed("run", program, "--random", "1", "--json", "--memory", "12MB", "--threads", "2",
                                      "--plan", plan).out)
        self.assertLess(ran["measured"]["bytes_spilled"], 1e6)

    def test_reductions_of_any_length_keep_to_a_small_limit(self):
        random = np.random.default_rng(2)
        x = random.standard_normal((2000, 1100)).astype(np.float32)
        v = x.reshape(-1)
        np.save(self.path("x.npy"), x)
        np.save(self.path("v.npy"), v)
        wide = v.astype(np.float64)
        exponentials = np.exp(wide)
        by_column = np.exp(x.astype(np.float64))
        cases = [("S[] = sum[i] V[i]", wide.sum()),
                 ("S[] = max[i] V[i]", wide.max()),
                 ("S[] = argmax[i] V[i]", wide.argmax()),
                 ("S[] = mean[i] V[i]", wide.mean()),
                 ("S[] = logsumexp[i] V[i]", np.log(exponentials.sum())),
                 ("S[i] = softmax[i](V[i])", exponentials / exponentials.sum()),
                 ("S[] = sum[i] V[i] * V[i]", (wide * wide).sum()),
                 ("S[] = sum[j,k] X[j,k]", wide.sum()),
                 ("S[k] = max[j] X[j,k]", x.max(axis=0)),
                 ("S[j,k] = softmax[j](X[j,k])", by_column / by_column.sum(axis=0)),
                 ("Y[k,j] = exp(X[j,k])\nS[j] = sum[k] Y[k,j] * X[j,k]", (by_column * x).sum(axis=1)),
                 ("S[] = sum[j] (max[k] X[j,k])", x.max(axis=1).astype(np.float64).sum()),
                 ("dims z=2199999\nS[] = sum[z] V[z+1]", wide[1:].sum()),
                 ("dims z=1100000\nS[] = max[z] V[2*z]", wide[::2].max()),
                 ("dims z=2199000\nS[] = mean[z] V[2199999-z] + 1", (wide[1000:] + 1).mean()),
                 ("dims z=2199999\nY[i] = exp(V[i])\nS[] = sum[z] Y[z+1] / 2", exponentials[1:].sum() / 2),
                 ("dims z=2199999\nY[i] = exp(V[i])\nS[] = sum[z] Y[z] * Y[z+1]",
                  (exponentials[1:] * exponentials[:-1]).sum())]
        for number, (statement, expected) in enumerate(cases):
            tensor = "V[i]" if "V[" in statement else "X[j,k]"
            program = self.text_file("reduction.ein", f"input {tensor}\n{statement}\noutput S\n")
            # All of it is more than chunks may take; of 32 threads most have to wait.
            threads = ("1", "2", "32")[number % 3]
            cost = ("seconds", "bytes", "floats", "bound")[number % 4]
            with self.subTest(statement=statement, threads=threads, cost=cost):
                ran = json.loads(self.succeed(
                    "run", program, "--in", f"{tensor[0]}={self.path(tensor[0].lower() + '.npy')}", "--memory", "9MB",
                    "--threads", threads, "--cost", cost, "--out", f"S={self.path('s.npy')}", "--json").out)
                self.assertGreater(ran["measured"]["tasks"], 3)
                rounding = 1e-6 * np.sqrt(v.size) if "sum" in statement else 1e-12  # of sums around 0
                np.testing.assert_allclose(np.load(self.path("s.npy")), expected, rtol=3e-4, atol=rounding)

    def test_limits_that_nothing_fits_into_are_refused(self):
        program = self.text_file("chain.ein", CHAIN)
        diagonal = self.text_file("diagonal.ein", "dims i=3000 j=3000 z=2999\ninput A[i,j]\ns[z] = A[z+1,z+1]\n")
        self.refuse(1, "run", diagonal, "--random", "1", "--memory", "1kB", "--threads", "8",
                    mentions=["--memory 1 kB", "'s' takes 36 MB", "help: give at least 73.5 MB"])
        self.refuse(1, "run", program, "--random", "1", "--spill", self.folder, mentions=["--spill needs --memory"])
        self.refuse(1, "run", program, "--random", "1", "--memory", "24MB", "--spill", "/nowhere",
                    mentions=["/nowhere"])

    def test_a_full_disk_is_a_named_error_and_leaves_nothing(self):
        def small_files():  # as a full disk refuses: writing past this size fails
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

        program = self.text_file("chain.ein", CHAIN)
        folder = self.path("small")
        os.mkdir(folder)
        for arguments in (("--memory", "24MB", "--spill", folder), ("--sites", "2", "--out", f"E={folder}/e.npy")):
            self.refuse(2, "run", program, "--random", "1", *arguments, mentions=[folder], preexec_fn=small_files)
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    main()
