"""How an output is rounded: errors that lean one way, and wrong outputs of other roundings.

Truncation stays within a bound that is wide beside an ulp of a narrow output, as of a long sum; what
tells it is that its errors all lean one way. Rounding to nearest leans nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.draws import draws_are_random
from tokitai_cli.core.model.judged import LeanRecord, MutantRecord, Towards
from tokitai_cli.core.numerics import bits_of
from tokitai_cli.core.rounding import widened
from tokitai_cli.judge.checks.compared import Compared, part_of
from tokitai_cli.judge.checks.numbers import shown_short
from tokitai_cli.judge.checks.output_checks import ResolvedCheck, values_of
from tokitai_cli.judge.checks.target import Chunk, Target
from tokitai_cli.judge.mutants.trial import Given
from tokitai_cli.judge.mutants.values import Status

NEAREST_EVEN = "nearest-even"
TRUNCATED, HALF_UP, TWO_ULP = "truncated", "half-up", "two-ulp"
# Different references from which a mean error says something, and the mean error that does: truncation
# has 0.5 ulp, rounding to nearest 0 +- 0.29 / sqrt(count).
_LEAST, _LEANS = 1000, 0.25
# What leans further does so for other reasons than a rounding.
OF_ROUNDING = 0.75
# Elements that wrong outputs are tried on.
_SAMPLE = 1 << 17

_OUTWARD: tuple[Towards, Towards] = ("towards zero", "away from zero")
_SIGNED: tuple[Towards, Towards] = ("downwards", "upwards")

Wrong = Callable[[Chunk], NDArray[np.float64]]


def is_narrow(target: Target) -> bool:
    """Whether the output's last rounding is wider than those before it."""
    form = target.form
    return form is not None and form.precision < FORMATS["float32"].precision


def is_to_nearest(case: Case, name: str) -> bool:
    """Whether the spec says that an output is rounded to nearest even."""
    written = {**case.variant.outputs, **case.variant.inout}
    return name in written and written[name].rounding == NEAREST_EVEN


class Leans(NamedTuple):
    """Sums of the errors in ulp of a chunk's inexact elements, and which these are."""

    signed: float
    outward: float
    inexact: NDArray[np.bool_]


class Leaning(NamedTuple):
    """What one chunk is to the tally: sums and count of its inexact elements, and their references."""

    signed: float
    outward: float
    inexact: int
    #: None where enough are known.
    references: NDArray[np.float64] | None


class LeanTally:
    """Where the errors of an output's inexact elements lean to, in ulp on average."""

    def __init__(self) -> None:
        self._signed = self._outward = 0.0
        self._count = 0
        self._seen = np.zeros(0)
        #: Whether as many different references are known as have to be.
        self.enough = False

    @staticmethod
    def measured(compared: Compared) -> Leans:
        """The errors of one chunk."""
        chunk = compared.chunk
        inexact = np.isfinite(chunk.want) & (chunk.want != chunk.reference)
        if compared.comparable is not None:
            inexact &= compared.comparable
        errors, sign = (compared.signed / chunk.ulp)[inexact], np.sign(chunk.reference[inexact])
        return Leans(float(errors.sum()), float((errors * sign).sum()), inexact)

    def leaning(self, part: Leans, chunk: Chunk) -> Leaning:
        """What one chunk is to the tally."""
        count = int(np.count_nonzero(part.inexact))
        references = None if self.enough else chunk.reference[part.inexact]
        return Leaning(part.signed, part.outward, count, references)

    def add(self, part: Leaning) -> None:
        """Take in one chunk, which follows the one before."""
        self._signed += part.signed
        self._outward += part.outward
        self._count += part.inexact
        if part.references is not None and not self.enough:
            # Without an index numpy imports numpy.ma, which takes as long as a small case.
            every = np.concatenate([self._seen, part.references])
            self._seen, _ = np.unique(every, return_index=True)
            self.enough = self._seen.size >= _LEAST

    def record(self) -> LeanRecord | None:
        """Where they lean to; None for nowhere, and where fewer than a thousand references differ."""
        if not self.enough:
            return None
        signed, outward = self._signed / self._count, self._outward / self._count
        if max(abs(signed), abs(outward)) < _LEANS:
            return None
        towards = _OUTWARD[outward > 0] if abs(outward) >= abs(signed) else _SIGNED[signed > 0]
        return LeanRecord(
            towards=towards, mean=max(abs(signed), abs(outward)), elements=self._count
        )


