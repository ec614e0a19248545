"""Rule of sums by index (`numpy.add.at`), which are sums as those of `reductions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.oracles.formula.kept import once
from tokitai_cli.oracles.formula.parts import (
    BLOCK,
    Floats,
    Gathered,
    Parts,
    broadcast,
    cut_parts,
    exactly,
    shared_out,
)
from tokitai_cli.oracles.formula.precision import SUMS_BOUNDED, Precision, allowing, current
from tokitai_cli.oracles.formula.reductions import Sums, settled, terms_of

# Terms from which sums are made by blocks of rows, and kept for the next call of the formula.
_WORTH = 1 << 16
# Elements of a round of additions, on average, from which it is done as one.
_LEAST_ROUND = 1 << 10


class _Rows(NamedTuple):
    """Rows of the result, what is added up there, and of how many terms."""

    where: slice
    sums: Sums
    counts: NDArray[np.int64]


class Scattered(NamedTuple):
    """Sums by index whose ends are made where they are asked for, a block of rows at a time."""

    v: Floats
    rows: list[_Rows]
    precision: Precision

    def blocks(self, take: Callable[[slice, Parts], bool]) -> bool:
        """Whether `take` accepts each block of rows; those behind one that it refuses are not made."""

        def taken(one: _Rows) -> bool:
            with allowing(self.precision), np.errstate(all="ignore"):
                return take(one.where, _settled_by_counts(one.sums, one.counts))

        return all(shared_out(taken, self.rows, self.v.size))

    def parts(self) -> Parts:
        """All of it."""
        gathered = Gathered(self.v.shape)

        def put(rows: slice, part: Parts) -> bool:
            gathered.put((rows,), part)
            return True

        self.blocks(put)
        return gathered.parts()


def added_at(acc: Parts, index: Any, values: Parts) -> Parts | Scattered:
    """`numpy.add.at`: `values` added to the elements of `acc` that `index` names, in any order."""
    named = np.broadcast_to(np.int8(0), acc.v.shape)[index]
    spread = broadcast(values, np.broadcast_shapes(values.v.shape, named.shape))
    by_rows = _is_list(index) and acc.v.ndim > 1 and len(index) == len(spread.v)
    if by_rows and spread.v.size >= _WORTH:
        return _added_by_rows(acc, index, spread)
    return _settled_by_counts(*_scattered(acc, index, spread))


def _added_by_rows(acc: Parts, index: NDArray[np.integer[Any]], spread: Parts) -> Scattered:
    """The same by blocks of rows of `acc`, each with what is added to it, in the same order."""
    rows = len(acc.v)
    where = np.where(index < 0, index + rows, index)
    order = np.argsort(where, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(where, minlength=rows))])
    step = max(BLOCK * rows // acc.v.size, 1)

    def every() -> tuple[Floats, list[_Rows]]:
        v: Floats = np.empty(acc.v.shape)

        def scattered(start: int) -> _Rows:
            here = slice(start, min(start + step, rows))
            mine = order[ends[here.start] : ends[here.stop]]
            before = cut_parts(acc, (here, *(slice(None),) * (acc.v.ndim - 1)))
            found = _scattered(before, where[mine] - start, _rows_of(spread, mine))
            v[here] = found[0].v
            return _Rows(here, *found)

        return v, list(shared_out(scattered, range(0, rows, step), acc.v.size))

    plain = all(x.point and x.finite for x in (acc, spread))
    found = once("added at", (acc.v, spread.v, index), every) if plain else every()
    current().applied_rules.add(SUMS_BOUNDED)  # as they will be
    return Scattered(*found, current())


def _is_list(index: Any) -> bool:
    """Whether an index names rows."""
    return isinstance(index, np.ndarray) and index.ndim == 1 and index.dtype.kind in "iu"


def _rows_of(a: Parts, rows: NDArray[np.int64]) -> Parts:
    n = None if a.n is None else a.n[rows]
    return exactly(a.v[rows], n) if a.point else Parts(a.v[rows], a.lo[rows], a.hi[rows], n)


def _settled_by_counts(sums: Sums, counts: NDArray[np.int64]) -> Parts:
    """`settled` of sums of so many terms each."""
    gammas = np.array([current().gamma(k) for k in range(int(counts.max(initial=1)))])
    return settled(sums, gammas[np.maximum(counts - 1, 0)], counts)


def _scattered(acc: Parts, index: Any, spread: Parts) -> tuple[Sums, NDArray[np.int64]]:
    """Sums of each element of `acc` with the terms that `index` adds to it, and how many they are."""
    shape = acc.v.shape
    before = acc.v != 0
    flat = (len(acc.v), *(1,) * (acc.v.ndim - 1)) if _is_list(index) and not before.any() else shape
    counts = np.zeros(flat, np.int64)  # of whole rows, where all of a row has as many
    np.add.at(counts, index, 1)
    if flat == shape:
        counts += before
    by_rounds = _is_list(index) and len(index) == len(spread.v) and not (index < 0).any()
    rounds = _rounds(index, spread.v) if by_rounds else None

    def scattered(by: np.ufunc, terms: NDArray[Any]) -> NDArray[Any]:
        whole = np.full(shape, np.inf if by is np.minimum else 0, terms.dtype)
        if whole.dtype != np.float64 and not terms.any():
            return whole
        if rounds is None:
            getattr(by, "at")(whole, index, terms)  # noqa: B009 - typed as if every ufunc had it
            return whole
        for rows, places in rounds:
            whole[rows] = by(whole[rows], terms[places])
        return whole

    sums = terms_of(spread).folded(scattered)
    if acc.point and acc.finite and not acc.v.any():
        return sums, counts  # there was nothing before
    return terms_of(acc).with_more(sums), counts


def _rounds(index: NDArray[Any], terms: Floats) -> list[tuple[Any, Any]] | None:
    """Rows and places of the first term of each row, of the second, and so on, for `at` in their order.

    numpy's own takes several times as long. None where rounds would be too short for that.
    """
    order = np.argsort(index, kind="stable")
    rows = index[order]
    counts = np.bincount(rows) if rows.size else np.zeros(0, np.int64)
    most = int(counts.max(initial=0))
    if most * _LEAST_ROUND > terms.size:
        return None
    nth = np.arange(rows.size) - (np.cumsum(counts) - counts)[rows]
    return [(rows[nth == one], order[nth == one]) for one in range(most)]
