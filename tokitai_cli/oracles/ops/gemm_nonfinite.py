"""NaN and infinities in a matrix product, counted on the inputs (see `gemm`, "Not finite")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.dtypes import FORMATS
from tokitai_cli.oracles.ops.gemm_operands import Product

Mask = NDArray[np.bool_]
# Terms at a time: bounds the indicators where many entries are infinite.
_TERMS = 512


def mark_special(
    product: Product, reference: NDArray[np.float64], error: NDArray[np.float64], *, flush: bool
) -> None:
    """Put NaN and infinities into `reference` where the terms have them."""
    if np.isfinite(product.x).all() and np.isfinite(product.y).all():
        return
    nan_rows: Mask = np.asarray(np.isnan(product.x).any(axis=1))
    nan_columns: Mask = np.asarray(np.isnan(product.y).any(axis=0))
    involved = np.flatnonzero(np.isinf(product.x).any(axis=0) | np.isinf(product.y).any(axis=1))
    y = np.asarray(product.y[involved], dtype=np.float32)
    y_smallest = FORMATS[product.y.dtype.name].smallest_normal if flush else 0.0
    x_smallest = FORMATS[product.x.dtype.name].smallest_normal if flush else 0.0
    for rows in product.row_blocks():
        x = np.asarray(product.x[rows][:, involved], dtype=np.float32)
        positive, negative, undefined, open_ = _infinite_terms(x, y, x_smallest, y_smallest)
        block = reference[rows]
        block[positive] = np.inf
        block[negative] = -np.inf
        undefined |= positive & negative
        undefined |= nan_rows[rows, None] | nan_columns[None, :]
        open_ &= ~undefined
        block[open_] = 0.0
        np.copyto(error[rows], np.inf, where=open_)
        block[undefined] = np.nan


def _infinite_terms(
    x: NDArray[np.float32], y: NDArray[np.float32], x_smallest: float, y_smallest: float
) -> tuple[Mask, Mask, Mask, Mask]:
    """Find elements that have a term +inf, a term -inf, a term 0 inf, a term of flushed number and inf.

    Counts of indicators by matrix products. With N terms that are infinite and D their signed sum,
    (N + D) / 2 are +inf and (N - D) / 2 are -inf.
    """
    shape = (x.shape[0], y.shape[1])
    number, signed, zero, open_ = (np.zeros(shape, dtype=np.float32) for _ in range(4))
    for start in range(0, x.shape[1], _TERMS):
        xs, ys = x[:, start : start + _TERMS], y[start : start + _TERMS]
        x_inf, y_inf = (np.isinf(a).astype(np.float32) for a in (xs, ys))
        x_sign, y_sign = (np.nan_to_num(np.sign(a)) for a in (xs, ys))
        number += x_inf @ np.abs(y_sign) + np.abs(x_sign) @ y_inf - x_inf @ y_inf
        signed += (x_inf * x_sign) @ y_sign + x_sign @ (y_inf * y_sign)
        signed -= (x_inf * x_sign) @ (y_inf * y_sign)
        x_zero, y_zero = ((a == 0).astype(np.float32) for a in (xs, ys))
        zero += x_inf @ y_zero + x_zero @ y_inf
        if x_smallest or y_smallest:
            x_tiny = ((xs != 0) & (np.abs(xs) < x_smallest)).astype(np.float32)
            y_tiny = ((ys != 0) & (np.abs(ys) < y_smallest)).astype(np.float32)
            open_ += x_inf @ y_tiny + x_tiny @ y_inf
    return number + signed > 0, number - signed > 0, zero > 0, open_ > 0
