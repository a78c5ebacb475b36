"""einrel explain --simulate: what it says, writes, and refuses.

Usage: simulate_test.py EINREL
"""

import json

from einrel_process import ProgramTest, main

PRODUCT = "dims i=1000 j=1000 k=1000\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\n"


class Simulate(ProgramTest):
    def setUp(self):
        super().setUp()
        self.program = self.text_file("product.ein", PRODUCT)

    def simulated(self, *options):
        machine = () if "--machine" in options else ("--machine", "laptop")
        said = json.loads(self.succeed("explain", self.program, *machine, "--json", "--simulate", *options).out)
        return said["simulated"], said["plans"][0]

    def test_one_site_takes_the_seconds_of_its_tasks(self):
        run, plan = self.simulated()
        self.assertAlmostEqual(run["seconds"], sum(run["computing_seconds"]), places=9)
        self.assertAlmostEqual(run["seconds"], plan["cost"]["seconds"], delta=0.01 * plan["cost"]["seconds"])
        self.assertEqual(run["received_bytes"], [0])
        self.assertIn("\n  simulated   ", self.succeed("explain", self.program, "--simulate").out)

    def test_kernels_have_the_cores_of_a_site(self):
        seconds = {}
        for cores in (1, 4):
            machine = {"name": "mine", "about": "a test", "cores": cores, "flops_per_core": 5e10, "memory_bandwidth": 1e11, "network_bandwidth": 1e9,
                       "network_latency": 1e-5, "task_seconds": 1e-6, "memory": 8 * 10**9, "sites": 1, "kernel_times": {"packed": 2.0}}
            run, _ = self.simulated("--machine", self.text_file("machine.json", json.dumps(machine)))
            seconds[cores] = run["seconds"]
        self.assertAlmostEqual(seconds[1] / seconds[4], 4 * 0.9, delta=0.1)

    def test_sites_receive_what_the_plan_says(self):
        run, plan = self.simulated("--sites", "4")
        self.assertEqual(run["by"], "tasks")
        self.assertEqual(run["received_bytes"], plan["received"])
        self.assertGreaterEqual(run["seconds"], max(run["computing_seconds"]))

    def test_a_slow_site_computes_longer(self):
        before, _ = self.simulated("--sites", "4")
        slow, _ = self.simulated("--sites", "4", "--slow", "3=0.5")
        self.assertAlmostEqual(slow["computing_seconds"][3], 2 * before["computing_seconds"][3], places=7)
        self.assertEqual([round(seconds, 9) for seconds in slow["computing_seconds"][:3]],
                         [round(seconds, 9) for seconds in before["computing_seconds"][:3]])

    def test_the_trace_has_every_message_on_both_sides(self):
        trace = self.path("trace.json")
        said = self.succeed("explain", self.program, "--sites", "4", "--simulate", "--trace", trace, "--json").out
        with open(trace, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        for side in ("send", "receive"):
            moved = sum(event["args"]["bytes"] for event in events if event.get("cat") == side and event["ph"] == "b")
            self.assertEqual(moved, sum(json.loads(said)["simulated"]["received_bytes"]))

    def test_of_many_chunks_vertices_are_simulated(self):
        lines = [f"T{n + 1}[i] = exp(T{n}[i])" for n in range(70)]
        program = self.text_file("many.ein", "\n".join(["dims i=4096", "input T0[i]", *lines, "Z[] = sum[i] T70[i]", ""]))
        options = ("--sites", "1024", "--planner", "data")
        said = json.loads(self.succeed("explain", program, *options, "--simulate", "--json").out)
        self.assertEqual(said["simulated"]["by"], "vertices")
        self.assertEqual(said["simulated"]["received_bytes"], said["plans"][0]["received"])
        self.refuse(1, "explain", program, *options, "--simulate", "--trace", self.path("t.json"), mentions=["--trace", "fewer sites"])

    def test_what_makes_no_sense_is_refused(self):
        for given, mentions in ((["3"], "--slow"), (["x=1"], "a site's number"), (["-1=1"], "a site's number"), (["4=0.5"], "site 4"),
                                (["1=0"], "from 0.001 to 1000"), (["1=nan"], "from 0.001 to 1000"), (["1=fast"], "times as fast")):
            self.refuse(1, "explain", self.program, "--sites", "4", "--simulate", "--slow", *given, mentions=[mentions])
        self.refuse(1, "explain", self.program, "--slow", "0=0.5", mentions=["--slow", "add --simulate"])
        self.refuse(1, "explain", self.program, "--trace", self.path("t.json"), mentions=["--trace", "add --simulate"])
        self.refuse(1, "explain", self.program, "--sites", "2,4", "--simulate", mentions=["--simulate"])
        self.refuse(1, "explain", self.program, "--sites", "4", "--planner", "ia-rules", "--simulate", mentions=["--simulate"])


if __name__ == "__main__":
    main()
