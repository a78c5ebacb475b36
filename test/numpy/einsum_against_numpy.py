"""`einrel einsum` against np.einsum: what NumPy computes, we compute; what NumPy refuses, we refuse.

Usage: einsum_against_numpy.py EINREL [Notation | Generated | Extended]
"""

import os
import random
import sys

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import einrel_process as process  # noqa: E402

DTYPES = (np.float32, np.float64, np.int64)
GENERATED = 220  # distinct strings
MUTATED = 200

# (subscripts, shapes): NumPy's documentation of einsum, and what else its notation allows.
BY_HAND = [
    ("ii", [(4, 4)]), ("ii->", [(4, 4)]), ("ii->i", [(4, 4)]), ("iij->ji", [(3, 3, 2)]), ("iii", [(3, 3, 3)]),
    ("i", [(4,)]), ("i->", [(4,)]), ("ij->i", [(2, 3)]), ("ij->j", [(2, 3)]), ("ij->", [(2, 3)]),
    ("ij", [(2, 3)]), ("ji", [(2, 3)]), ("ij->ji", [(2, 3)]), ("ba", [(2, 3)]), ("bca", [(2, 3, 4)]),
    ("i,i", [(4,), (4,)]), ("i,i->i", [(4,), (4,)]), ("i,j", [(2,), (3,)]), ("i,j->ji", [(2,), (3,)]),
    ("ij,jk", [(2, 3), (3, 4)]), ("ij,jh", [(2, 3), (3, 4)]), ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk->ki", [(2, 3), (3, 4)]), ("ij,kj->ik", [(2, 3), (4, 3)]), ("ji,jk->ik", [(3, 2), (3, 4)]),
    ("ij,j", [(2, 3), (3,)]), ("ij,j->i", [(2, 3), (3,)]), ("i,ij", [(2,), (2, 3)]), ("ij,ij", [(2, 3), (2, 3)]),
    ("ij,ji->", [(2, 3), (3, 2)]), ("ijk,jil->kl", [(3, 4, 5), (4, 3, 2)]), ("ki,jk->ij", [(2, 3), (4, 2)]),
    ("ki,...k->i...", [(2, 3), (4, 2)]), ("k...,jk", [(2, 3), (4, 2)]), ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
    ("...", [()]), ("...", [(2, 3)]), ("...->...", [(2, 3)]), ("...j", [(2, 3)]), ("...j->...", [(2, 3)]),
    ("j...", [(2, 3)]), ("i...->...", [(2, 3)]), ("i...->...i", [(2, 3, 4)]), ("...ii->...i", [(2, 3, 3)]),
    ("i...i", [(3, 2, 3)]), ("i...i->...", [(3, 2, 3)]), ("a...b->b...a", [(2, 3, 4, 5)]), ("...i->i...", [(2, 3)]),
    ("...,...", [(2, 3), (2, 3)]), ("...,...", [(), (2, 3)]), ("...,...", [(3,), (2, 3)]), ("...,...", [(2, 1), (3,)]),
    ("...ij,...jk", [(2, 3), (5, 3, 4)]), ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)]),
    ("...ij,...jk->...ik", [(6, 1, 2, 3), (5, 3, 4)]), ("ij...,jk...->ik...", [(2, 3, 4), (3, 2, 4)]),
    ("i...j,j...->...i", [(2, 4, 3), (3, 4)]), ("...i,i...->i...", [(2, 3), (3, 2)]), ("ij...,j", [(2, 3), (3,)]),
    ("i...,...i,...", [(2, 3), (3, 2), (1,)]), ("i->...i", [(3,)]), ("i->...", [(3,)]), ("i,j->...", [(2,), (3,)]),
    ("i,j->j...i", [(2,), (3,)]), ("i...", [(3,)]), ("...i->i", [(3,)]), ("...i,i", [(3,), (3,)]),
    ("", [()]), (" ", [()]), ("->", [()]), (",", [(), ()]), (",->", [(), ()]), (",,", [(), (), ()]), (",i", [(), (3,)]),
    ("i,", [(3,), ()]), (",ij->ji", [(), (2, 3)]), ("i,->i", [(3,), ()]), (" i j , j k -> i k ", [(2, 3), (3, 4)]),
    ("i j->ji", [(2, 3)]), (" ...i , i ... ", [(2, 3), (3, 2)]), ("ij,jk->", [(2, 3), (3, 4)]),
    ("ij,jk", [(2, 1), (3, 4)]), ("ij,jk", [(2, 3), (1, 4)]), ("ij,ij->ij", [(1, 3), (2, 1)]), ("i,i", [(1,), (4,)]),
    ("ii,i->i", [(1, 1), (4,)]), ("ij,ij", [(1, 1), (2, 3)]), ("i,i,i->i", [(1,), (4,), (1,)]), ("ij->j", [(1, 1)]),
    ("i", [(0,)]), ("i->", [(0,)]), ("ij->i", [(2, 0)]), ("ij->j", [(2, 0)]), ("ij,jk->ik", [(2, 0), (0, 3)]),
    ("ij,jk->ik", [(0, 2), (2, 3)]), ("i,i->i", [(0,), (1,)]), ("i,j->", [(0,), (3,)]), ("ii->i", [(0, 0)]),
    ("...i->...", [(2, 0)]), ("...,...", [(0, 3), (1, 3)]), ("ij,jk,kl->il", [(2, 0), (0, 3), (3, 2)]),
    ("Ab,bC->AC", [(2, 3), (3, 4)]), ("bA", [(2, 3)]), ("aB,Bc", [(2, 3), (3, 2)]), ("zZ->Zz", [(2, 3)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]), ("ij,jk,kl", [(2, 3), (3, 4), (4, 2)]), ("i,j,k", [(2,), (3,), (4,)]),
    ("i,i,i", [(4,), (4,), (4,)]), ("ij,ik,il->jkl", [(5, 2), (5, 3), (5, 2)]),
    ("ij,jk,ki->", [(2, 3), (3, 4), (4, 2)]),
    ("ab,bc,cd,de->ae", [(2, 3), (3, 2), (2, 4), (4, 3)]),
    ("a,ab,abc,abcd->d", [(2,), (2, 3), (2, 3, 2), (2, 3, 2, 2)]),
    ("ab,ac,ad,ae,af->bcdef", [(3, 2)] * 5), ("i,i,i,i,i->i", [(4,)] * 5), ("ab,bc,cd,de,ef,fa", [(2, 2)] * 6),
    ("ab,bc,cd,de,ef,fg->ag", [(2, 3), (3, 2), (2, 3), (3, 2), (2, 3), (3, 2)]),
    ("...a,...b,...c->...", [(2, 3), (2,), (3, 2, 4)]), ("ij,jk,...->...ik", [(2, 3), (3, 2), (2, 2)]),
    ("i,ij,j,jk,k,->", [(2,), (2, 3), (3,), (3, 4), (4,), ()]),
    ("ab,bc,cd,de,ef,fg,gh,hi,ij,jk,kl,lm,mn,no->ao", [(2, 2)] * 14), (",".join("a" * 14), [(3,)] * 14),
    ("abcdefgh->hgfedcba", [(2, 1, 3, 2, 1, 2, 1, 2)]), ("aabbcc->abc", [(2, 2, 3, 3, 2, 2)]),
    ("aab,bcc->ac", [(2, 2, 3), (3, 2, 2)]),
]

