"""python_worker.py numpy|torch THREADS: NumPy's or PyTorch's side of bench/kernels, started by it.

Reads requests from standard input, one JSON object a line, and answers each with one line, as native_worker.cpp does.
"""
import json
import os
import sys
import time
import traceback

SAMPLE_SECONDS = 0.02  # as in worker.cpp
LONG_SECONDS = 0.1


def seconds_of(compute, repeats):
    start = time.perf_counter()
    for _ in range(repeats):
        compute()
    return time.perf_counter() - start


class Timed:
    """A computation and how often a sample repeats it; the same steps as class Timed of worker.cpp."""

    def __init__(self, compute, look):
        self.compute, self.repeats = compute, 1
        start = time.perf_counter()
        first = compute()
        self.first_seconds = time.perf_counter() - start
        look(first)
        del first
        if self.first_seconds > LONG_SECONDS:
            return
        seconds = seconds_of(compute, 1)
        while seconds < SAMPLE_SECONDS:
            wanted = int(SAMPLE_SECONDS / max(seconds, 1e-9) * self.repeats) + 1
            self.repeats = min(wanted, 64 * self.repeats)
            seconds = seconds_of(compute, self.repeats)

    def sample(self):
        if self.repeats > 1:
            self.compute()
        return seconds_of(self.compute, self.repeats) / self.repeats


def difference(np, got, expected):
    """As in worker.cpp."""
    if got.shape != expected.shape:
        return float("inf")
    with np.errstate(invalid="ignore"):
        largest = float(np.abs(got - expected).max(initial=0))
    if np.isfinite(largest):
        return largest / float(np.abs(expected).max()) if largest > 0 else 0.0
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    finite = np.isfinite(expected)
    if not (same | (finite & np.isfinite(got))).all():
        return float("inf")
    return difference(np, got[finite], expected[finite])


class Worker:
    def __init__(self, library, threads):
        import numpy as np

        import formulations

        self.np, self.library, self.timed = np, library, None
        if library == "numpy":
            self.names = {"np": np, "own": formulations.NumPy(np)}
        else:
            import torch

            torch.set_num_threads(threads)
            torch.set_grad_enabled(False)
            self.torch = torch
            self.names = {"torch": torch, "F": torch.nn.functional, "own": formulations.PyTorch(torch)}

    def read(self, folder, described):
        array = self.np.load(os.path.join(folder, described["name"] + ".npy"))
        if self.library == "numpy":
            return array
        if described["dtype"] == "bf16":  # which NumPy has not: two bytes each
            return self.torch.from_numpy(array.view(self.np.int16)).view(self.torch.bfloat16)
        return self.torch.from_numpy(array)

    def plain(self, value):
        """A NumPy array (bf16: of f32) of what either library gives."""
        if self.library == "numpy":
            return self.np.asarray(value)
        return (value.float() if value.dtype == self.torch.bfloat16 else value).numpy()

    def is_row_major(self, value):
        return self.np.asarray(value).flags.c_contiguous if self.library == "numpy" else value.is_contiguous()

    def load(self, request):
        self.timed = None
        inputs = {described["name"]: self.read(request["folder"], described) for described in request["inputs"]}
        expected = self.plain(self.read(request["folder"], request["output"]))
        names = {**self.names, **inputs}
        reply = {}

        def look(first):
            if request["checked"]:
                reply["difference"] = difference(self.np, self.plain(first), expected)
            reply["row major"] = self.is_row_major(first)

        formulation = request["formulation"]
        self.timed = Timed(eval("lambda: " + formulation, names), look)
        if not reply["row major"]:  # others must not pay for what this one leaves to the reader of its result
            copied = {"numpy": "np.ascontiguousarray({})", "torch": "({}).contiguous()"}[self.library]
            self.timed = Timed(eval("lambda: " + copied.format(formulation), names), look)
        return {**reply, "first": self.timed.first_seconds}

    def sample(self, _request):
        return {"seconds": self.timed.sample()}


def main():
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    handlers = {"load": worker.load, "sample": worker.sample}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = handlers[request["do"]](request)
        except Exception:  # whatever a formulation raises belongs into the table, not on the screen
            reply = {"error": traceback.format_exc(limit=1).strip().splitlines()[-1]}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
