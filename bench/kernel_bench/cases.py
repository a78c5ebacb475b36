"""The list that bench/kernels measures. A new case is one more entry of a function below; a new group one more function."""
import dataclasses
import re

from kernel_bench import contraction


@dataclasses.dataclass(frozen=True)
class Case:
    """One computation, as each library's users write it.

    `dims` and `program` are the .ein program; its inputs are random, its one output is compared with what the others give.
    `numpy` and `torch` are expressions over the inputs' names, np, torch, F (torch.nn.functional) and own
    (formulations.py); None: the library has no such types. `native`: peer -> what native_worker.cpp shall compute.
    """
    name: str
    group: str
    dims: str
    program: str
    numpy: str | None
    torch: str | None
    native: dict = dataclasses.field(default_factory=dict)
    beyond_cache: bool = False

    def text(self):
        return f"dims {self.dims}\n{self.program}"


def extents_of(dims):
    return {label: int(extent) for label, extent in re.findall(r"(\w+)=(\d+)", dims)}


def contract(group, name, notation, dims, dtype="f32", numpy=None, torch=None):
    """A contraction of two tensors; NumPy and PyTorch use einsum unless something else is more natural or faster."""
    spec = contraction.product(notation, extents_of(dims))
    native = {}
    blas = dtype in ("f32", "f64")
    if contraction.is_plain(spec):
        if blas:
            native["OpenBLAS"] = {"op": "blas", **spec}
        if dtype in ("f32", "bf16", "f16"):
            native["oneDNN"] = {"op": "matmul", **spec}
    if group.startswith("contraction"):
        native["equal gemm"] = {"op": "blas", "checked": False, **contraction.equal_gemm(spec)}
        if "OpenBLAS" not in native:
            native["transposed gemm"] = {"op": "blas", **spec}
    if group == "contraction, bandwidth-bound":
        native["direct loop"] = {"op": "loops", **contraction.loops(notation, extents_of(dims))}
    numpy = numpy or f"np.einsum('{notation}', A, B, optimize=True)"
    torch = torch or f"torch.einsum('{notation}', A, B)"
    return Case(name, group, dims, contraction.program(notation, dtype), numpy, torch, native)


def matmul(group, name, m, k, n, dtype="f32", notation="ik,kj->ij"):
    a, b = ("A.T" if notation.startswith("ki") else "A"), ("B.T" if ",jk" in notation else "B")
    case = contract(group, name, notation, f"i={m} k={k} j={n}", dtype, f"{a} @ {b}", f"{a} @ {b}")
    if dtype == "f16":  # NumPy multiplies them one by one
        return dataclasses.replace(case, numpy="(np.float32(A) @ np.float32(B)).astype(np.float16)")
    return case if dtype != "bf16" else dataclasses.replace(case, numpy=None)


def batched(name, batch, m, k, n, dtype="f32"):
    return contract("batched", name, "nik,nkj->nij", f"n={batch} i={m} k={k} j={n}", dtype, "A @ B", "A @ B")


def square():
    for n in (512, 1024, 2048, 4096):
        yield matmul("square sgemm", f"sgemm {n}", n, n, n)
    for n in (512, 1024, 2048, 4096):
        yield matmul("square dgemm", f"dgemm {n}", n, n, n, "f64")


def skewed():
    group = "odd and skewed"
    yield matmul(group, "777x1001x333", 777, 1001, 333)
    yield matmul(group, "777x1001x333 f64", 777, 1001, 333, "f64")
    yield matmul(group, "A^T B^T 1000", 1000, 1000, 1000, notation="ki,jk->ij")
    yield contract(group, "one row 1x4096x4096", "k,kj->j", "k=4096 j=4096", numpy="A @ B", torch="A @ B")
    yield contract(group, "one column 4096x4096x1", "ik,k->i", "i=4096 k=4096", numpy="A @ B", torch="A @ B")
    yield contract(group, "one row f64 4096", "k,kj->j", "k=4096 j=4096", "f64", numpy="A @ B", torch="A @ B")
    yield matmul(group, "LLaMA weights 256x1024x2752", 256, 1024, 2752, notation="ik,jk->ij")
    yield matmul(group, "8 rows 8x4096x4096", 8, 4096, 4096)
    yield matmul(group, "8 columns 4096x4096x8", 4096, 4096, 8)
    yield matmul(group, "tall 200000x32x32", 200000, 32, 32)
    yield matmul(group, "deep 64x200000x64", 64, 200000, 64, notation="ki,kj->ij")
    yield matmul(group, "rank 8 update 4096x8x4096", 4096, 8, 4096)
    yield contract(group, "outer product 4096", "i,j->ij", "i=4096 j=4096", numpy="np.outer(A, B)", torch="torch.outer(A, B)")
    yield contract(group, "dot 16M", "i,i->", "i=16777216", numpy="np.dot(A, B)", torch="torch.dot(A, B)")


