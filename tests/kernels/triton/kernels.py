"""Triton kernels of kinds that models are made of, for tests."""

import triton
import triton.language as tl


@triton.jit
def add(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + i, tl.load(a + i, mask=i < n) + tl.load(b + i, mask=i < n), mask=i < n)


@triton.jit
def add_past(a, b, c, n, BLOCK: tl.constexpr):
    """Reads one element too many, in front of which nothing stops it."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + i, tl.load(a + i + 1, mask=i < n) + tl.load(b + i, mask=i < n), mask=i < n)


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    held = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    e = tl.exp(held - tl.max(held, axis=0))
    tl.store(y + row * columns + at, e / tl.sum(e, axis=0), mask=at < columns)


@triton.jit
def cross_entropy(logits, target, loss, classes, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    held = tl.load(logits + row * classes + at, mask=at < classes, other=-float("inf"))
    high = tl.max(held, axis=0)
    total = tl.log(tl.sum(tl.exp(held - high), axis=0)) + high
    tl.store(loss + row, total - tl.load(logits + row * classes + tl.load(target + row)))


@triton.jit
def sort(x, y, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(y + row * BLOCK + at, tl.sort(tl.load(x + row * BLOCK + at)))


@triton.jit
def dequantise(q, scale, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    held = tl.load(q + i, mask=i < n).to(tl.float32)
    tl.store(y + i, held * tl.load(scale + i // 64, mask=i < n), mask=i < n)


@triton.jit
def gelu(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    held = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(y + i, 0.5 * held * (1 + tl.erf(held * 0.7071067811865476)), mask=i < n)


@triton.jit
def cast(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n).to(y.dtype.element_ty), mask=i < n)


@triton.jit
def embedding(table, index, y, width, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    held = tl.load(table + tl.load(index + row) * width + at, mask=at < width)
    tl.store(y + row * width + at, held, mask=at < width)


@triton.jit
def transpose(x, y, rows, columns, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (r[:, None] < rows) & (c[None, :] < columns)
    held = tl.load(x + r[:, None] * columns + c[None, :], mask=inside)
    tl.store(y + c[None, :] * rows + r[:, None], held, mask=inside)


@triton.jit
def group_norm(x, y, n, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    held = tl.load(x + row * n + at, mask=at < n, other=0.0)
    mean = tl.sum(held, axis=0) / n
    off = tl.where(at < n, held - mean, 0.0)
    tl.store(y + row * n + at, off / tl.sqrt(tl.sum(off * off, axis=0) / n + eps), mask=at < n)


@triton.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, k, BK):
        left = (rows[:, None] < m) & (depth[None, :] + at < k)
        right = (depth[:, None] + at < k) & (columns[None, :] < n)
        x = tl.load(a + rows[:, None] * k + depth[None, :] + at, mask=left, other=0.0)
        y = tl.load(b + (depth[:, None] + at) * n + columns[None, :], mask=right, other=0.0)
        acc = tl.dot(x, y, acc)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], acc.to(c.dtype.element_ty), mask=inside)


@triton.jit
def matmul_integers(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns, depth = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for at in range(0, k, BK):
        x = tl.load(a + rows[:, None] * k + depth[None, :] + at)
        y = tl.load(b + (depth[:, None] + at) * BN + columns[None, :])
        acc = tl.dot(x, y, acc, out_dtype=tl.int32)
    tl.store(c + rows[:, None] * BN + columns[None, :], acc)


@triton.jit
def scaled_by_descriptor(x, y, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    """Descriptors of both arrays, which a program writes into its scratch memory on NVIDIA."""
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BM, BN])
    target = tl.make_tensor_descriptor(y, [rows, columns], [columns, 1], [BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    target.store([row, column], source.load([row, column]) * 2)


@triton.jit
def attention(
    q, k, v, y, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, EVERY: tl.constexpr
):
    """Of one head, keys in tiles with a running maximum. EVERY: whether sums are scaled with it."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + columns[None, :], mask=rows[:, None] < n, other=0.0)
    high = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    sums = tl.zeros((BM, D), tl.float32)
    for first in range(0, n, BN):
        at = first + tl.arange(0, BN)
        there = at[:, None] < n
        key = tl.load(k + at[:, None] * D + columns[None, :], mask=there, other=0.0)
        value = tl.load(v + at[:, None] * D + columns[None, :], mask=there, other=0.0)
        score = tl.dot(query, tl.trans(key)) * (D**-0.5)
        score = tl.where(at[None, :] < n, score, float("-inf"))
        higher = tl.maximum(high, tl.max(score, 1))
        weight, kept = tl.exp(score - higher[:, None]), tl.exp(high - higher)
        total = total * kept + tl.sum(weight, 1)
        if EVERY:
            sums = sums * kept[:, None]
        sums += tl.dot(weight.to(value.dtype), value)
        high = higher
    made = (sums / total[:, None]).to(y.dtype.element_ty)
    tl.store(y + rows[:, None] * D + columns[None, :], made, mask=rows[:, None] < n)


@triton.jit
def cast_twice(x, y, n, BLOCK: tl.constexpr):
    """Wrong as a cast: rounded to two bits of the mantissa before."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    narrow = tl.load(x + i, mask=i < n).to(tl.float8e5).to(tl.float32)
    tl.store(y + i, narrow.to(y.dtype.element_ty), mask=i < n)
