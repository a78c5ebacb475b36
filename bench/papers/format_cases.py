"""What (g) computes: the programs of the thesis on formats of matrices at reduced extents, and formats to compare with.

Extents are the thesis's over 20, with --quick over 40, those of the two largest chains over 40 and 80; tiles have a tenth of
its 1000 rows and columns. Each statement is one of the thesis's computations, so that formats can be given to all that it
stores.
"""
from dataclasses import dataclass
from typing import Callable

ALL_TILE = "tile-100"
TILES_OF_512 = "tiles of 512"


@dataclass(frozen=True)
class FormatCase:
    name: str
    program: str
    dims: dict  # {level: {label: extent}}
    others: dict  # {name: formats} beside the automatic ones
    by_numpy: Callable  # the output, of the library and {input: array}
    result: str  # that output
    given: str = ""  # formats in which inputs lie, which the automatic ones keep
    largest: Callable = lambda _name, _shape: 1  # of the values of an input


NETWORK = """dims l=17
input X[b,f], Y[b,l], W1[f,h], B1[h], W2[h,g], B2[g], W3[g,l], B3[l] : f64
Z1[b,h] = sum[f] X[b,f] * W1[f,h]
A1[b,h] = relu(Z1[b,h] + B1[h])
Z2[b,g] = sum[h] A1[b,h] * W2[h,g]
A2[b,g] = relu(Z2[b,g] + B2[g])
Z3[b,l] = sum[g] A2[b,g] * W3[g,l]
A3[b,l] = Z3[b,l] + B3[l]
P[b,l] = softmax[l](A3[b,l])
D3[b,l] = P[b,l] - Y[b,l]
E2[b,g] = sum[l] D3[b,l] * W3[g,l]
D2[b,g] = E2[b,g] * step(A2[b,g])
G2[h,g] = mean[b] A1[b,h] * D2[b,g]
V2[h,g] = W2[h,g] - 0.01 * G2[h,g]
output V2
"""

INVERSE = """input A11[p,q], A12[p,s], A21[r,q], A22[r,s], B1[p,n], B2[r,n], C1[m,q], C2[m,s], D[m,n] : f64
I[q,p] = inverse[q,p](A11[q,p])
R[r,p] = sum[q] A21[r,q] * I[q,p]
L[q,s] = sum[p] I[q,p] * A12[p,s]
S[r,s] = A22[r,s] - (sum[q] A21[r,q] * L[q,s])
J22[s,r] = inverse[s,r](S[s,r])
J12[q,r] = -(sum[s] L[q,s] * J22[s,r])
J21[s,p] = -(sum[r] J22[s,r] * R[r,p])
J11[q,p] = I[q,p] - (sum[s] L[q,s] * J21[s,p])
K1[q,n] = (sum[p] J11[q,p] * B1[p,n]) + (sum[r] J12[q,r] * B2[r,n])
K2[s,n] = (sum[p] J21[s,p] * B1[p,n]) + (sum[r] J22[s,r] * B2[r,n])
H1[m,p] = (sum[q] C1[m,q] * J11[q,p]) + (sum[s] C2[m,s] * J21[s,p])
H2[m,r] = (sum[q] C1[m,q] * J12[q,r]) + (sum[s] C2[m,s] * J22[s,r])
T[m,n] = D[m,n] - (sum[q] C1[m,q] * K1[q,n]) - (sum[s] C2[m,s] * K2[s,n])
DD[n,m] = inverse[n,m](T[n,m])
BB1[q,m] = -(sum[n] K1[q,n] * DD[n,m])
BB2[s,m] = -(sum[n] K2[s,n] * DD[n,m])
CC1[n,p] = -(sum[m] DD[n,m] * H1[m,p])
CC2[n,r] = -(sum[m] DD[n,m] * H2[m,r])
AA11[q,p] = J11[q,p] - (sum[m] BB1[q,m] * H1[m,p])
AA12[q,r] = J12[q,r] - (sum[m] BB1[q,m] * H2[m,r])
AA21[s,p] = J21[s,p] - (sum[m] BB2[s,m] * H1[m,p])
AA22[s,r] = J22[s,r] - (sum[m] BB2[s,m] * H2[m,r])
output AA22, AA11, AA12, AA21, BB1, BB2, CC1, CC2, DD
"""

CHAIN = """input A[i,j], B[j,k], C[k,l], D[l,k], E[k,i], F[k,o] : f64
T1[i,k] = sum[j] A[i,j] * B[j,k]
T2[k,m] = sum[l] C[k,l] * D[l,m]
T1E[i,n] = sum[k] T1[i,k] * E[k,n]
T1T2[n,m] = sum[k] T1[n,k] * T2[k,m]
T[i,m] = sum[n] T1E[i,n] * T1T2[n,m]
T2F[m,o] = sum[k] T2[m,k] * F[k,o]
O[i,o] = sum[m] T[i,m] * T2F[m,o]
output O
"""

MOTIVATION = """input A[i,j], B[j,k], C[k,l] : f64
AB[i,k] = sum[j] A[i,j] * B[j,k]
ABC[i,l] = sum[k] AB[i,k] * C[k,l]
output ABC
"""


PRODUCT = """input A[i,j], B[j,k] : f64
Z[i,k] = sum[j] A[i,j] * B[j,k]
output Z
"""


def formats(form, names):
    return ",".join(f"{name}={form}" for name in names.split())


def network(numpy, arrays):
    hidden = numpy.maximum(arrays["X"] @ arrays["W1"] + arrays["B1"], 0)
    second = numpy.maximum(hidden @ arrays["W2"] + arrays["B2"], 0)
    out = second @ arrays["W3"] + arrays["B3"]
    powers = numpy.exp(out - out.max(1, keepdims=True))
    by_out = powers / powers.sum(1, keepdims=True) - arrays["Y"]
    return arrays["W2"] - 0.01 / len(out) * hidden.T @ ((by_out @ arrays["W3"].T) * (second > 0))