def small():
    for n in (4, 16, 32, 64, 128):
        yield matmul("small", f"{n}x{n} alone", n, n, n)
    yield matmul("small", "64x64 f64 alone", 64, 64, 64, "f64")
    yield matmul("small", "3x5x7 alone", 3, 5, 7)


def batches():
    yield batched("4x4x4 x 4096", 4096, 4, 4, 4)
    yield batched("8x8x8 x 4096", 4096, 8, 8, 8)
    yield batched("16x16x16 x 2048", 2048, 16, 16, 16)
    yield batched("32x32x32 x 512", 512, 32, 32, 32)
    yield batched("128x128x128 x 64", 64, 128, 128, 128)
    yield batched("8x8x8 x 4096 f64", 4096, 8, 8, 8, "f64")
    yield batched("5x7x6 x 4096", 4096, 5, 7, 6)
    swap = "A.{0} @ B.{0}"
    yield contract("batched", "128^3 x 64, both transposed", "nki,njk->nij", "n=64 i=128 j=128 k=128",
                   numpy=swap.format("swapaxes(1, 2)"), torch=swap.format("transpose(1, 2)"))
    yield contract("batched", "64^3 x 64, batch in the middle", "ink,nkj->inj", "n=64 i=64 j=64 k=64",
                   numpy="(A.swapaxes(0, 1) @ B).swapaxes(0, 1)", torch="(A.transpose(0, 1) @ B).transpose(0, 1)")
    yield contract("batched", "4x4x4 x 4096, batch last", "ikn,kjn->ijn", "n=4096 i=4 j=4 k=4")


def chemistry():
    """i to l: occupied orbitals, a to f: virtual ones, P: an auxiliary basis; some as CCSD has them, some from the TCCG set."""
    group = "contraction, compute-bound"
    yield contract(group, "particle ladder abcd,cdij->abij", "abcd,cdij->abij", "a=44 b=44 c=44 d=44 i=20 j=20", "f64")
    yield contract(group, "particle ladder acbd,ijcd->ijab", "acbd,ijcd->ijab", "a=48 b=48 c=48 d=48 i=20 j=20")
    yield contract(group, "hole ladder klij,abkl->abij", "klij,abkl->abij", "a=64 b=64 i=24 j=24 k=24 l=24")
    yield contract(group, "hole ladder abij,ijkl->abkl", "abij,ijkl->abkl", "a=64 b=64 i=24 j=24 k=24 l=24", "f64")
    yield contract(group, "ring acik,bcjk->abij", "acik,bcjk->abij", "a=56 b=56 c=56 i=24 j=24 k=24")
    yield contract(group, "ring iakc,kcjb->iajb", "iakc,kcjb->iajb", "a=48 b=48 c=48 i=24 j=24 k=24", "f64")
    yield contract(group, "exchange ring icak,kbcj->ijab", "icak,kbcj->ijab", "a=48 b=48 c=48 i=24 j=24 k=24", "f64")
    yield contract(group, "density fitting Pia,Pjb->iajb", "Pia,Pjb->iajb", "P=320 i=28 j=28 a=64 b=64")
    yield contract(group, "density fitting Pab,Pij->aibj", "Pab,Pij->aibj", "P=320 a=64 b=64 i=28 j=28")
    yield contract(group, "three-index acd,dbc->ab", "acd,dbc->ab",
                   "a=512 b=512 c=64 d=64")
    yield contract(group, "aebf,dfce->abcd", "aebf,dfce->abcd", "a=36 b=36 c=36 d=36 e=36 f=36")
    yield contract(group, "eafd,fbec->abcd", "eafd,fbec->abcd", "a=36 b=36 c=36 d=36 e=36 f=36")
    yield contract(group, "aebf,fdec->abcd f64", "aebf,fdec->abcd", "a=32 b=32 c=32 d=32 e=32 f=32", "f64")
    group = "contraction, bandwidth-bound"
    yield contract(group, "singles abci,cj->abij", "abci,cj->abij", "a=64 b=64 c=64 i=32 j=32")
    yield contract(group, "orbitals pqrs,si->pqri", "pqrs,si->pqri", "p=56 q=56 r=56 s=56 i=20", "f64")
    yield contract(group, "orbitals ea,ebcd->abcd", "ea,ebcd->abcd", "e=24 a=24 b=64 c=64 d=64")
    yield contract(group, "triples aeij,bcek->abcijk", "aeij,bcek->abcijk", "a=16 b=16 c=16 e=16 i=12 j=12 k=12")
    yield contract(group, "triples dega,gfbc->abcdef", "dega,gfbc->abcdef", "a=16 b=16 c=16 d=16 e=16 f=16 g=16")
    yield contract(group, "outer ia,jb->ijab", "ia,jb->ijab", "i=32 j=32 a=64 b=64")
    yield contract(group, "denominators ijab,ab->ij", "ijab,ab->ij", "i=64 j=64 a=64 b=64")


