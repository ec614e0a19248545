"""Wrong outputs made from the reference, value by value and only where they are asked for.

The list is that of bounds.md, Vacuity. A mutant gives its values at flat positions of the output,
before they are rounded to the output's dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.errors import OracleError
from tokitai_cli.core.model.expectation import DROPPED, NON_FINITE, ChangedRows, Expectation
from tokitai_cli.core.model.metrics import METRICS
from tokitai_cli.judge.checks.numbers import index_of, shown, shown_index, shown_short
from tokitai_cli.judge.checks.output_checks import ResolvedCheck
from tokitai_cli.judge.checks.reference_tally import Summary
from tokitai_cli.judge.checks.target import Index, Target

Status = Literal["rejected", "accepted", "not-eligible", "not-known", "not-applicable"]

ANCHOR = 16.0
ANCHOR_RMS = 100.0

_SAMPLE = 4096
NOT_KNOWN = "not known: the oracle does not say which terms the output adds up"


class Mutant(msgspec.Struct, frozen=True):
    """A wrong output. `values` is None where `status` already says what becomes of it."""

    kind: str
    detail: str
    values: Callable[[Index], NDArray[Any]] | None
    status: Literal["", "not-eligible", "not-known", "not-applicable"] = ""
    #: Flat position of the one element that is wrong, None where many are.
    only: int | None = None
    #: Rows of the first axis that alone are wrong, each of `width` elements; None for all.
    rows: NDArray[np.int64] | None = None
    width: int = 1

    def touches(self, index: Index) -> bool:
        """Whether some value at these positions may be wrong."""
        if self.only is None:
            return self.rows is None or self._touches_rows(index, self.rows)
        if isinstance(index, slice):
            return bool(index.start <= self.only < index.stop)
        return bool((index == self.only).any())

    def _touches_rows(self, index: Index, rows: NDArray[np.int64]) -> bool:
        if not isinstance(index, slice):
            return bool(np.isin(index // self.width, rows).any())
        first, last = index.start // self.width, (index.stop - 1) // self.width
        return bool(np.searchsorted(rows, first) < np.searchsorted(rows, last, "right"))


def mutants_of(
    target: Target,
    summary: Summary,
    expectation: Expectation,
    checks: Iterable[ResolvedCheck],
) -> list[Mutant]:
    """Return all mutants of one output, in a fixed order."""
    reference = target.reference
    made = [
        Mutant("zeros", "all elements 0", lambda index: np.zeros_like(reference[index])),
        _constant_mean(target, summary),
        _roll(target),
        *(_dropped(target, expectation, kind) for kind in DROPPED),
        *(
            _dropped(target, expectation, kind)
            for kind in expectation.dropped
            if kind not in DROPPED
        ),
        _sign_flipped(target),
        *_non_finite(target, summary),
        _anchor(target, summary, checks),
    ]
    if expectation.alike:
        made = [_of_alike(mutant) for mutant in made]
    if target.constant is not None:
        made = [*_beside_constant(target, made), _other(target)]
    kinds = [mutant.kind for mutant in made]
    for kind in expectation.dropped:
        if kinds.count(kind) > 1:
            raise OracleError(
                f"the wrong output {kind!r} of {target.name} has a name that the tool uses for its own",
                hint="give it another name",
            )
    return made


def _of_alike(mutant: Mutant) -> Mutant:
    """A mutant of an output whose elements the shape makes one number: what gives it back is none."""
    if mutant.kind not in ("constant-mean", "roll"):
        return mutant
    detail = "all elements are one number at this shape, whatever the inputs are"
    return Mutant(mutant.kind, detail, None, "not-applicable")


def _beside_constant(target: Target, made: Sequence[Mutant]) -> Iterator[Mutant]:
    """Leave out the mutants that the constant itself comes out of, where the spec declares one."""
    same = ["constant-mean", "roll", *DROPPED]
    if not target.constant:
        same += ["zeros"] if target.dtype == "bool" else ["zeros", "sign-flipped"]
    detail = f"the spec says that the output is the constant {shown(target.constant)}"
    for mutant in made:
        if mutant.kind in same:
            yield Mutant(mutant.kind, detail, None, "not-applicable")
        else:
            yield mutant


def _other(target: Target) -> Mutant:
    """Return another constant than the declared one, off by its own size and 1 at least."""
    kind, constant = "other-constant", float(target.constant or 0)
    if target.dtype == "bool":
        return Mutant(kind, "sign-flipped is the only other", None, "not-applicable")
    other = constant + max(1.0, abs(constant))
    top = target.form.overflow if target.form else float(np.iinfo(target.native).max)
    if other >= top:
        other = constant - 1.0
    reference = target.reference
    return Mutant(
        kind, f"all elements {shown(other)}", lambda index: np.full_like(reference[index], other)
    )


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
    return lambda index: np.asarray(target.reference[_moved(target, axis, shift, index)])


def _moved(target: Target, axis: int, shift: int, index: Index) -> NDArray[np.int64]:
    """The flat positions that these get their values from."""
    inner = math.prod(target.shape[axis + 1 :])
    block = target.shape[axis] * inner
    flat = np.arange(index.start, index.stop) if isinstance(index, slice) else index
    within = flat % block
    return np.asarray(flat - within + (within - shift * inner) % block)


def roll_positions(target: Target) -> NDArray[np.int64]:
    """Flat positions of the reference that the choice of a roll reads."""
    sample = _roll_sample(target)
    moved = (_moved(target, *roll, sample) for roll in _rolls(target))
    return np.concatenate([sample, *moved])


def _rolls(target: Target) -> list[tuple[int, int]]:
    return [
        (axis, shift)
        for axis, extent in enumerate(target.shape)
        if extent > 1
        for shift in sorted({1, extent // 2})
    ]


def _roll_sample(target: Target) -> NDArray[np.int64]:
    step = max(1, target.size // _SAMPLE) | 1  # odd, so that it walks through rows and columns
    return np.arange(0, target.size, step)


def _roll(target: Target) -> Mutant:
    """Choose the roll, by 1 or by half along an axis, that changes most of a sample of elements.

    Where the sample sees no change at all, the whole reference is asked, roll by roll.
    """
    rolls = _rolls(target)
    if not rolls:
        return Mutant("roll", "the output has one element", None, "not-applicable")
    sample = _roll_sample(target)
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
    if kind in DROPPED:
        if expectation.terms is None and kind not in expectation.dropped:
            return Mutant(kind, NOT_KNOWN, None, "not-known")
        if not expectation.terms and kind not in expectation.dropped:
            said = "the output is not a reduction"
            said = f"the spec says that {said}" if expectation.own else said
            return Mutant(kind, said, None, "not-applicable")
        if expectation.terms == 1:
            return Mutant(kind, "the reduction has one term", None, "not-applicable")
        if kind not in expectation.dropped:
            return Mutant(kind, "the oracle does not provide it", None, "not-applicable")
    compute = expectation.dropped[kind]
    if isinstance(compute, ChangedRows):
        return _with_changed_rows(target, kind, compute)
    made: list[Callable[[Index], NDArray[Any]]] = []

    def values(index: Index) -> NDArray[Any]:
        if not made:
            made.append(_parts(compute(), kind, target))
        return np.asarray(made[0](index))

    return Mutant(kind, kind.replace("-", " "), values)


def _with_changed_rows(target: Target, kind: str, changed: ChangedRows) -> Mutant:
    width, rows, new = target.width, changed.rows, changed.values
    if rows is None:
        rows = np.arange(target.size // max(width, 1))
    flat = None if new is None else new.reshape(-1)

    def values(index: Index) -> NDArray[Any]:
        positions = np.arange(index.start, index.stop) if isinstance(index, slice) else index
        part = target.reference[index].copy()
        if flat is not None:
            row = positions // width
            place = np.minimum(np.searchsorted(rows, row), rows.size - 1)
            wrong = rows[place] == row
            part[wrong] = flat[place[wrong] * width + positions[wrong] % width]
        return np.asarray(part)

    detail = kind.replace("-", " ")
    return Mutant(kind, detail, values, rows=changed.rows, width=width)


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
        return [Mutant(kind, detail, None, "not-applicable") for kind in NON_FINITE]
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
