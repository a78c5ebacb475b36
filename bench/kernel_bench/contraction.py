"""Contractions of two tensors in einsum's notation, "acik,bcjk->abij": as a program, as products of matrices, as loops."""
import itertools
import math


def parse(notation):
    """("ij", "jk", "ik") for "ij,jk->ik"."""
    operands, result = notation.split("->")
    return (*operands.split(","), result)


def program(notation, dtype):
    """Operands are called A, B, ..., the result Z."""
    *operands, result = parse(notation)
    accesses = [f"{name}[{','.join(labels)}]" for name, labels in zip("ABCDEFGH", operands)]
    summed = sorted(set("".join(operands)) - set(result))
    prefix = f"sum[{','.join(summed)}] " if summed else ""
    return f"input {', '.join(accesses)} : {dtype}\nZ[{','.join(result)}] = {prefix}{' * '.join(accesses)}\n"


def _strides(labels, extents):
    """{label: distance in elements} of a row-major tensor."""
    strides, step = {}, 1
    for label in reversed(labels):
        strides[label] = step
        step *= extents[label]
    return strides


def _merged(group, strides, extents):
    """The one stride along which a group of labels, slowest first, can be walked; None when there is none."""
    group = [label for label in group if extents[label] > 1]
    for slow, fast in itertools.pairwise(group):
        if strides[slow] != strides[fast] * extents[fast]:
            return None
    return strides[group[-1]] if group else 1


def _layout(labels, rows, columns, batch, extents):
    """How one operand lies as matrices rows x columns; copied into another order only where BLAS could not take it."""
    strides = _strides(labels, extents)
    row, column = _merged(rows, strides, extents), _merged(columns, strides, extents)
    permuted = None
    if row is None or column is None or (row != 1 and column != 1):
        order = [*batch, *rows, *columns]
        permuted = [labels.index(label) for label in order]
        strides = _strides(order, extents)
        row, column = _merged(rows, strides, extents), 1
    height, width = (math.prod(extents[label] for label in group) for group in (rows, columns))
    if height == 1:  # a stride that means nothing must still be one that BLAS accepts
        row = width if column == 1 else 1
    elif width == 1:
        column = height if row == 1 else 1
    return {"permuted": permuted, "row": row, "column": column, "batch": [strides[label] for label in batch]}


def product(notation, extents):
    """The contraction as (batched) Z = A B with as few copies as possible; what native_worker calls a Product."""
    first, second, result = parse(notation)
    shared, size = set(first) & set(second), lambda labels: math.prod(extents[label] for label in labels)
    batch = [label for label in result if label in shared]
    best = None
    for swapped in (False, True):
        a, b = (second, first) if swapped else (first, second)
        m = {"".join(x for x in order if x in a and x in result and x not in shared) for order in (result, a)}
        n = {"".join(x for x in order if x in b and x in result and x not in shared) for order in (result, b)}
        k = {"".join(x for x in order if x in shared and x not in result) for order in (a, b)}
        for rows, columns, summed in itertools.product(sorted(m), sorted(n), sorted(k)):
            a_layout = _layout(a, rows, summed, batch, extents)
            b_layout = _layout(b, summed, columns, batch, extents)
            z_strides, z_order = _strides(result, extents), None
            merged = _merged(rows, z_strides, extents), _merged(columns, z_strides, extents)
            shape = [extents[label] for label in result]
            if merged[0] is None or merged[1] != 1:
                order = [*batch, *rows, *columns]
                z_order = [order.index(label) for label in result]
                z_strides, shape = _strides(order, extents), [extents[label] for label in order]
                merged = _merged(rows, z_strides, extents), 1
            z_layout = {"permuted": z_order, "row": merged[0] if size(rows) > 1 else size(columns), "column": 1,
                        "batch": [z_strides[label] for label in batch]}
            copied = sum(size(labels) for labels, layout in ((a, a_layout), (b, b_layout), (result, z_layout))
                         if layout["permuted"] is not None)
            if best is None or copied < best[0]:
                best = copied, {"m": size(rows), "n": size(columns), "k": size(summed),
                                "batch": [extents[label] for label in batch], "swapped": swapped, "a": a_layout,
                                "b": b_layout, "z": z_layout, "shape": shape}
    return best[1]


def is_plain(spec):
    """Whether a product needs no copy."""
    return all(spec[tensor]["permuted"] is None for tensor in "abz")


def equal_gemm(spec):
    """One product of row-major matrices as large as the whole of another one."""
    m, n, k = math.prod(spec["batch"]) * spec["m"], spec["n"], spec["k"]
    plain = {"permuted": None, "column": 1, "batch": []}
    return {"m": m, "n": n, "k": k, "batch": [], "swapped": spec["swapped"], "a": {**plain, "row": k},
            "b": {**plain, "row": n}, "z": {**plain, "row": n}, "shape": [m, n]}


def loops(notation, extents):
    """The contraction as nested loops over the result, the summed labels just outside its last label."""
    first, second, result = parse(notation)
    summed = [label for label in first if label not in result]
    order = [*result[:-1], *summed, result[-1]]
    steps = {name: [_strides(labels, extents).get(label, 0) for label in order]
             for name, labels in (("a", first), ("b", second), ("z", result))}
    return {"extents": [extents[label] for label in order], **steps, "shape": [extents[label] for label in result]}