ATTENTION = """\
input Q[b,s,h,d], K[b,t,h,d], V[b,t,h,d]
L[b,h,s,t] = sum[d] Q[b,s,h,d] * K[b,t,h,d]
P[b,h,s,t] = softmax[t]({scores})
Z[b,s,h,d] = sum[t] P[b,h,s,t] * V[b,t,h,d]
output Z
"""

MULTI_HEAD = """\
input X[b,s,a], WQ[a,h,d], WK[a,h,d], WV[a,h,d], WO[h,d,a]
Q[b,s,h,d] = sum[a] X[b,s,a] * WQ[a,h,d]
K[b,s,h,d] = sum[a] X[b,s,a] * WK[a,h,d]
V[b,s,h,d] = sum[a] X[b,s,a] * WV[a,h,d]
L[b,h,s,t] = 0.125 * sum[d] Q[b,s,h,d] * K[b,t,h,d]
P[b,h,s,t] = softmax[t](where(t <= s, L[b,h,s,t], -inf))
O[b,s,h,d] = sum[t] P[b,h,s,t] * V[b,t,h,d]
Z[b,s,a] = sum[h,d] O[b,s,h,d] * WO[h,d,a]
output Z
"""


def attention():
    group, dims = "attention", "b=4 h=8 s=512 t=512 d=64"
    heads_first = "A.{0} @ B.{1}"
    yield contract(group, "scores bshd,bthd->bhst", "bshd,bthd->bhst", dims,
                   numpy=heads_first.format("transpose(0, 2, 1, 3)", "transpose(0, 2, 3, 1)"),
                   torch=heads_first.format("transpose(1, 2)", "permute(0, 2, 3, 1)"))
    yield contract(group, "values bhst,bthd->bshd", "bhst,bthd->bshd", dims,
                   numpy="(A @ B.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)",
                   torch="(A @ B.transpose(1, 2)).transpose(1, 2)")
    yield Case("attention", group, dims, ATTENTION.format(scores="L[b,h,s,t] * 0.125"),
               "own.attention(Q, K, V, 0.125, causal=False)", "own.attention(Q, K, V, 0.125, causal=False)")
    yield Case("masked attention", group, dims, ATTENTION.format(scores="where(t <= s, L[b,h,s,t] * 0.125, -inf)"),
               "own.attention(Q, K, V, 0.125, causal=True)", "own.attention(Q, K, V, 0.125, causal=True)")
    call = "own.multi_head(X, WQ, WK, WV, WO, 0.125)"
    yield Case("masked multi-head attention", group, "b=4 s=256 t=256 a=512 h=8 d=64", MULTI_HEAD, call, call)


