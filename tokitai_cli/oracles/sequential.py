"""Replays of matrix products that add their terms in index order to one float32 accumulator."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import native, parallel
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
# Rows and columns that a thread takes at once of the compiled loop.
_TILE = (8, 1024)

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
    library = native.library()
    if library is not None:
        _by_native(library, columns, lines, result)
        return result
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


def _by_native(library: native.Library, columns: Array, lines: Array, result: Array) -> None:
    """The same by the compiled loop, on threads."""
    terms, (rows, width) = columns.shape[0], result.shape

    def work(place: tuple[int, int]) -> None:
        top, left = place
        ends = (top, min(top + _TILE[0], rows), left, min(left + _TILE[1], width))
        library.functions.tokitai_sequential(
            *(ctypes.c_void_p(native.address(array)) for array in (columns, lines)),
            *map(ctypes.c_int64, (terms, rows, width, *ends)),
            ctypes.c_void_p(native.address(result)),
        )

    tops, lefts = range(0, rows, _TILE[0]), range(0, width, _TILE[1])
    for _ in parallel.in_order(work, [(top, left) for top in tops for left in lefts]):
        pass


def check_native(library: native.Library) -> None:
    """Raise MismatchError where the compiled loop gives another bit than numpy's code."""
    rng = np.random.default_rng(28)
    for rows, terms, columns in ((19, 300, 1100), (1, 40, 3), (300, 7, 5)):
        x, y = rng.standard_normal((rows, terms)), rng.standard_normal((terms, columns))
        factors = [(one * 300).astype(np.float16) for one in (x, y)]
        factors[0][0, :3] = 0.0, 6e-8, 65504.0
        factors[1][:2, 0] = 65504.0, -0.0
        with native.by(None):
            want = _sequential(*factors)
        with native.by(library):
            got = _sequential(*factors)
        if not np.array_equal(_bits(got), _bits(want)):
            raise native.MismatchError("the compiled replay of a product is not numpy's")


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(np.uint32)


REPLAYS: Mapping[str, Callable[[Case, Mapping[str, Array], int], dict[str, Replay]]] = {
    name: functools.partial(_replay, name) for name in _FACTORS
}
