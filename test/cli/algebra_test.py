"""Explaining programs over sites: options, programs in the tensor relational algebra, rules, JSON.

Usage: algebra_test.py EINREL
"""

import os
import re
import sys

sys.dont_write_bytecode = True
import einrel_process as process  # noqa: E402
from command_line_test import parse_json  # noqa: E402

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
MULTIPLICATION = "dims i=400 j=400 k=400\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\n"
TRA = "input A[4,4] cut <2,2>\nC = aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(A, A))\n"
SEARCH = ("--planner", "ia-rules")


class AlgebraTest(process.ProgramTest):
    def setUp(self):
        super().setUp()
        self.program = self.text_file("p.ein", MULTIPLICATION)

    def moved(self, *arguments):
        """Floats moved, as printed: by Table 1, then by the plan that a search found."""
        shown = self.succeed("explain", *arguments).out
        return [float(text) for text in re.findall(r"in all (\S+) floats moved", shown)]


class Sites(AlgebraTest):
    def test_explain_shows_both_algebras_for_that_many_sites(self):
        shown = self.succeed("explain", self.program, "--sites", "4", "--planner", "table-1").out
        for text in ("join(<1>, <0>, C)(A, B)", "aggregate(<0,2>, add)", "16 keys below <4,4>", "for 4 sites",
                     "bcast(A)", "local_join(<1>, <0>, C)"):
            self.assertIn(text, shown)
        self.assertNotIn("derivation", shown)

    def test_a_search_adds_the_derivation_and_the_cheaper_plan(self):
        shown = self.succeed("explain", self.program, "--sites", "4", *SEARCH).out
        for text in ("derivation by ia-rules", "R2-6a", "bcast(B)", "all that the rules reach"):
            self.assertIn(text, shown)
        # Table 1 broadcasts A and shuffles the products of the 4 parts of j; one broadcast is enough.
        matrix = 400 * 400
        self.assertEqual(self.moved(self.program, "--sites", "4", *SEARCH), [4 * matrix + 4 * matrix, 4 * matrix])

    def test_nothing_moves_on_one_site(self):
        self.assertEqual(self.moved(self.program, "--sites", "1", *SEARCH)[-1], 0)

    def test_extents_come_from_dims(self):
        self.assertEqual(self.moved(self.program, "--sites", "2", "--dim", "k=8", *SEARCH)[-1], 2 * 400 * 8)

    def test_impossible_numbers_of_sites_are_refused(self):
        program = self.text_file("p.tra", TRA)
        for wrong in ("0", "-1", "65537", "99999999999999999999"):
            for given in (self.program, program):
                self.refuse(1, "explain", given, "--sites", wrong, mentions=["sites", "1 to 65536"])
        for wrong in ("abc", "1.5", "", "4,x", "4;4"):
            self.refuse(1, "explain", self.program, f"--sites={wrong}", mentions=["--sites"])
        self.refuse(1, "run", self.program, "--random", "1", "--sites", "2", "--sites", "4", mentions=["--sites"])
        self.succeed("explain", self.program, "--sites", "65536")

    def test_unknown_planners_are_refused(self):
        self.refuse(1, "explain", self.program, "--planner", "magic", mentions=["magic", "ia-rules"])
        self.refuse(1, "explain", self.text_file("p.tra", TRA), "--planner", "magic", mentions=["magic", "ia-rules"])

    def test_check_takes_neither(self):
        self.refuse(1, "check", self.program, "--sites", "2", mentions=["--sites"])
        self.refuse(1, "check", self.program, *SEARCH, mentions=["--planner"])