def network(name, notation, dims):
    """A contraction of several tensors, named in an order that is good to contract in, since this PyTorch does just that.
    NumPy is allowed intermediates of any size: under optimize=True it has none larger than an operand or the result, and
    may fall back to one loop over all labels, thousands of times slower."""
    operands = ", ".join("ABCDEFGH"[:notation.count(",") + 1])
    return Case(name, "tensor networks", dims, contraction.program(notation, "f32"),
                f"np.einsum('{notation}', {operands}, optimize=('greedy', 2**40))",
                f"torch.einsum('{notation}', {operands})")


def tensor_networks():
    yield network("MPS overlap ab,asc,bsd->cd", "ab,asc,bsd->cd", "a=512 b=512 c=512 d=512 s=2")
    yield network("DMRG awb,wstv,btc,dvc->asd", "awb,wstv,btc,dvc->asd", "a=192 b=192 c=192 d=192 w=5 v=5 s=2 t=2")
    yield network("PEPS ring abp,bcq,cdr,das->pqrs", "abp,bcq,cdr,das->pqrs", "a=24 b=24 c=24 d=24 p=20 q=20 r=20 s=20")
    yield network("CTMRG ab,bxc,ayd,xyzw->dwcz", "ab,bxc,ayd,xyzw->dwcz", "a=128 b=128 c=128 d=128 x=8 y=8 z=8 w=8")
    yield network("MERA iab,kae,bcef,jcd,lfd->ijkl", "iab,kae,bcef,jcd,lfd->ijkl",
                  " ".join(f"{label}=20" for label in "abcdefijkl"))
    yield network("chain jk,kl,ij->il, l thin", "jk,kl,ij->il", "i=1024 j=1024 k=1024 l=8")
    yield network("MTTKRP ijk,jr,kr->ir", "ijk,jr,kr->ir", "i=256 j=256 k=256 r=32")
    yield network("Tucker ijk,ia,jb,kc->abc", "ijk,ia,jb,kc->abc", "i=200 j=200 k=200 a=40 b=40 c=40")


def elementwise():
    group, large, square_dims = "element-wise", "i=33554432", "i=3000 j=3000"
    chain = "input V[i]\nZ[i] = sq(V[i]) * 0.5 + relu(V[i]) - 1\n"
    chains = ("V * V * np.float32(0.5) + np.maximum(V, 0) - 1", "V * V * 0.5 + torch.relu(V) - 1")
    yield Case("chain 32M", group, large, chain, *chains, beyond_cache=True)
    yield Case("chain 100k", group, "i=100000", chain, *chains)
    yield Case("A * B + C 16M", group, "i=16777216", "input A[i], B[i], C[i]\nZ[i] = A[i] * B[i] + C[i]\n", "A * B + C",
               "torch.addcmul(C, A, B)", beyond_cache=True)
    yield Case("rows and columns broadcast", group, square_dims,
               "input A[i,j], r[i], c[j]\nZ[i,j] = (A[i,j] - r[i]) * c[j] + 1\n", "(A - r[:, None]) * c + 1",
               "(A - r[:, None]) * c + 1")
    yield Case("label values", group, square_dims,
               "input A[i,j]\nZ[i,j] = where(j <= i, A[i,j], 0) + 0.5 * f32(i - j)\n",
               "np.tril(A) + np.float32(0.5) * np.subtract.outer(np.arange(3000, dtype=np.float32), "
               "np.arange(3000, dtype=np.float32))",
               "torch.tril(A) + 0.5 * (torch.arange(3000.)[:, None] - torch.arange(3000.))")
    yield Case("where A > B", group, square_dims, "input A[i,j], B[i,j]\nZ[i,j] = where(A[i,j] > B[i,j], A[i,j], -B[i,j])\n",
               "np.where(A > B, A, -B)", "torch.where(A > B, A, -B)")
    yield Case("sigmoid 16M", group, "i=16777216", "input V[i]\nZ[i] = sigmoid(V[i])\n", "1 / (1 + np.exp(-V))",
               "torch.sigmoid(V)", {"oneDNN": {"op": "eltwise", "kind": "sigmoid"}})
    yield Case("gelu 4M", group, "i=4194304", "input V[i]\nZ[i] = gelu(V[i])\n", None, "F.gelu(V)",  # NumPy has no erf
               {"oneDNN": {"op": "eltwise", "kind": "gelu"}})
    yield Case("silu 16M", group, "i=16777216", "input V[i]\nZ[i] = silu(V[i])\n", "V / (1 + np.exp(-V))", "F.silu(V)")
    yield Case("exp(A) * B f64 8M", group, "i=8388608", "input A[i], B[i] : f64\nZ[i] = exp(A[i]) * B[i]\n", "np.exp(A) * B",
               "torch.exp(A) * B")


