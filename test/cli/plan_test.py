"""Explaining plans: planners, costs, several side by side, differences, plans from files.

Usage: plan_test.py EINREL
"""
import json
import os
import sys

sys.dont_write_bytecode = True
import einrel_process as process  # noqa: E402

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
CHAIN = """dims i=64 j=32 k=96 l=16
input A[i,j], B[j,k], C[k,l]
D[i,k] = sum[j] A[i,j] * B[j,k]
E[i,l] = sum[k] D[i,k] * C[k,l]
"""

GRADIENT = """dims b=8000 h=500 l=500
input A[b,h], D[b,l], W[h,l]
G[h,l] = sum[b] A[b,h] * D[b,l]
V[h,l] = W[h,l] - 0.01 * G[h,l]
output V
"""


class PlanTest(process.ProgramTest):
    def setUp(self):
        super().setUp()
        self.program = self.text_file("chain.ein", CHAIN)

    def explain(self, *arguments):
        return self.succeed("explain", self.program, *arguments).out

    def plan(self, *arguments):
        return json.loads(self.explain(*arguments, "--json"))


class Planners(PlanTest):
    def test_the_default_planner_shows_cuts_moves_and_the_runner_up(self):
        shown = self.explain("--sites", "4")
        for text in ("plan by eindecomp for 4 sites", "inputs, and where they lie", "D[i,k] = sum[j]", "next: ", "planned in"):
            self.assertIn(text, shown)

    def test_the_runner_up_of_another_planners_plan_may_be_better(self):
        arguments = ("explain", os.path.join(EXAMPLES, "layers.ein"), "--sites", "4", "--planner", "data")
        vertices = json.loads(self.succeed(*arguments, "--json").out)["vertices"]
        better = [vertex["name"] for vertex in vertices if vertex["runner_up"] and vertex["runner_up"]["more"] < 0]
        self.assertNotEqual(better, [])
        self.assertEqual(self.succeed(*arguments).out.count(" less by estimate"), len(better))

    def test_several_stand_side_by_side(self):
        shown = self.explain("--sites", "8", "--planner", "eindecomp", "--planner", "sqrt", "--planner", "all-tile")
        table = shown[shown.index("planner  "):]
        self.assertEqual([line.split()[0] for line in table.splitlines()[1:4]], ["eindecomp", "sqrt", "all-tile"])

    def test_the_cost_that_is_asked_for_is_not_above_that_of_others_on_all_sites(self):
        for cost in ("bound", "bytes", "floats"):
            least = self.plan("--sites", "6", "--cost", cost)["cost"][cost]
            self.assertLessEqual(least, self.plan("--sites", "6", "--planner", "sqrt")["cost"][cost])

    def test_a_difference_names_the_vertices_and_what_they_cost(self):
        shown = self.explain("--sites", "4", "--diff", "eindecomp", "data")
        self.assertIn("where eindecomp and data differ", shown)
        self.assertRegex(shown, r"data of [DE] costs [+-]\d")

    def test_planners_that_have_no_plan_say_why(self):
        self.refuse(1, "explain", self.program, "--sites", "4", "--planner", "megatron", mentions=["megatron", "attention"])
        self.refuse(1, "explain", self.program, "--sites", "4", "--planner", "data", "--batch", "q", mentions=["label q"])

    def test_wrong_names_are_refused_with_the_right_ones(self):
        self.refuse(1, "explain", self.program, "--planner", "eindcomp", mentions=["did you mean 'eindecomp'", "ia-rules"])
        self.refuse(1, "explain", self.program, "--sites", "2", "--cost", "dollars", mentions=["seconds", "bytes"])
        self.refuse(1, "explain", self.program, "--diff", "eindecomp", mentions=["--diff"])

    def test_options_that_would_do_nothing_are_refused(self):
        for option in (["--cost", "bytes"], ["--batch", "i"], ["--diff", "sqrt", "data"], ["--plan", "x.json"]):
            self.refuse(1, "explain", self.program, "--sites", "4", "--planner", "table-1", *option, mentions=[option[0]])
        self.refuse(1, "explain", self.program, "--cost", "nonsense", mentions=["nonsense"])
        self.refuse(1, "explain", self.program, "--sites", "4", "--diff", "sqrt", "data", "--json", mentions=["--diff"])

    def test_bytes_beyond_63_bits_do_not_wrap(self):
        program = self.text_file("large.ein", "dims i=1000000000 j=500000000 k=8\ninput X[i,j], W[j,k]\n"
                                 "Z[i,k] = sum[j] X[i,j] * W[j,k]\n")
        self.assertGreater(json.loads(self.succeed("explain", program, "--sites", "8", "--cost", "bytes", "--json").out)["cost"]["bytes"], 0)

    def test_the_list_of_planners(self):
        listed = self.succeed("list", "planners").out
        for name in ("eindecomp", "eindecomp-paper", "single", "data", "sqrt", "all-tile", "megatron", "sequence", "heads"):
            self.assertIn(f"\n{name} ", "\n" + listed)

    def test_an_algebra_has_what_the_plan_moves(self):
        shown = self.explain("--sites", "4", "--planner", "sqrt", "--algebra")
        self.assertIn("implementation algebra for 4 sites, by sqrt", shown)
        self.assertIn("local_join", shown)


