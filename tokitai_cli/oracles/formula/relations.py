"""Operations on whole tracked arrays, with what is known of them beyond intervals (see `Known`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.numerics import round_to
from tokitai_cli.oracles.formula import arithmetic, reductions, welford
from tokitai_cli.oracles.formula.double import Double
from tokitai_cli.oracles.formula.known import NOTHING_KNOWN, Known, NoRuleError
from tokitai_cli.oracles.formula.parts import Flags, Parts, elementwise, exactly, nearest, operated
from tokitai_cli.oracles.formula.precision import STEP, TOP, U, allowing, current
from tokitai_cli.oracles.formula.tracked import Decision, Tracked, axes_of, dropped, track

# Of a float64 mean, relative to the mean of magnitudes, whatever the order of its additions.
_OWN_MEAN = 2.0**-50


def summed(a: Tracked, axis: Any, keepdims: bool, additions: int | None = None) -> Tracked:
    """Sum, with what is known of its terms."""
    axes = axes_of(a, axis)
    with np.errstate(all="ignore"):
        part = reductions.total(a.parts, axes, additions)
        part = _with_least(part, a, axes)
        part = _of_centred_squares(part, a, axes)
    known = Known(sum_of=(a, axes)) if axes else NOTHING_KNOWN
    return dropped(Tracked(part, known), axes, keepdims)


def _with_least(part: Parts, a: Tracked, axes: tuple[int, ...]) -> Parts:
    """Adding what is not negative never goes below the largest term."""
    if a.known.least_sum is None or a.known.least_sum[0] != axes or part.point:
        return part
    lo = np.maximum(part.lo, a.known.least_sum[1])
    return Parts(part.v, lo, np.maximum(part.hi, lo), part.n)


def _of_centred_squares(part: Parts, a: Tracked, axes: tuple[int, ...]) -> Parts:
    """Sum of squares of distances from a mean that is off by delta: the exact one, plus n delta^2.

    The cross term vanishes, since exact distances add up to 0, so an error of the mean only makes the
    sum larger (T. F. Chan, G. H. Golub, R. J. LeVeque, Amer. Statist. 37(3), 1983). Distances are
    rounded once and count twice, squares once, and the sum has its own additions.
    """
    away = a.known.square_of
    if away is None or away.known.centred is None or away.known.centred[0] != axes or part.point:
        return part
    _, delta, own = away.known.centred
    if current().welford:
        return welford.variance(part, away, axes)
    count = math.prod(a.shape[i] for i in axes)
    exact = np.square(away.parts.v).sum(axis=axes, keepdims=True)
    gamma = current().gamma(count - 1) + 3.5 * U
    # The float64 mean is off itself, by less than delta, and the exact sum is the smallest of all.
    below = exact * (1 - gamma - 4 * count * 2.0**-53) - count * (STEP + np.square(own))
    above = (exact + count * np.square(delta)) * (1 + 1.01 * gamma + 4 * count * 2.0**-53)
    above = above + count * STEP
    usable = np.isfinite(above) & (above < TOP / 2) & np.isfinite(part.lo) & np.isfinite(part.hi)
    lo = np.where(usable, np.maximum(part.lo, below), part.lo)
    hi = np.where(usable, np.minimum(part.hi, above), part.hi)
    return Parts(part.v, np.fmin(lo, part.v), np.fmax(hi, part.v), part.n)


def chosen(a: Tracked, axis: int) -> Tracked:
    """Index of the largest element along `axis`, with all that may be it."""
    if a.parts.point and a.parts.n is None:
        return Tracked(exactly(np.argmax(a.parts.v, axis=axis).astype(np.float64)))
    v, lo, hi, n = a.moved(lambda array: np.moveaxis(array, axis, -1)).parts
    lo = lo if n is None else np.where(n > 0, -np.inf, lo)
    hi = hi if n is None else np.where(n > 0, np.inf, hi)
    earlier = np.maximum.accumulate(lo, axis=-1)
    beaten = np.zeros(v.shape, bool)
    # One that comes first wins a tie, one that comes later must be larger for sure.
    beaten[..., 1:] = earlier[..., :-1] >= hi[..., 1:]
    beaten |= lo.max(axis=-1, keepdims=True) > hi
    possible = ~beaten
    count = v.shape[-1]
    first = np.argmax(possible, axis=-1)
    last = count - 1 - np.argmax(possible[..., ::-1], axis=-1)
    index = np.argmax(v, axis=-1)
    if np.array_equal(first, last) and np.array_equal(first, index):
        return Tracked(exactly(index.astype(np.float64)))
    first, last = np.minimum(first, index), np.maximum(last, index)
    part = Parts(index.astype(np.float64), first.astype(np.float64), last.astype(np.float64))
    return Tracked(part, choices=possible)


def stored(x: Any, dtype: str = "float32", *, output: str = "") -> Any:
    """An intermediate that the kernel keeps in a narrower dtype, or not: what either may give.

    output: the output that it is stored as, and read from again: what the kernel's own value leaves to
    the rest is judged by `bound-chained`. Plain arrays, as a replay has them, are rounded; what else
    runs a formula takes the value as it is.
    """
    if not isinstance(x, Tracked):
        plain = isinstance(x, np.ndarray) and dtype != "float32"
        return round_to(x.astype(np.float64), dtype).astype(x.dtype) if plain else x
    if dtype == "float64" or (x.double and dtype == "float32"):
        return _converted(x, dtype)
    v, lo, hi, n = x.parts
    if dtype != "float32":
        with np.errstate(all="ignore"):
            low, high = (round_to(end, dtype).astype(np.float64) for end in (lo, hi))
            lo, hi = np.fmin(lo, low), np.fmax(hi, high)
    got = current().outputs.get(output)
    if got is not None:
        given = np.reshape(got, v.shape).astype(np.float64)
        lo, hi = np.fmax(lo, np.fmin(v, given)), np.fmin(hi, np.fmax(v, given))
    elif dtype == "float32":
        return x
    return Tracked(Parts(v, lo, hi, n), Known(mean_of=x.known.mean_of))


def _converted(x: Tracked, dtype: str) -> Tracked:
    """x held in float64, which is exact, or rounded from that to float32."""
    if dtype == "float64":
        return Tracked(x.parts, x.known, double=True)
    v, lo, hi, n = x.parts
    points = (lo == hi) & (nearest(lo) == lo)
    with np.errstate(all="ignore"):
        return Tracked(operated(Parts(v, lo, hi, n), points))


def accumulated(a: Tracked, axis: Any, keepdims: bool, dtype: str) -> Tracked:
    """Sum whose partial sums are kept in `dtype`; one in float64 stays in that."""
    if dtype not in FORMATS:
        raise NoRuleError(f"a sum in {dtype} has no error rule: floats have")
    with allowing(msgspec.structs.replace(current(), accumulate=dtype)):
        total = summed(a, axis, keepdims)
    return stored(total, dtype) if dtype != "float32" else total


def loosen(x: Any, roundings: float) -> Any:
    """Allow `roundings` further roundings of relative size u each; of a sum, of each of its terms.

    An online softmax has 6 a tile (its exponential 4, a product and a difference 1 each), an approximate
    reciprocal as many as it is off by. What carries no interval is given back as it is.
    """
    if isinstance(x, Double):
        return x.loosened(roundings)
    if not isinstance(x, Tracked):
        return x
    share, known = roundings * U * (1 + 2.0**-10), x.known

    def loosened(part: Parts, far: Parts) -> Parts:
        slack = np.where(np.isfinite(far.v), share * far.v + roundings * STEP, 0.0)
        low = np.where(part.lo >= 0, np.maximum(part.lo - slack, 0.0), part.lo - slack)
        return Parts(part.v, low, part.hi + slack, part.n)

    part = elementwise(loosened, x.parts, exactly(magnitude(x)))
    if known.least_sum is not None:
        known = known._replace(least_sum=(known.least_sum[0], known.least_sum[1] * (1 - 2 * share)))
    return Tracked(part, known)


def magnitude(a: Tracked) -> NDArray[np.float64]:
    """What roundings are relative to: of a sum or product of matrices the magnitudes of its terms."""
    far: NDArray[np.float64] = np.maximum(np.abs(a.parts.lo), np.abs(a.parts.hi))
    if a.known.sum_of is not None:
        array, axes = a.known.sum_of
        terms = np.maximum(np.abs(array.parts.lo), np.abs(array.parts.hi))
        far = np.maximum(far, terms.sum(axis=axes).reshape(far.shape))
    if a.known.product_of is not None:
        left, right = (np.maximum(np.abs(x.lo), np.abs(x.hi)) for x in a.known.product_of)
        far = np.maximum(far, (left @ right).reshape(far.shape))
    return far


def subtracted(a: Tracked, b: Tracked) -> Tracked:
    """a - b, and what is known where b is the largest element or the mean of a."""
    part = elementwise(arithmetic.subtract, a.parts, b.parts)
    if b.known.largest_of is not None and b.known.largest_of[0] is a:
        axes = b.known.largest_of[1]
        if a.parts.point:
            slack = np.zeros(b.shape)
        else:  # a product that is fused with this difference is not the rounded one that was the largest
            far = np.maximum(np.abs(b.parts.lo), np.abs(b.parts.hi))
            slack = U * (1 + 2.0**-20) * far + STEP / 2
        if not part.point:
            part = elementwise(_at_most, part, exactly(slack))
        return Tracked(part, Known(peak=(axes, slack)))
    if b.known.mean_of is not None and b.known.mean_of[0] is a and a.parts.point:
        axes = b.known.mean_of[1]
        with np.errstate(invalid="ignore"):
            off = np.maximum(b.parts.hi - b.parts.v, b.parts.v - b.parts.lo)
            own = _OWN_MEAN * np.abs(a.parts.v).mean(axis=axes).reshape(off.shape)
            off = off + own
        return Tracked(part, Known(centred=(axes, off, own), centred_at=b.parts.v))
    return Tracked(part)


def _at_most(a: Parts, most: Parts) -> Parts:
    return Parts(a.v, np.minimum(a.lo, most.v), np.minimum(a.hi, most.v), a.n)


def divided(a: Tracked, b: Tracked) -> Tracked:
    """a / b, and that it is a mean where a is a sum and b the number of its terms."""
    result = Tracked(elementwise(arithmetic.divide, a.parts, b.parts))
    if a.known.sum_of is not None and b.parts.point and b.size == 1:
        array, axes = a.known.sum_of
        if float(b.parts.v.flat[0]) == math.prod(array.shape[i] for i in axes):
            part = result.parts
            if current().welford and not _of_variance(array):
                part = welford.mean(part, array.parts, axes)
            # Without the reduced axes it may be subtracted along others.
            kept = result.ndim == array.ndim
            return Tracked(part, Known(mean_of=a.known.sum_of) if kept else NOTHING_KNOWN)
    return result


def _of_variance(a: Tracked) -> bool:
    """Whether the array is that of the squares of distances from a mean, whose sum has its own rule."""
    return a.known.square_of is not None and a.known.square_of.known.centred is not None


def multiplied(a: Tracked, b: Tracked) -> Tracked:
    """a * b; a square where both are the same array."""
    if a is b:
        return Tracked(elementwise(arithmetic.square, a.parts), Known(square_of=a))
    return Tracked(elementwise(arithmetic.multiply, a.parts, b.parts))


def exponential(a: Tracked, rule: Callable[[Parts], Parts], name: str) -> Tracked:
    """exp or exp2; with a 0 among the arguments their sum is at least 1, but for that one's error."""
    known = NOTHING_KNOWN
    if a.known.peak is not None:
        axes, slack = a.known.peak
        known = Known(least_sum=(axes, np.exp(-slack) * (1 - (2 * current().ulp(name) + 2) * U)))
    return Tracked(elementwise(rule, a.parts), known)