def reductions():
    group, dims, both = "reductions", "i=4096 j=4096", "input A[i,j]\n"
    onednn = {"op": "reduction", "kind": "sum"}
    yield Case("sum over rows", group, dims, both + "Z[j] = sum[i] A[i,j]\n", "A.sum(axis=0)", "A.sum(0)",
               {"oneDNN": {**onednn, "axes": [0]}})
    yield Case("sum over columns", group, dims, both + "Z[i] = sum[j] A[i,j]\n", "A.sum(axis=1)", "A.sum(1)",
               {"oneDNN": {**onednn, "axes": [1]}})
    yield Case("sum of all", group, dims, both + "Z[] = sum[i,j] A[i,j]\n", "A.sum()", "A.sum()",
               {"oneDNN": {**onednn, "axes": [0, 1]}})
    yield Case("mean of squares", group, dims, both + "Z[i] = mean[j] sq(A[i,j])\n", "(A * A).mean(axis=1)",
               "(A * A).mean(1)")
    yield Case("argmax of columns", group, dims, both + "Z[i] = argmax[j] A[i,j]\n", "A.argmax(axis=1)", "A.argmax(1)")
    yield Case("argmax of rows", group, dims, both + "Z[j] = argmax[i] A[i,j]\n", "A.argmax(axis=0)", "A.argmax(0)")
    yield Case("logsumexp", group, dims, both + "Z[i] = logsumexp[j] A[i,j]\n", "own.logsumexp(A, 1)",
               "torch.logsumexp(A, 1)")
    yield Case("max over the middle of three", group, "i=200 j=200 k=400", "input A[i,j,k]\nZ[i,k] = max[j] A[i,j,k]\n",
               "A.max(axis=1)", "A.amax(1)", {"oneDNN": {"op": "reduction", "kind": "max", "axes": [1]}})
    yield Case("sum over both ends of three", group, "i=200 j=200 k=400", "input A[i,j,k]\nZ[j] = sum[i,k] A[i,j,k]\n",
               "A.sum(axis=(0, 2))", "A.sum((0, 2))", {"oneDNN": {**onednn, "axes": [0, 2]}})


def normalisations():
    group = "softmax and norms"

    def softmax(name, labels, dims, reduced, beyond_cache=False):
        access, axis = f"[{','.join(labels)}]", labels.index(reduced)
        return Case(name, group, dims, f"input X{access}\nZ{access} = softmax[{reduced}](X{access})\n",
                    f"own.softmax(X, {axis})", f"torch.softmax(X, {axis})", {"oneDNN": {"op": "softmax", "axis": axis}},
                    beyond_cache)

    yield softmax("softmax 8192x4096", "ij", "i=8192 j=4096", "j", beyond_cache=True)
    yield softmax("softmax 8x8x512x512", "bhst", "b=8 h=8 s=512 t=512", "t")
    yield softmax("softmax of short rows 200000x32", "ij", "i=200000 j=32", "j")
    yield softmax("softmax over the first 1024x4096", "ij", "i=1024 j=4096", "i")
    dims, gain = "i=8192 j=1024", "input X[i,j], g[j], b[j]\n"
    yield Case("layer norm 8192x1024", group, dims, gain + "Z[i,j] = layernorm[j](X[i,j], 1e-5) * g[j] + b[j]\n",
               "own.layer_norm(X, g, b)", "F.layer_norm(X, (1024,), g, b, 1e-5)",
               {"oneDNN": {"op": "layer_norm", "epsilon": 1e-5}})
    yield Case("RMS norm 8192x1024", group, dims, "input X[i,j], g[j]\nZ[i,j] = rmsnorm[j](X[i,j], 1e-5) * g[j]\n",
               "own.rms_norm(X, g)", "own.rms_norm(X, g)")


