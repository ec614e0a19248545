"""Replays of matrix products that add their terms in index order to one float32 accumulator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.case import Case, Role
from tokitai_cli.core.model.expectation import Replay
from tokitai_cli.core.numerics import bit_source, round_to

Array = NDArray[Any]

# Multiplications up to which every row is replayed. Beyond, a sample of rows: so many
# multiplications, and one row in 64 at least.
_WHOLE = 1 << 27
_SAMPLE = 1 << 25
_LEAST = 64
# Accumulators of a block: with the products 128 KiB, inside a core's second-level cache.
_BLOCK = 1 << 14

# The factors of gemm-bw's products, X [r, n] and Y [n, c].
_FACTORS: Mapping[str, Callable[[Mapping[str, Array]], tuple[Array, Array]]] = {
    "gemm-bw.grad-a": lambda arrays: (arrays["grad_c"], arrays["b"].T),
    "gemm-bw.grad-b": lambda arrays: (arrays["a"].T, arrays["grad_c"]),
}


def _replay(name: str, case: Case, arrays: Mapping[str, Array], seed: int) -> dict[str, Replay]:
    """Bits of a kernel that adds its terms in index order to one float32 accumulator.

    Products of float16 numbers are exact in float32, so fused and unfused steps agree and whole
    blocks of outputs advance together, one term at a time. Empty for inputs whose products float32
    does not hold, and for kernels that may flush subnormals. Above 2^27 multiplications a sample of
    rows, drawn by `seed`, is replayed.
    """
    x, y = _FACTORS[name](arrays)
    (output,) = case.buffers_of(Role.OUTPUT)
    if case.variant.flush_to_zero or not _products_exact(x, y):
        return {}
    rows, count = None, x.shape[0]
    per_row = max(1, x.shape[1] * y.shape[1])
    if count * per_row > _WHOLE:
        size = min(count, max(1, count // _LEAST, _SAMPLE // per_row))
        key = bit_source(
            seed, case.loaded.spec.op, case.variant_name, "replay rows", *case.shape.values()
        )
        order = np.argsort(key.random_raw(count), kind="stable")
        rows = np.sort(order[:size]).astype(np.int64)
    sums = _sequential(x if rows is None else x[rows], y).astype(np.float64)
    return {output.name: Replay(values=round_to(sums, output.dtype), rows=rows)}


def _products_exact(x: Array, y: Array) -> bool:
    """Whether float32 holds every product: 24 significand bits suffice, and none is subnormal."""
    formats = [FORMATS[array.dtype.name] for array in (x, y)]
    if sum(form.precision for form in formats) > FORMATS["float32"].precision:
        return False
    if all(form.name == "float16" for form in formats):
        return True
    smallest = 1.0
    for array in (x, y):
        entries = np.abs(array.astype(np.float64))
        entries = entries[np.isfinite(entries) & (entries > 0)]
        smallest *= float(entries.min(initial=np.inf))
    return smallest >= FORMATS["float32"].smallest_normal


def _sequential(x: Array, y: Array) -> NDArray[np.float32]:
    """Add the terms in order, in float32; every product is exact by precondition."""
    if y.shape[1] < min(128, x.shape[0]):
        return _sequential(y.T, x.T).T  # the inner loop runs over the longer side
    columns = np.ascontiguousarray(x.T).astype(np.float32)
    lines = np.ascontiguousarray(y).astype(np.float32)
    result = np.zeros((x.shape[0], y.shape[1]), dtype=np.float32)
    width = min(_BLOCK, max(1, y.shape[1]))
    height = max(1, _BLOCK // width)
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


REPLAYS: Mapping[str, Callable[[Case, Mapping[str, Array], int], dict[str, Replay]]] = {
    name: functools.partial(_replay, name) for name in _FACTORS
}