# What NumPy refuses, beyond what mutation finds. (subscripts, shapes)
WRONG_BY_HAND = [
    ("i1", [(2, 2)]), ("i_j", [(2, 2)]), ("é", [(2,)]), ("i\tj", [(2, 2)]), ("i\nj", [(2, 2)]), ("i;j", [(2,), (2,)]),
    ("i*j", [(2,), (2,)]), ("[i]", [(2,)]), ("i.j", [(2, 2)]), ("..i", [(2,)]), ("....", [(2,)]), (". . .", [(2,)]),
    ("i>j", [(2,)]), ("i-j", [(2, 2)]), ("i - > i", [(2,)]), ("i->i->i", [(2,)]), ("i=>i", [(2,)]), ("i<-i", [(2,)]),
    ("i->ii", [(2,)]), ("i->k", [(2,)]), ("ij->ik", [(2, 3)]), ("i->i,", [(2,)]), ("i->i1", [(2,)]), ("i->i.", [(2,)]),
    ("ii", [(2, 3)]), ("ii", [(1, 3)]), ("ii->i", [(3, 1)]), ("ij,jk", [(2, 3), (4, 5)]), ("i,i", [(2,), (3,)]),
    ("i,i", [(0,), (2,)]), ("...,...", [(2,), (3,)]), ("...i,...i", [(2, 3), (4, 3)]), ("i", [()]), ("i", [(2, 2)]),
    ("", [(2,)]), ("ij", [(2,)]), ("ij,jk", [(2, 3)]), ("ij", [(2, 3), (3, 4)]), ("i,,j", [(2,), (3,)]),
    (",", [(2,), ()]),
    ("i...->i", [(2, 3)]), ("i,...->i", [(2,), (3,)]), ("...i...", [(2, 2)]), ("......", [(2,)]),
    ("i->... ...", [(2,)]),
    ("...->... ...", [(2,)]), ("ij...", [(2,)]), ("A->a", [(2,)]), ("i,j->i j k", [(2,), (3,)]),
]