def distances():
    group, dims, inputs = "distances", "a=600 b=600 j=100", "input X[a,j], Y[b,j]\n"
    broadcast = "(X[:, None, :] - Y[None, :, :])"
    yield Case("squared 1000x1000x100", group, "a=1000 b=1000 j=100", inputs + "Z[a,b] = sum[j] sq(X[a,j] - Y[b,j])\n",
               f"({broadcast} ** 2).sum(axis=2)", "torch.cdist(X, Y) ** 2")
    yield Case("L1 600x600x100", group, dims, inputs + "Z[a,b] = sum[j] abs(X[a,j] - Y[b,j])\n",
               f"np.abs({broadcast}).sum(axis=2)", "torch.cdist(X, Y, p=1)")
    yield Case("L-infinity 600x600x100", group, dims, inputs + "Z[a,b] = max[j] abs(X[a,j] - Y[b,j])\n",
               f"np.abs({broadcast}).max(axis=2)", "torch.cdist(X, Y, p=torch.inf)")
    yield Case("L1 f64 600x600x64", group, "a=600 b=600 j=64",
               "input X[a,j], Y[b,j] : f64\nZ[a,b] = sum[j] abs(X[a,j] - Y[b,j])\n", f"np.abs({broadcast}).sum(axis=2)",
               "torch.cdist(X, Y, p=1)")
    yield Case("min-plus 400^3", group, "i=400 j=400 k=400", "input A[i,k], B[k,j]\nZ[i,j] = min[k] (A[i,k] + B[k,j])\n",
               "(A[:, :, None] + B).min(axis=1)", "(A[:, :, None] + B).amin(1)")


def convolution(name, batch, channels, extent, kernels, window, stride=1, pad=0):
    rows, columns = (f"{stride}*{out}+{tap}-{pad}" for out, tap in (("y", "p"), ("x", "q")))
    out = (extent + 2 * pad - window) // stride + 1
    dims = f"n={batch} c={channels} v={extent} u={extent} k={kernels} p={window} q={window} y={out} x={out}"
    access = f"I[n,c,{rows},{columns}]"
    text = (f"input I[n,c,v,u], K[k,c,p,q]\n"
            f"Z[n,k,y,x] = sum[c,p,q] {f'pad({access}, 0)' if pad else access} * K[k,c,p,q]\n")
    return Case(f"{name}, batch {batch}", "convolutions", dims, text, f"own.conv2d(I, K, {stride}, {pad})",
                f"F.conv2d(I, K, stride={stride}, padding={pad})",
                {"oneDNN": {"op": "convolution", "stride": [stride, stride], "pad": [pad, pad]}})


def convolutions():
    for batch in (1, 8):
        yield convolution("AlexNet 1: 11x11/4, 3-64", batch, 3, 224, 64, 11, 4, 2)
        yield convolution("AlexNet 2: 5x5, 64-192", batch, 64, 27, 192, 5, 1, 2)
        yield convolution("AlexNet 3: 3x3, 192-384", batch, 192, 13, 384, 3, 1, 1)
    yield convolution("VGG 1.1: 3x3, 3-64, 224", 1, 3, 224, 64, 3, 1, 1)
    yield convolution("VGG 1.2: 3x3, 64-64, 224", 1, 64, 224, 64, 3, 1, 1)
    yield convolution("VGG 3.2: 3x3, 256-256, 56", 1, 256, 56, 256, 3, 1, 1)
    yield convolution("VGG 5.1: 3x3, 512-512, 14", 1, 512, 14, 512, 3, 1, 1)
    yield convolution("VGG 5.1: 3x3, 512-512, 14", 8, 512, 14, 512, 3, 1, 1)
    yield convolution("no pad 3x3, 64-64, 56", 1, 64, 56, 64, 3)
    yield from gradients("AlexNet 3", 192, 13, 384, 3)
    yield from gradients("VGG 3.2", 256, 56, 256, 3)


