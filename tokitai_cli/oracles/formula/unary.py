"""Rules of functions of one variable, and of powers, on blocks.

A monotone function takes the ends of an interval to ends, so that no derivative is needed. Its result
is off by the ulp of `precision.ULPS` from the correctly rounded one, which is half an ulp off itself;
an ulp is at most 2 u of a normal result, and STEP below those.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from tokitai_cli.oracles.formula import native_rules
from tokitai_cli.oracles.formula.arithmetic import divide, multiply, square
from tokitai_cli.oracles.formula.parts import (
    OWN,
    Floats,
    Parts,
    Rule,
    broadcast,
    exactly,
    flags,
    largest_flag,
    operated,
    rounded,
)
from tokitai_cli.oracles.formula.precision import NORMAL, OVERFLOW, STEP, U, current

Function = Callable[[Floats], Floats]

# numpy's own float64 functions are within a few ulp of their format.
_NUMPYS = 8 * OWN
# How far tanh and erf are from 1 at most in their tails, where float64 has 1: 1 - tanh is not 0 there.
_TAIL = 2.0**-52


class Monotone(msgspec.Struct, frozen=True):
    """An increasing function."""

    #: Its entry in `precision.ULPS`.
    name: str
    function: Function
    #: Values that it cannot leave.
    least: float = -math.inf
    most: float = math.inf
    #: Arguments whose result is exact.
    exact: tuple[float, ...] = ()
    #: From +-flat on the result is within _TAIL of least and most.
    flat: float = math.inf
    #: A result below the normal numbers may be 0 (the hardware's own exponential does that).
    flushes: bool = False
    #: Least argument; below it is NaN.
    domain: float = -math.inf

    def __call__(self, a: Parts) -> Parts:
        """The rule."""
        n = a.n
        if self.domain > -math.inf:
            below, all_below = a.lo < self.domain, a.hi < self.domain
            n = largest_flag(n, flags(below, all_below))
            inside = np.maximum(a.lo, self.domain), np.maximum(a.hi, self.domain)
        else:
            inside = a.lo, a.hi
        v = self.function(a.v)
        low = v if a.point and inside[0] is a.v else self.function(inside[0])
        high = low if a.point else self.function(inside[1])
        if n is None and (done := self._natively(inside, (low, high))) is not None:
            return Parts(v, *done)
        down, up = self._off(low, high)
        # Arguments beside an exact one have results within an error of its own, which is no error of 0
        # or infinity: exp of what is just above 0 may come out below 1.
        sole = inside[0] == inside[1]
        for x in self.exact:
            down = np.where((inside[0] == x) & (sole | (low == 0) | np.isinf(low)), low, down)
            up = np.where((inside[1] == x) & (sole | (high == 0) | np.isinf(high)), high, up)
        if self.flat < math.inf:
            down = np.where(a.lo >= self.flat, low - _TAIL, down)
            up = np.where(a.hi <= -self.flat, high + _TAIL, up)
        return Parts(v, np.fmin(down, low), np.fmax(up, high), n)

    def _natively(
        self, ends: tuple[Floats, Floats], values: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats] | None:
        return native_rules.function(
            ends,
            values,
            error=self._error(),
            within=(self.least, self.most),
            exact=self.exact,
            flat=(self.flat, _TAIL),
            flushes=self.flushes,
        )

    def _error(self) -> tuple[float, float]:
        """Relative and absolute."""
        ulps = current().ulp(self.name)
        return (2 * ulps + 1) * current().unit + _NUMPYS, (ulps + 0.5) * current().step

    def _off(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        relative, least = self._error()
        down = low - (relative * np.abs(low) + least)
        up = high + (relative * np.abs(high) + least)
        ceiling = current().ceiling
        if bool(
            ((up >= ceiling) & np.isfinite(up)).any()
        ):  # an infinity is one without a limit too
            current().applied_rules.add(OVERFLOW)
        down = np.where(np.isfinite(low), np.minimum(down, ceiling), low)
        up = np.where(np.isfinite(high) & (up < ceiling), up, np.where(up >= ceiling, np.inf, high))
        if self.flushes or current().flush_to_zero:
            down = np.where((down < NORMAL) & (down > 0), 0.0, down)
        return np.maximum(down, self.least), np.minimum(up, self.most)


def sqrt(a: Parts) -> Parts:
    """The square root, off by `ULPS`; of 0 and infinity it is exact."""
    v = np.sqrt(a.v)
    n = largest_flag(a.n, flags(a.lo < 0, a.hi < 0))
    extra = 2 * current().ulp("sqrt")
    if a.point:
        return operated(exactly(v, n), (v == 0) | (v == np.inf), extra)
    part = Parts(v, np.sqrt(np.maximum(a.lo, 0)), np.sqrt(np.maximum(a.hi, 0)), n)
    return rounded(part, extra)


def rsqrt(a: Parts) -> Parts:
    """1 / sqrt(a) by one function; 1.0 / np.sqrt(a) has one more rounding."""
    low, high = np.maximum(a.lo, 0), np.maximum(a.hi, 0)
    n = largest_flag(a.n, flags(a.lo < 0, a.hi < 0))
    part = Parts(1 / np.sqrt(a.v), 1 / np.sqrt(high), 1 / np.sqrt(low), n)
    return rounded(part, max(2 * current().ulp("rsqrt"), 2 * current().ulp("sqrt") + 2))


def stepwise(function: Function) -> Rule:
    """Return the rule of an increasing function with exact results: floor, ceil, rint, trunc, sign."""

    def rule(a: Parts) -> Parts:
        if a.point:
            return exactly(function(a.v), a.n)
        return Parts(function(a.v), function(a.lo), function(a.hi), a.n)

    return rule


def wave(name: str, function: Function) -> Rule:
    """Return the rule of sine or cosine, whose slope is at most 1."""

    def rule(a: Parts) -> Parts:
        v = function(a.v)
        wide = ~np.isfinite(a.lo) | ~np.isfinite(a.hi)
        centre = a.lo / 2 + a.hi / 2
        away = np.where(
            wide, 2.0, np.minimum((a.hi / 2 - a.lo / 2) * (1 + OWN) + OWN * np.abs(centre), 2.0)
        )
        away = away + (2 * current().ulp(name) + 1) * U + _NUMPYS
        surely = np.isinf(a.lo) & (a.lo == a.hi)
        middle = np.where(wide, 0.0, function(np.where(wide, 0.0, centre)))
        low, high = np.maximum(middle - away, -1.0 - U), np.minimum(middle + away, 1.0 + U)
        exact = (a.lo == 0) & (a.hi == 0)
        low, high = np.where(exact, middle, low), np.where(exact, middle, high)
        return Parts(v, low, high, largest_flag(a.n, flags(wide, surely)))

    return rule


def arctan(a: Parts) -> Parts:
    """The arc tangent, from -pi/2 to pi/2."""
    edge = math.pi / 2 * (1 + 2 * U)
    return Monotone("arctan", np.arctan, least=-edge, most=edge, exact=(0.0,))(a)


def cosh(a: Parts) -> Parts:
    """The hyperbolic cosine: of |a|, and at least 1."""
    low, high = np.abs(a.lo), np.abs(a.hi)
    near = np.where((a.lo <= 0) & (a.hi >= 0), 0.0, np.minimum(low, high))
    inside = Parts(np.abs(a.v), near, np.maximum(low, high), a.n)
    return Monotone("cosh", np.cosh, least=1.0, exact=(0.0, np.inf))(inside)


_WHOLE: dict[float, Rule] = {2.0: square, 1.0: lambda a: a, 0.5: sqrt, -0.5: rsqrt}


def power(a: Parts, b: Parts) -> Parts:
    """a ** b; small whole exponents and roots by products and `sqrt`, as compilers and authors do."""
    first = b.v.flat[0] if b.v.size else 1.0
    if b.point and bool(np.all(b.v == first)):
        if first in _WHOLE:
            shape = np.broadcast_shapes(a.v.shape, b.v.shape)
            return _WHOLE[float(first)](broadcast(a, shape))
        if first == 3.0:
            return _widest(multiply(square(a), a), _by_function(a, b))
        if first == 4.0:
            return _widest(square(square(a)), _by_function(a, b))
        if first == -1.0:
            return divide(exactly(np.ones(())), a)
    return _by_function(a, b)


def _widest(a: Parts, b: Parts) -> Parts:
    """What either of two ways to compute a value may give."""
    return Parts(a.v, np.minimum(a.lo, b.lo), np.maximum(a.hi, b.hi), largest_flag(a.n, b.n))


def _by_function(a: Parts, b: Parts) -> Parts:
    """powf: monotone in each variable where the base is positive; of any sign for whole exponents."""
    v = a.v**b.v
    whole = b.point and bool(np.all(b.v == np.rint(b.v)))
    corners = [x**y for x in (a.lo, a.hi) for y in ((b.v,) if b.point else (b.lo, b.hi))]
    low, high = corners[0], corners[0]
    for corner in corners[1:]:
        low, high = np.fmin(low, corner), np.fmax(high, corner)
    across = (a.lo <= 0) & (a.hi >= 0)
    n = largest_flag(a.n, b.n)
    if whole:
        low = np.where(across & (np.broadcast_to(b.v, v.shape) > 0), np.minimum(low, 0.0), low)
        negative = across & (np.broadcast_to(b.v, v.shape) < 0)
        low, high = np.where(negative, -np.inf, low), np.where(negative, np.inf, high)
    else:
        n = largest_flag(
            n, flags(np.broadcast_to(a.lo < 0, v.shape), np.broadcast_to(a.hi < 0, v.shape))
        )
        open_ = np.broadcast_to(a.lo <= 0, v.shape)
        low, high = np.where(open_, -np.inf, low), np.where(open_, np.inf, high)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    ulps = current().ulp("power")
    base_zero = (a.lo == 0) & (a.hi == 0)
    part = rounded(Parts(v, low, high, n), 2 * ulps)
    below = np.where(base_zero, part.lo, part.lo - ulps * STEP)
    return Parts(v, below, np.where(base_zero, part.hi, part.hi + ulps * STEP), n)


_erf = np.frompyfunc(math.erf, 1, 1)


def erf_of(x: Any) -> Floats:
    """Error function in float64."""
    return np.asarray(_erf(x), dtype=np.float64)


exp = Monotone("exp", np.exp, least=0.0, exact=(-np.inf, 0.0, np.inf), flushes=True)
exp2 = Monotone("exp2", np.exp2, least=0.0, exact=(-np.inf, 0.0, np.inf), flushes=True)
expm1 = Monotone("expm1", np.expm1, least=-1.0, exact=(-np.inf, 0.0, np.inf))
tanh = Monotone("tanh", np.tanh, least=-1.0, most=1.0, exact=(-np.inf, 0.0, np.inf), flat=20.0)
sinh = Monotone("sinh", np.sinh, exact=(-np.inf, 0.0, np.inf))
cbrt = Monotone("cbrt", np.cbrt, exact=(-np.inf, 0.0, np.inf))
erf = Monotone("erf", erf_of, least=-1.0, most=1.0, exact=(-np.inf, 0.0, np.inf), flat=6.0)
log = Monotone("log", np.log, exact=(1.0, 0.0, np.inf), domain=0.0)
log2 = Monotone("log2", np.log2, exact=(1.0, 0.0, np.inf), domain=0.0)
log10 = Monotone("log10", np.log10, exact=(1.0, 0.0, np.inf), domain=0.0)
log1p = Monotone("log1p", np.log1p, exact=(0.0, -1.0, np.inf), domain=-1.0)
