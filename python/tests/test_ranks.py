"""Scripts that mpirun starts several times."""

from __future__ import annotations

import pytest
from on_ranks import ROOT, run_on

import einrel as er


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_example(ranks: int) -> None:
    done = run_on(ranks, ROOT / "examples/python/ranks.py")
    assert done.returncode == 0, done.stderr
    assert f"{ranks} ranks" in done.stdout
    assert "right" in done.stdout


COMPUTES = """
import os, tempfile, numpy as np, einrel as er
n, rng = er.ranks(), np.random.default_rng(1)
A, B = rng.random((96, 80)), rng.random((80, 64))
size = 512
big = lambda region: np.add.outer(np.arange(size)[region[0]] * 1.0, np.arange(size)[region[1]])
asked = []
def part(region):
    asked.append(big(region).size)
    return big(region)
whole = big((slice(0, size),) * 2)
made = er.from_function((size, size), part)
np.testing.assert_allclose(np.asarray(er.softmax(er.matmul(A, B) / 80, axis=1)).sum(1), 1)
np.testing.assert_allclose(np.asarray(made @ made + made.T), whole @ whole + whole.T)
assert sum(asked) < size * size, asked
path = f"{tempfile.gettempdir()}/einrel-{os.getppid()}-{er.rank()}.npy"
np.save(path, whole)
np.testing.assert_allclose(np.asarray(er.from_file(path).sum(axis=0)), whole.sum(0))
os.remove(path)
step = er.jit(lambda x: (x * 2, er.sum(x)))
x = A
for i in range(3): x, total = step(x)
np.testing.assert_allclose([float(total), float(x[3, 4])], [4 * A.sum(), 8 * A[3, 4]])
assert (er.asarray(np.arange(7)) > 3).tolist() == [False] * 4 + [True] * 3
counting = er.program("dims i=1000\\nstate x[i] = 1.0\\nnext x[i] = 2 * x[i]\\ny[] = sum[i] x[i]\\noutput y")
result = counting.run(steps=3)
assert float(result.y) == 4000 and result.report.sites == n and result.report.seconds > 0
assert er.Array(result.state.tensors["x"]).tolist() == [8.0] * 1000
assert float(counting.run(steps=2, state=result.state).y) == 16000
for options in ({"sites": n}, {"planner": "data"}, {"memory": "50MB"}, {"plan": (made @ made).plan(sites=n)}):
    np.testing.assert_allclose(np.asarray((made @ made).compute(**options)), whole @ whole)
try: (made @ made).compute(sites=n + 1)
except er.ProgramError as error: assert "ranks" in str(error)
print(f"rank {er.rank()} is done")
"""


@pytest.mark.parametrize("ranks", [2, 3])
def test_every_rank_gets_all_results(ranks: int) -> None:
    done = run_on(ranks, "-c", COMPUTES)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", *[f"rank {rank} is done" for rank in range(ranks)]]
    assert not done.stderr


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("if er.rank() == 1: raise ValueError('only here')\nnp.asarray(x @ x)", "only here"),
        ("raise ValueError('everywhere')", "everywhere"),
        ("if er.rank() == 1: np.asarray(x @ x)", "rank 0 has ended"),
        ("np.asarray(x @ x if er.rank() == 0 else x + x)", "computes something else than rank 0"),
        (
            "np.asarray(x * (2 + er.rank()))",
            "other elements of an array of shape (), made in <string>, line 4; every rank",
        ),
        ("y = er.asarray(np.full((9, 9), er.rank()))\nnp.asarray(y @ x)", "other elements of 'y'; every rank"),
        (
            "np.asarray(er.asarray(np.random.default_rng(er.rank()).random((400, 400))) @ np.ones((400, 2)))",
            "other elements",
        ),
        (
            "np.asarray(er.from_function((9, 9), lambda region: np.full((9, 9), er.rank())[region]) @ x)",
            "other elements",
        ),
        (
            "x.sum().compute(memory='20MB' if er.rank() else '30MB')",
            "the option 'memory' is 20 MB there, and 30 MB on rank 0",
        ),
        ("y = er.from_function((9, 9), lambda region: 1 / 0)\nnp.asarray(y @ x)", "ZeroDivisionError"),
        ("er.matmul(x, x).compute(planner='nobody')", "nobody"),
        ("np.asarray(x[er.asarray([20])])", "positions are from 0 up to 8"),
        (
            "er.matmul(x, x).compute(plan='{}' if er.rank() else x.__class__(x._node).__matmul__(x).plan(sites=2))",
            "plan",
        ),
    ],
)
def test_what_fails_on_one_rank_ends_all(script: str, message: str) -> None:
    begin = "import numpy as np, einrel as er\ner.ranks()\nx = er.asarray(np.ones((9, 9)))\n"
    done = run_on(2, "-c", begin + script)
    assert done.returncode != 0
    assert message in done.stderr


def test_ranks_go_on_together_after_an_error() -> None:
    script = """
import numpy as np, einrel as er
x = er.asarray(np.ones((9, 9)))
try: (x @ x).compute(plan="{}" if er.rank() == 1 else (x @ x).plan(sites=2))
except er.ProgramError as error: print("on rank 1" in str(error) or er.rank() == 1)
print(float((x @ x)[0, 0]))
"""
    done = run_on(2, "-c", script)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["9.0", "9.0", "True", "True"]


def test_one_process_is_one_rank() -> None:
    assert (er.rank(), er.ranks()) == (0, 1)
    done = run_on(
        1, "-c", "import numpy as np, einrel as er; print(er.ranks(), float((er.ones((3, 3)) @ er.ones(3))[0]))"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 3.0\n", "")
