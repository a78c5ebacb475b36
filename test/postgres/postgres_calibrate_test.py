"""einrel calibrate of a server, to its end: about a minute of queries; and runs that use weights which are kept of a server."""

import json
import math
import os
import subprocess

from postgres_case import SERVER, ProductTest, main
import einrel_process

WEIGHTS = ("operation", "network_byte", "tuple", "read_byte", "intermediate_byte", "statement", "piece", "stored_byte")


class Calibrated(ProductTest):
    def explained(self, environment):
        """What runs on the server are predicted to cost, and by which weights."""
        result = self.run_product("--formats", "X=row,Y=column-strip-3,Z=tile-10-4", "--analyze", "--json", env=environment)
        self.assertEqual(result.code, 0, result)
        return json.loads(result.out)

    def script_costs(self, environment):
        arguments = ("sql", self.program, "--dim", "i=25", "--dim", "j=13", "--dim", "k=7", "--dialect", "postgres", "--explain", "--json")
        return json.loads(self.succeed(*arguments, env=environment).out)

    def test_weights_are_fitted_and_kept(self):
        environment = {**os.environ, "XDG_CONFIG_HOME": self.folder}
        before = self.content()
        einrel_process.cases += 1
        done = subprocess.run([einrel_process.PROGRAM, "calibrate", "--database", SERVER.url], env=environment, capture_output=True, text=True,
                              timeout=800, check=False)
        if done.returncode == 2:  # beside other tests
            self.assertRegex(done.stderr, r"^error: \d+ queries were measured 2 times, and still .*\. The weights stay as they were")
            self.assertEqual((done.stdout, self.content(), os.path.exists(self.path("einrel/databases.json"))), ("", before, False))
            return
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        for words in ("R^2", "worst: ", "predicted", "measured", "databases.json", f"postgresql {SERVER.folder}:5432"):
            self.assertIn(words, done.stdout)
        self.assertEqual(self.content(), before)
        self.assertEqual(SERVER.sql("SELECT count(*) FROM pg_class WHERE relnamespace::regnamespace::text LIKE 'pg_temp%' OR relname LIKE 'einrel%'").strip(), "0")

        with open(self.path("einrel/databases.json"), encoding="utf-8") as file:
            (found,) = json.load(file)["databases"]
        self.assertEqual(found.pop("server"), f"postgresql {SERVER.folder}:5432")
        self.assertIn("R^2", found.pop("about"))
        self.assertEqual(set(found), set(WEIGHTS))
        for name, weight in found.items():
            self.assertTrue(math.isfinite(weight) and weight >= 0, found)
        for name in ("operation", "tuple"):
            self.assertGreater(found[name], 0)

    def test_runs_on_a_server_take_the_weights_that_are_kept_of_it(self):
        """A file as test/run has it written of given measurements."""
        environment = {**os.environ, "XDG_CONFIG_HOME": self.folder}
        assumed, of_scripts = self.explained(environment), self.script_costs(environment)
        weights = {name: (n + 1) * 1e-7 for n, name in enumerate(WEIGHTS)}
        others = [{"server": server, "about": "", **{name: 1 for name in WEIGHTS}} for server in ("sqlite", "postgresql elsewhere:5432")]
        os.mkdir(self.path("einrel"))
        self.text_file("einrel/databases.json", json.dumps({"databases": [*others, {"server": f"postgresql {SERVER.folder}:5432", "about": "", **weights}]}))
        used = self.explained(environment)
        self.assertEqual(used["weights"], {"workers": assumed["weights"]["workers"]} | weights)
        self.assertNotEqual(used["cost"]["seconds"], assumed["cost"]["seconds"])
        self.assertEqual({**used["cost"], "seconds": 0}, {**assumed["cost"], "seconds": 0})  # what is counted stays
        self.assertEqual(self.script_costs(environment), of_scripts)  # nobody knows on which server a script will run


if __name__ == "__main__":
    main()
