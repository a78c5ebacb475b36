"""examples/sql in PostgreSQL: what its README shows, and what the programs learn, against NumPy in double precision."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from postgres_case import SERVER, EmptyDatabase, main, rows
import einrel_process

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "test" / "docs"))

import document  # noqa: E402

README = ROOT / "examples" / "sql" / "README.md"
READERS_URL = "postgresql://me@db.example.org/shop"
FEATURES = "query:SELECT age, orders, spent, items, returned FROM features"


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


class Shop(EmptyDatabase):
    def setUp(self):
        super().setUp()
        programs = Path(self.path("bin"))
        programs.mkdir()
        (programs / "einrel").symlink_to(einrel_process.PROGRAM)
        (programs / "python3").symlink_to(sys.executable)
        (programs / "psql").symlink_to(os.path.join(SERVER.programs, "psql"))
        Path(self.path("examples")).symlink_to(ROOT / "examples")
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "XDG_CONFIG_HOME": os.devnull, "OPENBLAS_NUM_THREADS": "1"}

    def types(self, text):
        """The exit code and all that is printed."""
        done = subprocess.run(["bash", "-c", text.replace(READERS_URL, f"'{self.url}'")], cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
        return done.returncode, done.stdout.rstrip("\n").split("\n")

    def shop(self, customers):
        """The features of all customers and who came again, of the tables, as the view is said to compute them."""
        self.assertEqual(self.types(f"python3 examples/sql/shop.py {READERS_URL} {customers}"), (0, [""]))
        known = [list(map(int, row)) for row in rows("SELECT customer, age, again FROM customers ORDER BY customer")]
        orders = [list(map(float, row)) for row in rows("SELECT customer, amount, items, returned FROM orders")]
        x = []
        for customer, age, _ in known:
            amounts, items, returned = np.array([order[1:] for order in orders if order[0] == customer]).T
            x.append([(age - 50) / 20, len(amounts) / 3 - 1, amounts[returned == 0].sum() / 80 - 1, items.mean() / 4 - 1, returned.mean()])
        self.assertEqual(len(x), customers)
        return np.array(x), np.array([again for _, _, again in known])

    def run_example(self, name, *arguments):
        return self.succeed("run", ROOT / "examples" / "sql" / name, "--database", self.url, *arguments)

    def learn(self, name, outputs, *arguments):
        self.run_example(name, "--in", f"X={FEATURES} ORDER BY customer", "--in", "Y=query:SELECT again FROM features ORDER BY customer",
                         *(word for output in outputs for word in ("--out", f"next_{output}=table:{output}")), "--out",
                         "accuracy=" + self.path("accuracy.npy"), *arguments)

    def test_what_the_document_shows(self):
        lines = README.read_text(encoding="utf-8").split("\n")
        commands = [command for command in document.commands_of(lines, document.code_blocks) if READERS_URL in command.text]
        self.assertGreater(len(commands), 4)
        for command in commands:
            code, found = self.types(command.text)
            self.assertEqual(code, command.code, "\n".join([command.text, *found]))
            if command.output is not None:
                self.assertTrue(document.same_output(command.output, found), "\n".join([command.text, *found]))

    def test_a_regression_is_trained_on_joined_tables(self):
        x, y = self.shop(150)
        w, b, accuracy = np.zeros(5), 0.0, None
        for _ in range(30):
            p = sigmoid(x @ w + b)
            accuracy = ((p > 0.5) == y).mean()
            w, b = w - 0.5 * x.T @ (p - y) / len(y), b - 0.5 * (p - y).mean()
        for formats in ((), ("--formats", "X=row-strip-40")):
            with self.subTest(formats=formats):
                self.learn("learn_regression.ein", ("W", "B"), "--steps", "30", *formats)
                np.testing.assert_allclose(self.table('"W"', (5,)), w, rtol=1e-4, atol=1e-5)
                np.testing.assert_allclose(self.table('"B"', ()), b, rtol=1e-4, atol=1e-5)
                self.assertAlmostEqual(float(np.load(self.path("accuracy.npy"))), accuracy, delta=1.5 / len(y))
                SERVER.sql('DROP TABLE "W", "B"')

    def test_a_network_is_trained_and_scores_some_of_the_customers(self):
        x, y = self.shop(150)
        chance = np.random.default_rng(7)
        weights = {"W1": chance.standard_normal((5, 16)) / 2, "B1": np.zeros(16), "W2": chance.standard_normal(16) / 3, "B2": np.zeros(())}
        begin = []
        for name, weight in weights.items():
            np.save(self.path(name + ".npy"), weight.astype("f"))
            begin += ["--in", f"{name}={self.path(name + '.npy')}"]
        self.learn("learn_mlp.ein", weights, "--steps", "12", *begin)
        means, squares = ({name: np.zeros_like(weight) for name, weight in weights.items()} for _ in range(2))
        for step in range(1, 13):
            h = np.tanh(x @ weights["W1"] + weights["B1"])
            dz = (sigmoid(h @ weights["W2"] + weights["B2"]) - y) / len(y)
            dh = np.outer(dz, weights["W2"]) * (1 - h * h)
            gradients = {"W1": x.T @ dh, "B1": dh.sum(0), "W2": h.T @ dz, "B2": dz.sum()}
            for name, gradient in gradients.items():  # Adam, as its authors wrote it
                means[name] = 0.9 * means[name] + 0.1 * gradient
                squares[name] = 0.999 * squares[name] + 0.001 * gradient**2
                weights[name] = weights[name] - 0.02 * (means[name] / (1 - 0.9**step)) / (np.sqrt(squares[name] / (1 - 0.999**step)) + 1e-8)
        for name, weight in weights.items():
            np.testing.assert_allclose(self.table(f'"{name}"', weight.shape), weight, rtol=2e-3, atol=2e-3, err_msg=name)

        learned = {name: self.table(f'"{name}"', weight.shape) for name, weight in weights.items()}
        given = [word for name in weights for word in ("--in", f"{name}=table:{name}")]
        chances = sigmoid(np.tanh(x @ learned["W1"] + learned["B1"]) @ learned["W2"] + learned["B2"])
        self.run_example("score_mlp.ein", "--in", f"X={FEATURES} WHERE country = 'at' AND spent > 0 ORDER BY customer", *given, "--out", "P=table:likely")
        countries = np.array([country for (country,) in rows("SELECT country FROM customers ORDER BY customer")])
        chosen = (countries == "at") & (x[:, 2] > 0)
        np.testing.assert_allclose(self.table("likely", (chosen.sum(),)), chances[chosen], rtol=0, atol=1e-5)

        keep = self.text_file("keep.ein", "input X[b,f]\nZ[b,f] = X[b,f]\n")
        self.succeed("run", keep, "--database", self.url, "--in", f"X={FEATURES} ORDER BY customer", "--formats", "Z=row-strip-30", "--out", "Z=chunks:kept")
        self.run_example("score_mlp.ein", "--in", "X=query:SELECT k0 - 1 AS k0, k1, chunk FROM kept WHERE k0 BETWEEN 1 AND 3", *given, "--out", "P=table:wanted")
        np.testing.assert_allclose(self.table("wanted", (90,)), chances[30:120], rtol=0, atol=1e-5)


if __name__ == "__main__":
    main()