class TensorRelationalPrograms(AlgebraTest):
    def test_a_program_is_shown_over_chunks_and_sites(self):
        shown = self.succeed("explain", self.text_file("p.tra", TRA), "--sites", "2", *SEARCH).out
        for text in ("p.tra", "8 keys below <2,2,2>", "part<0> on 2 of 2", "for 2 sites", "matMul: Z[i,k] = "):
            self.assertIn(text, shown)

    def test_layouts_decide_what_moves(self):
        text = "input A[4,4] cut <2,2> on {}\ninput B[4,4] cut <2,2> on {}\nC = join(<0,1>, <0,1>, matAdd)(A, B)\n"
        for a, b, floats in (("<0>", "<0>", 0), ("all", "<1>", 0), ("<0>", "<1>", 16), ("<>", "<0>", 16)):
            with self.subTest(a=a, b=b):
                program = self.text_file("p.tra", text.format(a, b))
                self.assertEqual(self.moved(program, "--sites", "2", *SEARCH)[-1], floats)

    def test_mistakes_are_shown_where_they_are(self):
        join = "C = join(<1>, <0>, matMul)(A, A)\n"
        for text, mentions in (
                ("input A[4,4] cut <2,2>\nC = joi(<1>, <0>, matMul)(A, A)\n", [":2:5", "'joi'", "'join'"]),
                ("input A[4,4] cut <2,2>\nC = join(<1>, <0>, matMull)(A, A)\n", [":2:20", "'matMull'", "'matMul'"]),
                ("input A[4,4] cut <2,2>\nC = join(<1>, <0>, matMul)(A, B)\n", [":2:31", "'B'"]),
                ("input A[4,6] cut <2,3>\n" + join, [":2:5", "frontier"]),
                ("input A[4,4] cut <2,5>\n" + join, [":1:", "4", "5 parts"]),
                ("input A[4,4] cut <2,2> on <7>\n" + join, [":1:27", "position 7"]),
                ("input A[4,4] cut <2,2>\nC = rekey(<a,b> -> <a>)(A)\n", [":2:5", "<0,0>", "<0,1>"]),
                ("input A[4,4] cut <2,2>\nC = rekey(<a,b> -> <a,2*b>)(A)\n", [":2:5", "holes", "<0,1>", "<1,1>"]),
                ("input A[4,4] cut <2,2>\nC = aggregate(<0>, matSub)(A)\n", [":2:5", "matSub", "associative"]),
                ("kernel k(A[i]) -> [i] = foo(A[i])\ninput A[4]\nC = transform(k)(A)\n", [":1:25", "'foo'"]),
                ("input A[4,4] cut <2,2>\nC = aggregate(<0>, matAdd)(A\n", [":2:27", "')'"]),
                ("", ["computes nothing"])):
            with self.subTest(text=text):
                self.refuse(1, "explain", self.text_file("bad.tra", text), mentions=mentions)

    def test_all_mistakes_are_reported_together(self):
        text = "input A[4]\nC = joi(A)\nD = transform(diagg)(A)\nE = transform(relu)(Q)\n"
        shown = self.refuse(1, "explain", self.text_file("bad.tra", text), mentions=["'joi'", "'diagg'", "'Q'"])
        self.assertEqual(re.findall(r"bad\.tra:(\d+):", shown.err), ["2", "3", "4"])

    def test_what_a_program_says_itself_cannot_be_given(self):
        program = self.text_file("p.tra", TRA)
        for option in (("--dim", "i=3"), ("--in", "A=a.npy")):
            self.refuse(1, "explain", program, *option, mentions=[option[0], ".tra"])

    def test_files_that_are_no_program_are_refused(self):
        os.mkdir(self.path("folder.tra"))
        self.refuse(1, "explain", self.path("folder.tra"), mentions=["folder"])
        self.refuse(1, "explain", self.path("missing.tra"), mentions=["missing.tra", "No such file"])

    def test_examples_move_what_the_paper_says(self):
        # TRA paper, tables 4, 6 and 9; the network's gradients are counted once per site, which the paper does not do.
        s, d, h, l = 5, 1600, 100000, 10
        for name, sites, floats in (("matmul", 10, 10 * 10000 * 10000),
                                    ("diag", 10, 0),
                                    ("nearest_neighbour", 8, 8 * (6000 * 6000 + 6000) + 8 * 2),
                                    ("two_layer_step", s, 2 * s * (d * h + h * l))):
            with self.subTest(name=name):
                program = os.path.join(EXAMPLES, name + ".tra")
                table_1, found = self.moved(program, "--sites", str(sites), *SEARCH)
                self.assertAlmostEqual(found, floats, delta=floats / 200)  # printed with three digits
                self.assertGreater(table_1, found)


