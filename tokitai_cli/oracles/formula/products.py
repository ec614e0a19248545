"""Rule of products of matrices: n roundings a term (see `reductions`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.oracles.formula.arithmetic import multiply
from tokitai_cli.oracles.formula.kept import once
from tokitai_cli.oracles.formula.magnitudes import Magnitudes, magnitudes
from tokitai_cli.oracles.formula.parts import (
    Floats,
    Parts,
    blocks,
    broadcast,
    exactly,
    flags,
)
from tokitai_cli.oracles.formula.precision import OVERFLOW, TOP, current
from tokitai_cli.oracles.formula.reductions import OWN, quantum, sums_exactly, total

# Terms from which one more rounding of each is nothing, and exact sums are looked for among a few.
_LONG = 256
_FEW = 4
# Multiplications from which a product is kept.
_WORTH = 1 << 24


def multiplied(a: Floats, b: Floats) -> Floats:
    """a @ b in float64; not to be changed, as it may be given out again."""
    if a.ndim != 2 or b.ndim != 2 or a.size * b.shape[1] < _WORTH:
        return np.asarray(a @ b)
    return once("product", (a, b), lambda: a @ b)


class Around(NamedTuple):
    """A product of points whose every element is up to `magnitudes.scaled(gamma, rest)` off."""

    v: Floats
    magnitudes: Magnitudes
    gamma: float
    rest: float

    def error(self) -> Floats:
        """How far a kernel's results may lie from `v`."""
        return self.magnitudes.scaled(self.gamma, self.rest)

    def parts(self) -> Parts:
        """The same by ends."""
        error = self.error()
        low = self.v - error
        return Parts(self.v, low, np.add(self.v, error, out=error))


def product(a: Parts, b: Parts) -> Parts | Around:
    """Matrix product over the last axis of a and the last but one of b, leading axes broadcast."""
    plain_a, plain_b = _plain(a), _plain(b)
    value = multiplied(plain_a.v, plain_b.v)
    part: Parts | Around
    if plain_a.point and plain_b.point:
        part = _of_points(plain_a.v, plain_b.v, value)
    else:
        part = _of_intervals(plain_a, plain_b, value)
    if plain_a is a and plain_b is b:
        return part
    part = part.parts() if isinstance(part, Around) else part
    return _line_by_line(a, b, part, a.v.shape[-1])


def _plain(a: Parts) -> Parts:
    """The block with 0 where a value is NaN or infinite, or may be."""
    if _finite(a):
        return a
    good = np.isfinite(a.lo) & np.isfinite(a.hi) & np.isfinite(a.v)
    if a.n is not None:
        good &= a.n == 0
    v = np.where(good, a.v, 0.0)
    return exactly(v) if a.point else Parts(v, np.where(good, a.lo, 0.0), np.where(good, a.hi, 0.0))


def _finite(a: Parts) -> bool:
    if not a.point or a.n is not None:
        return a.finite
    return bool(once("finite", (a.v,), lambda: a.finite))


def _of_points(a: Floats, b: Floats, value: Floats) -> Parts | Around:
    """Product of numbers without errors."""
    count = a.shape[-1]
    if count >= _LONG and not _some_exact(a, b):
        return _of_many(a, b, value)
    rows, columns = _kept_grid(a, -1), _kept_grid(b, -2)
    # 24 bits hold the products of numbers that have as many together.
    rounded = int(rows.digits * columns.digits > 2.0**24)
    if not rounded and _all_exact(rows, columns, count):
        return exactly(value)
    shared, size = _shared(rows.quanta, columns.quanta), np.abs(a) @ np.abs(b)
    error = size * _gamma(count, rounded)
    error[sums_exactly(size, shared)] = 0.0
    # A product may be rounded below the normal numbers, unless it is a multiple of the smallest float32.
    error[shared < current().least] += 2 * count * current().least
    return _around(value, error, size) if error.any() else _around(value, None, size)


