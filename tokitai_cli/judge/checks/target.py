"""What an output is compared with: a reference (or a replay) seen in chunks.

A chunk is a run of positions in the target's own flat order. Everything that a check, a metric or a
mutant needs of the reference is computed once a chunk, when it is first asked for, so the extra
memory is that of one chunk.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.deferred import Pass, pass_of
from tokitai_cli.core.dtypes import FORMATS, FloatFormat, numpy_dtype
from tokitai_cli.core.numerics import (
    MUST_BE_FINITE,
    UNBOUNDED_ULPS,
    integer_distance,
    overflow_class,
    round_to,
    rounded_bound,
    ulp_at,
)
from tokitai_cli.core.rounding import widened
from tokitai_cli.core.workers import Workers

# Elements at a time: a float64 temporary of 256 KiB stays in the second-level cache.
CHUNK = 1 << 15

Index = slice | NDArray[np.int64]


class Target(msgspec.Struct, frozen=True, dict=True):
    """Reference of one output, flat."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    #: Float64 for float outputs (a replay: their own dtype), the output's own dtype for the others,
    #: with bool as uint8.
    reference: NDArray[Any]
    #: Errors in front of the last rounding, or None. `exact` marks a replay: its values are exact, so
    #: nothing near the overflow threshold is left open.
    error: NDArray[np.float64] | None = None
    probable: NDArray[np.float64] | None = None
    flush_to_zero: bool = False
    exact: bool = False
    #: Rows of the output that the target stands for (sampled replay), or None for all.
    rows: NDArray[np.int64] | None = None
    #: `error` for values below and above the reference, where the two differ.
    sides: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    #: See Expectation.
    refine: Callable[[Mapping[str, NDArray[Any]]], NDArray[np.float64]] | None = None
    low: NDArray[np.float64] | None = None
    may_be_nan: NDArray[np.bool_] | None = None
    unbounded: NDArray[np.bool_] | None = None
    allowed: NDArray[Any] | None = None
    #: Puts a flat array of the output's dtype into the reference's order; None where that is its own.
    arranged: Callable[[NDArray[Any]], NDArray[Any]] | None = None
    #: See BufferPlan.
    constant: float | None = None

    @property
    def by_windows(self) -> Pass | None:
        """Who computes a large target while it is judged; None for one that is there."""
        return pass_of(self.reference)

    @property
    def form(self) -> FloatFormat | None:
        """Format of a float output; None for integers and bools."""
        return FORMATS.get(self.dtype)

    @property
    def native(self) -> np.dtype[Any]:
        """dtype that values are compared in: numpy's, with bool as uint8 (a byte of 2 is wrong)."""
        return np.dtype(np.uint8) if self.dtype == "bool" else numpy_dtype(self.dtype)

    @property
    def free(self) -> bool:
        """Whether other floats than the reference, or other orders of it, are as right."""
        return self.arranged is not None or (self.allowed is not None and self.form is not None)

    @property
    def size(self) -> int:
        """Number of elements that the target stands for."""
        return int(self.reference.size)

    @property
    def width(self) -> int:
        """Elements of one row (first axis) of the output."""
        return int(np.prod(self.shape[1:], dtype=np.int64))

    def index(self, where: slice) -> Index:
        """Flat positions in the output of the target's positions `where`."""
        if self.rows is None:
            return where
        position = np.arange(where.start, where.stop)
        return np.asarray(self.rows[position // self.width] * self.width + position % self.width)

    def chunks(self, first: int = CHUNK) -> Iterator[Chunk]:
        """All chunks in order; the first has `first` elements, and they grow up to CHUNK."""
        return self._chunks(0, first)

    def _chunks(self, start: int, length: int) -> Iterator[Chunk]:
        while start < self.size:
            stop = min(start + length, self.size)
            yield Chunk(self, slice(start, stop))
            start, length = stop, min(length * 8, CHUNK)

    def windows(self, workers: Workers) -> Iterator[Iterator[Chunk]]:
        """All chunks in order, by what of a large target can be read at a time."""
        windows = self.by_windows
        if windows is None:
            yield self.chunks()
            return
        start = 0
        for stop in windows.windows(workers):
            end = stop if stop == self.size else stop // CHUNK * CHUNK
            yield itertools.islice(self._chunks(start, CHUNK), -(-(end - start) // CHUNK))
            start = end
            windows.release(start)

    def round(self, values: NDArray[Any]) -> NDArray[Any]:
        """Float values as the output would hold them; integers as they are."""
        return round_to(values, self.dtype) if self.form else values.astype(self.native, copy=False)


class Chunk:
    """Lazily computed facts of the reference at the positions `where` of the target."""

    def __init__(self, target: Target, where: Index) -> None:
        self.target = target
        self.where = where

    @cached_property
    def index(self) -> Index:
        """Flat positions in the output."""
        return self.target.index(self.where) if isinstance(self.where, slice) else self.where

    @cached_property
    def reference(self) -> NDArray[Any]:
        """The reference, unrounded: float64, or the output's integer dtype."""
        part = self.target.reference[self.where]
        return part if self.target.form is None else part.astype(np.float64, copy=False)

    @cached_property
    def error(self) -> NDArray[np.float64] | None:
        """Error in front of the last rounding, where the oracle has one."""
        return None if self.target.error is None else self.target.error[self.where]

    @cached_property
    def low(self) -> NDArray[np.float64] | None:
        """What the reference lacks, where the oracle goes beyond float64."""
        return None if self.target.low is None else self.target.low[self.where]

    @cached_property
    def may_be_nan(self) -> NDArray[np.bool_] | None:
        """Where NaN is right as well as a number."""
        return None if self.target.may_be_nan is None else self.target.may_be_nan[self.where]

    @property
    def bounded(self) -> NDArray[np.bool_] | None:
        """Where the oracle tells the value: the bound is one, and no NaN passes; None for everywhere."""
        masks = (self.target.may_be_nan, self.target.unbounded)
        given = [mask[self.where] for mask in masks if mask is not None]
        return ~np.logical_or.reduce(given) if given else None

    @cached_property
    def choices(self) -> list[NDArray[Any]]:
        """Values that are right: the reference, and what else is allowed."""
        allowed = self.target.allowed
        more = () if allowed is None else (row[self.where] for row in allowed)
        return [self.reference, *more]

    def nearest_to(self, got: NDArray[Any]) -> Chunk:
        """The chunk with the right value at each place that the one of `got` is nearest to."""
        if self.target.allowed is None:
            return self
        apart = np.stack([self._distance(got, one) for one in self.choices])
        chosen = np.argmin(np.where(np.isnan(apart), np.inf, apart), axis=0)
        other = Chunk(self.target, self.where)
        other.reference = np.take_along_axis(np.stack(self.choices), chosen[None], axis=0)[0]
        return other

    def _distance(self, got: NDArray[Any], want: NDArray[Any]) -> NDArray[np.float64]:
        if self.target.form is None:
            return integer_distance(got, want)
        wide = got.astype(np.float64)
        with np.errstate(all="ignore"):
            same = (wide == want) | (np.isnan(wide) & np.isnan(want))
            return np.where(same, 0.0, np.abs(wide - want))

    @cached_property
    def want_native(self) -> NDArray[Any]:
        """The reference rounded to the output's dtype."""
        return self.target.round(self.reference)

    @cached_property
    def want(self) -> NDArray[np.float64]:
        """The rounded reference as float64; unrounded where rounding gives infinity."""
        if self.target.form is None:
            return np.asarray(self.reference, dtype=np.float64)
        want = widened(self.want_native)
        overflowed = np.isinf(want)
        if overflowed.any():
            want[overflowed] = self.reference[overflowed]
        return want

    @cached_property
    def magnitude(self) -> NDArray[np.float64]:
        """|reference| as float64."""
        return np.abs(np.asarray(self.reference, dtype=np.float64))

    @cached_property
    def ulp(self) -> NDArray[np.float64]:
        """Spacing of the output's dtype at the rounded reference; 1 for integers."""
        if self.target.form is None:
            return np.ones(self.reference.shape)
        return ulp_at(self.want, self.target.form)

    @cached_property
    def bound(self) -> NDArray[np.float64] | None:
        """E = F(e, r), the worst-case bound; zero for integers; None where the oracle has none."""
        return self._bound(self.error)

    def bound_at(self, signed: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return E on the side on which each value got - reference lies."""
        if self.target.sides is None:
            return self.bound
        below, above = (self._bound(side[self.where]) for side in self.target.sides)
        return None if below is None or above is None else np.where(signed < 0, below, above)

    def error_at(self, signed: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The oracle's error on the side on which each value got - reference lies."""
        if self.target.sides is None:
            return self.error
        below, above = (side[self.where] for side in self.target.sides)
        return np.where(signed < 0, below, above)

    def exact_at(self, signed: NDArray[np.float64]) -> NDArray[np.bool_] | None:
        """Where the error e is 0 on the side of each value got - reference; None for nowhere.

        Flushing to zero leaves values below the normal range open.
        """
        form = self.target.form
        if form is None or self.error is None or self.error.all():
            return None
        exact = np.asarray(self.error_at(signed) == 0)
        if self.target.flush_to_zero:
            exact &= self.magnitude >= form.smallest_normal
        return exact

    def bound_of(self, error: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return F(error, r) for another error at the positions of the chunk."""
        return self._bound(error)

    @cached_property
    def bound_probable(self) -> NDArray[np.float64] | None:
        """The probabilistic bound through the same F; None where the oracle has none."""
        target = self.target
        if target.probable is not None:
            return self._bound(target.probable[self.where])
        return None

    @cached_property
    def bound_or_ulps(self) -> NDArray[np.float64]:
        """E, or 16 ulp where the oracle has no bound (bounds.md, Vacuity)."""
        return UNBOUNDED_ULPS * self.ulp if self.bound is None else self.bound

    def _bound(self, error: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        form = self.target.form
        if form is None:
            return np.zeros(self.reference.shape) if error is None else error
        if error is None:
            return None
        flush = self.target.flush_to_zero
        bound = rounded_bound(error, self.reference, form, flush_to_zero=flush)
        # The right result is the reference itself, and |low| away from what it stands for.
        return bound if self.low is None else np.maximum(bound, np.abs(self.low))

    @cached_property
    def classes(self) -> NDArray[np.uint8] | None:
        """`overflow_class` codes, or None where every element must be finite."""
        form = self.target.form
        if form is None:
            return None
        error = np.zeros(self.reference.shape) if self.target.exact else self.error
        top = float(self.magnitude.max())
        # 16 ulp are at most 32 u |r| for normal numbers, and nothing near overflow below them.
        margin = 2 * UNBOUNDED_ULPS * form.unit_roundoff * top if error is None else error.max()
        # One comparison of the extremes spares the codes in nearly every chunk; NaN fails it.
        if top + float(margin) < form.overflow:
            return None
        codes = overflow_class(self.reference, error, form)
        return codes if (codes != MUST_BE_FINITE).any() else None