class Rules(AlgebraTest):
    def test_every_rule_is_listed_with_an_example_before_and_after(self):
        _, *rules = self.succeed("list", "rules").out.strip().split("\n\n")
        names = [rule.split()[0] for rule in rules]
        self.assertEqual(len(set(names)), len(names))
        families = [f"R1-{i}" for i in range(1, 8)] + [f"R2-{i}" for i in range(1, 9)] + ["RMM"]
        for family in families:
            self.assertTrue([name for name in names if re.fullmatch(family + "[a-z]?", name)], family)
        for rule in rules:
            with self.subTest(rule=rule.split()[0]):
                before, after = re.search(r"^ +e\.g\. (.+)\n +=    (.+)\Z", rule, re.MULTILINE).groups()
                self.assertNotEqual(before, after)
                # An example is an instance of its pattern: "agg(shuf(X))" begins with an aggregate.
                outermost = re.match(r"\S+ +(\w+)\(", rule).group(1)
                called = {"agg": "local_(aggregate|concat)", "map": "local_(map|tile|duplicate)", "join": "local_join",
                          "filter": "local_filter"}.get(outermost, outermost)
                self.assertRegex(before, rf"\A{called}\(")

    def test_nothing_else_is_taken(self):
        self.refuse(1, "list", "rules", "R1-1", mentions=["R1-1"])
        self.refuse(1, "list", mentions=["functions", "rules"])


class Json(AlgebraTest):
    def test_explain_holds_both_algebras_and_the_derivation(self):
        report = parse_json(self.succeed("explain", self.program, "--sites", "4", *SEARCH, "--json").out)
        self.assertEqual((report["sites"], report["planner"]), (4, "ia-rules"))
        self.assertEqual(report["cost"]["floats"], 4 * 400 * 400)
        self.assertIn({"text": "C = aggregate(<0,2>, add)(t1)", "type": "f32, 16 keys below <4,4>, arrays (100, 100)"},
                      report["tra"])
        for line in report["ia"]:
            self.assertLessEqual({"text", "placement", "floats"}, set(line))
        self.assertEqual(sum(line["floats"] for line in report["ia"]), report["cost"]["floats"])
        for step in report["derivation"]:
            self.assertEqual(set(step), {"rule", "equation", "conditions", "definitions", "from", "to", "floats"})
        self.assertEqual(report["derivation"][-1]["floats"], report["cost"]["floats"])

    def test_without_a_search_the_plan_is_that_of_table_1(self):
        report = parse_json(self.succeed("explain", self.program, "--sites", "4", "--planner", "table-1", "--json").out)
        self.assertEqual((report["planner"], report["derivation"]), ("table-1", []))
        self.assertEqual(report["cost"]["floats"], 8 * 400 * 400)
        self.assertEqual(sum(line["floats"] for line in report["ia"]), report["cost"]["floats"])

    def test_a_program_in_the_algebra_has_no_vertices(self):
        report = parse_json(self.succeed("explain", self.text_file("p.tra", TRA), "--sites", "2", "--json").out)
        self.assertEqual(set(report), {"version", "program", "sites", "planner", "cost", "tra", "ia", "derivation"})
        self.assertEqual(report["cost"]["floats"], 2 * 16 + 2 * 16)  # A to both sites, the products of both parts
        self.assertEqual(sum(line["floats"] for line in report["ia"]), report["cost"]["floats"])

    def test_rules_of_a_derivation_are_those_that_are_listed(self):
        listed = self.succeed("list", "rules").out
        program = os.path.join(EXAMPLES, "two_layer.ein")
        report = parse_json(self.succeed("explain", program, "--sites", "3", *SEARCH, "--json").out)
        self.assertGreater(len(report["derivation"]), 3)
        for step in report["derivation"]:
            self.assertRegex(listed, rf"\n{step['rule']} +{re.escape(step['equation'])}\n")


if __name__ == "__main__":
    process.main()
