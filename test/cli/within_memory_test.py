"""Programs under --memory: what they are refused for, how finely they are cut, what planning them takes."""

import itertools
import json
import os
import sys

import numpy as np

from einrel_process import ProgramTest, main

SANITIZED = "--sanitized" in sys.argv
if SANITIZED:
    sys.argv.remove("--sanitized")
os.environ["ASAN_OPTIONS"] = "detect_leaks=0"  # hwloc, below StarPU, loads plugins that keep memory until the end


class WithinMemory(ProgramTest):
    def run_within(self, memory, text, *options):
        """The report of a run with random inputs."""
        program = self.text_file("program.ein", text)
        return json.loads(self.succeed("run", program, "--random", "1", "--memory", memory, "--json", *options).out)

    def test_statements_fit_in_any_order_and_on_any_number_of_threads(self):
        groups = [("input U[r,c]", ["S[] = sum[i] U[i,i]", "Z[b] = U[3,b] * U[b,7]"], {"r": 3000, "c": 3000}),
                  ("input A[R,C]", ["S[] = sum[a,b] A[a,2*b+1]", "Z[c] = A[4,c] * 1"], {"R": 5, "C": 700000}),
                  ("input X[r,c]\nU[r,c] = X[r,c] + 1", ["S[] = sum[i] U[i,i]", "Z[b] = U[3,b] * U[b,7]"],
                   {"r": 2000, "c": 2000}),
                  ("input U[r,c]", ["Q[r] = U[r,5] * U[5,r]", "W[] = max[i,k] U[k,i+1]", "T[c,r] = U[r,c] * 2"],
                   {"r": 2000, "c": 2000})]
        for first, statements, dims in groups:
            sizes = [f"--dim={name}={size}" for name, size in dims.items()]
            outputs = [statement[0] for statement in statements]
            for order in itertools.permutations(statements):
                text = "\n".join([first, *order, "output " + ", ".join(outputs)])
                program = self.text_file("program.ein", text)
                paths = {name: self.path(f"{name}.npy") for name in outputs}
                saved = [f"--out={name}={path}" for name, path in paths.items()]
                self.succeed("run", program, "--random", "1", *sizes, *saved)
                expected = {name: np.load(path) for name, path in paths.items()}
                for threads in ("1", "2", "4"):
                    with self.subTest(order=order, threads=threads):
                        self.run_within("12MB", text, "--threads", threads, *sizes, *saved)
                        for name, path in paths.items():
                            np.testing.assert_allclose(np.load(path), expected[name], rtol=1e-3, atol=1e-2)


if __name__ == "__main__":
    main()
