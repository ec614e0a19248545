"""Wrong outputs made from the reference, value by value and only where they are asked for.

The list is that of bounds.md, Vacuity. A mutant gives its values at flat positions of the output,
before they are rounded to the output's dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.compare.checks import ResolvedCheck
from tokitai_cli.compare.compared import Compared
from tokitai_cli.compare.target import Chunk, Index, Target
from tokitai_cli.compare.values import index_of, shown_index, shown_short
from tokitai_cli.errors import OracleError
from tokitai_cli.model.case import Expectation
from tokitai_cli.model.metrics import METRICS
from tokitai_cli.numerics import MUST_BE_FINITE

Status = Literal["rejected", "accepted", "not-eligible", "not-applicable"]

# A mutant can be told from the reference where it is off by more than this many E (or ulp).
ELIGIBLE = 4.0
ANCHOR = 16.0
ANCHOR_RMS = 100.0

_SAMPLE = 4096
_REDUCTIONS = ("last-term-dropped", "heaviest-term-dropped")


class Mutant(msgspec.Struct, frozen=True):
    """A wrong output. `values` is None where `status` already says what becomes of it.

    only: flat position of the one element that is wrong, None where many are.
    """

    kind: str
    detail: str
    values: Callable[[Index], NDArray[Any]] | None
    status: Literal["", "not-eligible", "not-applicable"] = ""
    only: int | None = None

    def touches(self, index: Index) -> bool:
        """Whether some value at these positions may be wrong."""
        if self.only is None:
            return True
        if isinstance(index, slice):
            return bool(index.start <= self.only < index.stop)
        return bool((index == self.only).any())


class Summary(msgspec.Struct):
    """What the mutants need to know of the whole reference, over its must-be-finite elements.

    anchor: flat position of the smallest bound, -1 where no element must be finite.
    """

    finite: int = 0
    total: float = 0.0
    squares: float = 0.0
    anchor: int = -1
    anchor_bound: float = math.inf
    anchor_ulp: float = 0.0

    def add(self, chunk: Chunk, skip: NDArray[np.bool_] | None) -> None:
        """Take in one chunk of the reference; `skip` leaves elements out."""
        reference = np.asarray(chunk.reference, dtype=np.float64)
        bound = chunk.bound_or_ulps
        if chunk.classes is None and skip is None:
            self.finite += reference.size
        else:
            finite = np.ones(reference.shape, dtype=bool) if skip is None else ~skip
            if chunk.classes is not None:
                finite &= chunk.classes == MUST_BE_FINITE
            if not finite.any():
                return
            reference = np.where(finite, reference, 0.0)
            bound = np.where(finite, bound, np.inf)
            self.finite += int(np.count_nonzero(finite))
        self.total += float(reference.sum())
        with np.errstate(over="ignore"):
            self.squares += float(np.square(reference).sum())
        place = int(np.argmin(bound))
        if self.anchor < 0 or bound[place] < self.anchor_bound:
            self.anchor = chunk.index.start + place if isinstance(chunk.index, slice) else -1
            self.anchor_bound = float(bound[place])
            self.anchor_ulp = float(chunk.ulp[place])

    @property
    def mean(self) -> float:
        """Mean of the finite reference."""
        return self.total / max(self.finite, 1)

    @property
    def rms(self) -> float:
        """Root of its mean square."""
        return math.sqrt(self.squares / max(self.finite, 1))


def mutants_of(
    target: Target,
    summary: Summary,
    expectation: Expectation,
    checks: Iterable[ResolvedCheck],
) -> list[Mutant]:
    """Return all mutants of one output, in a fixed order."""
    reference = target.reference
    return [
        Mutant("zeros", "all elements 0", lambda index: np.zeros_like(reference[index])),
        _constant_mean(target, summary),
        _roll(target),
        *(_dropped(target, expectation, kind) for kind in _REDUCTIONS),
        *(
            _dropped(target, expectation, kind)
            for kind in expectation.dropped
            if kind not in _REDUCTIONS
        ),
        _sign_flipped(target),
        *_non_finite(target, summary),
        _anchor(target, summary, checks),
    ]


def _constant_mean(target: Target, summary: Summary) -> Mutant:
    kind, reference = "constant-mean", target.reference
    if target.size < 2:
        return Mutant(kind, "the output has one element", None, "not-applicable")
    if not summary.finite:
        return Mutant(kind, "no element must be finite", None, "not-eligible")
    mean = summary.mean if target.form else round(summary.mean)
    if target.form is None and target.dtype != "bool":
        information = np.iinfo(target.native)
        mean = min(max(int(mean), int(information.min)), int(information.max))
    return Mutant(
        kind,
        f"all elements {shown_short(mean)}, the mean of the reference",
        lambda index: np.full_like(reference[index], mean),
    )


def rolled(target: Target, axis: int, shift: int) -> Callable[[Index], NDArray[Any]]:
    """Move the reference by `shift` along `axis`, the end coming in at the start (numpy.roll)."""
    inner = math.prod(target.shape[axis + 1 :])
    block = target.shape[axis] * inner

    def values(index: Index) -> NDArray[Any]:
        flat = np.arange(index.start, index.stop) if isinstance(index, slice) else index
        within = flat % block
        return np.asarray(target.reference[flat - within + (within - shift * inner) % block])

    return values


def _roll(target: Target) -> Mutant:
    """Choose the roll, by 1 or by half along an axis, that changes most of a sample of elements.

    Where the sample sees no change at all, the whole reference is asked, roll by roll.
    """
    rolls = [
        (axis, shift)
        for axis, extent in enumerate(target.shape)
        if extent > 1
        for shift in sorted({1, extent // 2})
    ]
    if not rolls:
        return Mutant("roll", "the output has one element", None, "not-applicable")
    step = max(1, target.size // _SAMPLE) | 1  # odd, so that it walks through rows and columns
    sample = np.arange(0, target.size, step)
    counts = [
        int(np.count_nonzero(_changed(target.reference[sample], rolled(target, *roll)(sample))))
        for roll in rolls
    ]
    best = rolls[int(np.argmax(counts))]
    if max(counts) == 0:
        best = next((roll for roll in rolls if _changes_anywhere(target, roll)), rolls[0])
    axis, shift = best
    return Mutant("roll", f"moved by {shift} along axis {axis}", rolled(target, axis, shift))


def _changed(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    if left.dtype.kind != "f":
        return np.asarray(left != right)
    return np.asarray((left != right) & ~(np.isnan(left) & np.isnan(right)))


def _changes_anywhere(target: Target, roll: tuple[int, int]) -> bool:
    values = rolled(target, *roll)
    return any(
        bool(_changed(target.reference[chunk.where], values(chunk.where)).any())
        for chunk in target.chunks()
    )


def _dropped(target: Target, expectation: Expectation, kind: str) -> Mutant:
    if kind in _REDUCTIONS:
        if expectation.terms <= 0 and kind not in expectation.dropped:
            return Mutant(kind, "the output is no reduction", None, "not-applicable")
        if expectation.terms == 1:
            return Mutant(kind, "the reduction has one term", None, "not-applicable")
        if kind not in expectation.dropped:
            return Mutant(kind, "the oracle cannot say it", None, "not-applicable")
    compute = expectation.dropped[kind]
    made: list[Callable[[Index], NDArray[Any]]] = []

    def values(index: Index) -> NDArray[Any]:
        if not made:
            made.append(_parts(compute(), kind, target))
        return np.asarray(made[0](index))

    return Mutant(kind, kind.replace("-", " "), values)


def _parts(wrong: Any, kind: str, target: Target) -> Callable[[Index], NDArray[Any]]:
    """Return the function that gives a wrong reference by parts: `wrong` itself, or over its array."""
    if callable(wrong):
        parts: Callable[[Index], NDArray[Any]] = wrong
        return parts
    array = np.asarray(wrong)
    if array.shape != target.shape:
        raise OracleError(
            f"the {kind} reference of {target.name} has the shape {list(array.shape)}, "
            f"the output has {list(target.shape)}"
        )
    flat = array.reshape(-1).astype(target.reference.dtype, copy=False)
    return lambda index: np.asarray(flat[index])


def _sign_flipped(target: Target) -> Mutant:
    kind, reference = "sign-flipped", target.reference
    if target.dtype == "bool":
        return Mutant(kind, "all elements inverted", lambda index: 1 - reference[index])
    if target.native.kind == "u":
        return Mutant(kind, "the dtype has no sign", None, "not-applicable")
    return Mutant(kind, "all elements negated", lambda index: -reference[index])


def _non_finite(target: Target, summary: Summary) -> list[Mutant]:
    reference = target.reference
    if target.form is None:
        detail = "the dtype has no NaN and no infinity"
        kinds = ("all-nan", "one-nan", "all-inf")
        return [Mutant(kind, detail, None, "not-applicable") for kind in kinds]
    if summary.anchor < 0:
        one_nan = Mutant("one-nan", "no element must be finite", None, "not-eligible")
    else:
        one_nan = Mutant(
            "one-nan",
            f"NaN at {shown_index(index_of(summary.anchor, target.shape))}",
            _replaced(target, summary.anchor, math.nan),
            only=summary.anchor,
        )
    return [
        Mutant("all-nan", "all elements NaN", lambda at: np.full_like(reference[at], np.nan)),
        one_nan,
        Mutant("all-inf", "all elements inf", lambda at: np.full_like(reference[at], np.inf)),
    ]


def _replaced(target: Target, flat: int, value: float) -> Callable[[Index], NDArray[Any]]:
    """Return the reference with one element replaced."""

    def values(index: Index) -> NDArray[Any]:
        if isinstance(index, slice):
            if not index.start <= flat < index.stop:
                return np.asarray(target.reference[index])
            part = target.reference[index].copy()
            part[flat - index.start] = value
            return np.asarray(part)
        part = target.reference[index]
        part[index == flat] = value
        return np.asarray(part)

    return values


def _anchor(target: Target, summary: Summary, checks: Iterable[ResolvedCheck]) -> Mutant:
    """Displace the must-be-finite element with the smallest bound, just beyond doubt."""
    kind = "anchor"
    if summary.anchor < 0 or math.isinf(summary.anchor_bound):
        return Mutant(kind, "no element must be finite", None, "not-eligible")
    at = float(target.reference[summary.anchor])
    shift = ANCHOR * max(summary.anchor_bound, summary.anchor_ulp)
    if not any(check.judges and METRICS[check.metric].sharp for check in checks):
        shift = max(shift, summary.rms / ANCHOR_RMS)
    value: float = at + math.copysign(shift, at)
    if target.form is not None:
        if abs(value) >= target.form.overflow:
            value = at - math.copysign(shift, at)
    elif target.dtype == "bool":
        value = 1.0 - at
    else:
        whole = int(target.reference[summary.anchor])
        step = math.ceil(shift)
        fits = whole + step <= np.iinfo(target.native).max
        value = whole + step if fits else whole - step
    place = shown_index(index_of(summary.anchor, target.shape))
    return Mutant(
        kind,
        f"{place} moved from {shown_short(at)} to {shown_short(value)}",
        _replaced(target, summary.anchor, value),
        only=summary.anchor,
    )


def beyond_doubt(compared: Compared) -> NDArray[np.bool_]:
    """Return which elements are off by more than 4 max(E, 1 ulp), or of another class.

    E is the oracle's worst-case bound, never a limit of the spec. A bool differs or it does not.
    """
    chunk = compared.chunk
    if chunk.target.dtype == "bool":
        return np.asarray(compared.error > 0)
    with np.errstate(all="ignore"):
        told = np.asarray(compared.error > ELIGIBLE * np.maximum(chunk.bound_or_ulps, chunk.ulp))
    if compared.structure_fails is not None:
        told |= compared.structure_fails
    return told


def values_at(mutant: Mutant, chunk: Chunk) -> NDArray[Any]:
    """Return the mutant's values at a chunk as the output would hold them."""
    if mutant.values is None:
        raise ValueError(f"the mutant {mutant.kind} has no values")
    return chunk.target.round(mutant.values(chunk.index))
