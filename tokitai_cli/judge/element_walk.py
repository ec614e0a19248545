"""The walk: all chunks of an output's reference and replay, each looked at once.

Chunks are measured by several threads, large targets by worker processes, each to small records; what
follows from them is gathered in the order of the chunks, so that evidence does not hang on the number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import native
from tokitai_cli.core.numerics import MUST_BE_FINITE
from tokitai_cli.core.workers import Work, Workers
from tokitai_cli.judge import native_walk
from tokitai_cli.judge.checks.compared import Compared, Mask, part_of
from tokitai_cli.judge.checks.reference_tally import (
    BoundTally,
    Part,
    Sizes,
    Summary,
    part_of_summary,
)
from tokitai_cli.judge.checks.target import CHUNK, Chunk, Index, Target
from tokitai_cli.judge.repetition import Measured, Repetition
from tokitai_cli.judge.roundings import Leaning, Leans, LeanTally

# Elements of a target from which worker processes are worth their start.
_LARGE = 1 << 22
# Of so many chunks of the compiled pass one is measured by numpy too.
_BOTH = 64


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

    repetitions: list[Measured]
    summary: Part | None = None
    sizes: Sizes = ()
    leans: Leans | None = None
    finite: int = 0
    #: Of `leans` what is gathered.
    leaning: Leaning | None = None


class _Known(NamedTuple):
    """What is known of the chunks before when one is measured: it need not be measured again."""

    #: By repetition and check the floor of the worst values.
    floors: list[list[float]]
    enough_leans: bool


class _Asked(NamedTuple):
    """Which chunk is to be measured, and what is known."""

    where: Index
    known: _Known


def walked(
    tallies: Callable[[], list[Repetition]],
    gather: Callable[[], Gathered],
    given: Given,
    targets: tuple[Target, Target | None],
) -> tuple[list[Repetition], Gathered]:
    """The repetitions, and what is gathered, after a walk; both where one fails, by numpy too.

    A large case of which a repetition fails is judged again, as a whole: not here.
    """
    repetitions, gathered = tallies(), gather()
    _walk(repetitions, given, targets, gathered)
    if targets[0].by_windows is not None:
        return repetitions, gathered
    if not native_walk.can_measure(targets[0]) or all(one.passed for one in repetitions):
        return repetitions, gathered
    again, anew = tallies(), gather()
    with native.by_numpy():
        _walk(again, given, targets, anew)
    for one, other in zip(repetitions, again, strict=True):
        native_walk.require_same("metrics", one.metrics.record(), other.metrics.record())
        records = ([tally.record() for tally in each.tallies] for each in (one, other))
        native_walk.require_same("checks", *records)
    return again, anew


def _walk(
    repetitions: Sequence[Repetition],
    given: Given,
    targets: tuple[Target, Target | None],
    gathered: Gathered,
) -> None:
    """Go once over reference and replay; all repetitions share what is computed of a chunk."""
    for against, target in zip(("reference", "replay"), targets, strict=True):
        if target is None:
            continue
        look = _Look(repetitions, given, target, against, gathered)
        with Workers() as workers:
            work = workers.work(look)
            if target.by_windows is None and target.size >= _LARGE:
                workers.start()  # else whoever computes the windows does, with work of its own
            for chunks in target.windows(workers):
                _walk_window(look, work, chunks)


def _walk_window(look: _Look, work: Work[_Asked, _Seen], chunks: Iterable[Chunk]) -> None:
    """Take in some chunks, which follow those before; none is held when the next window is made."""
    gathered = look.gathered
    for seen in work.in_order(_Asked(chunk.where, look.known()) for chunk in chunks):
        for repetition, part in zip(look.repetitions, seen.repetitions, strict=True):
            repetition.add(part, look.against)
        if seen.summary is None:
            continue
        gathered.summary.add(seen.summary)
        gathered.finite += seen.finite
        if gathered.own is not None:
            gathered.own.add(seen.sizes)
        if gathered.lean is not None and seen.leaning is not None:
            gathered.lean.add(seen.leaning)


class _Look:
    """Measures a chunk, for who gathers it."""

    def __init__(
        self,
        repetitions: Sequence[Repetition],
        given: Given,
        target: Target,
        against: str,
        gathered: Gathered,
    ) -> None:
        self.repetitions = repetitions
        self.given = given
        self.target = target
        self.against = against
        self.gathered = gathered
        self._natively = against == "reference" and native_walk.can_measure(target)

    def known(self) -> _Known:
        """What is known now."""
        lean = self.gathered.lean
        floors = [[tally.floor for tally in one.against(self.against)] for one in self.repetitions]
        return _Known(floors, lean is not None and lean.enough)

    def __call__(self, asked: _Asked) -> _Seen:
        chunk = Chunk(self.target, asked.where)
        self._learn(asked.known)
        # A thread of its own has no say of the caller's in numpy 1.26.
        with np.errstate(all="ignore"):
            seen = self._measured(chunk)
            lean = self.gathered.lean
            if lean is None or seen.leans is None:
                return seen
            return seen._replace(leans=None, leaning=lean.leaning(seen.leans, chunk))

    def _learn(self, known: _Known) -> None:
        """Be up to date: a worker's tallies take nothing in."""
        for repetition, floors in zip(self.repetitions, known.floors, strict=True):
            for tally, floor in zip(repetition.against(self.against), floors, strict=True):
                tally.floor = max(tally.floor, floor)
        if self.gathered.lean is not None:
            self.gathered.lean.enough |= known.enough_leans

    def _measured(self, chunk: Chunk) -> _Seen:
        where = chunk.where
        natively = self._natively and isinstance(where, slice)
        seen = self._by_native(chunk) if natively else None
        if seen is None or not isinstance(where, slice):
            return self._by_numpy(chunk)
        if where.start // CHUNK % _BOTH == 0:
            _require_same(seen, self._by_numpy(Chunk(chunk.target, chunk.where)))
        return seen

    def _by_native(self, chunk: Chunk) -> _Seen | None:
        """By the compiled pass; None where it does not serve this chunk."""
        if part_of(self.given.excused, chunk) is not None:
            return None
        own, found, first = self.gathered.own, list[Measured](), None
        for repetition in self.repetitions:
            compared = self._compared(chunk, repetition)
            stride = own.stride if own is not None and first is None else 0
            leans = self.gathered.lean is not None and first is None
            one = native_walk.measured(compared, repetition.metrics, stride=stride, leans=leans)
            if one is None:
                return None
            first = first or one
            found.append(repetition.measured(compared, self.against, one.metrics))
        assert first is not None  # there is a repetition
        return _Seen(found, first.summary, first.sizes, first.leans, chunk.reference.size)

    def _by_numpy(self, chunk: Chunk) -> _Seen:
        compared = [self._compared(chunk, one) for one in self.repetitions]
        measured = [
            one.measured(part, self.against)
            for one, part in zip(self.repetitions, compared, strict=True)
        ]
        if self.against != "reference":
            return _Seen(measured)
        own, lean = self.gathered.own, self.gathered.lean
        finite = chunk.reference.size
        if chunk.classes is not None:
            finite = int(np.count_nonzero(chunk.classes == MUST_BE_FINITE))
        return _Seen(
            measured,
            part_of_summary(chunk, part_of(self.given.excused, chunk)),
            () if own is None else own.measured(chunk),
            None if lean is None else lean.measured(_with_all(compared[0])),
            finite,
        )

    def _compared(self, chunk: Chunk, repetition: Repetition) -> Compared:
        got = self.given.arrays[repetition.number][chunk.index]
        refined = repetition.refined if self.against == "reference" else None
        part = None if refined is None else refined[chunk.index]
        return Compared(chunk, got, part_of(self.given.skip, chunk), part)


def _with_all(compared: Compared) -> Compared:
    """The same with the elements that are left out."""
    return compared if compared.skip is None else Compared(compared.chunk, compared.native)


def _require_same(native: _Seen, numpy: _Seen) -> None:
    """Raise MismatchError where the compiled pass and numpy's code differ on a chunk."""
    for number, (one, other) in enumerate(zip(native.repetitions, numpy.repetitions, strict=True)):
        native_walk.require_same(f"metrics of repetition {number}", one.metrics, other.metrics)
        # Not the worst elements: which are kept hangs on those that are known by then.
        checks = [
            [(it.elements, it.top, it.exceeds) for it in each.checks] for each in (one, other)
        ]
        native_walk.require_same(f"checks of repetition {number}", *checks)
    for name in ("summary", "sizes", "leans", "finite"):
        native_walk.require_same(name, getattr(native, name), getattr(numpy, name))
