"""Explaining plans: planners, costs, several side by side, differences, plans from files.

Usage: plan_test.py EINREL
"""
import array
import json
import math
import os
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import einrel_process as process  # noqa: E402

MACHINES = Path(__file__).resolve().parent.parent.parent / "machines"
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


def bytes_of(text):
    """What "X for H_1 16.8 MB" ends in."""
    number, unit = text.split()[-2:]
    return round(float(number) * {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit])


def rounded(count):
    return round(float(f"{count:.3g}"))


class PlanTest(process.ProgramTest):
    def setUp(self):
        super().setUp()
        self.program = self.text_file("chain.ein", CHAIN)

    def explain(self, *arguments):
        return self.succeed("explain", self.program, *arguments).out

    def plan(self, *arguments):
        return json.loads(self.explain(*arguments, "--json"))


class Sweep(PlanTest):
    """Plans for several numbers of sites and machines."""

    def test_is_the_plans_that_each_number_of_sites_has_alone(self):
        rows = json.loads(self.explain("--sites", "1,2,4,6", "--json"))["sweep"]
        self.assertEqual([row["sites"] for row in rows], [1, 2, 4, 6])
        for row in rows:
            alone = self.plan("--sites", str(row["sites"]))["plans"][0]
            self.assertEqual(row["seconds"], alone["cost"]["seconds"])
            self.assertEqual(row["bytes"], alone["cost"]["bytes"])
            self.assertEqual(row["most_received"], alone["most_received"])
            self.assertEqual(row["peak_memory"], max(alone["peak_memory"]["by_site"]))

    def test_more_sites_are_not_slower_than_those_that_divide_them(self):
        for example, sites in (("train_cnn.ein", "4,16"), ("train_characters.ein", "2,3")):
            with self.subTest(example=example):
                rows = json.loads(self.succeed("explain", os.path.join(EXAMPLES, example), "--sites", sites, "--json").out)["sweep"]
                self.assertLessEqual(rows[1]["seconds"], 1.005 * rows[0]["seconds"])

    def test_has_a_row_for_each_machine_and_planner(self):
        arguments = ("--sites", "2,4", "--machine", "laptop", "--machine", "p3-cluster", "--planner", "data", "--planner", "eindecomp")
        rows = json.loads(self.explain(*arguments, "--json"))["sweep"]
        self.assertEqual(len(rows), 8)
        self.assertEqual([row["machine"] for row in rows], ["laptop"] * 4 + ["p3-cluster"] * 4)
        lines = self.explain(*arguments, "--csv").splitlines()
        self.assertEqual(len(lines), 9)
        for line, row in zip(lines[1:], rows):
            fields = dict(zip(lines[0].split(","), line.split(",")))
            self.assertEqual((fields["machine"], int(fields["sites"]), fields["planner"]), (row["machine"], row["sites"], row["planner"]))
            self.assertEqual(float(fields["seconds"]), row["seconds"])
            self.assertEqual(int(fields["bytes"]), row["bytes"])

    def test_says_what_runs_cost_where_sites_have_a_price(self):
        arguments = ("--sites", "2,4", "--machine", "laptop", "--machine", "p3-cluster")
        rows = json.loads(self.explain(*arguments, "--json"))["sweep"]
        dollars_per_hour = json.loads((MACHINES / "p3-cluster.json").read_text())["dollars_per_hour"]
        for row, line in zip(rows, self.explain(*arguments, "--csv").splitlines()[1:], strict=True):
            shown = line.split(",")[-2]
            if row["machine"] == "laptop":
                self.assertNotIn("dollars", row)
                self.assertEqual(shown, "")
            else:
                self.assertAlmostEqual(row["dollars"], row["seconds"] * row["sites"] * dollars_per_hour / 3600, delta=1e-9 * row["dollars"])
                self.assertEqual(float(shown), row["dollars"])
        self.assertIn("$, 1,000 runs", self.explain(*arguments))
        self.assertNotIn("$", self.explain("--sites", "2,4"))

    def test_computes_narrow_numbers_as_fast_as_the_machine_says(self):
        """A product beyond the memory's speed, of tensors of each type; the last reads f32, too."""
        machine = json.loads((MACHINES / "h100-server.json").read_text())
        rates = {"f32": machine["flops_per_core"], **machine["flops_of"]}
        seconds = {}
        for a, b in (("f32", "f32"), ("bf16", "bf16"), ("f64", "f64"), ("bf16", "f32")):
            self.program = self.text_file("product.ein", f"dims i=20000 j=20000 k=20000\ninput A[i,k] : {a}, B[k,j] : {b}\n"
                                                         "C[i,j] = sum[k] A[i,k] * B[k,j]\n")
            seconds[a, b] = self.plan("--machine", "h100-server", "--sites", "1")["plans"][0]["cost"]["seconds"]
        for (a, b), found in seconds.items():
            self.assertAlmostEqual(found * rates["f32" if b == "f32" else a] / (2 * 20000**3), 1, delta=1e-3, msg=(a, b))

    def test_says_how_far_from_the_best_a_plan_is(self):
        for arguments in (("--sites", "4"), ("--machine", "h100-server"), ("--sites", "4", "--memory", "10GB")):
            plans = self.plan("--planner", "best", "--planner", "eindecomp", *arguments)["plans"]
            seconds = {plan["planner"]: plan["cost"]["seconds"] for plan in plans}
            least = plans[0]["at_least_seconds"]
            self.assertLessEqual(least, seconds["best"])
            self.assertLessEqual(seconds["best"], seconds["eindecomp"])
            self.assertNotIn("at_least_seconds", plans[1])
            shown = self.explain("--planner", "best", *arguments)
            if seconds["best"] <= (1 + 1e-6) * least:
                self.assertIn("proven: no plan that best looks at takes less", shown)
            else:
                self.assertIn(" % of the least possible", shown)
        self.refuse(1, "explain", self.program, "--sites", "4", "--planner", "best", "--cost", "bytes", mentions=["it makes seconds least"])

    def test_says_where_fewer_sites_are_as_fast(self):
        shown = self.explain("--sites", "1,2,64")
        self.assertIn("note: on laptop, 1 site is within 5 % as fast as the best of up to 64", shown)
        self.assertEqual(json.loads(self.explain("--sites", "1,2,64", "--json"))["enough"][0]["sites"], 1)

    def test_shows_planners_that_have_no_plan(self):
        self.program = self.text_file("one.ein", "dims i=3\ninput X[i]\nZ[i] = exp(X[i])\n")
        rows = json.loads(self.explain("--sites", "2,4", "--planner", "heads", "--planner", "single", "--json"))["sweep"]
        self.assertEqual([row["planner"] for row in rows], ["single", "heads", "single", "heads"])
        self.assertIn("refused", rows[1])
        self.assertIn("no plan: ", self.explain("--sites", "2,4", "--planner", "heads", "--planner", "single"))

    def test_has_no_plan_that_takes_more_memory_than_sites_have(self):
        self.program = self.text_file("wide.ein", "dims i=4000 j=4000 k=4000\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\n")
        rows = json.loads(self.explain("--sites", "2,16", "--planner", "data", "--planner", "eindecomp", "--memory", "90MB", "--json"))["sweep"]
        for row in rows:
            self.assertTrue("refused" in row or row["peak_memory"] <= 90e6, row)
        refused = next(row["refused"] for row in rows if row["planner"] == "data")
        self.assertRegex(refused, r"needs [0-9.]+ MB on site \d+, and the limit is 90 MB a site")

    def test_shows_each_of_many_steps(self):
        self.program = self.text_file("steps.ein", "dims i=2000 j=2000\ninput A[i,j]\nstate x[i] = 1\ny[j] = sum[i] A[i,j] * x[i]\n"
                                                   "next x[i] = sum[j] sq(A[i,j]) * y[j] / 2000\noutput y\n")
        rows = json.loads(self.explain("--sites", "2,4", "--steps", "100", "--planner", "sqrt", "--json"))["sweep"]
        for row in rows:
            alone = self.plan("--sites", str(row["sites"]), "--steps", "100", "--planner", "sqrt")["plans"][0]["cost"]
            self.assertGreater(alone["once"]["bytes"], 0)
            self.assertEqual(row["bytes"], alone["each_step"]["bytes"])
            self.assertAlmostEqual(row["seconds"], alone["each_step"]["seconds"], delta=1e-9 * row["seconds"])
        self.assertIn("each of 100 steps but the first, plans by number of sites", self.explain("--sites", "2,4", "--steps", "100"))

    def test_refuses_what_is_said_of_one_number_of_sites(self):
        for arguments, message in (
            (("--sites", "2,4", "--verbose"), "--verbose is for one number of sites"),
            (("--sites", "2,x"), "--sites x: 'x' is not a whole number"),
            (("--sites", "2,0"), "'0' is not a whole number from 1"),
            (("--sites", "2,4", "--json", "--csv"), "leave one out"),
            (("--csv",), "add numbers of sites"),
            (("--sites", "2,4", "--machine", "nosuch"), "nosuch"),
            (("--sites", "2,4", "--planner", "ia-rules"), "plans relations"),
        ):
            self.refuse(1, "explain", self.program, *arguments, mentions=[message])


