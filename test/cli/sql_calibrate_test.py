"""einrel calibrate --database of SQLite, to its end."""

import json
import os
import signal
import subprocess
import time

import einrel_process
from einrel_process import einrel, main
from sqlite_case import SqliteProduct


class Calibrating(SqliteProduct):
    def test_calibrating_leaves_the_database_as_it_was(self):
        before = self.content()
        environment = self.settings('{"databases": []}')
        command = ["calibrate", "--database", "sqlite:" + self.file]
        with subprocess.Popen([einrel_process.PROGRAM, *command], env=environment, stdout=subprocess.DEVNULL) as stopped:
            time.sleep(1)
            stopped.send_signal(signal.SIGINT)
        self.assertEqual(stopped.returncode, -signal.SIGINT)
        self.assertEqual((self.content(), sorted(os.listdir(self.folder))), (before, ["a.db", "product.ein", "settings"]))
        done = einrel(*command, env=environment, timeout=280)
        self.assertEqual((self.content(), sorted(os.listdir(self.folder))), (before, ["a.db", "product.ein", "settings"]))
        if done.code != 0:  # beside other tests
            self.assertEqual((done.code, done.out), (2, ""))
            self.assertRegex(done.err, r"^error: \d+ queries were measured 2 times, and still .*\. The weights stay as they were")
            with open(self.path("settings/einrel/databases.json"), encoding="utf-8") as file:
                self.assertEqual(file.read(), '{"databases": []}')
            return
        for words in ("R^2", "worst: ", "predicted", "measured", "databases.json"):
            self.assertIn(words, done.out)
        with open(self.path("settings/einrel/databases.json"), encoding="utf-8") as file:
            (found,) = json.load(file)["databases"]
        self.assertEqual(found["server"], "sqlite")
        for weight in ("operation", "tuple"):
            self.assertGreater(found[weight], 0)
        used = json.loads(self.run_product("--analyze", "--json", env=environment).out)["weights"]
        self.assertEqual(used, {"workers": 1} | {name: found[name] for name in used if name != "workers"})


if __name__ == "__main__":
    main()
