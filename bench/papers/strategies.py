"""Plans by hand: which labels every vertex is cut along, as a file for `einrel run --plan`."""
import json
import math

from measuring import run_process


def explain(einrel, environment, program, *options):
    return json.loads(run_process([einrel, "explain", program, "--json", *options], environment))


def write_plan(explained, sites, cuts_of, file):
    """`explained`: what explain says of any plan for as many sites. `cuts_of` gives for each vertex, as --json describes
    it, {label: sites along it} and the label that its result is shared out along, or None. Inputs lie as the first
    vertex that reads them needs them, copies in pieces."""
    planned = {vertex["name"]: place(vertex, *cuts_of(vertex)) for vertex in explained["vertices"]}
    for name in explained["inputs"]:
        reader = next(vertex for vertex in explained["vertices"] if name in vertex["inputs"])
        planned[name] = input_of(reader, name, planned[reader["name"]], explained["inputs"][name]["shape"])
    order = [vertex["name"] for vertex in explained["plans"][0]["vertices"]]
    file.write_text(json.dumps({"sites": sites, "vertices": [{"name": name, **planned[name]} for name in order]}),
                    encoding="utf-8")


def place(vertex, grid, scatter):
    """Numbers its sites: reduced labels vary fastest, then the one that the result is shared out along."""
    grid = {label: count for label, count in grid.items() if count > 1}
    kept = {label for labels in vertex["result_labels"] for label in labels}
    strides, step = {}, 1
    for label in sorted(grid, key=lambda label: (label in kept, label != scatter, vertex["labels"].index(label))):
        strides[label], step = step, step * grid[label]
    plan = {"parts": dict(grid), "sites": grid, "strides": strides}
    if scatter is not None:
        plan["scatter"] = scatter  # in as many parts as there are sites to own them
        plan["parts"][scatter] = grid.get(scatter, 1) * math.prod(grid[label] for label in grid if label not in kept)
    return plan


def input_of(reader, name, plan, shape):
    labels = [labels[0] if labels else None for labels in reader["operand_labels"][reader["inputs"].index(name)]]
    grid = {str(at): plan["sites"][label] for at, label in enumerate(labels) if label in plan["sites"]}
    strides = {str(at): plan["strides"][label] for at, label in enumerate(labels) if label in plan["sites"]}
    for label in plan["sites"]:
        free = [at for at in range(len(shape)) if str(at) not in grid and shape[at] >= plan["sites"][label]]
        if label not in labels and free:  # sites along this label all need the same: each has a piece
            longest = str(max(free, key=lambda at: shape[at]))
            grid[longest], strides[longest] = plan["sites"][label], plan["strides"][label]
    return {"parts": dict(grid), "sites": grid, "strides": strides}


# ---- The strategies of the TRA paper, for a number of sites.

def broadcast(sites):
    """BMM: A stays where its rows are, B goes to all."""
    return lambda _vertex: ({"i": sites}, None)


def cross(sites):
    """CMM: columns of A meet rows of B; the sums of the products are shared out."""
    return lambda _vertex: ({"j": sites}, "i")


def replication(sites):
    """RMM: a part of the result on each site, to which rows of A and columns of B are copied."""
    rows = 2 if sites == 4 else 1
    return lambda _vertex: ({"i": rows, "k": sites // rows}, None)


def horizontal(sites):
    """Points stay where they are, the metric goes to all."""
    return lambda vertex: ({"n": sites} if "n" in vertex["labels"] else {}, None)


def vertical(sites):
    """The metric stays where its rows are, partial products move."""
    cuts = {"Away": ({"d": sites}, None), "Turned": ({"d": sites}, "e"), "Squared": ({"e": sites}, "n")}
    return lambda vertex: cuts.get(vertex["name"], ({"n": sites} if "n" in vertex["labels"] else {}, None))


def model_parallel(sites):
    """Hidden units stay where they are; what has none is shared out by examples."""
    def cuts(vertex):
        labels = vertex["labels"]
        if "h" in labels:
            is_reduced = all("h" not in dimension for dimension in vertex["result_labels"])
            return {"h": sites}, "b" if is_reduced else None
        return ({"b": sites} if "b" in labels else {}), None
    return cuts
