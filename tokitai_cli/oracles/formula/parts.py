"""Blocks of tracked numbers, and one rounding of them.
 `Parts` carries a formula's float64 value `v` and the ends `lo`, `hi` of an interval that holds every
permitted float32 result that is a number, and v too where it is one. An infinite end says that infinity
may come out, two equal infinite ends that it must. `n` is 0 where a result is never NaN, 1 where it may
be, 2 where it is (lo and hi then mean nothing); None stands for 0 throughout.
"""

from __future__ import annotations

import functools
import itertools
import math
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import parallel
from tokitai_cli.oracles.formula.precision import NORMAL, OVERFLOW, current

Floats = NDArray[np.float64]
Flags = NDArray[np.uint8]

NEVER, MAYBE, SURELY = 0, 1, 2
# Float64 results are one rounding off themselves.
OWN = 2.0**-52
# What products of several roundings lose of their sum.
MORE = 1 + 2.0**-20
# Elements of a block: its temporaries stay in the second-level cache.
BLOCK = 1 << 15
# Elements from which blocks are shared out to threads, so many at a time: Python's own part of a
# block is done by one thread after the other.
SHARED, _TOGETHER = 1 << 20, 8


class Parts(NamedTuple):
    """A block. Where lo and hi are the very array v, every element is known without error."""

    v: Floats
    lo: Floats
    hi: Floats
    n: Flags | None = None

    @property
    def point(self) -> bool:
        """Whether no element has an error."""
        return self.lo is self.v and self.hi is self.v

    @property
    def finite(self) -> bool:
        """Whether all ends are finite and nothing can be NaN."""
        if self.n is not None or not math.isfinite(self.lo.sum()):
            return False
        return self.point or math.isfinite(self.hi.sum())


Rule = Callable[..., Parts]
_Index = TypeVar("_Index")
_Result = TypeVar("_Result")


def exactly(v: Floats, n: Flags | None = None) -> Parts:
    """Values without error."""
    return Parts(v, v, v, n)


def nearest(x: Floats) -> Floats:
    """Nearest float32, as float64."""
    return x.astype(np.float32).astype(np.float64)


def largest_flag(*flags: Flags | None) -> Flags | None:
    """The worst of several NaN flags, element by element."""
    some = [flag for flag in flags if flag is not None]
    return functools.reduce(np.maximum, some) if some else None


def flags(maybe: NDArray[np.bool_], surely: NDArray[np.bool_]) -> Flags | None:
    """NaN flags: `surely` goes before `maybe`."""
    if not maybe.any() and not surely.any():
        return None
    return np.where(surely, np.uint8(SURELY), maybe.astype(np.uint8))


def rounded(part: Parts, extra: float = 0.0, exact: NDArray[np.bool_] | None = None) -> Parts:
    """One rounding to float32 or none, and `extra` further ones of relative size u.

    Both ends move outward by u of themselves, which is a rounding in either direction: a kernel may
    come to the result by another form of the formula, whose roundings go the other way. They were
    computed in float64, whose own error is added. No rounding changes a sign. `exact`: elements whose
    result needed no rounding.
    """
    v, lo, hi, n = part
    relative = OWN + extra * current().unit
    low, high = lo - relative * np.abs(lo), hi + relative * np.abs(hi)
    down, up = _lowered(low), -_lowered(-high)
    if not part.finite:  # infinity minus infinity above
        down, up = np.fmin(down, lo), np.fmax(up, hi)
    if current().flush_to_zero:
        down = np.where((down > 0) & (down < NORMAL), 0.0, down)
        up = np.where((up < 0) & (up > -NORMAL), 0.0, up)
    if exact is not None:
        down, up = np.where(exact, lo, down), np.where(exact, hi, up)
    return Parts(v, down, up, n)


def _lowered(low: Floats) -> Floats:
    """Lower ends moved down by one rounding: u of themselves, half a step where they are subnormal."""
    unit, step = current().unit, current().step
    away: Floats = np.empty(
        np.shape(low)
    )  # of one number, too: operators would give no array of it
    np.abs(low, out=away)
    away *= unit * MORE
    np.maximum(away, step / 2, out=away)
    down: Floats = np.subtract(low, away, out=away)
    across = (low >= 0) & (down < 0)
    if across.any():
        down[across] = 0.0
    ceiling = current().ceiling
    if not float(low.min(initial=0.0)) > -ceiling:  # NaN among them says nothing of the others
        beyond = low <= -ceiling
        if bool(beyond.any()):
            if bool(np.isfinite(low[beyond]).any()):  # an infinity is one without a limit too
                current().applied_rules.add(OVERFLOW)
            down = np.where(beyond, -np.inf, down)
    return down


