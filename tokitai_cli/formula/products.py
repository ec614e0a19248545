"""Rule of products of matrices: n roundings a term (see `reductions`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.formula.arithmetic import multiply
from tokitai_cli.formula.parts import Floats, Parts, broadcast, exactly, flags
from tokitai_cli.formula.precision import current
from tokitai_cli.formula.reductions import OWN, quantum, sums_exactly, total

# Terms from which one more rounding of each is nothing, and exact sums are looked for among a few.
_LONG = 256
_FEW = 4


def product(a: Parts, b: Parts) -> Parts:
    """Matrix product over the last axis of a and the last but one of b, leading axes broadcast."""
    count = a.v.shape[-1]
    plain_a, plain_b = _plain(a), _plain(b)
    value = plain_a.v @ plain_b.v
    size_a, size_b = np.abs(plain_a.v), np.abs(plain_b.v)
    size = size_a @ size_b
    largest_size = size
    if not (plain_a.point and plain_b.point):
        away_a = np.maximum(plain_a.hi - plain_a.v, plain_a.v - plain_a.lo)
        away_b = np.maximum(plain_b.hi - plain_b.v, plain_b.v - plain_b.lo)
        # What (A + ra)(B + rb) - A B loses as a difference of two products is nothing beside gamma.
        largest_size = (size_a + away_a) @ (size_b + away_b)
    part = _product_of(plain_a, plain_b, value, size, largest_size)
    if a.finite and b.finite:
        return part
    return _line_by_line(a, b, part, count)


def _plain(a: Parts) -> Parts:
    """The block with 0 where a value is NaN or infinite, or may be."""
    if a.finite:
        return a
    good = np.isfinite(a.lo) & np.isfinite(a.hi) & np.isfinite(a.v)
    if a.n is not None:
        good &= a.n == 0
    v = np.where(good, a.v, 0.0)
    return exactly(v) if a.point else Parts(v, np.where(good, a.lo, 0.0), np.where(good, a.hi, 0.0))


def _product_of(a: Parts, b: Parts, value: Floats, size: Floats, largest_size: Floats) -> Parts:
    count = a.v.shape[-1]
    top, rounded, shared = current().top, 1, np.zeros(())
    if a.point and b.point and (count < _LONG or _some_exact(a.v, b.v)):
        q_a, q_b = quantum(a.v), quantum(b.v)
        # 24 bits hold the products of numbers that have as many together.
        digits = [float(np.max(np.abs(x) / q, initial=0.0)) for x, q in ((a.v, q_a), (b.v, q_b))]
        rounded = int(digits[0] * digits[1] > 2.0**24)
        shared = _shared(q_a, q_b)
    gamma = current().gamma(max(count - 1, 0), rounded)
    spread = np.maximum(largest_size - size, 0.0)
    error = spread + (gamma * (1 + 2.0**-28) + 2 * count * OWN) * largest_size
    if a.point and b.point:
        error = np.where(sums_exactly(size, shared), 0.0, error)
    # A product may be rounded below the normal numbers, unless it is a multiple of the smallest float32.
    error = error + np.where(shared >= current().least, 0.0, 2 * count * current().least)
    over = (largest_size + value) / 2 + error >= top
    under = (largest_size - value) / 2 + error >= top
    if a.point and b.point and not error.any() and not (over | under).any():
        return exactly(value)
    lo, hi = np.where(under, -np.inf, value - error), np.where(over, np.inf, value + error)
    return Parts(value, lo, hi, flags(over & under, np.zeros(over.shape, bool)))


def _shared(a: Floats, b: Floats) -> Floats:
    """Least quanta of the products of each row and column, from those of the factors."""
    rows, columns = a.min(axis=-1, initial=np.inf), b.min(axis=-2, initial=np.inf)
    return np.asarray(rows[..., :, None] * columns[..., None, :])


def _some_exact(a: Floats, b: Floats) -> bool:
    """Whether a few of the sums are exact: if none is, it is not worth while to ask of all."""
    a, b = a[..., :_FEW, :], b[..., :, :_FEW]
    return bool(sums_exactly(np.abs(a) @ np.abs(b), _shared(quantum(a), quantum(b))).any())


def _line_by_line(a: Parts, b: Parts, part: Parts, count: int) -> Parts:
    """Rows and columns with NaN or infinities, summed term by term."""
    shape = part.v.shape
    lead = shape[:-2]
    rows = np.broadcast_to(~_good(a).all(axis=-1), (*lead, shape[-2]))
    columns = np.broadcast_to(~_good(b).all(axis=-2), (*lead, shape[-1]))
    v, lo, hi = part.v.copy(), part.lo.copy(), part.hi.copy()
    n = np.zeros(shape, np.uint8) if part.n is None else part.n.copy()
    whole_a = broadcast(a, (*lead, *a.v.shape[-2:]))
    whole_b = broadcast(b, (*lead, *b.v.shape[-2:]))
    for *batch, i in np.argwhere(rows):
        at = (*batch, i)
        row = _taken(whole_a, at, (count, 1))
        line = total(multiply(row, _taken(whole_b, tuple(batch), (count, shape[-1]))), (0,), count)
        _place(line, (v, lo, hi, n), (*at, slice(None)), 0)
    for *batch, j in np.argwhere(columns):
        at = (*batch, slice(None), j)
        column = _taken(whole_b, at, (1, count))
        line = total(
            multiply(_taken(whole_a, tuple(batch), (shape[-2], count)), column), (1,), count
        )
        _place(line, (v, lo, hi, n), (*batch, slice(None), j), 1)
    return Parts(v, lo, hi, n if n.any() else None)


def _good(a: Parts) -> NDArray[np.bool_]:
    good = np.isfinite(a.lo) & np.isfinite(a.hi)
    return good if a.n is None else good & (a.n == 0)


def _taken(a: Parts, at: tuple[int | slice, ...], shape: tuple[int, ...]) -> Parts:
    fields: list[Any] = [None if x is None else x[at].reshape(shape) for x in a]
    return Parts(*fields)


def _place(
    line: Parts, whole: tuple[NDArray[Any], ...], at: tuple[int | slice, ...], axis: int
) -> None:
    flag = np.zeros(line.v.shape, np.uint8) if line.n is None else line.n
    sources: tuple[NDArray[Any], ...] = (line.v, line.lo, line.hi, flag)
    for target, source in zip(whole, sources, strict=True):
        target[at] = np.squeeze(source, axis=axis)
