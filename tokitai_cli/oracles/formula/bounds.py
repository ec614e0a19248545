"""What a comparison needs of a tracked output: reference, errors on both sides, what else may come."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.oracles.formula import native_rules
from tokitai_cli.oracles.formula.parts import BLOCK, Floats, Parts, nearest
from tokitai_cli.oracles.formula.precision import TOP
from tokitai_cli.oracles.formula.products import Around
from tokitai_cli.oracles.formula.scattered import Scattered
from tokitai_cli.oracles.formula.tracked import Tracked

# Of the difference of two float64 numbers.
_OWN = 2.0**-50


class Bounds(NamedTuple):
    """Of one output, all in its shape."""

    #: Float64; NaN where every permitted result is NaN, an infinity where every one is that.
    reference: Floats
    #: How far a permitted float32 result may lie below and above it, in front of the last rounding;
    #: infinite where every number is permitted.
    error_below: Floats
    error_above: Floats
    #: Where NaN is permitted beside.
    may_be_nan: NDArray[np.bool_]
    #: The interval, where it was asked for.
    low: Floats
    high: Floats
    #: See Tracked.
    choices: NDArray[np.bool_] | None

    @property
    def error(self) -> Floats:
        """The larger of both errors."""
        if self.error_below is self.error_above:
            return self.error_below
        return np.maximum(self.error_below, self.error_above)


def bounds(a: Tracked, *, ends: bool = True) -> Bounds:
    """Reference and errors of a tracked array; ends: whether those of the interval are asked for."""
    late = None if ends or a.choices is not None else a.late
    if late is not None and (sides := _sides_of_late(late)) is not None:
        v, never = late.v, np.zeros((), bool)
        return Bounds(v, *sides, np.broadcast_to(never, v.shape), v, v, None)
    return _plain(a) if a.choices is None and _is_plain(a.parts) else _any(a)


def largest_error(a: Tracked) -> Floats:
    """The larger of both errors of `bounds`."""
    if isinstance(a.late, Scattered) and a.choices is None:
        error = np.empty(a.late.v.shape)

        def put(rows: slice, part: Parts) -> bool:
            if _is_plain(part):
                error[rows] = 0.0 if part.point else np.maximum(*sides_of(*part[:3]))
            return _is_plain(part)

        if a.late.blocks(put):
            return error
    return bounds(a, ends=False).error


def _is_plain(part: Parts) -> bool:
    """Whether every result is a number and none overflows."""
    below, above = part.lo.min(initial=0), part.hi.max(initial=0)
    return part.n is None and bool(below > -TOP and above < TOP)


def _sides_of_late(late: Around | Scattered) -> tuple[Floats, Floats] | None:
    """Both errors, where every result is a number and none overflows."""
    if isinstance(late, Around):
        error = late.error()
        return error, error
    below, above = np.empty(late.v.shape), np.empty(late.v.shape)
    inexact = []

    def put(rows: slice, part: Parts) -> bool:
        if _is_plain(part):
            inexact.append(not part.point)
            below[rows], above[rows] = (0.0, 0.0) if part.point else sides_of(*part[:3])
        return _is_plain(part)

    if not late.blocks(put):
        return None
    return (below, above) if any(inexact) else (below, below)


def bracketed(bounds: Bounds) -> Bounds:
    """The bounds of a float32 output: both floats around the reference are right where it is inexact.

    A value that is exact by proof, which has no error on either side, stays the only one.
    """
    shape = bounds.reference.shape
    below, above = np.empty(shape), np.empty(shape)
    given = (bounds.reference, bounds.error_below, bounds.error_above)
    value, under, over, low, high = (x.reshape(-1) for x in (*given, below, above))
    inexact = False
    with np.errstate(all="ignore"):
        for start in range(0, value.size, BLOCK):
            at = slice(start, start + BLOCK)
            low[at], high[at], some = _bracketed(value[at], under[at], over[at])
            inexact |= some
    return bounds._replace(error_below=below, error_above=above) if inexact else bounds


def _bracketed(value: Floats, under: Floats, over: Floats) -> tuple[Floats, Floats, bool]:
    """Errors below and above values, and whether any of these is inexact."""
    near = nearest(value)
    inexact = (under > 0) | (over > 0)
    inexact &= (near != value) & np.isfinite(near)
    if not inexact.any():
        return under, over, False
    is_below = near < value
    beyond = _next_single(near.astype(np.float32), is_below).astype(np.float64)
    down, up = np.where(is_below, near, beyond), np.where(is_below, beyond, near)
    low = np.where(inexact, np.fmax(value - down, under), under)
    high = np.where(inexact, np.fmax(up - value, over), over)
    return low, high, True


def _next_single(x: NDArray[np.float32], rising: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The next float32 above x where `rising`, else the next below it; numpy's is ten times as slow."""
    away = np.where(rising == (x > 0), np.int32(1), np.int32(-1))
    found = (x.view(np.int32) + away).view(np.float32)
    least = np.float32(2.0**-149)
    return np.where(x == 0, np.where(rising, least, -least), found)


