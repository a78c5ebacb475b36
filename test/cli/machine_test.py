"""Planning for machines: their names, files, sites and memory.

Usage: machine_test.py EINREL
"""

import json
import sys

sys.dont_write_bytecode = True
import einrel_process as process  # noqa: E402
from command_line_test import parse_json  # noqa: E402

PROGRAM = "dims i=4096 j=4096 k=4096\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\n"
MACHINE = {"name": "mine", "about": "a test", "sites": 6, "cores": 2, "flops_per_core": 1e9, "memory_bandwidth": 2e9,
           "network_bandwidth": 3e8, "network_latency": 1e-5, "task_seconds": 1e-6, "memory": 4 * 10**9}


class MachineTest(process.ProgramTest):
    def setUp(self):
        super().setUp()
        self.program = self.text_file("p.ein", PROGRAM)

    def machine_file(self, **changes):
        return self.text_file("mine.json", json.dumps({**MACHINE, **changes}))

    def planned(self, *arguments):
        return parse_json(self.succeed("explain", self.program, *arguments, "--json").out)


class Machines(MachineTest):
    def test_all_are_listed_with_where_their_figures_come_from(self):
        listed = self.succeed("list", "machines").out
        for text in ("laptop", "m6in-cluster", "16 sites", "EinDecomp paper", "v100-server"):
            self.assertIn(text, listed)

    def test_links_are_listed_with_how_many_there_are_and_how_fast(self):
        listed = self.succeed("list", "machines").out
        self.assertIn("\n    links: 2 groups of 4 sites: QPI, 9.6 GB/s to each group after 1 us\n", listed)
        self.assertIn("\n    links: 4 groups of 32 sites: spine, 100 GB/s to each group after 10 us; in each 4 groups of 8 sites: "
                      "ethernet, 50 GB/s to each group after 10 us\n", listed)

    def test_a_name_gives_sites_and_speed(self):
        slow = self.planned("--machine", "r5d-cluster")
        self.assertEqual((slow["machine"], slow["sites"]), ("r5d-cluster", 10))
        fast = self.planned("--machine", "r5dn-cluster")
        self.assertLess(fast["cost"]["seconds"], slow["cost"]["seconds"])
        self.assertEqual(self.planned("--machine", "r5d-cluster", "--sites", "4")["sites"], 4)
        self.assertIn("for 10 sites on machine r5d-cluster", self.succeed("explain", self.program, "--machine",
                                                                          "r5d-cluster").out)

    def test_a_file_of_ones_own_works_likewise(self):
        report = self.planned("--machine", self.machine_file())
        self.assertEqual((report["machine"], report["sites"]), ("mine", 6))

    def test_wrong_names_and_files_are_refused(self):
        self.refuse(1, "explain", self.program, "--machine", "r5d-clutser", mentions=["did you mean 'r5d-cluster'?"])
        self.refuse(1, "explain", self.program, "--machine", self.path("none.json"), mentions=["none.json"])
        self.refuse(1, "explain", self.program, "--machine", self.folder + "/", mentions=["folder"])
        self.refuse(1, "explain", self.program, "--machine", self.machine_file(cores=-1),
                    mentions=["mine.json", "'cores'", "above 0"])
        self.refuse(1, "explain", self.program, "--machine", self.machine_file(colour="red"),
                    mentions=["mine.json", "'colour'"])
        self.refuse(1, "explain", self.program, "--machine", self.text_file("m.json", "cores = 2"),
                    mentions=["m.json:1:1", "not JSON"])


FIGURES = {field: value for field, value in MACHINE.items() if field not in ("name", "sites")}


class MeasuredMachines(MachineTest):
    """One machine with figures of several numbers of ranks: the network of n ranks has n times 100 MB/s."""

    def measured(self, *numbers, **changes):
        sets = [{"ranks": ranks, **FIGURES, "network_bandwidth": ranks * 1e8, "memory": ranks * 10**9} for ranks in numbers]
        sets[-1].update(changes)
        return self.text_file("measured.json", json.dumps({"name": "mine", "sites": 2, "measured": sets}))

    def test_plans_take_the_figures_of_as_many_ranks_as_there_are_sites(self):
        machine = self.measured(2, 4)
        for sites in (2, 4):
            own = self.planned("--machine", machine, "--sites", str(sites), "--planner", "sqrt")
            flat = self.planned("--machine", self.machine_file(network_bandwidth=sites * 1e8), "--sites", str(sites),
                                "--planner", "sqrt")
            self.assertEqual(own["machine_ranks"], sites)
            self.assertEqual(flat["machine_ranks"], None)
            self.assertEqual(own["cost"]["seconds"], flat["cost"]["seconds"])
            self.assertEqual(own["memory_limit"], sites * 10**9)
            shown = self.succeed("explain", self.program, "--machine", machine, "--sites", str(sites)).out
            self.assertIn(f"for {sites} sites on machine mine, least seconds", shown)
        self.assertEqual(self.planned("--machine", machine)["machine_ranks"], 2)  # its sites

    def test_else_those_of_the_nearest_number_and_say_so(self):
        machine = self.measured(1, 2, 4)
        for sites, ranks in ((3, 2), (8, 4)):
            shown = self.succeed("explain", self.program, "--machine", machine, "--sites", str(sites)).out
            self.assertIn(f"for {sites} sites on machine mine, measured on {ranks} ranks, least seconds", shown)
        ran = self.succeed("run", self.text_file("small.ein", "dims i=4\ninput A[i]\nB[i] = A[i] + 1\n"), "--random", "1",
                           "--machine", machine, "--sites", "3", "--explain", "--analyze").out
        self.assertIn("on machine mine, measured on 2 ranks, least", ran)
        self.assertIn("  seconds predicted by figures of machine mine, measured on 2 ranks\n", ran)

    def test_a_plan_of_a_file_decides(self):
        plan = self.text_file("plan.json", self.succeed("explain", self.program, "--sites", "4", "--json").out)
        self.assertEqual(self.planned("--machine", self.measured(2, 4), "--plan", plan)["machine_ranks"], 4)

    def test_wrong_sets_are_refused_by_number_and_field(self):
        for numbers, changes, words in (((2, 4), {"cores": -1}, ["set 2 of 'measured'", "'cores'", "above 0"]),
                                        ((2, 2), {}, ["set 2 of 'measured'", "'ranks'", "as in set 1"]),
                                        ((2,), {"sites_per_node": 3}, ["set 1 of 'measured'", "'sites_per_node'", "1 to 2"]),
                                        (range(1, 1001), {}, ["'measured' has 1000 sets", "1 to 256"])):
            self.refuse(1, "explain", self.program, "--machine", self.measured(*numbers, **changes),
                        mentions=["measured.json", *words])


