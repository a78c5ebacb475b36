"""The programs of the papers' experiments by NumPy, Dask and PyTorch: processes that answer requests, and what checks
compare with.

    peers.py LIBRARY THREADS FOLDER

Each line of standard input names a case, its formula and its files, and for Dask the chunks and, where it is to compute on
processes that have memory of their own as ranks have, how many; files are read once per case. The answer has the seconds
and, of each result, sum, min and max.
"""
import gc
import json
import logging
import sys
import time

import networks


def matmul(_library, arrays):
    return {"C": arrays["A"] @ arrays["B"]}


def chain(_library, arrays):
    return {"Z": arrays["A"] @ arrays["B"] + arrays["C"] @ (arrays["D"] @ arrays["E"])}


def nearest(_library, arrays):
    """Of points X the one nearest to Q, by the distance (x - q) A (x - q)^T."""
    away = arrays["X"] - arrays["Q"]
    distances = ((away @ arrays["A"]) * away).sum(1)
    return {"Nearest": distances.argmin(), "Distance": distances.min()}


def training_step(library, arrays):
    return (step_by_torch if library.__name__ == "torch" else step_by_hand)(library, arrays)


ETA = 0.01  # as in examples/ffnn.ein


def step_by_torch(torch, arrays):
    """As PyTorch's users write it, with the weights updated in place."""
    weights = [arrays["W1"], arrays["W2"]]
    hidden = torch.relu(arrays["X"] @ weights[0])
    loss = torch.nn.functional.binary_cross_entropy_with_logits(hidden @ weights[1], arrays["Y"], reduction="sum")
    loss = loss / len(arrays["X"])
    loss.backward()
    with torch.no_grad():
        for weight in weights:
            weight -= ETA * weight.grad
            weight.grad = None
    return {"V1": weights[0].detach(), "V2": weights[1].detach(), "loss": loss.detach()}


def step_by_hand(numpy, arrays):
    batch = len(arrays["X"])
    hidden = numpy.maximum(arrays["X"] @ arrays["W1"], 0)
    out = hidden @ arrays["W2"]
    loss = (numpy.maximum(out, 0) - out * arrays["Y"] + numpy.log1p(numpy.exp(-abs(out)))).sum() / batch
    by_out = (1 / (1 + numpy.exp(-out)) - arrays["Y"]) / batch
    by_hidden = (hidden > 0) * (by_out @ arrays["W2"].T)
    return {"V1": arrays["W1"] - ETA * arrays["X"].T @ by_hidden, "V2": arrays["W2"] - ETA * hidden.T @ by_out, "loss": loss}


