"""papers_test.py BUILD: bench/papers/run at tiny sizes, without others' programs; and that it notices wrong results."""
import csv
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.dont_write_bytecode = True
sys.path[:0] = [str(BENCH), str(BENCH / "papers")]
import measure  # noqa: E402
import predicted  # noqa: E402
import strategies  # noqa: E402

BUILD = sys.argv.pop()
WAYS = {
    "multiplication": {"automatic", "BMM", "CMM", "RMM"},
    "training": {"automatic", "data parallel", "model parallel"},
    "llama": {"automatic", "tensor", "sequence", "heads"},
    "networks": {"automatic", "data", "model", "kcut"},
}


class Papers(unittest.TestCase):
    def test_every_experiment_runs_checks_its_results_and_writes_them(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, BENCH / "papers/run", BUILD, "--tiny", "--no-peers", "--only", "a,c,e,f", "--ranks", "1,2",
                       "--out", folder]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for name, ways in WAYS.items():
                file = Path(folder) / f"papers-{name}"
                xml.etree.ElementTree.parse(file.with_suffix(".svg"))
                self.assertIn("### Goals", file.with_suffix(".md").read_text(encoding="utf-8"))
                with open(file.with_suffix(".csv"), encoding="utf-8", newline="") as stream:
                    rows = list(csv.DictReader(stream))
                for processes in ("1", "2"):
                    here = [row for row in rows if row["processes"] == processes]
                    self.assertLessEqual(ways, {row["by"] for row in here})
                    for row in here:
                        self.assertGreater(float(row["median_seconds"]), 0, row)
                        if processes == "2":  # counted while they ran, and as predicted
                            self.assertEqual(float(row["bytes_moved"]), float(row["predicted_bytes"]), row)

    def test_formats_in_databases_are_checked_and_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, BENCH / "papers/run", BUILD, "--tiny", "--only", "g", "--out", folder],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            xml.etree.ElementTree.parse(Path(folder) / "papers-formats.svg")
            written = (Path(folder) / "papers-formats.md").read_text(encoding="utf-8")
            for heading in ("### Goals", "### Elements in SQLite", "### two-level inverse, SQLite", "### two-level inverse, PostgreSQL"):
                self.assertIn(heading, written)
            with open(Path(folder) / "papers-formats.csv", encoding="utf-8", newline="") as stream:
                rows = list(csv.DictReader(stream))
            self.assertLessEqual({"automatic", "by hand", "all tiles", "naively", "without a database"}, {row["by"] for row in rows})
            for row in rows:
                self.assertGreater(float(row["median_seconds"]), 0, row)

    def test_data_parallelism_is_set_beside_one_parameter_server_and_where_plans_change_is_named(self):
        alexnet = predicted.Network("AlexNet (Figure 10a)", "alexnet", {"batch 256": {"b": 256}})
        rows = list(predicted.predict(Path(BUILD) / "apps/cli/einrel", [alexnet]))
        written = predicted.markdown(rows)
        weights = 96 * 3 * 11 * 11 + 256 * 96 * 5 * 5 + (384 * 256 + 384 * 384 + 256 * 384) * 3 * 3 + 9216 * 4096 + 4096 * 4096 + 4096 * 1000
        exchanged = 8 * 2 * 4 * weights  # 8 devices send gradients and receive weights of 4 bytes
        (row,) = (row for row in rows if row.devices == 8)
        seconds = row.seconds_on_one / 8 + exchanged / 1e10
        self.assertIn(f"| {row.seconds('data'):.3g} | {seconds:.3g} | {exchanged:.3g} | {row.seconds('kcut'):.3g} | "
                      f"{row.seconds('data') / row.seconds('kcut'):.2f} | {seconds / row.seconds('kcut'):.2f} |", written)
        self.assertIn("batch 256, 8 devices, kcut: the first product that is not cut by images alone is H6_1, by h6=8.", written)

    def test_a_sum_that_differs_is_a_fault(self):
        faults = []
        setup = measure.Setup.__new__(measure.Setup)
        setup.bench, setup.case, setup.tolerance, setup.first = Faults(faults), Named("case"), 1e-4, {}
        summary = {"shape": [10, 10], "min": -1.0, "max": 1.0, "sum": 5.0}
        setup.compare("Z", summary, "us")
        setup.compare("Z", {"sum": 5.0005}, "somebody")
        self.assertEqual(faults, [])
        setup.compare("Z", {"sum": 5.002}, "somebody")
        setup.compare("Z", {"sum": float("nan")}, "somebody")
        self.assertEqual(len(faults), 2)

    def test_a_plan_numbers_reduced_labels_first_and_then_the_one_that_the_result_is_shared_out_along(self):
        product = {"labels": ["i", "k", "j"], "result_labels": [["i"], ["k"]]}
        plan = strategies.place(product, {"i": 2, "k": 3, "j": 4}, "k")
        self.assertEqual(plan["strides"], {"j": 1, "k": 4, "i": 12})
        self.assertEqual(plan["parts"], {"i": 2, "k": 12, "j": 4})


class Faults:
    def __init__(self, faults):
        self.fault = faults.append


class Named:
    def __init__(self, name):
        self.name = name


if __name__ == "__main__":
    unittest.main()