def operands_of(shapes, dtype, seed):
    rng = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.integer):
        return [rng.integers(-9, 10, shape, dtype) for shape in shapes]
    if dtype == np.bool_:
        return [rng.random(shape) < 0.6 for shape in shapes]
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def error_bound(subscripts, operands, eps):
    """How far two sums of rounded products may be apart, however each is ordered: with u = eps/2, each of n terms of k
    factors is off by (k-1)u, each partial sum by (n-1)u,
    relative to the sum of magnitudes; and the result is rounded."""
    terms = np.einsum(subscripts, *[np.ones(x.shape) for x in operands])
    magnitude = np.einsum(subscripts, *[np.abs(x).astype(np.float64) for x in operands])
    return (terms + len(operands) + 1) * eps * magnitude


def generate(rng):
    """A valid call: subscripts and shapes. Labels may repeat within an operand, extents may be 1 or 0, and a label or a
    dimension behind '...' may have extent 1 in one operand and more in another."""
    count = rng.choices([1, 2, 3, 4, 5, 6], [20, 45, 15, 8, 6, 6])[0]
    pool = rng.sample("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", rng.randint(1, 6))
    extents = {label: rng.choices([0, 1, 2, 3, 4], [3, 15, 40, 30, 12])[0] for label in pool}
    hidden = [rng.randint(1, 3) for _ in range(rng.randint(0, 3 if count < 4 else 1))]
    with_ellipsis = rng.random() < 0.4
    terms, shapes, used = [], [], []
    for _ in range(count):
        labels = rng.choices(pool, k=rng.randint(0, 4 if count < 4 else 3))
        thin = {label for label in labels if rng.random() < 0.08}
        shape = [1 if label in thin else extents[label] for label in labels]
        text = labels[:]
        if with_ellipsis and rng.random() < 0.8:
            at = rng.randint(0, len(labels))
            own = [1 if rng.random() < 0.15 else extent for extent in hidden[rng.randint(0, len(hidden)):]]
            text[at:at] = ["..."]
            shape[at:at] = own
        used += labels
        terms.append("".join(text))
        shapes.append(tuple(shape))
    subscripts = ",".join(terms)
    if rng.random() < 0.7:
        kept = list(dict.fromkeys(used))
        rng.shuffle(kept)
        kept = kept[: rng.randint(0, len(kept))]
        if "..." in subscripts or rng.random() < 0.1:
            kept.insert(rng.randint(0, len(kept)), "...")
        subscripts += "->" + "".join(kept)
    if rng.random() < 0.15:
        at = [i for i in range(len(subscripts) + 1) if subscripts[max(i - 1, 0):i + 1] not in ("..", "->")]
        place = rng.choice(at)
        subscripts = subscripts[:place] + " " + subscripts[place:]
    return subscripts, shapes