def llama(numpy, arrays):
    """The logits of examples/llama_7b.py, for any number of layers."""
    def normalised(x, gain):
        return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gain

    def project(x, weight):
        return numpy.einsum("bse,hde->bshd", x, weight, optimize=True)

    x = arrays["X_1"]
    tokens, width = x.shape[1], arrays["WQ_1"].shape[1]
    angle = numpy.arange(tokens)[:, None] / 10000 ** (2 * numpy.arange(width // 2) / width)
    cosine, sine = (table[None, :, None, :] for table in (numpy.cos(angle), numpy.sin(angle)))

    def turned(x):
        left, right = numpy.split(x, 2, axis=-1)
        return numpy.concatenate([left * cosine - right * sine, right * cosine + left * sine], axis=-1)

    for layer in range(1, sum(name.startswith("WQ_") for name in arrays) + 1):
        of = {name[:-len(f"_{layer}")]: array for name, array in arrays.items() if name.endswith(f"_{layer}")}
        n = normalised(x, of["G1"])
        q, k, v = (project(n, of[name]) for name in ("WQ", "WK", "WV"))
        scores = numpy.einsum("bshd,bthd->bhst", turned(q), turned(k), optimize=True) / width ** 0.5
        scores = numpy.where(numpy.tril(numpy.ones((tokens, tokens), dtype=bool)), scores, -numpy.inf)
        weights = numpy.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        heads = numpy.einsum("bhst,bthd->bshd", weights, v, optimize=True)
        x = x + numpy.einsum("bshd,ehd->bse", heads, of["WO"], optimize=True)
        n = normalised(x, of["G2"])
        up = n @ of["W1"].T
        x = x + (up / (1 + numpy.exp(-up)) * (n @ of["W3"].T)) @ of["W2"].T
    return {"Logits": normalised(x, arrays["G"]) @ arrays["WOut"].T}


FORMULAS = {formula.__name__: formula for formula in (matmul, chain, nearest, training_step, llama, networks.alexnet,
                                                      networks.vgg16, networks.dense_layers, networks.convolution_layers)}


def reference(formula, files):
    """By NumPy, in doubles."""
    import numpy
    arrays = {name: numpy.load(file) for name, file in files.items()}
    return FORMULAS[formula](numpy, {name: array.astype("f8") if array.dtype.kind == "f" else array
                                     for name, array in arrays.items()})


HALVES = "of half a side"


def halves(array):
    return tuple(-(-extent // 2) for extent in array.shape)


class Peer:
    def __init__(self, library, threads, folder):
        import numpy
        self.numpy, self.library, self.case, self.files, self.inputs = numpy, numpy, None, {}, {}
        self.is_dask, self.threads = library == "dask", threads
        self.clusters, self.folder = {}, folder
        if library == "torch":
            import torch
            torch.set_num_threads(threads)
            self.library = torch

    def arrays(self, request):
        if self.is_dask:
            import dask.array
            chunks, processes = request["chunks"], request["processes"]
            if (processes, chunks) not in self.inputs:
                arrays = {name: dask.array.from_array(array, chunks=halves(array) if chunks == HALVES else chunks, name=False)
                          for name, array in self.files.items()}
                self.inputs[processes, chunks] = arrays if processes == 1 else self.on(processes, arrays)
            return self.inputs[processes, chunks]
        if self.library is self.numpy:
            return self.files
        tensors = {name: self.library.from_numpy(array) for name, array in self.files.items()}
        # Of a step each sample has fresh weights, whose gradients are wanted.
        return {name: tensor.clone().requires_grad_() if name in ("W1", "W2") else tensor for name, tensor in tensors.items()}

    def on(self, processes, arrays):
        """Chunks in the memory of processes, as ScaLAPACK's and Einrel's are in that of ranks."""
        import dask
        import distributed
        if processes not in self.clusters:
            dask.config.set({"distributed.scheduler.worker-ttl": None})  # all of them sleep now and then
            cluster = distributed.LocalCluster(n_workers=processes, threads_per_worker=1, dashboard_address=":0",
                                               silence_logs=logging.CRITICAL, local_directory=self.folder)
            self.clusters[processes] = distributed.Client(cluster, set_as_default=False)
        return self.placed(arrays, processes)

    def computed(self, results, processes):
        """Of Dask: where its chunks are."""
        import dask
        if processes == 1:
            return dask.compute(results, scheduler="threads", num_workers=self.threads)[0]
        return self.placed(results, processes)

    def placed(self, arrays, processes):
        """What is computed, or read, stays with the processes."""
        import distributed
        client = self.clusters[processes]
        placed = dict(zip(arrays, client.persist(list(arrays.values()))))
        with client.as_current():
            distributed.wait(list(placed.values()))
        return placed

    def answer(self, request):
        if request["case"] != self.case:
            self.case, self.files, self.inputs = request["case"], {}, {}  # the old ones go first
            self.files = {name: self.numpy.load(file) for name, file in request["files"].items()}
        arrays = self.arrays(request)
        start = time.perf_counter()
        results = FORMULAS[request["formula"]](self.library, arrays)
        if self.is_dask:
            results = self.computed(results, request["processes"])
        seconds = time.perf_counter() - start
        outputs = {name: self.summary(result, request["processes"]) for name, result in results.items()}
        if self.is_dask and request["processes"] > 1:
            names = {result.name for result in results.values()}
            results = None
            self.wait_until_forgotten(names, request["processes"])
        return {"seconds": seconds, "outputs": outputs}

    def wait_until_forgotten(self, names, processes):
        """Processes that still had a result would not compute it again."""
        tasks = self.clusters[processes].cluster.scheduler.tasks
        latest = time.monotonic() + 10
        while any(any(name in key for name in names) for key in list(tasks)):
            if time.monotonic() > latest:
                raise RuntimeError("Dask keeps a result that nobody needs")
            gc.collect()
            time.sleep(0.01)

    def summary(self, result, processes):
        if self.is_dask and processes > 1:
            result = self.clusters[processes].gather(self.clusters[processes].compute(result))
        array = self.numpy.asarray(result)
        return {"sum": float(array.sum(dtype="f8")), "min": float(array.min()), "max": float(array.max())}


def main():
    peer = Peer(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {} if "forget" in request else peer.answer(request)
            if "forget" in request:
                peer.case, peer.files, peer.inputs = None, {}, {}
        except Exception as error:  # for the table, not for the screen
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