def inverse(numpy, arrays):
    whole = numpy.block([[arrays["A11"], arrays["A12"], arrays["B1"]], [arrays["A21"], arrays["A22"], arrays["B2"]],
                         [arrays["C1"], arrays["C2"], arrays["D"]]])
    first, both = len(arrays["A11"]), len(arrays["A11"]) + len(arrays["A22"])
    return numpy.linalg.inv(whole)[first:both, first:both]


def chain(_numpy, arrays):
    first, second = arrays["A"] @ arrays["B"], arrays["C"] @ arrays["D"]
    return ((first @ arrays["E"]) @ (first @ second)) @ (second @ arrays["F"])


def motivation(_numpy, arrays):
    return arrays["A"] @ arrays["B"] @ arrays["C"]


LEVELS = ("tiny", "quick", "default", "full")


def at_levels(dims, rows):
    """{level: extents}, for the levels that the case has."""
    return {level: dims(*row) for level, row in zip(LEVELS, rows, strict=True) if row}


def network_cases():
    """An expert keeps samples in strips of rows and sends all weights to each."""
    hand = ",".join([formats("row-strip-100", "X Y Z1 A1 Z2 A2 Z3 A3 P D3 E2 D2"),
                     formats("single", "W1 B1 W2 B2 W3 B3 G2 V2")])

    def dims(batch, features, units):
        return {"b": batch, "f": features, "h": units, "g": units}

    def largest(name, shape):
        return shape[0] ** -0.5 if name.startswith("W") else 1
    sizes = {
        "10K": ((12, 20, 8), (250, 1500, 250), (500, 3000, 500), (500, 3000, 500)),
        "40K": (None, (250, 1500, 1000), (500, 3000, 2000), (500, 3000, 2000)),
        "80K": (None, None, (500, 3000, 4000), (500, 3000, 4000)),
        "160K": (None, None, None, (500, 3000, 8000)),
    }
    for name, rows in sizes.items():
        yield FormatCase(f"network, {name} hidden units", NETWORK, at_levels(dims, rows), {"by hand": hand, "all tiles": ALL_TILE},
                         network, "V2", "", largest)


def inverse_case():
    """An expert inverts single matrices, and multiplies them with strips."""
    hand = ",".join([formats("single", "A11 A12 A21 A22 I R L S J22 J12 J21 J11 D T DD"),
                     formats("column-strip-100", "B1 B2 K1 K2 CC1 CC2"), formats("row-strip-100", "C1 C2 H1 H2 BB1 BB2"),
                     formats("single", "AA11 AA12 AA21 AA22")])

    def dims(small, large, other):
        return {"p": small, "q": small, "r": large, "s": large, "m": other, "n": other}

    def largest(name, shape):  # so that it is well-conditioned
        return shape[0] ** -0.5 if name in ("A12", "A21", "B1", "B2", "C1", "C2") else 1
    rows = ((4, 16, 20), (50, 200, 250), (100, 400, 500), (200, 800, 1000))
    return FormatCase("two-level inverse", INVERSE, at_levels(dims, rows), {"by hand": hand, "all tiles": ALL_TILE}, inverse,
                      "AA22", "", largest)


def chain_cases():
    """An expert keeps what stands left in strips of rows, what stands right whole."""
    hand = ",".join([formats("row-strip-100", "A T1 T1E T T2F O"), formats("single", "B C D E F T2 T1T2")])

    def dims(i, j, k, l, o):  # noqa: E741: the program's label
        return {"i": i, "j": j, "k": k, "l": l, "o": o}

    def largest(_name, shape):  # so that products stay about as large
        return max(shape[0], 1) ** -0.5
    sizes = {
        "1": ((10, 30, 50, 1, 10), (250, 750, 1250, 1, 250), (500, 1500, 2500, 1, 500), (500, 1500, 2500, 1, 500)),
        "2": ((25, 1, 50, 15, 15), (625, 1, 1250, 375, 375), (1250, 1, 2500, 750, 750), (2500, 1, 5000, 1500, 1500)),
        "3": (None, (625,) * 5, (1250,) * 5, (2500,) * 5),
    }
    for name, rows in sizes.items():
        yield FormatCase(f"chain, size set {name}", CHAIN, at_levels(dims, rows), {"by hand": hand, "all tiles": ALL_TILE}, chain,
                         "O", "", largest)


def motivating_case():
    """Inputs lie in strips. Naively, what they make in tiles meets tiles of C."""
    given = "A=row-strip-10,B=column-strip-10,C=column-strip-1000"
    naive = f"{given},AB=tile-10-10,ABC=tile-10-10"

    def dims(i, j, l):  # noqa: E741: the program's label
        return {"i": i, "j": j, "k": i, "l": l}
    rows = ((20, 40, 50), (100, 10_000, 10_000), (100, 10_000, 50_000), (100, 10_000, 100_000))
    return FormatCase("motivating example", MOTIVATION, at_levels(dims, rows),
                      {"naively": naive, "all tiles": f"{given},{ALL_TILE}"}, motivation, "ABC", given)


def product_case():
    """Of square matrices, by tiles of 512, which workers share."""
    def dims(n):
        return {"i": n, "j": n, "k": n}
    return FormatCase("product", PRODUCT, at_levels(dims, ((20,), (1024,), (2048,), (4096,))), {TILES_OF_512: "tile-512"},
                      lambda _numpy, arrays: arrays["A"] @ arrays["B"], "Z")


def format_cases():
    return [product_case(), motivating_case(), *network_cases(), inverse_case(), *chain_cases()]
