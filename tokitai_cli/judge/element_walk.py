"""The walk: all chunks of an output's reference and replay, each looked at once.

Chunks are measured by several threads, each to small records; what follows from them is gathered in
the order of the chunks, so that evidence does not hang on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import parallel
from tokitai_cli.core.numerics import MUST_BE_FINITE
from tokitai_cli.judge.checks.compared import Compared, Mask, part_of
from tokitai_cli.judge.checks.reference_tally import (
    BoundTally,
    Part,
    Sizes,
    Summary,
    part_of_summary,
)
from tokitai_cli.judge.checks.target import Chunk, Target
from tokitai_cli.judge.repetition import Measured, Repetition
from tokitai_cli.judge.roundings import Leans, LeanTally


class Gathered(msgspec.Struct):
    """What the walk gathers beside the repetitions: of the reference, and of the first one's errors."""

    summary: Summary
    #: Size of the bound, where a check judges by it.
    own: BoundTally | None
    lean: LeanTally | None
    #: Elements that must be finite in the output's dtype.
    finite: int = 0


class Given(NamedTuple):
    """What is walked over: the repetitions' flat arrays, and elements that are left out or excused."""

    arrays: Sequence[NDArray[Any]]
    skip: Mask | None
    excused: Mask | None


class _Seen(NamedTuple):
    """One chunk of the reference or the replay, measured."""

    chunk: Chunk
    repetitions: list[Measured]
    summary: Part | None = None
    sizes: Sizes = ()
    leans: Leans | None = None
    finite: int = 0


def walk(
    repetitions: Sequence[Repetition],
    given: Given,
    targets: tuple[Target, Target | None],
    gathered: Gathered,
) -> None:
    """Go once over reference and replay; all repetitions share what is computed of a chunk."""
    for against, target in zip(("reference", "replay"), targets, strict=True):
        if target is None:
            continue
        look = _Look(repetitions, given, against, gathered)
        for seen in parallel.in_order(look, target.chunks()):
            for repetition, part in zip(repetitions, seen.repetitions, strict=True):
                repetition.add(part, against)
            if seen.summary is None:
                continue
            gathered.summary.add(seen.summary)
            gathered.finite += seen.finite
            if gathered.own is not None:
                gathered.own.add(seen.sizes)
            if gathered.lean is not None and seen.leans is not None:
                gathered.lean.add(seen.leans, seen.chunk)


class _Look:
    """Measures a chunk; changes nothing."""

    def __init__(
        self, repetitions: Sequence[Repetition], given: Given, against: str, gathered: Gathered
    ) -> None:
        self.repetitions = repetitions
        self.given = given
        self.against = against
        self.gathered = gathered

    def __call__(self, chunk: Chunk) -> _Seen:
        # A thread of its own has no say of the caller's in numpy 1.26.
        with np.errstate(all="ignore"):
            measured = [self._repetition(chunk, one) for one in self.repetitions]
            if self.against != "reference":
                return _Seen(chunk, measured)
            own, lean = self.gathered.own, self.gathered.lean
            finite = chunk.reference.size
            if chunk.classes is not None:
                finite = int(np.count_nonzero(chunk.classes == MUST_BE_FINITE))
            return _Seen(
                chunk,
                measured,
                part_of_summary(chunk, part_of(self.given.excused, chunk)),
                () if own is None else own.measured(chunk),
                None if lean is None else lean.measured(self._first(chunk, measured)),
                finite,
            )

    def _repetition(self, chunk: Chunk, repetition: Repetition) -> Measured:
        got = self.given.arrays[repetition.number][chunk.index]
        refined = repetition.refined if self.against == "reference" else None
        part = None if refined is None else refined[chunk.index]
        compared = Compared(chunk, got, part_of(self.given.skip, chunk), part)
        return repetition.measured(compared, self.against)

    def _first(self, chunk: Chunk, measured: Sequence[Measured]) -> Compared:
        """The first repetition, with the elements that the others leave out."""
        compared = measured[0].compared
        return compared if compared.skip is None else Compared(chunk, compared.native)