def lean_tally(case: Case, target: Target) -> LeanTally | None:
    """For a case's first repetition, on random inputs and of a narrow output: others may lean."""
    random = draws_are_random(case.loaded.spec, case.variant, case.profile)
    return LeanTally() if random and is_narrow(target) else None


def _lean(target: Target, make: Wrong) -> LeanRecord | None:
    """Where the errors of a wrong output lean to."""
    tally = LeanTally()
    for chunk in target.chunks() if is_narrow(target) else ():
        values = target.round(make(chunk))
        tally.add(tally.leaning(tally.measured(Compared(chunk, values)), chunk))
    return tally.record()


def leaning_words(record: LeanRecord) -> str:
    """The record in words."""
    return (
        f"errors lean {record.towards} by {shown_short(record.mean)} ulp on average over "
        f"{record.elements} elements; rounding to nearest does not lean, truncation leans by 0.5"
    )


def truncated(chunk: Chunk) -> NDArray[np.float64]:
    """The reference cut to the output's dtype, towards zero."""
    rounded = chunk.want_native
    beyond: NDArray[np.bool_] = np.abs(widened(rounded)) > chunk.magnitude
    bits = bits_of(rounded)
    inner = widened((bits - beyond.astype(bits.dtype)).view(rounded.dtype))
    return np.where(beyond & np.isnan(inner), 0.0, inner)


def half_up(chunk: Chunk) -> NDArray[np.float64]:
    """The reference rounded to nearest, halves away from zero."""
    rounded = widened(chunk.want_native)
    # Of a tie alone the number on its other side, as far away, is one of the format.
    other = 2 * chunk.reference - rounded
    tie = np.isfinite(rounded) & (other != rounded)
    tie &= widened(chunk.target.round(other)) == other
    return np.where(tie & (np.abs(other) > np.abs(rounded)), other, rounded)


def two_ulp(chunk: Chunk) -> NDArray[np.float64]:
    """The reference rounded, and two ulp away from that, away from zero."""
    return np.asarray(chunk.want + np.copysign(2 * chunk.ulp, chunk.reference))


_WRONG: dict[str, tuple[Wrong, str]] = {
    TRUNCATED: (truncated, "rounded towards zero"),
    HALF_UP: (half_up, "halves rounded away from zero"),
    TWO_ULP: (two_ulp, "all elements two ulp off"),
}


def try_roundings(
    target: Target, checks: list[ResolvedCheck], given: Given, *, nearest: bool
) -> list[MutantRecord]:
    """What the checks make of outputs that are rounded otherwise; no verdict hangs on them.

    nearest: whether the spec asks for rounding to nearest even, so that leaning errors refute.
    """
    if target.form is None or target.constant is not None or target.dtype == "float64":
        return []
    kinds = _WRONG if is_narrow(target) else {TWO_ULP: _WRONG[TWO_ULP]}
    sample = list(_sample(target))
    return [_tried(kind, sample, checks, given, nearest=nearest) for kind in kinds]


def _sample(target: Target) -> Iterator[Chunk]:
    """Chunks that all kinds are tried on: they share what they ask of these."""
    size = 0
    for chunk in target.chunks():
        yield chunk
        size += chunk.reference.size
        if size >= _SAMPLE:
            return


def _tried(
    kind: str, sample: list[Chunk], checks: list[ResolvedCheck], given: Given, *, nearest: bool
) -> MutantRecord:
    make, detail = _WRONG[kind]
    excused, refined = given
    target = sample[0].target
    tried = differing = 0
    by = ""
    with np.errstate(all="ignore"):
        for chunk in sample:
            values = target.round(make(chunk))
            part = None if refined is None else refined[chunk.index]
            compared = Compared(chunk, values, part_of(excused, chunk), part)
            tried += values.size
            differing += int(np.count_nonzero(compared.differs))
            by = by or _rejecting(compared, checks)
    if not by and nearest and kind == TRUNCATED and _lean(target, make):
        by = "the rounding that the spec states"
    status: Status = "rejected" if by else "accepted" if differing else "not-eligible"
    detail = f"{detail}; {differing} of {tried} elements change"
    detail += f"; rejected by {by}" if by else ""
    return MutantRecord(
        output=target.name, kind=kind, status=status, detail=detail, shown_only=True
    )


def _rejecting(compared: Compared, checks: list[ResolvedCheck]) -> str:
    """The first judging check that rejects what is compared with the reference; empty for none."""
    for check in checks:
        asked = check.judges and not check.of_whole and check.against == "reference"
        if asked and bool((values_of(check, compared) > check.limit).any()):
            return check.label
    return ""
