"""What `einrel explain --json` and `einrel run --json` print is what docs/explain.schema.json and docs/explain-json.md say.

Its trees, computed by NumPy alone, give what a run gives, for the documents of test/lang.
"""

import json
import re
import sys

import jsonschema
import numpy as np
from export_process import NUMPY_TYPES, ROOT, DocumentRuns, agree, known
from interpreter import run

import einrel_process

SCHEMA = json.loads((ROOT / "docs/explain.schema.json").read_text(encoding="utf-8"))
EXAMPLES = ROOT / "examples"
LAYERS = "dims a=8 b=8\ninput H0[a,b] : f32\n" + "".join(f"input W{i}[a,b] : f32\nH{i}[a,c] = relu(sum[b] H{i - 1}[a,b] * W{i}[b,c])\n" for i in range(1, 9)) + "output H8\n"


class ExplainJsonTest(DocumentRuns, einrel_process.ProgramTest):
    def setUp(self):
        super().setUp()
        self.validator = jsonschema.Draft202012Validator(SCHEMA)

    def valid(self, *arguments):
        """The object that is printed, after the schema has been checked on it."""
        report = json.loads(self.succeed(*arguments, "--json").out)
        errors = [f"{error.json_path}: {error.message[:500]}" for error in self.validator.iter_errors(report)]
        self.assertEqual(errors, [], arguments)
        return report

    def test_documents_are_valid_and_their_trees_give_what_a_run_gives(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)
        compared = 0
        for name, document in known().items():
            with self.subTest(document=name):
                report = self.valid("explain", document.path, *self.options(document), "--sites", "4")
                arrays = document.arrays()
                scalars = {scalar: float(value) for scalar, value in document.assignments("scalar").items()}
                with np.errstate(all="ignore"):
                    found = run(report, arrays, scalars, self.steps(document))
                for output, (dtype, wanted) in self.wanted(document, arrays).items():
                    self.assertEqual(found[output].dtype.name, NUMPY_TYPES[dtype], output)
                    agree(found[output].astype(wanted.dtype), wanted, dtype, output)
                    compared += 1
        self.assertGreater(compared, 200)

    def test_every_way_to_explain_is_valid(self):
        mlp = ("explain", EXAMPLES / "mlp.ein", "--sites", "4")
        train = ("explain", EXAMPLES / "train_mnist.ein", "--sites", "4")
        planners = self.valid(*mlp, *(word for name in ("eindecomp", "best", "kcut", "data") for word in ("--planner", name)), "--verify")
        self.assertEqual([plan["planner"] for plan in planners["plans"]], ["eindecomp", "best", "kcut", "data"])
        self.assertIn("at_least_seconds", planners["plans"][1])
        self.assertIn("least_elements_moved", planners["plans"][2])
        self.assertIn("parameter_server", self.valid(*train, "--planner", "kcut")["plans"][0])
        self.assertIn("cost_without_spmd", self.valid(*mlp, "--spmd")["plans"][0])
        self.assertEqual(self.valid(*train, "--steps", "10")["cost"]["steps"], 10)
        self.assertTrue(self.valid(*mlp, "--algebra")["tra"])
        self.assertTrue(self.valid(*mlp, "--planner", "ia-rules")["derivation"])
        self.assertTrue(self.valid("explain", self.text_file("layers.ein", LAYERS), "--sites", "4")["layers"])
        self.assertTrue(self.valid("explain", EXAMPLES / "train_mnist.ein", "--sites", "16", "--machine", "two-a100-servers")["links"])
        self.assertTrue(self.valid("explain", EXAMPLES / "attention.ein", "--sites", "4", "--planner", "eindecomp", "--planner", "data")["plans"])
        self.assertEqual(len(self.valid("explain", EXAMPLES / "mlp.ein", "--sites", "2,4")["sweep"]), 2)
        self.assertTrue(self.valid("explain", EXAMPLES / "distances.tra", "--sites", "4")["ia"])

    def test_reports_of_runs_are_valid(self):
        layers = ("run", self.text_file("layers.ein", LAYERS), "--random", "1", "--sites", "2")
        self.assertIsNotNone(self.valid(*layers)["alike"][0]["measured"])
        self.assertIn("bytes_moved", self.valid(*layers, "--planner", "ia-rules")["ia"][0])
        self.assertIn("min", self.valid("run", EXAMPLES / "train_mnist.ein", "--random", "1", "--steps", "2")["outputs"]["loss"])

    def test_states_say_how_they_begin_and_what_they_bring_back(self):
        program = self.text_file("state.ein", "dims i=4\nscalar a = 0.5\nscalar n\ninput X[i], M[i] : f64\nstate S[i] = 3 * M[i]\nstate K[i] = f64(1)\n"
                                 "Y[i] = a * S[i] + f64(iteration) + n * K[i]\nnext S[i] = Y[i] + X[i]\nuntil sum[i] Y[i] > 90\noutput Y\n")
        report = self.valid("explain", program, "--sites", "2")
        self.assertEqual(report["version"], 1)
        self.assertEqual({each["name"]: (each["default"], each["counts_steps"]) for each in report["scalars"]},
                         {"a": (0.5, False), "n": (None, False), "iteration": (0.0, True)})
        self.assertEqual({name for name, tensor in report["inputs"].items() if tensor.get("state")}, {"S", "K"})
        self.assertEqual((set(report["states"]), report["states"]["K"]), ({"S", "K"}, None))
        self.assertIsNotNone(report["until"])
        arrays = {"X": np.arange(4.0), "M": np.ones(4)}
        found = run(report, arrays, {"n": 2.0}, 2)
        np.testing.assert_allclose(found["Y"], 0.5 * (0.5 * 3 + 2 + arrays["X"]) + 1 + 2)
        of_states = {vertex["name"]: vertex["feedback_bytes"] for vertex in report["plans"][0]["vertices"] if "feedback_bytes" in vertex}
        self.assertEqual(set(of_states), {"S", "K"})
        self.assertEqual(of_states["K"], 0)

    def test_every_member_is_documented(self):
        page = (ROOT / "docs/explain-json.md").read_text(encoding="utf-8")
        said = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", page))))

        def members(schema):
            if isinstance(schema, dict):
                yield from schema.get("properties", {})
                for value in schema.values():
                    yield from members(value)
            elif isinstance(schema, list):
                for value in schema:
                    yield from members(value)

        self.assertEqual(sorted(set(members(SCHEMA)) - said), [])


if __name__ == "__main__":
    einrel_process.main()
