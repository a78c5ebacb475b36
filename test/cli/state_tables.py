"""Programs with state: what holds in every database, against runs without one and NumPy. States are tables from step to step.

A test of a database has self.url, self.table(name as a statement writes it, shape), and self.tables(), their names.
"""

import numpy as np

from steps_test import POWER, TRAINING

# States that change places, that a view makes, that never change, and one whose next value is another's.
PLACES = """dims i=5 j=4 f=20
input A[i,j] : f64
state x[i,j] = A[i,j]
state y[i,j] = 2 * A[i,j]
state flat[f] = f64(f)
state still[i] = sum[j] A[i,j]
next x[i,j] = y[i,j]
next y[i,j] = x[i,j] + still[i] * iteration
square[i,j] = view flat[(i j)]
turned[j,i] = square[i,j] + 1
folded[(j i)] = view turned[j,i]
next flat[f] = folded[f]
output next_x, next_y, next_flat
"""


class StateTables:
    def in_database(self, program, *arguments):
        return self.succeed("run", program, "--database", self.url, *arguments)

    def test_steps_are_those_of_a_run_without_a_database(self):
        program = self.text_file("training.ein", TRAINING)
        random = np.random.default_rng(3)
        inputs = []
        for name, shape in (("X", (40, 30)), ("Y", (40, 10))):
            np.save(self.path(name + ".npy"), random.standard_normal(shape).astype("f"))
            inputs += ["--in", f"{name}={self.path(name + '.npy')}"]
        self.succeed("run", program, *inputs, "--steps", "5", "--save", self.path("alone.npz"))
        with np.load(self.path("alone.npz")) as file:
            alone = dict(file)
        for number, formats in enumerate(("tile-7", "W1=row-strip-8,V1=column", "tile-1000")):
            with self.subTest(formats=formats):
                outputs = [word for name in ("W1", "W2", "V1") for word in ("--out", f"next_{name}=table:{name}_{number}")]
                said = self.in_database(program, *inputs, "--steps", "5", "--formats", formats, *outputs).out
                self.assertIn("5 steps", said)
                for name in ("W1", "W2", "V1"):
                    np.testing.assert_allclose(self.table(f'"{name}_{number}"', alone[name].shape), alone[name], rtol=2e-5, atol=2e-5)
        self.assertEqual(self.tables(), {f"{name}_{n}" for name in ("W1", "W2", "V1") for n in range(3)})

    def test_steps_end_when_the_program_says_so(self):
        program = self.text_file("power.ein", POWER)
        a = np.random.default_rng(4).standard_normal((60, 60))
        np.save(self.path("A.npy"), a)
        said = self.in_database(program, "--in", f"A={self.path('A.npy')}", "--steps", "500", "--formats", "tile-25", "--out",
                                f"norm={self.path('norm.npy')}", "--out", "next_x=table:x").out
        self.assertLess(int(said.split()[0]), 500)
        largest = np.linalg.eigvalsh(a + a.T + 3)[-1]
        np.testing.assert_allclose(np.load(self.path("norm.npy")), largest, rtol=1e-8)
        x = self.table("x", (60,))
        np.testing.assert_allclose((a + a.T + 3) @ x, largest * x, atol=1e-7 * largest)

    def test_states_change_places(self):
        program = self.text_file("places.ein", PLACES)
        a = np.random.default_rng(5).standard_normal((5, 4))
        np.save(self.path("A.npy"), a)
        x, y, flat, still = a, 2 * a, np.arange(20.0), a.sum(1)
        for step in range(4):
            x, y, flat = y, x + still[:, None] * step, (flat.reshape(5, 4) + 1).T.reshape(-1)
            for formats in ("tile-1000", "tile-2", "tile-1", "x=row,y=column"):
                with self.subTest(step=step, formats=formats):
                    files = {name: self.path(f"{name}.npy") for name in ("next_x", "next_y", "next_flat")}
                    outputs = [word for name, file in files.items() for word in ("--out", f"{name}={file}")]
                    self.in_database(program, "--in", f"A={self.path('A.npy')}", "--steps", str(step + 1), "--formats", formats,
                                     *outputs)
                    for name, expected in (("next_x", x), ("next_y", y), ("next_flat", flat)):
                        np.testing.assert_allclose(np.load(files[name]), expected, rtol=1e-12, atol=1e-12, err_msg=name)

    def test_steps_may_be_many(self):
        program = self.text_file("places.ein", PLACES)
        a = np.random.default_rng(7).standard_normal((5, 4))
        np.save(self.path("A.npy"), a)
        x, y, flat, still = a, 2 * a, np.arange(20.0), a.sum(1)
        for step in range(300):
            x, y, flat = y, x + still[:, None] * step, (flat.reshape(5, 4) + 1).T.reshape(-1)
        self.in_database(program, "--in", f"A={self.path('A.npy')}", "--steps", "300", "--formats", "tile-3", "--out", "next_x=table:x",
                         "--out", "next_y=table:y", "--out", "next_flat=table:flat")
        for name, expected in (("x", x), ("y", y), ("flat", flat)):
            np.testing.assert_allclose(self.table(name, expected.shape), expected, rtol=1e-10, atol=1e-10, err_msg=name)
        self.assertEqual(self.tables(), {"x", "y", "flat"})

    def test_a_state_begins_with_a_table_or_a_file(self):
        program = self.text_file("power.ein", POWER)
        a = np.random.default_rng(6).standard_normal((60, 60))
        np.save(self.path("A.npy"), a)
        given = ["--in", f"A={self.path('A.npy')}"]
        self.in_database(program, *given, "--steps", "3", "--out", "next_x=table:x3")
        self.in_database(program, *given, "--steps", "4", "--in", "x=table:x3", "--out", "next_x=table:x7")
        np.save(self.path("x3.npy"), self.table("x3", (60,)))
        self.in_database(program, *given, "--steps", "4", "--in", f"x={self.path('x3.npy')}", "--out", "next_x=table:from_file")
        self.in_database(program, *given, "--steps", "7", "--out", "next_x=table:all7")
        for name in ("x7", "from_file"):
            np.testing.assert_array_equal(self.table(name, (60,)), self.table("all7", (60,)))
        np.save(self.path("short.npy"), np.zeros(59))
        for arguments, words in ((["--in", f"x={self.path('short.npy')}"], ["(59,)", "state x", "(60,)"]),
                                 (["--in", "z=table:x3"], ["no input 'z'"]),
                                 (["--steps", "0"], ["--steps"])):
            self.refuse(1, "run", program, "--database", self.url, *given, *arguments, mentions=words)
        plain = self.text_file("plain.ein", "input A[i,j] : f64\nZ[i] = sum[j] A[i,j]\n")
        self.refuse(1, "run", plain, "--database", self.url, *given, "--steps", "2", mentions=["--steps", "state"])