def mutate(rng, subscripts, shapes):
    """The call with one thing changed: often wrong, sometimes right."""
    shapes = list(shapes)
    kind = rng.randrange(8)
    place = rng.randint(0, len(subscripts))
    if kind == 0:  # a character that may be none of einsum's
        return subscripts[:place] + rng.choice("0_.;:*(é>-\t,ij") + subscripts[place:], shapes
    if kind == 1 and subscripts:  # one character less
        return subscripts[:max(place - 1, 0)] + subscripts[place:], shapes
    if kind == 2:  # an ellipsis anywhere
        return subscripts[:place] + "..." + subscripts[place:], shapes
    if kind == 3:  # an output that may lack a label, or name one twice
        return subscripts.split("->")[0] + "->" + "".join(rng.choices("abijXY", k=rng.randint(1, 3))), shapes
    if kind == 4:  # one operand less
        return subscripts, shapes[:-1] or [(), ()]
    which = rng.randrange(len(shapes))
    if kind == 5:  # one dimension more
        shapes[which] = (*shapes[which], 2)
    elif kind == 6 and shapes[which]:  # another extent
        d = rng.randrange(len(shapes[which]))
        shapes[which] = (*shapes[which][:d], shapes[which][d] + 1, *shapes[which][d + 1:])
    else:  # a second arrow
        subscripts += "->"
    return subscripts, shapes


def generated_calls():
    rng = random.Random(20240607)
    calls = {}
    while len(calls) < GENERATED:
        subscripts, shapes = generate(rng)
        # NumPy multiplies in one nest over all labels, so its work is the product of their extents.
        try:
            small = np.prod(np.einsum(subscripts.split("->")[0], *[np.ones(shape) for shape in shapes]).shape) < 5000
        except ValueError:  # the same label with extents 2 and 3 behind '...' cannot happen: every call is valid
            raise AssertionError((subscripts, shapes)) from None
        if small:
            calls.setdefault(subscripts, shapes)
    return list(calls.items())


class EinsumTest(process.ProgramTest):
    def run_einsum(self, subscripts, operands, *options):
        files = []
        for i, operand in enumerate(operands):
            files.append(self.path(f"{i}.npy"))
            np.save(files[-1], operand)
        out = self.path("out.npy")
        if os.path.exists(out):
            os.remove(out)
        # '--': subscripts such as '->' begin like an option.
        result = process.einrel("einsum", *options, "--out", out, "--", subscripts, *files)
        return result, np.load(out, allow_pickle=False) if os.path.exists(out) else None

    def agree(self, subscripts, shapes, dtype, seed):
        """Both accept and give the same, or both refuse. Returns whether they accepted."""
        operands = operands_of(shapes, dtype, seed)
        case = f"np.einsum({subscripts!r}, shapes {shapes}, {np.dtype(dtype)})"
        try:
            expected = np.einsum(subscripts, *operands)
        except (ValueError, UnicodeEncodeError) as refusal:
            result, got = self.run_einsum(subscripts, operands)
            self.assertEqual(result.code, 1, f"{case}: NumPy says {refusal}\n{result}")
            self.assertIsNone(got, case)
            self.assertEqual(result.out, "", case)
            self.assertRegex(result.err, r"\Aerror: .+\n +--> <subscripts>:\d+:\d+\n.*\n.*\^", f"{case}\n{result}")
            return False
        result, got = self.run_einsum(subscripts, operands)
        self.assertEqual(result.code, 0, f"{case}\n{result}")
        self.assertEqual(got.shape, np.shape(expected), case)
        self.assertEqual(got.dtype, np.asarray(expected).dtype, case)
        if np.issubdtype(dtype, np.floating):
            exact = np.einsum(subscripts, *[x.astype(np.float64) for x in operands])
            bound = error_bound(subscripts, operands, np.finfo(dtype).eps)
            # f16 is summed in f32 here, in f16 by NumPy: compare with the exact sum, which either must be near.
            self.assertTrue(np.all(np.abs(got - exact) <= bound), f"{case}\n{got}\n{exact}\n{bound}")
            if dtype != np.float16:
                self.assertTrue(np.all(np.abs(got - expected) <= bound), f"{case}\n{got}\n{expected}\n{bound}")
        else:
            np.testing.assert_array_equal(got, expected, case)
        return True