class LeastBytes(MachineTest):
    def test_plans_of_products_are_compared_with_the_least_that_any_moves(self):
        shown = self.succeed("explain", self.program, "--sites", "64", "--cost", "bytes", "--verbose").out
        self.assertIn("1.00 times the least that any plan moves", shown)
        shown = self.succeed("explain", self.program, "--sites", "64", "--planner", "data", "--verbose").out
        self.assertIn("7.00 times the least that any plan moves", shown)  # 63 matrices instead of 9

    def test_nothing_is_said_where_an_earlier_vertex_has_brought_an_operand(self):
        whole, pieces = "Z[a,b] = sum[e] X[a,e] * V[b,e]\n", "Y[e,f] = sum[a] X[a,e] * W[a,f]\n"
        text = "dims a=4096 e=4096 b=8192 f=16\ninput X[a,e], W[a,f], V[b,e]\n" + whole + pieces + "output Z, Y\n"
        shown = self.succeed("explain", self.text_file("twice.ein", text), "--sites", "2", "--verbose").out
        shown = shown[shown.index("\nvertices ("):]
        self.assertIn("X to 2 sites each", shown)
        self.assertEqual(shown.count("times the least that any plan moves"), 1)  # of Z
        self.assertLess(shown.index("times the least"), shown.index("Y[e,f]"))


class Memory(MachineTest):
    def peak(self, *arguments):
        return self.planned("--sites", "64", "--cost", "bytes", *arguments)["peak_memory"]

    def test_the_peak_is_shown_with_its_tensors_and_their_lines(self):
        shown = self.succeed("explain", self.program, "--sites", "64", "--cost", "bytes").out
        self.assertIn("29.4 MB on site 0 while C (line 3) is computed: partial results of C (line 3) 16.8 MB, "
                      "A (line 2) 4.19 MB, B (line 2) 4.19 MB, C (line 3) 4.19 MB\n", shown)
        peak = self.peak()
        self.assertEqual((peak["predicted"], peak["site"], peak["vertex"]), (7 * 2**22, 0, "C"))
        self.assertEqual(peak["tensors"][0], {"name": "C", "as": "partial", "bytes": 4 * 2**22})
        self.assertEqual(sum(tensor["bytes"] for tensor in peak["tensors"]), peak["predicted"])

    def test_a_limit_forces_another_plan(self):
        self.assertEqual(self.peak("--memory", "30MB"), self.peak("--memory", "none"))
        self.assertLessEqual(self.peak("--memory", "20MB")["predicted"], 20 * 10**6)
        self.assertLess(self.peak("--memory", "28MiB")["predicted"], 28 * 2**20)  # ranks keep something of their tasks, too

    def test_what_does_not_fit_is_refused_with_need_and_limit(self):
        self.refuse(1, "explain", self.program, "--sites", "64", "--memory", "10MB",
                    mentions=["eindecomp", "C needs 16.8 MB", "limit is 10 MB"])
        self.refuse(1, "explain", self.program, "--sites", "64", "--memory", "50MB", "--planner", "data",  # pieces of B, and B made of them
                    mentions=["data", "C needs 134 MB on site 0", "limit is 50 MB", "copied B (line 2) 133 MB"])
        beside = self.succeed("explain", self.program, "--sites", "64", "--memory", "50MB", "--planner", "eindecomp",
                              "--planner", "data").out
        self.assertIn("data               no plan: C needs 134 MB on site 0, and the limit is 50 MB", beside)

    def test_the_limit_is_that_of_a_machine_that_is_chosen(self):
        machine = self.machine_file(memory=10**6)
        self.refuse(1, "explain", self.program, "--machine", machine, mentions=["limit is 1 MB"])
        self.succeed("explain", self.program, "--machine", machine, "--memory", "1TB")
        self.succeed("explain", self.program, "--machine", machine, "--memory", "none")

    def test_sizes_that_are_none_are_refused(self):
        for wrong in ("0", "-1", "x", "GB", "1e30GB", "99999999999999999999", "16XB", "nan", "nanGB", "0.5B", ""):
            self.refuse(1, "explain", self.program, "--sites", "4", f"--memory={wrong}",
                        mentions=["--memory", "512MiB"] if wrong else ["--memory"])


if __name__ == "__main__":
    process.main()
