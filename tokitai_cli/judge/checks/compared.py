"""One chunk of an output (or of a mutant) beside the same chunk of its target."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.numerics import (
    MAY_BE_ANYTHING,
    MAY_BE_EITHER,
    MAY_BE_NAN,
    MUST_BE_FINITE,
    MUST_BE_INFINITE,
    MUST_BE_NAN,
    bits_of,
    integer_distance,
    least_error,
    ratio,
)
from tokitai_cli.core.rounding import widened
from tokitai_cli.judge.checks.target import Chunk

Mask = NDArray[np.bool_]

# Kinds of non-finite disagreement.
NAN_UNEXPECTED = "nan-unexpected"
NAN_MISSING = "nan-missing"
INF_UNEXPECTED = "inf-unexpected"
INF_MISSING = "inf-missing"
INF_SIGN = "inf-sign"

# By code of `overflow_class`: whether a finite value is compared, and whether NaN is right.
_HAS_NUMBER = np.isin(range(6), [MUST_BE_FINITE, MAY_BE_EITHER, MAY_BE_NAN])
_TAKES_NAN = np.isin(range(6), [MUST_BE_NAN, MAY_BE_NAN, MAY_BE_ANYTHING])


def part_of(mask: Mask | None, chunk: Chunk) -> Mask | None:
    """Return the part of a flat mask of the output that belongs to the chunk; None for none."""
    if mask is None:
        return None
    part = mask[chunk.index]
    return part if part.any() else None


class Compared:
    """Values `got` (in the target's native dtype) against `chunk`. `skip` leaves elements out.

    refined: smaller errors than the oracle's, which the repetition's other outputs give.
    """

    def __init__(
        self,
        chunk: Chunk,
        got: NDArray[Any],
        skip: Mask | None = None,
        refined: NDArray[np.float64] | None = None,
    ) -> None:
        self.chunk = chunk.nearest_to(got)
        self.native = got
        self.skip = skip
        self.refined = refined
        #: Error over another bound, by metric, where a compiled pass has computed it.
        self.over_further: dict[str, NDArray[np.float64]] = {}

    @cached_property
    def got(self) -> NDArray[Any]:
        """The values as float64, or the integers themselves."""
        if self.chunk.target.form is None:
            return self.native
        return widened(self.native)

    @cached_property
    def _plain(self) -> bool:
        """Whether all elements take part and are finite on both sides."""
        if self.skip is not None or self.chunk.classes is not None:
            return False
        return self.chunk.target.form is None or bool(np.isfinite(self.got).all())

    @cached_property
    def comparable(self) -> Mask | None:
        """Elements whose numbers can be compared, or None for all."""
        if self._plain:
            return None
        form, codes = self.chunk.target.form, self.chunk.classes
        mask = np.isfinite(self.got) if form else np.ones(self.native.shape, dtype=bool)
        if codes is not None:
            mask &= _HAS_NUMBER[codes]
        if self.skip is not None:
            mask &= ~self.skip
        return mask

    @cached_property
    def count(self) -> int:
        """How many elements have numbers to compare."""
        if self.comparable is None:
            return int(self.native.size)
        return int(np.count_nonzero(self.comparable))

    @property
    def taken(self) -> int:
        """How many elements are not left out."""
        left_out = 0 if self.skip is None else int(np.count_nonzero(self.skip))
        return int(self.native.size) - left_out

    @cached_property
    def structure(self) -> dict[str, Mask]:
        """Non-finite disagreements by kind, only kinds that occur (bounds.md, masks)."""
        if self._plain or self.chunk.target.form is None:
            return {}
        codes = self.chunk.classes
        if codes is None:
            codes = np.full(self.native.shape, MUST_BE_FINITE, dtype=np.uint8)
        nan, inf = np.isnan(self.got), np.isinf(self.got)
        open_inf = codes == MAY_BE_EITHER
        due_inf = codes == MUST_BE_INFINITE
        with np.errstate(all="ignore"):
            other_sign = inf & (np.signbit(self.got) != np.signbit(self.chunk.reference))
        found = {
            NAN_UNEXPECTED: nan & ~_TAKES_NAN[codes],
            NAN_MISSING: ~nan & (codes == MUST_BE_NAN),
            INF_UNEXPECTED: inf & (codes == MUST_BE_FINITE),
            INF_MISSING: ~nan & ~inf & due_inf,
            INF_SIGN: other_sign & (due_inf | (open_inf & ~self._either_sign())),
        }
        if self.chunk.may_be_nan is not None:
            found[NAN_UNEXPECTED] &= ~self.chunk.may_be_nan
        if self.skip is not None:
            found = {kind: mask & ~self.skip for kind, mask in found.items()}
        return {kind: mask for kind, mask in found.items() if mask.any()}

    def _either_sign(self) -> Mask:
        """Elements whose error is so large that infinity of the other sign may come out too."""
        form, error = self.chunk.target.form, self.chunk.error
        if form is None or error is None:
            return np.zeros(self.native.shape, dtype=bool)
        with np.errstate(all="ignore"):
            return np.asarray(error - self.chunk.magnitude >= form.overflow)

    @cached_property
    def structure_fails(self) -> Mask | None:
        """Elements of any non-finite disagreement, or None."""
        masks = list(self.structure.values())
        return np.logical_or.reduce(masks) if masks else None

    def _masked(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """`values` with 0 where the numbers cannot be compared."""
        if self.comparable is not None:
            values[~self.comparable] = 0.0
        return values

    @cached_property
    def signed(self) -> NDArray[np.float64]:
        """got - reference, 0 where not comparable."""
        if self.chunk.target.form is None:
            below = self.native < self.chunk.reference
            return np.where(below, -self.error, self.error)
        with np.errstate(all="ignore"):
            distance = np.asarray(self.got - self.chunk.reference)
            if self.chunk.low is not None:
                distance -= self.chunk.low
            return self._masked(distance)

    @cached_property
    def error(self) -> NDArray[np.float64]:
        """|got - reference|, 0 where not comparable."""
        if self.chunk.target.form is None:
            return self._masked(integer_distance(self.native, self.chunk.reference))
        return np.abs(self.signed)

    @cached_property
    def rounded_error(self) -> NDArray[np.float64]:
        """|got - rounded reference|, 0 where not comparable."""
        if self.chunk.target.form is None:
            return self.error
        with np.errstate(all="ignore"):
            return self._masked(np.abs(self.got - self.chunk.want))

    @cached_property
    def ulps(self) -> NDArray[np.float64]:
        """Distance from the rounded reference in ulp at it."""
        return ratio(self.rounded_error, self.chunk.ulp)

    @cached_property
    def over_bound(self) -> NDArray[np.float64] | None:
        """error / E, 0/0 being 0; None where the oracle has no bound.

        Infinite where `misrounded`: there E is half an ulp, which both neighbours of a tie meet.
        """
        bound = self.chunk.bound_at(self.signed) if self.chunk.bound is not None else None
        if bound is None:
            return None
        over = ratio(self.error, bound)
        if self.misrounded is not None:
            over[self.misrounded] = np.inf
        return over

    @cached_property
    def allowance(self) -> NDArray[np.float64] | None:
        """The smallest factor on e with which each element is within F(e, r); None without a bound.

        0 where the last rounding alone explains the error.
        """
        error = self.chunk.error_at(self.signed)
        form = self.chunk.target.form
        if error is None or form is None:
            return None
        flush = self.chunk.target.flush_to_zero
        least = least_error(self.error, self.chunk.reference, form, flush_to_zero=flush)
        if self.chunk.low is not None:
            least[self.error <= np.abs(self.chunk.low)] = 0.0
        return ratio(least, error)

    @cached_property
    def misrounded(self) -> Mask | None:
        """Elements of error e = 0 that are the other neighbour of a tie, or None.

        What is in front of the last rounding is the reference itself there, and rounding to nearest
        takes the even neighbour (IEEE 754-2019, 4.3.1).
        """
        exact = self.chunk.exact_at(self.signed)
        if exact is None:
            return None
        with np.errstate(all="ignore"):
            rounding = self.chunk.want - self.chunk.reference
            if self.chunk.low is not None:
                rounding -= self.chunk.low
            mask = exact & (self.got != self.chunk.want) & (self.error == np.abs(rounding))
        if self.comparable is not None:
            mask &= self.comparable
        return mask if mask.any() else None

    @cached_property
    def bound_chained(self) -> NDArray[np.float64] | None:
        """E from what the repetition's other outputs leave open, or None."""
        return None if self.refined is None else self.chunk.bound_of(self.refined)

    @cached_property
    def relative(self) -> NDArray[np.float64]:
        """|got - reference| / |reference|, 0/0 being 0."""
        return ratio(self.error, self.chunk.magnitude)

    @cached_property
    def differs(self) -> Mask:
        """Elements whose bytes differ from the rounded reference's; NaN equals any NaN."""
        want = self.chunk.want_native
        differs = np.asarray(bits_of(self.native) != bits_of(want))
        if differs.any() and self.chunk.target.form is not None:
            differs &= ~(np.isnan(self.native) & np.isnan(want))
        if self.chunk.may_be_nan is not None:
            differs &= ~(np.isnan(self.native) & self.chunk.may_be_nan)
        if self.chunk.classes is not None:
            differs &= self.chunk.classes != MAY_BE_ANYTHING
        if self.skip is not None:
            differs &= ~self.skip
        return differs


def flat_index(compared: Compared, place: int) -> int:
    """Flat position in the output of a position in the chunk."""
    index = compared.chunk.index
    return index.start + place if isinstance(index, slice) else int(index[place])