class Notation(EinsumTest):
    """Written by hand."""

    def test_every_documented_form_in_every_dtype(self):
        for seed, (subscripts, shapes) in enumerate(BY_HAND):
            for dtype in DTYPES:
                with self.subTest(subscripts=subscripts, shapes=shapes, dtype=dtype):
                    self.assertTrue(self.agree(subscripts, shapes, dtype, seed))

    def test_what_numpy_refuses_is_refused(self):
        for seed, (subscripts, shapes) in enumerate(WRONG_BY_HAND):
            with self.subTest(subscripts=subscripts, shapes=shapes):
                self.assertFalse(self.agree(subscripts, shapes, np.float64, seed))

    def test_other_dtypes(self):
        for seed, (subscripts, shapes) in enumerate(BY_HAND[::2]):
            for dtype in (np.bool_, np.int32, np.float16):
                with self.subTest(subscripts=subscripts, shapes=shapes, dtype=dtype):
                    self.assertTrue(self.agree(subscripts, shapes, dtype, seed))

    def test_i64_and_i32_wrap_around_as_in_numpy(self):
        rng = np.random.default_rng(3)
        for dtype in (np.int64, np.int32):
            bounds = np.iinfo(dtype)
            a = rng.integers(bounds.min, bounds.max, (5, 7), dtype, endpoint=True)
            b = rng.integers(bounds.min, bounds.max, (7, 4), dtype, endpoint=True)
            for subscripts, operands in (("ij,jk->ik", (a, b)), ("ij->j", (a,)), ("ij,ij->", (a, a)),
                                         ("ij,ji->j", (a[:4], b))):
                result, got = self.run_einsum(subscripts, operands)
                self.assertEqual(result.code, 0, result)
                np.testing.assert_array_equal(got, np.einsum(subscripts, *operands))

    def test_mixed_dtypes_promote_as_in_numpy(self):
        dtypes = (np.bool_, np.int32, np.int64, np.float16, np.float32, np.float64)
        for first in dtypes:
            for second in dtypes:
                a, b = operands_of([(2, 3)], first, 1)[0], operands_of([(3, 2)], second, 2)[0]
                with self.subTest(first=first, second=second):
                    expected = np.einsum("ij,jk->ik", a, b)
                    result, got = self.run_einsum("ij,jk->ik", (a, b))
                    self.assertEqual(result.code, 0, result)
                    self.assertEqual(got.dtype, expected.dtype)
                    eps = np.finfo(expected.dtype).eps if expected.dtype.kind == "f" else 0
                    wide = [a.astype(np.float64), b.astype(np.float64)]
                    exact = np.einsum("ij,jk->ik", *wide) if expected.dtype.kind == "f" else expected
                    bound = error_bound("ij,jk->ik", wide, eps)
                    self.assertTrue(np.all(np.abs(got.astype(np.float64) - exact) <= bound), f"{got}\n{exact}")

    def test_nan_and_infinity_go_through(self):
        a = np.array([[np.nan, 1, np.inf], [0, -np.inf, 2], [0, 0, 1]])
        for subscripts, operands in (("ij->i", [a]), ("ij,jk->ik", [a, np.eye(3) + 1]),
                                     ("ij,ij->j", [a, np.zeros((3, 3))])):
            result, got = self.run_einsum(subscripts, operands)
            self.assertEqual(result.code, 0, result)
            with np.errstate(invalid="ignore"):
                np.testing.assert_array_equal(got, np.einsum(subscripts, *operands), subscripts)

    def test_operands_in_every_memory_order(self):
        rng = np.random.default_rng(11)
        a, b = rng.standard_normal((5, 4)), rng.standard_normal((4, 3))
        for x in (a, np.asfortranarray(a), a.astype(">f8")):
            for y in (b, np.asfortranarray(b), b.astype(">f8")):
                result, got = self.run_einsum("ij,jk->ki", (x, y))
                self.assertEqual(result.code, 0, result)
                np.testing.assert_allclose(got, np.einsum("ij,jk->ki", a, b), rtol=1e-14)


