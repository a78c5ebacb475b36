"""Threads, forks, signals, memory and the end of the interpreter."""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest

import einrel as er


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False)


def test_threads_compute_at_once(rng: np.random.Generator) -> None:
    matrices = [rng.random((50, 50)) for _ in range(4)]
    right: list[bool] = []

    def work(matrix: np.ndarray) -> None:
        for _ in range(20):
            right.append(np.allclose(np.asarray(er.matmul(matrix, matrix)), matrix @ matrix))

    threads = [threading.Thread(target=work, args=(matrix,)) for matrix in matrices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(right) == 80
    assert all(right)


@er.jit
def traced(x: er.Array) -> er.Array:
    return er.sum(x @ x)


def computed(matrix: np.ndarray) -> tuple[float, float]:
    return float(er.sum(er.matmul(matrix, matrix))), float(traced(matrix))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_compute(method: str, rng: np.random.Generator) -> None:
    matrix = rng.random((300, 300))
    expected = computed(matrix)
    np.testing.assert_allclose(expected, [(matrix @ matrix).sum()] * 2)
    with multiprocessing.get_context(method).Pool(2) as pool:
        for ours in pool.map(computed, [matrix] * 3):
            np.testing.assert_allclose(ours, expected)


def test_calls_leave_no_memory_behind() -> None:
    script = """
import numpy as np, einrel as er
def resident(): return int(open("/proc/self/statm").read().split()[1]) * 4096
x = np.ones((8, 8), "f4")
def call(): return np.asarray(er.einsum("ij,jk->ik", x, x)), np.asarray(er.sum(er.asarray(x) * 2 + 1))
for _ in range(1000): call()
before = resident()
for _ in range(50_000): call()
print(resident() - before)
"""
    done = run(script)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 5_000_000


def test_the_interpreter_ends_without_noise() -> None:
    script = """
import numpy as np, einrel as er
x = er.asarray(np.ones((300, 300)))
y = x @ x
np.asarray(y)
f = er.jit(lambda x: x + 1)
f(x)
p = er.program("input A[i]" + chr(10) + "Z[i] = A[i] + 1")
p.run(A=np.ones(3, "f"), options={"sites": 2})
lazy = x + y
"""
    done = run(script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_interpreter_ends_while_other_threads_compute() -> None:
    script = """
import threading, time, numpy as np, einrel as er
x = er.asarray(np.ones((2000, 2000)))
def work():
    while True: np.asarray(x @ x @ x)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)
"""
    done = run(script)
    assert (done.returncode, done.stdout) == (0, "")
    assert "terminate" not in done.stderr


@pytest.mark.parametrize(
    ("step", "options"),
    [
        ("y @ x", {}),
        ("y @ x", {"memory": "200MB"}),
        ("y @ x", {"sites": 2}),
        ("er.linalg.inv(y + x)", {}),
    ],
    ids=["whole", "within memory", "on sites", "LAPACK"],
)
def test_ctrl_c_ends_a_run(step: str, options: dict[str, object]) -> None:
    """It comes before the result does, and what is computed next is right."""
    script = f"""
import os, signal, threading, numpy as np, einrel as er
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's jobs in the background ignore it
x = er.asarray(np.random.default_rng(1).random((2000, 2000)) / 1000)
y = x
for _ in range(100): y = {step}
threading.Timer(3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    y.compute(**{options})
except KeyboardInterrupt:
    print("interrupted", float(er.sum(er.ones((9, 9)) @ er.ones(9))))
"""
    done = run(script)
    assert (done.returncode, done.stdout) == (0, "interrupted 81.0\n"), done.stderr


def test_others_go_on_while_gradients_of_gradients_are_checked() -> None:
    """So do signals: Ctrl-C need not wait for it."""
    x = er.asarray(np.ones(3))
    loss = er.sum(er.exp(er.sin(x) * x) / (1 + x * x))
    for _ in range(4):
        loss = er.sum(er.grad(loss, x) * x)
    goes_on = threading.Event()
    may_go_on = threading.Event()

    def other() -> None:
        may_go_on.wait()
        goes_on.set()

    thread = threading.Thread(target=other)
    thread.start()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # Python takes no turn from the thread that checks
    try:
        may_go_on.set()
        er.grad(loss, x)
        assert goes_on.is_set()
    finally:
        sys.setswitchinterval(before)
        thread.join()


def test_where_the_system_gives_no_thread_a_run_says_so() -> None:
    """A thread's stack takes more addresses than this process may have."""
    script = """
import resource, numpy as np, einrel as er
x = er.asarray(np.ones((9, 9)))
used = 4096 * int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30),) * 2)
try:
    er.sum(x @ x).compute(threads=1)
except er.RunError as error:
    print(error)
"""

    def stacks_of_many_gigabytes() -> None:
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 36, resource.getrlimit(resource.RLIMIT_STACK)[1]))

    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        preexec_fn=stacks_of_many_gigabytes,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "the system gives no further thread" in done.stdout
    assert "ulimit -u" in done.stdout