def joined(parts: Sequence[Tracked], function: Callable[..., NDArray[Any]]) -> Tracked:
    """Concatenate or stack."""
    v = function([part.parts.v for part in parts])
    n = None
    if any(part.parts.n is not None for part in parts):
        n = function(
            [np.zeros(p.shape, np.uint8) if p.parts.n is None else p.parts.n for p in parts]
        )
    if all(part.parts.point for part in parts):
        return Tracked(exactly(v, n))
    return Tracked(
        Parts(v, function([p.parts.lo for p in parts]), function([p.parts.hi for p in parts]), n)
    )


def selected(condition: Any, a: Any, b: Any) -> Tracked:
    """`numpy.where`: what either side gives where rounding leaves the condition open."""
    decision = condition if isinstance(condition, Decision) else Decision(_plain(condition))
    one, other = track(a).parts, track(b).parts
    holds, is_open = decision.holds, decision.open
    v = np.where(holds, one.v, other.v)
    n: Flags | None = None
    n_one, n_other = (np.zeros((), np.uint8) if p.n is None else p.n for p in (one, other))
    if one.n is not None or other.n is not None:
        n = np.where(holds, n_one, n_other)
    if not is_open.any():
        if one.point and other.point:
            return Tracked(exactly(v, n))
        lo, hi = np.where(holds, one.lo, other.lo), np.where(holds, one.hi, other.hi)
        return Tracked(Parts(v, lo, hi, n))
    least = np.where(
        n_one == 2, other.lo, np.where(n_other == 2, one.lo, np.minimum(one.lo, other.lo))
    )
    most = np.where(
        n_one == 2, other.hi, np.where(n_other == 2, one.hi, np.maximum(one.hi, other.hi))
    )
    lo = np.where(is_open, least, np.where(holds, one.lo, other.lo))
    hi = np.where(is_open, most, np.where(holds, one.hi, other.hi))
    if n is not None:
        both = np.where((n_one == 2) & (n_other == 2), 2, np.minimum(np.maximum(n_one, n_other), 1))
        n = np.where(is_open, both, n).astype(np.uint8)
    return Tracked(Parts(v, lo, hi, n))


def _plain(condition: Any) -> NDArray[np.bool_]:
    if isinstance(condition, Tracked):
        raise NoRuleError("a tracked number as a condition: compare it with 0")
    return np.asarray(condition, bool)