def gradients(name, channels, extent, kernels, window):
    """Of a convolution whose image keeps its extents."""
    pad = window // 2
    dims = f"n=1 c={channels} k={kernels} y={extent} x={extent} p={window} q={window}"
    yield Case(f"{name}, by the filter", "convolutions", dims,
               f"input I[n,c,y,x], D[n,k,y,x]\nZ[k,c,p,q] = sum[n,y,x] pad(I[n,c,y+p-{pad},x+q-{pad}], 0) * D[n,k,y,x]\n",
               f"own.conv2d(I.swapaxes(0, 1), D.swapaxes(0, 1), 1, {pad}).swapaxes(0, 1)",
               f"torch.nn.grad.conv2d_weight(I, ({kernels}, {channels}, {window}, {window}), D, padding={pad})")
    yield Case(f"{name}, by the image", "convolutions", dims,
               f"input D[n,k,y,x], K[k,c,p,q]\nZ[n,c,y,x] = sum[k,p,q] pad(D[n,k,y-p+{pad},x-q+{pad}], 0) * K[k,c,p,q]\n",
               f"own.conv2d(D, K.swapaxes(0, 1)[:, :, ::-1, ::-1], 1, {pad})",
               f"F.conv_transpose2d(D, K, padding={pad})")


def pools():
    group = "pooling"
    dims = "n=1 c=64 v=224 u=224 p=2 q=2"
    image = "input I[n,c,v,u]\n"
    onednn = {"op": "pooling", "window": [2, 2], "stride": [2, 2]}
    yield Case("max 2x2, VGG 64x224x224", group, dims, image + "Z[n,c,y,x] = max[p,q] I[n,c,2*y+p,2*x+q]\n",
               "own.max_pool(I, 2, 2)", "F.max_pool2d(I, 2)", {"oneDNN": {**onednn, "kind": "max"}})
    yield Case("max 3x3/2, AlexNet 8x64x55x55", group, "n=8 c=64 v=55 u=55 p=3 q=3",
               image + "Z[n,c,y,x] = max[p,q] I[n,c,2*y+p,2*x+q]\n", "own.max_pool(I, 3, 2)", "F.max_pool2d(I, 3, 2)",
               {"oneDNN": {"op": "pooling", "kind": "max", "window": [3, 3], "stride": [2, 2]}})
    yield Case("average 2x2, 64x224x224", group, dims, image + "Z[n,c,y,x] = mean[p,q] I[n,c,2*y+p,2*x+q]\n",
               "own.average_pool(I, 2)", "F.avg_pool2d(I, 2)", {"oneDNN": {**onednn, "kind": "average"}})


def transposes():
    def permuted(labels, to, dims, dtype="f32"):
        order = [labels.index(label) for label in to]
        native = {"oneDNN": {"op": "permute", "order": order}} if dtype in ("f32", "f64") else {}
        return Case(f"{labels} to {to} {dtype}", "transposes", dims,
                    f"input A[{','.join(labels)}] : {dtype}\nZ[{','.join(to)}] = A[{','.join(labels)}]\n",
                    f"np.ascontiguousarray(A.transpose({order}))", f"A.permute({order}).contiguous()", native)

    yield permuted("ij", "ji", "i=4096 j=4096")
    yield permuted("ij", "ji", "i=3000 j=3000", "f64")
    yield permuted("ijk", "kji", "i=240 j=250 k=260")
    yield permuted("ijk", "jik", "i=512 j=512 k=64")
    yield permuted("bshd", "bhsd", "b=8 s=512 h=16 d=64")
    yield permuted("abcd", "dcba", "a=50 b=50 c=50 d=50")
    yield permuted("abij", "ijab", "a=56 b=56 i=40 j=40", "f64")


def narrow_and_integer():
    group = "bf16, f16, integers"
    for dtype in ("bf16", "f16"):
        yield matmul(group, f"{dtype} 1024", 1024, 1024, 1024, dtype)
        yield matmul(group, f"{dtype} one row 4096", 1, 4096, 4096, dtype)
    yield Case("bf16 batched 128^3 x 64", group, "n=64 i=128 j=128 k=128",
               contraction.program("nik,nkj->nij", "bf16"), None, "A @ B")
    yield Case("bf16 A * B + C 16M", group, "i=16777216", "input A[i], B[i], C[i] : bf16\nZ[i] = A[i] * B[i] + C[i]\n", None,
               "torch.addcmul(C, A, B)")
    yield matmul(group, "i32 512", 512, 512, 512, "i32")
    yield matmul(group, "i64 256", 256, 256, 256, "i64")


GROUPS = (square, skewed, small, batches, chemistry, attention, tensor_networks, elementwise, reductions, normalisations,
          distances, convolutions, pools, transposes, narrow_and_integer)


def all_cases():
    return [case for group in GROUPS for case in group()]