class Generated(EinsumTest):
    def test_generated_strings_in_every_dtype(self):
        calls = generated_calls()
        self.assertGreaterEqual(len(calls), 200)
        for seed, (subscripts, shapes) in enumerate(calls):
            for dtype in DTYPES:
                with self.subTest(subscripts=subscripts, shapes=shapes, dtype=dtype):
                    self.assertTrue(self.agree(subscripts, shapes, dtype, seed))

    def test_mutated_strings_are_refused_exactly_when_numpy_refuses(self):
        rng = random.Random(7)
        calls = generated_calls()
        accepted = 0
        for seed in range(MUTATED):
            subscripts, shapes = mutate(rng, *calls[seed % len(calls)])
            with self.subTest(subscripts=subscripts, shapes=shapes):
                accepted += self.agree(subscripts, shapes, np.float64, seed)
        self.assertGreater(accepted, MUTATED // 20)
        self.assertGreater(MUTATED - accepted, MUTATED // 2)


def logsumexp(x, axis):
    top = np.max(x, axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.sum(np.exp(x - top), axis=axis))


class Extended(EinsumTest):
    """--join and --reduce, each against the formula in NumPy."""

    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(5)
        self.a, self.b, self.c = rng.random((4, 3)) + 0.5, rng.random((3, 5)) + 0.5, rng.random((5, 2)) + 0.5

    def expect(self, expected, options, subscripts, operands):
        for dtype in (np.float64, np.float32):
            with self.subTest(options=options, subscripts=subscripts, dtype=dtype):
                result, got = self.run_einsum(subscripts, [x.astype(dtype) for x in operands], *options)
                self.assertEqual(result.code, 0, result)
                self.assertEqual(got.shape, np.shape(expected))
                self.assertEqual(got.dtype, expected.dtype if expected.dtype.kind != "f" else dtype)
                tolerance = 200 * np.finfo(dtype).eps if expected.dtype.kind == "f" else 0
                np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)

    def test_two_operands(self):
        x, y = self.a[:, :, None], self.b[None, :, :]
        pair, to = [self.a, self.b], "ij,jk->ik"
        self.expect(((x - y) ** 2).sum(1), ["--join", "sq(x-y)"], to, pair)
        self.expect(((x - y) ** 2).sum(1), ["--join", "(x-y)**2", "--reduce", "sum"], to, pair)
        self.expect(np.abs(x - y).max(1), ["--join", "abs(x-y)", "--reduce", "max"], to, pair)
        self.expect((x + y).min(1), ["--join", "x+y", "--reduce", "min"], to, pair)
        self.expect((x + y).max(1), ["--join", "x1 + x2", "--reduce", "max"], to, pair)
        self.expect((x * y).max(1), ["--reduce", "max"], to, pair)
        self.expect((x * y).argmax(1), ["--reduce", "argmax"], to, pair)
        self.expect((x - y).argmin(1), ["--join", "x-y", "--reduce", "argmin"], to, pair)
        self.expect(logsumexp(x * y, 1), ["--reduce", "logsumexp"], to, pair)
        self.expect((x * y).mean(1), ["--reduce", "mean"], to, pair)
        self.expect((x / y).prod(1), ["--join", "x/y", "--reduce", "prod"], to, pair)
        self.expect((x < y).any(1), ["--join", "x<y", "--reduce", "any"], to, pair)
        self.expect((x < y).all(1), ["--join", "x<y", "--reduce", "all"], to, pair)
        self.expect((x < y).sum(1), ["--join", "x<y"], to, pair)
        self.expect(np.where(x < y, x, -y).sum(1), ["--join", "where(x<y, x, -y)"], to, pair)
        self.expect(np.maximum(x, y), ["--join", "max(x,y)"], "ij,jk->ijk", pair)
        self.expect(np.abs(x - y).max((1, 2)), ["--join", "abs(x-y)", "--reduce", "max"], "ij,jk->i", pair)

    def test_one_operand(self):
        a = self.a
        self.expect((a ** 2).sum(1), ["--join", "sq(x)"], "ij->i", [a])
        self.expect(np.exp(a).T, ["--join", "exp(x)"], "ij->ji", [a])
        self.expect(a.argmax(0), ["--reduce", "argmax"], "ij->j", [a])
        self.expect(logsumexp(a, 1), ["--reduce", "logsumexp"], "ij->i", [a])
        self.expect(a.mean(1), ["--reduce", "mean"], "ij->i", [a])
        self.expect(np.asarray(a.mean()), ["--reduce", "mean"], "ij->", [a])
        self.expect(np.asarray((1 / a).prod()), ["--join", "1/x", "--reduce", "prod"], "ij->", [a])
        self.expect(np.diagonal(a[:3]).max(), ["--reduce", "max"], "ii->", [a[:3]])

    def test_three_operands(self):
        x, y, z = self.a[:, :, None, None], self.b[None, :, :, None], self.c[None, None, :, :]
        three, to = [self.a, self.b, self.c], "ij,jk,kl->il"
        self.expect((x + y + z).min((1, 2)), ["--join", "x+y+z", "--reduce", "min"], to, three)
        self.expect(((x - y) ** 2 * z).sum((1, 2)), ["--join", "sq(x-y)*z"], to, three)
        self.expect(np.minimum(x, np.minimum(y, z)).max((1, 2)),
                    ["--join", "min(x1,min(x2,x3))", "--reduce", "max"], to, three)
        self.expect((x * y * z).mean((1, 2)), ["--reduce", "mean"], to, three)

    def test_four_operands_are_x1_to_x4(self):
        v = [np.arange(1.0, 4.0) + i for i in range(4)]
        self.expect((v[0] + v[1] * v[2] - v[3]).sum(keepdims=True)[0], ["--join", "x1+x2*x3-x4"], "i,i,i,i->", v)

    def test_broadcast_operands_under_a_join(self):
        x, y = self.a[:, :1], self.b
        self.expect((x + y[None, 0]).min(1), ["--join", "x+y", "--reduce", "min"], "ij,j->i", [x, y[0]])
        left, right = self.a[None], self.b.T[:, None]
        self.expect(np.abs(left - right).max(2), ["--join", "abs(x-y)", "--reduce", "max"], "...j,...j->...",
                    [left, right])

    def test_wrong_joins_and_reductions_are_refused(self):
        np.save(self.path("a.npy"), self.a)
        a = self.path("a.npy")
        for options, mentions in (
                (["--join", "x+"], ["<join>:1:"]), (["--join", "x+q"], ["'q'", "<join>:1:3"]),
                (["--join", ""], ["join"]),
                (["--join", "x)"], ["<join>:1:2"]), (["--join", "x[i]"], ["<join>:1:1"]),
                (["--join", "y"], ["<join>:1:1"]),
                (["--join", "sum[i] x"], ["<join>:1:1"]), (["--join", "2"], ["'x'"]), (["--join", "sqr(x)"], ["'sqr'"]),
                (["--join", "x\ny"], ["<join>:2:1"]), (["--join", "x+result"], ["<join>:1:3", "unknown"]),
                (["--reduce", "maxx"], ["'maxx'", "max"]), (["--reduce", ""], ["--reduce", "empty"])):
            with self.subTest(options=options):
                self.refuse(1, "einsum", "ij->i", a, *options, mentions=mentions)


if __name__ == "__main__":
    process.main()
