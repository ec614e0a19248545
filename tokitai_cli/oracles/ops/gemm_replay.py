"""The replay of a matrix product that adds its terms in index order to one float32 accumulator."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.model.case import Case, Replay
from tokitai_cli.numerics import bit_source, round_to
from tokitai_cli.oracles.ops.gemm_operands import Operands, products_exact
from tokitai_cli.oracles.rows import Array

# Multiplications up to which every row is replayed. Beyond, a sample of rows: so many
# multiplications, and one row in 64 at least.
_REPLAY_WHOLE = 1 << 27
_REPLAY_SAMPLE = 1 << 25
_REPLAY_LEAST = 64
# Accumulators of a replay block: with the products 128 KiB, inside a core's second-level cache.
_REPLAY_BLOCK = 1 << 14


def replay_sequential(
    operands: Operands, case: Case, arrays: Mapping[str, Array], seed: int
) -> dict[str, Replay]:
    """Bits of a kernel that adds its terms in index order to one float32 accumulator.

    Products of float16 numbers are exact in float32, so fused and unfused steps agree and whole
    blocks of outputs advance together, one term at a time. Empty for inputs whose products float32
    does not hold, and for kernels that may flush subnormals. Above 2^27 multiplications a sample of
    rows, drawn by `seed`, is replayed.
    """
    product = operands(case, arrays)
    if case.variant.flush_to_zero or not products_exact(product):
        return {}
    rows, count = None, product.x.shape[0]
    per_row = max(1, product.terms * product.y.shape[1])
    if count * per_row > _REPLAY_WHOLE:
        size = min(count, max(1, count // _REPLAY_LEAST, _REPLAY_SAMPLE // per_row))
        key = bit_source(
            seed, case.loaded.spec.op, case.variant_name, "replay rows", *case.shape.values()
        )
        order = np.argsort(key.random_raw(count), kind="stable")
        rows = np.sort(order[:size]).astype(np.int64)
    x = product.x if rows is None else product.x[rows]
    sums = _sequential(x, product.y).astype(np.float64)
    values = round_to(sums, product.output.dtype)
    return {product.output.name: Replay(values=values, rows=rows)}


def _sequential(x: Array, y: Array) -> NDArray[np.float32]:
    """Add the terms in order, in float32; every product is exact by precondition."""
    if y.shape[1] < min(128, x.shape[0]):
        return _sequential(y.T, x.T).T  # the inner loop runs over the longer side
    columns = np.ascontiguousarray(x.T).astype(np.float32)
    lines = np.ascontiguousarray(y).astype(np.float32)
    result = np.zeros((x.shape[0], y.shape[1]), dtype=np.float32)
    width = min(_REPLAY_BLOCK, max(1, y.shape[1]))
    height = max(1, _REPLAY_BLOCK // width)
    with np.errstate(all="ignore"):
        for top in range(0, result.shape[0], height):
            for left in range(0, result.shape[1], width):
                place = np.s_[top : top + height, left : left + width]
                sums = result[place].copy()
                product = np.empty_like(sums)
                factors = columns[:, top : top + height, None]
                others = lines[:, None, left : left + width]
                for factor, other in zip(factors, others, strict=True):
                    np.multiply(factor, other, out=product)
                    np.add(sums, product, out=sums)
                result[place] = sums
    return result