def _of_intervals(a: Parts, b: Parts, value: Floats) -> Parts:
    """Product where operands have errors: those too are multiplied."""
    count, sizes = a.v.shape[-1], [np.abs(x.v) for x in (a, b)]
    size = np.matmul(*sizes)
    for one, x in zip(sizes, (a, b), strict=True):  # in place: one may be the largest array of all
        np.add(one, _away(x), out=one)
    # What (A + ra)(B + rb) - A B loses as a difference of two products is nothing beside gamma.
    largest = np.matmul(*sizes)
    error = largest * _gamma(count, 1)
    error += np.maximum(largest - size, 0.0)
    error += 2 * count * current().least
    return _around(value, error, largest)


def _away(a: Parts) -> Floats:
    """How far the ends lie from the value at most."""
    away: Floats = np.asarray(a.hi - a.v)
    return np.maximum(away, a.v - a.lo, out=away)


def _gamma(count: int, rounded: int) -> float:
    """Largest error of `count` products' sum, over their magnitudes' sum; rounded: products are."""
    return current().gamma(max(count - 1, 0), rounded) * (1 + 2.0**-28) + 2 * count * OWN


def _of_many(a: Floats, b: Floats, value: Floats) -> Parts | Around:
    """Long sums of numbers without errors, none of which is known to be exact."""
    count, gamma = a.shape[-1], _gamma(a.shape[-1], 1)
    rest = 2 * count * current().least
    found = magnitudes(a, b)
    if found is None:
        size = np.abs(a) @ np.abs(b)
        return _around(value, size * gamma + rest, size)
    if found.at_most() * (1 + gamma) + rest >= min(current().top, TOP):
        size = found.scaled(1.0, 0.0)
        return _around(value, size * gamma + rest, size)
    return Around(value, found, gamma, rest)


def _around(value: Floats, error: Floats | None, size: Floats) -> Parts:
    """`value` and what is `error` off, infinite where float32 may overflow on the way to it."""
    top = current().top
    if not value.size or float(size.max()) + (0.0 if error is None else float(error.max())) < top:
        return exactly(value) if error is None else Parts(value, value - error, value + error)
    current().applied_rules.add(OVERFLOW)
    error = np.zeros(value.shape) if error is None else error
    over, under = (size + value) / 2 + error >= top, (size - value) / 2 + error >= top
    lo, hi = np.where(under, -np.inf, value - error), np.where(over, np.inf, value + error)
    return Parts(value, lo, hi, flags(over & under, np.zeros(over.shape, bool)))


class _Grid(NamedTuple):
    """Of one factor: the least quantum of each line, the most of them in a number, the largest one."""

    quanta: Floats
    digits: float
    most: float


def _kept_grid(x: Floats, axis: int) -> _Grid:
    return once(f"grid {axis}", (x,), lambda: _grid(x, axis))


def _grid(x: Floats, axis: int) -> _Grid:
    """The grid of x [..., r, c] along its rows (axis -1) or columns (-2), a block at a time."""
    lines = np.full(np.delete(x.shape, axis), np.inf)
    digits = most = 0.0
    for place in blocks(x.shape):
        part = x[place]
        size, least = np.abs(part), quantum(part)
        line = lines[(*place[:axis], *place[axis:][1:])]
        np.minimum(line, least.min(axis=axis, initial=np.inf), out=line)
        most = max(most, float(size.max(initial=0.0)))
        digits = max(digits, float((size / least).max(initial=0.0)))
    return _Grid(lines, digits, most)


def _all_exact(a: _Grid, b: _Grid, count: int) -> bool:
    """Whether the largest sum that could be, of the finest terms, needs no rounding."""
    finest = np.asarray(a.quanta.min(initial=np.inf) * b.quanta.min(initial=np.inf))
    size = np.asarray(a.most * b.most * count)
    return float(size) < current().top and bool(sums_exactly(size, finest))


def _shared(rows: Floats, columns: Floats) -> Floats:
    """Least quanta of the products of each row and column, from those of the factors."""
    return np.asarray(rows[..., :, None] * columns[..., None, :])


def _some_exact(a: Floats, b: Floats) -> bool:
    """Whether a few of the sums are exact: if none is, it is not worth while to ask of all."""
    a, b = a[..., :_FEW, :], b[..., :, :_FEW]
    shared = _shared(_grid(a, -1).quanta, _grid(b, -2).quanta)
    return bool(sums_exactly(np.abs(a) @ np.abs(b), shared).any())


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