def operated(part: Parts, exact: NDArray[np.bool_] | None, extra: float = 0.0) -> Parts:
    """Round the result of an operation; a block whose every element is exact stays without error."""
    if exact is not None and bool(exact.all()):
        return part
    return rounded(part, extra, exact)


def blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Indices that cut an array of `shape` into parts of about BLOCK elements."""
    inner, axis = 1, len(shape)
    while axis > 0 and inner * shape[axis - 1] <= BLOCK:
        axis -= 1
        inner *= shape[axis]
    if axis == 0:
        yield (slice(None),) * len(shape)
        return
    step = max(BLOCK // max(inner, 1), 1)
    tail = (slice(None),) * (len(shape) - axis)
    for lead in np.ndindex(*shape[: axis - 1]):
        head = tuple(slice(i, i + 1) for i in lead)
        for start in range(0, shape[axis - 1], step):
            yield (*head, slice(start, start + step), *tail)


def cut(array: NDArray[Any], index: tuple[slice, ...]) -> NDArray[Any]:
    """The part of a broadcast operand that meets `index` of the whole."""
    own = index[len(index) - array.ndim :]
    return array[
        tuple(
            where if extent > 1 else slice(None)
            for where, extent in zip(own, array.shape, strict=True)
        )
    ]


def cut_parts(part: Parts, index: tuple[slice, ...]) -> Parts:
    """`cut` of all arrays of a block."""
    v = cut(part.v, index)
    n = None if part.n is None else cut(part.n, index)
    if part.point:
        return exactly(v, n)
    return Parts(v, cut(part.lo, index), cut(part.hi, index), n)


def broadcast(a: Parts, shape: tuple[int, ...]) -> Parts:
    """The block in a larger shape."""
    v, n = np.broadcast_to(a.v, shape), None if a.n is None else np.broadcast_to(a.n, shape)
    if a.point:
        return exactly(v, n)
    return Parts(v, np.broadcast_to(a.lo, shape), np.broadcast_to(a.hi, shape), n)


def elementwise(rule: Rule, *operands: Parts) -> Parts:
    """Apply a rule block by block. Shapes broadcast as numpy's do; flags stand for numpy's warnings."""
    with np.errstate(all="ignore"):
        return _elementwise(rule, *operands)


def _elementwise(rule: Rule, *operands: Parts) -> Parts:
    shape = np.broadcast_shapes(*(part.v.shape for part in operands))
    if math.prod(shape) <= BLOCK:
        return rule(*operands)
    gathered = Gathered(shape)

    def put(index: tuple[slice, ...]) -> None:
        gathered.put(index, rule(*(cut_parts(part, index) for part in operands)))

    for _ in shared_out(put, blocks(shape), math.prod(shape)):
        pass
    return gathered.parts()


def shared_out(
    work: Callable[[_Index], _Result], every: Iterable[_Index], size: int
) -> Iterator[_Result]:
    """What `work` returns for each block, in order; those of `size` elements together by threads."""
    if size < SHARED or parallel.threads() == 1:
        yield from map(work, every)
        return
    waiting = iter(every)
    groups = iter(lambda: list(itertools.islice(waiting, _TOGETHER)), [])
    for results in parallel.in_order(lambda group: [work(one) for one in group], groups):
        yield from results


class Gathered:
    """Collects blocks, from several threads too; arrays of ends and flags are made when needed."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._v: Floats = np.empty(shape)
        self._ends: tuple[Floats, Floats] | None = None
        self._n: Flags | None = None
        #: Blocks without error that came before there were ends.
        self._points: list[tuple[slice, ...]] = []
        self._one_at_a_time = threading.Lock()

    def put(self, index: tuple[slice, ...], part: Parts) -> None:
        """Keep the block at `index`."""
        self._v[index] = part.v
        with self._one_at_a_time:
            if self._ends is None and not part.point:
                self._ends = np.empty(self._v.shape), np.empty(self._v.shape)
                for earlier in self._points:
                    for end in self._ends:
                        end[earlier] = self._v[earlier]
            if self._ends is None:
                self._points.append(index)
            if self._n is None and part.n is not None:
                self._n = np.zeros(self._v.shape, np.uint8)
            ends = self._ends
        if ends is not None:
            ends[0][index], ends[1][index] = part.lo, part.hi
        if part.n is not None and self._n is not None:
            self._n[index] = part.n

    def parts(self) -> Parts:
        """All blocks as one."""
        if self._ends is None:
            return exactly(self._v, self._n)
        return Parts(self._v, *self._ends, self._n)