class Files(PlanTest):
    def test_a_plan_is_the_same_when_read_again(self):
        for planner in ("eindecomp", "all-tile", "eindecomp-paper"):
            text = self.explain("--sites", "6", "--planner", planner, "--json")
            file = self.text_file("plan.json", text)
            again = self.plan("--plan", file)
            written = json.loads(text)["plans"][0]
            for field in ("sites", "cost", "received", "vertices"):
                self.assertEqual(again["plans"][0][field], written[field])

    def test_a_result_that_is_shared_out_is_shown_and_read_again(self):
        self.program = self.text_file("gradient.ein", GRADIENT)
        for text in ("b=4, result h=4 ", "partial results over b, shared out along h, "):
            self.assertIn(text, self.explain("--sites", "4"))
            self.assertIn(text, self.explain("--sites", "4", "--diff", "eindecomp", "data"))
        file = self.text_file("plan.json", self.explain("--sites", "4", "--json"))
        again = self.plan("--plan", file)
        with open(file, encoding="utf-8") as written:
            self.assertEqual(again["plans"][0]["vertices"], json.load(written)["plans"][0]["vertices"])
        self.assertEqual(again["plans"][0]["vertices"][3]["scatter"], "h")

        def refuse(mentions, vertex=3, **change):
            plan = json.loads(json.dumps(again["plans"][0]))
            plan["vertices"][vertex].update(change)
            self.refuse(1, "explain", self.program, "--plan", self.text_file("wrong.json", json.dumps(plan)),
                        mentions=["wrong.json", *mentions])

        refuse(["`scatter` of vertex G", "q", "no label"], scatter="q")
        refuse(["`scatter` of vertex G", "4", "no label"], scatter=4)
        refuse(["vertex G", "b is no label of its result"], scatter="b")
        refuse(["vertex G", "3 parts of h"], parts={"b": 4, "h": 3})
        refuse(["vertex V", "no label that it reduces"], vertex=4, scatter="h")
        refuse(["vertex A", "no label that it reduces"], vertex=0, scatter="0")
        spread = {"parts": {"b": 2, "h": 4}, "sites": {"b": 2, "h": 2}}
        refuse(["strides of vertex G", "scattered along h"], strides={"b": 2, "h": 1}, **spread)

    def test_wrong_files_are_refused(self):
        report = self.plan("--sites", "4")
        plan = report["plans"][0]

        def refuse(change, *mentions):
            changed = json.loads(json.dumps(plan))
            change(changed)
            file = self.text_file("wrong.json", json.dumps(changed))
            self.refuse(1, "explain", self.program, "--plan", file, mentions=["wrong.json", *mentions])

        refuse(lambda p: p.pop("vertices"), "vertices")
        refuse(lambda p: p["vertices"].pop(), "vertices")
        refuse(lambda p: p["vertices"][3].update(name="Q"), "Q", "D")
        refuse(lambda p: p["vertices"][3]["parts"].update(i=65), "parts of i", "64")
        refuse(lambda p: p["vertices"][3]["sites"].update(q=2), "D", "no label q")
        refuse(lambda p: p["vertices"][3].update(parts=5), "D")
        refuse(lambda p: p["vertices"][3]["parts"].update(i=2**63), "`i`")
        refuse(lambda p: p["vertices"][3]["sites"].update(i=0), "D")
        refuse(lambda p: p["vertices"][3].update(parts={"i": 4}, sites={"i": 4}, strides={"i": 2}), "D")
        refuse(lambda p: p.update(sites=10**30), "sites")
        refuse(lambda p: p.update(sites="four"), "sites")
        for text in ("", "[]", "{", "null", '{"plans": []}', '{"plans": 3}', '{"sites": 2, "vertices": 1}'):
            self.refuse(1, "explain", self.program, "--plan", self.text_file("wrong.json", text), mentions=["wrong.json"])
        self.refuse(1, "explain", self.program, "--plan", "/no/such.json", mentions=["/no/such.json"])
        self.refuse(1, "explain", self.program, "--sites", "3", "--plan", self.text_file("plan.json", json.dumps(report)),
                    mentions=["--sites 3", "for 4"])
        self.refuse(1, "explain", self.program, "--plan", "/", mentions=["folder"])

    def test_files_that_nest_without_end_are_refused(self):
        deep = "[" * 100_000 + "]" * 100_000
        report = self.plan("--sites", "4")
        vertex = report["plans"][0]["vertices"][3]
        for field in ("name", "parts", "scatter"):
            changed = {**vertex, field: "DEEP"}
            report["plans"][0]["vertices"][3] = changed
            file = self.text_file("deep.json", json.dumps(report).replace('"DEEP"', deep))
            for command in (["explain", "--sites", "4"], ["run", "--random", "1"]):
                self.refuse(1, command[0], self.program, *command[1:], "--plan", file,
                            mentions=["deep.json", "nest more than 100 deep"])
        self.refuse(1, "explain", self.program, "--plan", self.text_file("deep.json", deep), mentions=["nest more"])
        for text in (deep, '{"name": ' + deep + "}", deep[:100_000]):
            self.refuse(1, "explain", self.program, "--sites", "4", "--machine", self.text_file("m.json", text),
                        mentions=["m.json"])


class Examples(process.ProgramTest):
    def test_plans_of_the_papers_programs(self):
        for name in ("chain_skewed", "ffnn", "multi_head_attention", "llama_layer"):
            for sites in ("2", "7", "16"):
                report = json.loads(self.succeed("explain", os.path.join(EXAMPLES, name + ".ein"), "--sites", sites, "--json").out)
                self.assertGreater(report["cost"]["seconds"], 0)


if __name__ == "__main__":
    process.main()