class Planners(PlanTest):
    def test_the_default_planner_shows_cuts_moves_and_the_runner_up(self):
        shown = self.explain("--sites", "4")
        for text in ("plan        by eindecomp for 4 sites", "inputs, and where they lie", "D[i,k] = sum[j]", "nothing moves"):
            self.assertIn(text, shown)
        for text in ("next: ", "planned in", "local_join"):
            self.assertNotIn(text, shown)
        shown = self.explain("--sites", "4", "--verbose")
        for text in ("next: ", "planned in", " on one thread, workspace ", "most memory of a site"):
            self.assertIn(text, shown)

    def test_what_runs_in_one_pass_is_said(self):
        norm = self.text_file("norm.ein", "dims i=640 j=320\ninput X[i,j], g[j]\nm[i] = mean[j] X[i,j]\n"
                                          "Y[i,j] = g[j] * (X[i,j] - m[i])\noutput Y\n")
        shown = self.succeed("explain", norm, "--sites", "4", "--verbose").out
        self.assertIn("in one pass with m\n", shown[shown.index("  Y[i,j] = g[j]", shown.index("what moves)")):])
        for sites in ("4", "8192"):
            self.assertEqual(self.succeed("explain", norm, "--sites", sites).out.count("in one pass"), 0)
        self.succeed("explain", os.path.join(EXAMPLES, "llama_7b.ein"), "--sites", "8192", "--verbose")

    def test_explain_is_of_what_would_run(self):
        layers = os.path.join(EXAMPLES, "layers.ein")
        for options in ((), ("--sites", "4"), ("--memory", "40MB"), ("--planner", "ia-rules", "--sites", "2")):
            with self.subTest(options=options):
                told = json.loads(self.succeed("explain", layers, *options, "--json").out)
                ran = json.loads(self.succeed("run", layers, "--random", "1", *options, "--json").out)
                for field in ("planner", "sites", "cost", "tra"):
                    if field != "cost" or "plans" in told:  # bytes of relations are counted where they run
                        self.assertEqual(told.get(field), ran.get(field), field)
                for vertex, computed in zip(told["vertices"], ran.get("vertices", [])):
                    self.assertEqual(vertex["parts"], computed["parts"])
                    for field in ("name", "extents", "times"):
                        self.assertEqual((vertex["kernel"] or {}).get(field), (computed["kernel"] or {}).get(field))

    def test_one_site_has_a_plan_with_seconds(self):
        told = self.plan()
        self.assertEqual((told["planner"], told["sites"], len(told["plans"])), ("single", 1, 1))
        self.assertGreater(told["cost"]["seconds"], 0)
        self.assertAlmostEqual(sum(vertex["seconds"] for vertex in told["vertices"]), told["cost"]["seconds"], delta=1e-12)
        self.assertEqual(told["cost"]["bytes"], 0)
        shown = self.explain("--plan", self.text_file("single.json", json.dumps(told)))
        self.assertIn("by file for 1 site on machine", shown)

    def test_an_algebra_is_in_json_too(self):
        self.assertNotIn("ia", self.plan("--sites", "4"))
        told = self.plan("--sites", "4", "--algebra")
        self.assertGreater(len(told["ia"]), 3)
        self.assertEqual(sum(line["floats"] for line in told["ia"]), told["cost"]["floats"])

    def test_the_runner_up_of_another_planners_plan_may_be_better(self):
        arguments = ("explain", os.path.join(EXAMPLES, "layers.ein"), "--sites", "4", "--planner", "data")
        vertices = json.loads(self.succeed(*arguments, "--json").out)["vertices"]
        better = [vertex["name"] for vertex in vertices if vertex["runner_up"] and vertex["runner_up"]["more"] < 0]
        self.assertNotEqual(better, [])
        self.assertEqual(self.succeed(*arguments, "--verbose").out.count(" less\n"), len(better))

    def test_the_summary_has_the_figures_of_the_plan(self):
        plan = self.plan("--sites", "4", "--planner", "sqrt")["plans"][0]
        moves = {f"{name} for {vertex['name']}": moved for vertex, names in zip(plan["vertices"][3:], (["A", "B"], ["D", "C"], ["E"]))
                 for name, moved in zip(names, vertex["operand_bytes"])}
        moves |= {f"partial results of {vertex['name']}": vertex["reduced_bytes"] for vertex in plan["vertices"]}
        largest = sorted((moved for moved in moves.values() if moved), reverse=True)[:3]
        lines = self.explain("--sites", "4", "--planner", "sqrt").split("\n\n")[0].split("\n")
        self.assertEqual([line[:14].strip() for line in lines[1:]],
                         ["inputs", "outputs", "operations", "plan", "time", "most of it", "peak memory", "moved", "most of it"])
        self.assertEqual([bytes_of(text) for text in lines[-1][14:].split(", ")], [rounded(moved) for moved in largest])
        for text in lines[-1][14:].split(", "):
            self.assertEqual(bytes_of(text), rounded(moves[" ".join(text.split()[:-2])]), text)
        total, most = lines[-2][14:].split(", ")
        self.assertEqual((bytes_of(total), bytes_of(most.removesuffix(" to a site"))),
                         (rounded(plan["cost"]["bytes"]), rounded(max(plan["received"]))))
        self.assertEqual(bytes_of(" ".join(lines[-3].split()[2:4])), rounded(plan["peak_memory"]["predicted"]))

    def test_equal_layers_are_shown_once_with_the_figures_of_all(self):
        program = os.path.join(EXAMPLES, "llama_7b.ein")
        for sites in ("1", "16"):
            shown = self.succeed("explain", program, "--sites", sites).out
            self.assertLess(shown.count("\n"), 100)
            self.assertIn("23 vertices x 32: N1_1_1 to X_2, and so on to X_33; ", shown)
            self.assertRegex(shown, r"input WQ_1\[32,128,4096\] : f32 .* x 32\n")
            self.assertNotIn("Q_2[", shown)
        vertices = json.loads(self.succeed("explain", program, "--sites", "16", "--json").out)["vertices"]
        moved = sum(vertex["bytes"] for vertex in vertices if re.fullmatch(r"Q_\d+", vertex["name"]))
        found = re.search(r"    Q_1\[.*\n +b=\d.*? {2,}(\S+ .?B) ", shown)
        self.assertEqual(bytes_of(found[1]), rounded(moved))
        shares = [float(share) for share in re.findall(r" (\d+\.\d) %   ", shown)]
        self.assertAlmostEqual(sum(shares), 100, delta=0.05 * len(shares) + 1e-9)  # each is rounded
        self.assertEqual(self.succeed("explain", program, "--sites", "16", "--verbose").out.count("\n  Q_2["), 1)

    def test_layers_that_differ_are_not_folded(self):
        def layers(*extents):
            lines = ["dims a=64", "input X0[a]"]
            for i, extent in enumerate(extents, 1):
                lines += [f"input W{i}[a,p{i}]", f"dims p{i}={extent}", f"H{i}[p{i}] = sum[a] X{i - 1}[a] * W{i}[a,p{i}]",
                          f"R{i}[p{i}] = relu(H{i}[p{i}])", f"X{i}[a] = sum[p{i}] R{i}[p{i}] * W{i}[a,p{i}]"]
            return self.text_file("layers.ein", "\n".join([*lines, f"output X{len(extents)}"]) + "\n")
        self.assertIn("  3 vertices x 5: H1 to X1, and so on to X5; ", self.succeed("explain", layers(9, 9, 9, 9, 9)).out)
        shown = self.succeed("explain", layers(9, 9, 9, 8, 9, 9, 9, 9)).out
        self.assertIn("  3 vertices x 4: H5 to X5, and so on to X8; ", shown)
        for i in range(1, 6):
            self.assertIn(f"H{i}[", shown)
        self.assertNotIn(" x ", self.succeed("explain", layers(9, 9, 9)).out)  # short enough

    def test_layers_of_gradients_are_shown_once(self):
        layers = range(1, 10)
        text = "dims b=16 f=8 g=8\ninput H0[b,f], Y[b,g]\n" + "".join(
            f"state W{n}[f,g] = 0.1\nH{n}[b,g] = tanh(sum[f] H{n - 1}[b,f] * W{n}[f,g])\n" for n in layers)
        text += f"loss[] = sum[b,g] sq(H9[b,g] - Y[b,g])\nminimize loss over {', '.join(f'W{n}' for n in layers)} by sgd(0.01)\noutput loss\n"
        shown = self.succeed("explain", self.text_file("trained.ein", text)).out
        self.assertIn("  2 vertices x 8: grad_H9_1 to grad_H8, and so on to grad_H1; ", shown)
        self.assertIn("  1 vertex x 9: W1_gradient to W1_gradient, and so on to W9_gradient; ", shown)

    def test_layers_with_scalars_and_random_numbers_of_their_own_are_shown_once(self):
        layers = range(1, 7)
        text = "dims b=16 f=8\ninput X0[b,f]\nscalar " + ", ".join(f"keep_{n} = 0.5" for n in layers) + "\n" + "".join(
            f"input T{n}[b] : i64, E{n}[f,b]\nD{n}[b,f] = where(uniform({n}) < keep_{n}, X{n - 1}[b,f], E{n}[T{n}[b],b])\nX{n}[b,f] = sum[e] D{n}[b,e] * X{n - 1}[b,f]\n"
            for n in layers)
        shown = self.succeed("explain", self.text_file("dropped.ein", text + "output X6\n")).out
        self.assertIn("  5 vertices x 6: D1_index to X1, and so on to X6; ", shown)
        other = text.replace("where(uniform(4)", "where(0.5 * uniform(4)")
        self.assertNotIn(" x 6: ", self.succeed("explain", self.text_file("other.ein", other + "output X6\n")).out)

    def test_what_reads_at_random_is_not_folded(self):
        def sums(*read):
            lines = ["dims a=64", "input X0[a], X1[a]"]
            lines += [f"H{i}[a] = exp(X0[a] * {i})" for i in range(12)]
            lines += [f"S{i}[a] = H{other}[a] + X1[a]\nT{i}[a] = sum[b] S{i}[b] * S{i}[a]" for i, other in enumerate(read)]
            return self.text_file("sums.ein", "\n".join([*lines, f"output {', '.join(f'T{i}' for i in range(len(read)))}"]) + "\n")
        self.assertIn("  3 vertices x 6: S0 to T0, and so on to T5; ", self.succeed("explain", sums(9, 8, 7, 6, 5, 4)).out)
        self.assertIn("  3 vertices x 6: S0 to T0, and so on to T5; ", self.succeed("explain", sums(0, 2, 4, 6, 8, 11)).out)
        self.assertNotIn(" x 6: ", self.succeed("explain", sums(3, 8, 1, 9, 0, 5)).out)

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
        self.refuse(1, "explain", self.program, "--sites", "4", "--planner", "heads", mentions=["heads", "attention"])
        self.refuse(1, "explain", self.program, "--sites", "4", "--planner", "data", "--batch", "q", mentions=["label 'q'"])
        self.refuse(1, "explain", self.program, "--sites", "4", "--planner", "heads", "--planner", "data:3 x tensor:2",
                    mentions=["planner heads has no plan", "3 x 2 is 6 sites, and there are 4: give --sites 6"])

    def test_planners_that_have_no_plan_are_a_line_beside_those_that_have_one(self):
        arguments = ("--sites", "4", "--planner", "heads", "--planner", "sqrt", "--planner", "data:2 x tensor:3")
        shown = self.explain(*arguments)
        self.assertIn("plan        by sqrt for 4 sites", shown)
        self.assertIn("\nheads              no plan: there is no attention in it", shown)
        self.assertIn("\ndata:2 x tensor:3  no plan: 2 x 3 is 6 sites, and there are 4: give --sites 6\n", shown)
        planned = self.plan(*arguments)
        self.assertEqual([plan["planner"] for plan in planned["plans"]], ["sqrt"])
        self.assertEqual([refused["planner"] for refused in planned["refused"]], ["heads", "data:2 x tensor:3"])
        self.assertIn("2 x 3 is 6 sites, and there are 4", planned["refused"][1]["reason"])
        self.assertEqual(self.plan("--sites", "4")["refused"], [])
        self.refuse(1, "explain", self.program, "--sites", "4", "--diff", "sqrt", "heads", mentions=["heads", "attention"])

    def test_products_of_schemes_are_planners(self):
        program = os.path.join(EXAMPLES, "two_layer.ein")
        shown = self.succeed("explain", program, "--sites", "8", "--planner", "data:2 x tensor:4").out
        self.assertIn("by data:2 x tensor:4 for 8 sites", shown)
        self.assertIn("each on 2 sites", shown)
        self.refuse(1, "explain", program, "--sites", "8", "--planner", "data:2 x tenser:4", mentions=["tenser", "fsdp"])

    def test_cuts_of_kcut_stand_beside_the_best_and_what_a_parameter_server_exchanges(self):
        program = os.path.join(EXAMPLES, "dense_layers.ein")
        options = ("--sites", "16", "--planner", "kcut", "--dim", "b=400", *(f"--dim=h{at}=300" for at in range(5)))
        shown = self.succeed("explain", program, *options).out
        # Of four layers: 16 x 2 x 1.44 MB, 16 x 2 x 1.92 MB, and 4 x 2 of both.
        self.assertRegex(shown, r"\n  parameter server +data 46.1 MB, model 61.4 MB, hybrid:4x4 26.9 MB: 1.44 MB of parameters, 1.92 MB ")
        self.assertNotIn("all cuts at once", shown)
        plan = json.loads(self.succeed("explain", program, *options, "--json").out)["plans"][0]
        server = {"parameters": 1.44e6, "activations": 1.92e6, "data": 46.08e6, "model": 61.44e6,
                  "hybrid": {"groups": 4, "bytes": 26.88e6}}
        self.assertEqual(plan["parameter_server"], server)
        self.assertNotIn("least_elements_moved", plan)
        options = ("--sites", "4", *options[2:], "--verify")
        self.assertRegex(self.succeed("explain", program, *options).out, r"\n  all cuts at once \d+ elements, ")
        plan = json.loads(self.succeed("explain", program, *options, "--json").out)["plans"][0]
        self.assertLessEqual(plan["least_elements_moved"], plan["elements_moved"])
        self.assertGreater(plan["least_elements_moved"], 0)
        many = ("--sites", "4096", "--planner", "kcut", "--verify")
        self.assertIn("all cuts at once not known: there are too many ways", self.succeed("explain", program, *many).out)
        self.assertIsNone(json.loads(self.succeed("explain", program, *many, "--json").out)["plans"][0]["least_elements_moved"])
        for planners in ((), ("--planner", "data"), ("--planner", "eindecomp", "--planner", "data")):
            self.refuse(1, "explain", program, "--sites", "4", "--verify", *planners, mentions=["--verify", "--planner kcut"])

    def test_what_cuts_move_adds_up_where_groups_do_not_divide_extents(self):
        program = self.text_file("odd.ein", "dims n=15 m=15\ninput A[n,m]\nstate V[m] = 1\nW[n] = sum[m] A[n,m] * V[m]\n"
                                 "next V[m] = W[m] / sum[n] W[n]\n")
        for sites in ("4", "6", "8", "12", "16"):
            shown = self.succeed("explain", program, "--sites", sites, "--planner", "kcut").out
            terms, total = re.search(r"\n  moved by cuts +(.*) = ([\d.]+) elements\n", shown).groups()
            groups = [math.prod(float(factor) for factor in term.split(" x ")) for term in terms.split(" + ")]
            self.assertAlmostEqual(sum(groups), float(total), delta=0.01 * int(sites))
            self.assertGreater(float(total), 0)

    def test_each_of_several_plans_says_what_crosses_links_and_how_tensors_are_tiled(self):
        program = os.path.join(EXAMPLES, "dense_layers.ein")
        machine = ("--machine", "rack-of-racks", "--dim", "b=2048")
        ways = ("data", "kcut", "model", "hybrid:16x8")
        alone = {way: json.loads(self.succeed("explain", program, *machine, "--planner", way, "--json").out)["plans"][0] for way in ways}
        together = (*machine, *(option for way in ways for option in ("--planner", way)))
        plans = json.loads(self.succeed("explain", program, *together, "--json").out)["plans"]
        self.assertEqual([plan["planner"] for plan in plans], list(ways))
        for plan in plans:
            self.assertEqual([(link["name"], link["sites"]) for link in plan["links"]], [("spine", 32), ("ethernet", 8)])
            self.assertEqual(plan["links"], alone[plan["planner"]]["links"])
            self.assertEqual("tilings" in plan, plan["planner"] == "kcut")
        self.assertGreater(len({json.dumps(plan["links"]) for plan in plans}), 1)
        shown = self.succeed("explain", program, *together, "--verify").out
        self.assertRegex(shown, r"\nbytes across links +spine +ethernet\n")
        for plan in plans:
            row = re.search(rf"\n{plan['planner']} +([\d.]+ [kMGT]?B) +([\d.]+ [kMGT]?B)\n", shown)
            for text, link in zip(row.groups(), plan["links"]):
                self.assertEqual(bytes_of(text), rounded(link["bytes"]))
        self.assertIn("\ntilings by kcut, the first cut first", shown)
        self.assertIn("\n  all cuts at once ", shown)
        self.assertNotIn("across links", self.succeed("explain", program, "--sites", "4", "--planner", "data", "--planner", "kcut").out)

    def test_a_plan_says_which_label_is_cut_at_which_link(self):
        program = os.path.join(EXAMPLES, "dense_layers.ein")
        options = ("--machine", "rack-of-racks", "--dim", "b=2048")
        for way, other in (("data", "kcut"), ("hybrid:16x8", "data"), ("eindecomp", "model")):
            # Of the plan that is shown second, too.
            both = self.succeed("explain", program, *options, "--planner", other, "--planner", way, "--json").out
            plan = json.loads(both)["plans"][1]
            for vertex in plan["vertices"]:
                digits = {label: (sites, vertex["strides"][label]) for label, sites in vertex["sites"].items()}
                copies = [(copy["count"], copy["stride"]) for copy in vertex.get("copies", [])]
                wanted, outer = [], 128
                for link, inner in (("spine", 32), ("ethernet", 8)):
                    def groups(digit, outer=outer, inner=inner):
                        coordinates = [{site // digit[1] % digit[0] for site in range(sites)} for sites in (outer, inner)]
                        return len(coordinates[0]) // len(coordinates[1])
                    cut = {label: groups(digit) for label, digit in digits.items() if groups(digit) > 1}
                    alike = 1
                    for copy in copies:
                        alike *= groups(copy)
                    if cut or alike > 1:
                        wanted.append({"link": link, "groups": cut, "copies": alike})
                    outer = inner
                self.assertEqual(vertex["links"], wanted, vertex["name"])
        shown = self.succeed("explain", program, *options, "--planner", "data").out
        self.assertIn("b=128 (spine: b=4; ethernet: b=4)", shown)
        self.assertIn("in brackets groups across each link", shown)
        flat = self.succeed("explain", program, "--sites", "8", "--planner", "data", "--json").out
        self.assertNotIn('"links"', flat)

    def test_only_training_is_compared_with_a_parameter_server(self):
        for name, is_training in (("dense_layers", True), ("train_mnist", True), ("logistic_regression", True), ("kmeans", False),
                                  ("power_iteration", False), ("hmm", False)):
            shown = self.succeed("explain", os.path.join(EXAMPLES, f"{name}.ein"), "--sites", "4", "--planner", "kcut").out
            self.assertIn("tilings by kcut", shown)
            self.assertEqual("parameter server" in shown, is_training, name)

    def test_wrong_names_are_refused_with_the_right_ones(self):
        self.refuse(1, "explain", self.program, "--planner", "eindcomp", mentions=["did you mean 'eindecomp'", "ia-rules"])
        self.refuse(1, "explain", self.program, "--sites", "2", "--cost", "dollars", mentions=["seconds", "bytes"])
        self.refuse(1, "explain", self.program, "--diff", "eindecomp", mentions=["--diff"])

    def test_options_that_would_do_nothing_are_refused(self):
        for option in (["--cost", "bytes"], ["--batch", "i"], ["--diff", "sqrt", "data"], ["--plan", "x.json"], ["--verify"]):
            self.refuse(1, "explain", self.program, "--sites", "4", "--planner", "table-1", *option, mentions=[option[0]])
        self.refuse(1, "explain", self.program, "--cost", "nonsense", mentions=["nonsense"])
        self.refuse(1, "explain", self.program, "--sites", "4", "--diff", "sqrt", "data", "--json", mentions=["--diff"])

    def test_bytes_beyond_63_bits_do_not_wrap(self):
        program = self.text_file("large.ein", "dims i=1000000000 j=500000000 k=8\ninput X[i,j], W[j,k]\n"
                                 "Z[i,k] = sum[j] X[i,j] * W[j,k]\n")
        self.assertGreater(json.loads(self.succeed("explain", program, "--sites", "8", "--cost", "bytes", "--json").out)["cost"]["bytes"], 0)

    def test_the_list_of_planners(self):
        listed = self.succeed("list", "planners").out
        for name in ("eindecomp", "eindecomp-paper", "single", "data", "fsdp", "tensor", "sequence", "heads", "sqrt", "all-tile"):
            self.assertIn(f"\n{name} ", "\n" + listed)

    def test_an_algebra_has_what_the_plan_moves(self):
        shown = self.explain("--sites", "4", "--planner", "sqrt", "--algebra")
        self.assertIn("implementation algebra for 4 sites, by sqrt", shown)
        self.assertIn("local_join", shown)


class Placements(PlanTest):
    product = "dims i=12 j=8 k=4\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\n"

    def test_inputs_are_taken_from_where_they_lie(self):
        program = self.text_file("p.ein", self.product)
        told = self.succeed("explain", program, "--sites", "4", "--placement", "A=j:2,copies:2", "--placement", "B=whole")
        self.assertIn("1x2 chunks on 2 sites, each on 2, as is given", told.out)
        self.assertIn("on one site, as is given", told.out)
        plan = json.loads(self.succeed("explain", program, "--sites", "4", "--placement", "A=j:2,i:2", "--planner", "data", "--json").out)
        a, _, c = plan["plans"][0]["vertices"]
        self.assertEqual((a["sites"], a["strides"]), ({"0": 2, "1": 2}, {"0": 1, "1": 2}))
        # By rows: each site has 6 x 4 elements of A and needs 3 x 8, of which it has 3 x 4 where its rows are.
        self.assertEqual(c["sites"], {"i": 4})
        held = {0: (0, 6, 0, 4), 1: (6, 12, 0, 4), 2: (0, 6, 4, 8), 3: (6, 12, 4, 8)}
        missing = 0
        for site in range(4):
            first, last, begin, end = held[site // c["strides"]["i"]]
            missing += 3 * 8 - max(0, min(last, 3 * site + 3) - max(first, 3 * site)) * (end - begin)
        self.assertEqual(c["operand_bytes"][0], 4 * missing)

    def test_runs_compute_and_move_what_plans_say(self):
        program = self.text_file("p.ein", self.product)
        whole = self.path("whole.npy")
        self.succeed("run", program, "--random", "1", "--out", f"C={whole}")
        for placement in ("A=j:8", "A=0:3,copies:2", "A=whole"):
            out = self.path("out.npy")
            report = json.loads(self.succeed("run", program, "--random", "1", "--sites", "8", "--placement", placement, "--out", f"C={out}", "--overwrite", "--json").out)
            planned = json.loads(self.succeed("explain", program, "--sites", "8", "--placement", placement, "--json").out)
            self.assertEqual(report["cost"]["bytes"], planned["cost"]["bytes"])
            want, got = (array.array("f", Path(path).read_bytes()[-12 * 4 * 4:]) for path in (whole, out))
            for one, other in zip(want, got):
                self.assertAlmostEqual(one, other, delta=1e-5)

    def test_a_plan_in_a_file_has_to_agree(self):
        program = self.text_file("p.ein", self.product)
        free = self.text_file("free.json", self.succeed("explain", program, "--sites", "4", "--planner", "data", "--json").out)
        placed = self.text_file("placed.json", self.succeed("explain", program, "--sites", "4", "--placement", "A=j:4", "--json").out)
        self.succeed("explain", program, "--plan", placed, "--placement", "A=j:4")
        self.refuse(1, "explain", program, "--plan", free, "--placement", "A=j:4", mentions=["the input A lies otherwise than its placement says", "leave out --placement"])
        self.succeed("run", program, "--random", "1", "--plan", placed, "--placement", "A=j:4", "--json")
        self.refuse(1, "run", program, "--random", "1", "--plan", free, "--placement", "A=j:4", mentions=["the input A lies otherwise than its placement says"])

    def test_what_cannot_be_is_refused(self):
        program = self.text_file("p.ein", self.product)
        for placement, mentions in {
            "A": "--placement",
            "A=": "write --placement NAME=VALUE",
            "A=j": "'j' is no LABEL:SITES",
            "A=:2": "':2' is no LABEL:SITES",
            "A=j:x": "'x' is not a whole number of sites",
            "A=j:0": "0 sites along 'j'",
            "A=j:8": "its sites are more than 4",
            "A=k:2": "nothing reads it by a label 'k'",
            "C=i:2": "the program has no input 'C'",
        }.items():
            self.refuse(1, "explain", program, "--sites", "4", "--placement", placement, mentions=[mentions])
        rows = json.loads(self.succeed("explain", program, "--sites", "2,4", "--placement", "A=j:4", "--json").out)["sweep"]
        self.assertIn("its sites are more than 2", rows[0]["refused"])
        self.assertNotIn("refused", rows[1])
        self.refuse(1, "explain", program, "--sites", "2,4", "--placement", "A=j:8", mentions=["its sites are more than 4"])
        label = self.text_file("copies.ein", "dims copies=8\ninput X[copies]\nY[copies] = 2 * X[copies]\n")
        self.refuse(1, "explain", label, "--sites", "4", "--placement", "X=copies:4", mentions=["'copies' is one of its labels, too", "the number of that dimension"])
        self.succeed("explain", label, "--sites", "4", "--placement", "X=0:4")
        self.refuse(1, "explain", program, "--sites", "4", "--spmd", "--placement", "A=j:2", mentions=["takes A from where it lies: 2 of 4 sites have it"])


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

        # V, which lies where its gradient does, on all sites instead: three quarters of G go to each of 4.
        copied = json.loads(json.dumps(again["plans"][0]))
        copied["vertices"][4].update(parts={}, sites={}, strides={}, copies=[{"count": 4, "stride": 1}])
        copied = self.plan("--plan", self.text_file("copied.json", json.dumps(copied)))["plans"][0]
        gathered = copied["vertices"][4]
        self.assertEqual(gathered["copies"], [{"count": 4, "stride": 1}])
        of_g = gathered["operand_bytes"][[name == "G" for name in ("W", "G")].index(True)]
        self.assertEqual(of_g, again["plans"][0]["vertices"][3]["reduced_bytes"])

        def refuse(mentions, vertex=3, **change):
            plan = json.loads(json.dumps(again["plans"][0]))
            plan["vertices"][vertex].update(change)
            self.refuse(1, "explain", self.program, "--plan", self.text_file("wrong.json", json.dumps(plan)),
                        mentions=["wrong.json", *mentions])

        refuse(["`scatter` of vertex G", "q", "no label"], scatter="q")
        refuse(["`scatter` of vertex G", "4", "no label"], scatter=4)
        refuse(["vertex G", "b is no label of its result"], scatter="b")
        two_each = {"parts": {"b": 2}, "sites": {"b": 2}, "strides": {"b": 1}, "scatter": "h"}
        refuse(["vertex G", "alike by several sites", "spread over sites"], copies=[{"count": 2, "stride": 2}], **two_each)
        refuse(["copies of vertex V", "below 1"], vertex=4, copies=[{"count": 0, "stride": 1}])
        refuse(["vertex V", "on 4 sites"], vertex=4, copies=[{"count": 2, "stride": 4}])
        refuse(["`copies` of vertex V", "no list"], vertex=4, copies=3)
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

    def test_files_of_another_version_are_refused(self):
        report = self.plan("--sites", "4")
        self.assertEqual(report["version"], 1)
        for version in (2, "1", None):
            file = self.text_file("other.json", json.dumps({**report, "version": version}))
            self.refuse(1, "explain", self.program, "--plan", file,
                        mentions=["other.json", f"it is of version {json.dumps(version)} of the format", "only version 1 is read"])

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