def _plain(a: Tracked) -> Bounds:
    """Where every result is a number and none overflows."""
    v, lo, hi, _ = a.parts
    never = np.zeros((), bool)
    if a.parts.point:
        zero = np.zeros(v.shape)
        return Bounds(v, zero, zero, np.broadcast_to(never, v.shape), lo, hi, None)
    below, above = sides_of(v, lo, hi)
    return Bounds(v, below, above, np.broadcast_to(never, v.shape), lo, hi, None)


def _any(a: Tracked) -> Bounds:
    v, lo, hi, n = a.parts
    flag = np.zeros(v.shape, np.uint8) if n is None else n
    with np.errstate(all="ignore"):
        nan = (flag == 2) & np.isnan(v)
        infinite = np.isinf(v) & (lo == hi) & (lo == v) & (flag == 0)
        # Where the formula itself has no number, but a kernel may have one, any point of the interval
        # serves.
        lost = ~nan & ~infinite & ~np.isfinite(v)
        low, high = (
            np.maximum(lo, -TOP),
            np.minimum(hi, TOP),
        )  # the rule of overflow takes over from there
        middle = np.where(np.isfinite(lo), lo, np.where(np.isfinite(hi), hi, 0.0))
        reference = np.where(lost, middle, v)
        below, above = sides_of(reference, low, high)
        # Beyond float32 for sure.
        beyond = np.isfinite(reference) & (np.abs(reference) >= TOP)
        inward = np.where(reference > 0, reference - lo, hi - reference)
        certain = np.where(reference > 0, lo, -hi) >= TOP
        far = np.where(certain, 0.0, np.maximum(inward, 0.0))
        below, above = np.where(beyond, far, below), np.where(beyond, far, above)
        unknown = (flag > 0) & ~nan & ~np.isfinite(lo) & ~np.isfinite(hi)
        open_ = unknown | (lost & np.isinf(lo) & np.isinf(hi) & (lo != hi))
        settled = nan | infinite
        below = np.where(open_, np.inf, np.where(settled, 0.0, below))
        above = np.where(open_, np.inf, np.where(settled, 0.0, above))
    return Bounds(
        np.where(nan, np.nan, reference), below, above, (flag > 0) & ~nan, lo, hi, a.choices
    )


def sides_of(reference: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Distances to the ends, 0 where an end is the reference, else with what float64 loses."""
    if (done := native_rules.sides(reference, low, high)) is not None:
        return done
    below, above = np.empty(reference.shape), np.empty(reference.shape)
    near, least, most, under, over = (x.ravel() for x in (reference, low, high, below, above))
    for start in range(0, near.size, BLOCK):
        at = slice(start, start + BLOCK)
        slack = np.abs(near[at])
        slack *= 4 * 2.0**-53
        for far, end, side in ((near, least, under), (most, near, over)):
            distance = np.subtract(far[at], end[at], out=side[at])
            none = ~(distance > 0)
            distance *= 1 + _OWN
            distance += slack
            distance[none] = 0.0
    return below, above
