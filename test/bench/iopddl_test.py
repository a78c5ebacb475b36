"""bench/iopddl on small problems: it finds what trying all strategies finds. Usage: iopddl_test.py IOPDDL"""
import itertools
import json
import random
import subprocess
import sys
import unittest

IMPOSSIBLE = 10**18


def made_up(seed):
    """A problem of the contest with a few nodes, of which some edges forbid pairs of strategies."""
    rng = random.Random(seed)
    counts = [rng.randint(1, 4) for _ in range(6)]
    begins = [rng.randrange(5) for _ in counts]
    edges = [sorted(rng.sample(range(6), 2), reverse=bool(rng.randrange(2))) for _ in range(9)]
    return {
        "name": f"made up {seed}",
        "nodes": {"intervals": [[begin, begin + rng.randrange(4)] for begin in begins],
                  "costs": [[rng.randrange(50) for _ in range(count)] for count in counts],
                  "usages": [[rng.randrange(10) for _ in range(count)] for count in counts]},
        "edges": {"nodes": edges,
                  "costs": [[IMPOSSIBLE if rng.randrange(9) == 0 else rng.randrange(30) for _ in range(counts[a] * counts[b])] for a, b in edges]},
        "usage_limit": rng.randint(5, 25),
    }


def cost_of(problem, strategies):
    """The contest's cost of a choice; nothing where it is impossible or over the limit."""
    nodes, edges = problem["nodes"], problem["edges"]
    for time in range(10):
        used = sum(nodes["usages"][v][s] for v, s in enumerate(strategies) if nodes["intervals"][v][0] <= time < nodes["intervals"][v][1])
        if used > problem["usage_limit"]:
            return None
    cost = sum(nodes["costs"][v][s] for v, s in enumerate(strategies))
    for (a, b), costs in zip(edges["nodes"], edges["costs"], strict=True):
        cost += costs[strategies[a] * len(nodes["costs"][b]) + strategies[b]]
    return cost if cost < IMPOSSIBLE else None


def solved(text, seconds="0.5"):
    return subprocess.run([sys.argv[1], seconds], input=text, capture_output=True, text=True, timeout=60)


class Iopddl(unittest.TestCase):
    def test_it_finds_what_trying_all_finds(self):
        found_some = 0
        for seed in range(12):
            with self.subTest(seed=seed):
                problem = made_up(seed)
                choices = itertools.product(*(range(len(costs)) for costs in problem["nodes"]["costs"]))
                least = min((cost for cost in (cost_of(problem, choice) for choice in choices) if cost is not None), default=None)
                done = solved(json.dumps({"problem": problem}))
                said = json.loads(done.stdout)
                self.assertEqual((said["cost"], done.returncode), (least, 1 if least is None else 0), done.stderr)
                if least is None:
                    continue
                found_some += 1
                self.assertEqual(cost_of(problem, said["strategies"]), least)
                self.assertLessEqual(said["at_least"], least + 1e-6)
        self.assertGreater(found_some, 6)

    def test_bad_problems_are_refused(self):
        for text in ("", "[]", '{"problem": {}}', json.dumps({"problem": {**made_up(1), "edges": {"nodes": [[0, 9]], "costs": [[1]]}}})):
            done = solved(text)
            self.assertEqual(done.returncode, 2)
            self.assertIn("not a problem of the contest", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