def test_no_object_of_the_native_module_ends_the_interpreter() -> None:
    """Objects made by hand: TypeError or another exception, in a process of its own."""
    done = run(NATIVE)
    assert (done.returncode, done.stdout) == (0, "goes on\n"), done.stderr[-2000:]


NATIVE = """
import itertools, random, einrel as er
n = er._native
x = er.ones(3).compute()._node
scalar = er.sum(er.ones(3))._node
type_ = x.type
einsum = n.Definition.einsum([type_, type_], "i,i->", None, None)
def refused(call, kind=TypeError):
    try: call()
    except kind: return
    raise AssertionError(call.__code__.co_consts, call.__code__.co_names)
refused(lambda: memoryview(n.Elements.__new__(n.Elements)))
refused(lambda: n.Node.of(einsum, [x]))
refused(lambda: n.Node.of(einsum, []))
refused(lambda: n.Node.of(einsum, [x, scalar]))
refused(lambda: n.Node.of(None, [x]))
refused(lambda: n.Node.of(einsum, [x, None]))
refused(lambda: n.Definition.statement([type_], n.Formula(2.0), [3], 5))
refused(lambda: n.Definition.statement([type_], n.Formula.label(4), [3], 1))
refused(lambda: n.Definition.statement([type_], n.Formula.element(1, [n.Formula.label(0)]), [3], 1))
refused(lambda: n.Definition.view(type_, [[7]], [[0]], [3]))
refused(lambda: n.Definition.gradient([scalar.type, type_], 1))
refused(lambda: n.Definition.gradient([scalar.type, type_], 2**64 - 1))
refused(lambda: n.Definition.gradient([], 0))
classes = [value for value in vars(n).values() if isinstance(value, type) and not issubclass(value, Exception)]
made = [x, scalar, type_, einsum, n.Formula(1), n.Formula.label(0), x.elements, n.RunOptions(), n.Node.argument(type_)]
for kind in classes:
    try: made.append(kind.__new__(kind))
    except TypeError: pass
values = [*made, None, 0, 5, -1, 2**64 - 1, 1.5, "i->", "f32", [], [0], [[0]], [x], [type_], [type_] * 2, {}, b"abc"]
def part(thing, name):
    try: return getattr(thing, name)
    except Exception: return None
calls = [part(thing, name) for thing in [n, *classes, *made] for name in dir(thing) if not name.startswith("__")]
calls = [call for call in calls if callable(call) and getattr(call, "__name__", "") not in ENDS]
slots = ("__init__", "__repr__", "__eq__", "__add__", "__neg__", "__hash__")
slots = [part(thing, name) for thing in made for name in slots]
random.seed(1)
for call in filter(callable, [*calls, *slots, *classes, memoryview]):
    for count in range(5):
        for _ in range(12):
            try: call(*random.choices(values, k=count))
            except BaseException as error: pass
print("goes on")
""".replace("ENDS", "('end_ranks', 'end_runs', 'forked', 'calibrate', 'calibrate_database')")
