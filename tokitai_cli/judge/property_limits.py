"""Properties: identities of the outputs, judged with the limits that the oracle derived for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import parallel
from tokitai_cli.core.model.expectation import Deviations, StatedProperty
from tokitai_cli.core.model.judged import PropertyRecord
from tokitai_cli.core.numerics import same_bytes
from tokitai_cli.core.workers import Work, Workers
from tokitai_cli.judge.checks.numbers import number, shown, shown_index, shown_short

Outputs = Mapping[str, NDArray[Any]]
# Blocks of the stated rows that a worker looks at at once.
_STEPS = 4


class PropertyJudgement(msgspec.Struct, frozen=True):
    """The record of a property, and why it refutes, empty where it holds."""

    record: PropertyRecord
    failure: str


class _Worst(msgspec.Struct, frozen=True):
    """The place that exceeds its limit most, or is nearest to it."""

    severity: float
    repetition: int
    index: list[int]
    distance: float
    got: float
    want: float
    limit: float
    exceeding: int
    judged: int


def judge_property(
    stated: StatedProperty, repetitions: Sequence[Outputs], others: Sequence[Outputs] = ()
) -> PropertyJudgement | None:
    """Judge a property over all repetitions; None where no place of it could be judged.

    `others` are the outputs of the run on changed inputs, repetition by repetition.
    """
    tally = PropertyTally(stated, repetitions, others)
    tally.take(range(stated.rows))
    return tally.judgement()


class PropertyTally:
    """A property over all repetitions, rows by rows."""

    def __init__(
        self, stated: StatedProperty, repetitions: Sequence[Outputs], others: Sequence[Outputs] = ()
    ) -> None:
        self.stated = stated
        runs = [runs for runs in (repetitions, others) if runs]
        self._asked = [
            (at, outputs, others[at] if others else {})
            for at, outputs in enumerate(repetitions)
            # Equal bytes get the same answer.
            if not at
            or not all(_same(one[at][stated.output], one[0][stated.output]) for one in runs)
        ]
        self._found: list[list[_Worst]] = [[] for _ in self._asked]
        self._next = 0
        self._work: Work[range, list[list[_Worst]]] | None = None

    def begin(self, workers: Workers) -> None:
        """See `core.deferred.Rider`."""
        if not self.stated.adds_up:
            self._work = workers.work(self._by_itself)

    def take(self, rows: range) -> None:
        """Take in some rows, which follow those before."""
        step = self.stated.step
        parts = [rows]
        if self._work is not None:
            size = step * _STEPS
            parts = [range(first, min(first + size, rows.stop)) for first in rows[::size]]
        each = map(self._measured, parts) if self._work is None else self._work.in_order(parts)
        for measured in each:
            for found, some in zip(self._found, measured, strict=True):
                found.extend(some)

    def _by_itself(self, rows: range) -> list[list[_Worst]]:
        with parallel.sharing(1):
            return self._measured(rows)

    def _measured(self, rows: range) -> list[list[_Worst]]:
        """The worst places of some rows, by the outputs that are asked about."""
        found = []
        with np.errstate(all="ignore"):
            for at, outputs, other in self._asked:
                parts = (_worst(at, part) for part in self.stated.deviations(outputs, other, rows))
                found.append([part for part in parts if part is not None])
        return found

    def advance(self, stop: int) -> int:
        """See `core.deferred.Rider`; positions are those of the output."""
        rows, output = self.stated.rows, self._asked[0][1][self.stated.output]
        width = output.size // max(rows, 1)
        last = stop // max(width, 1)
        if last < rows:
            last -= last % self.stated.step
        if last > self._next:
            self.take(range(self._next, last))
            self._next = last
        return self._next * width

    def judgement(self) -> PropertyJudgement | None:
        """What was found; None where no place could be judged."""
        found = [_joined(parts) for parts in self._found if parts]
        if not found:
            return None
        chosen = max(found, key=lambda one: one.severity)
        passed = not any(one.exceeding for one in found)
        detail = _detail(self.stated, chosen)
        record = PropertyRecord(
            name=self.stated.name,
            output=self.stated.output,
            value=number(chosen.distance),
            limit=number(chosen.limit),
            passed=passed,
            detail=detail,
            runs=2 if self.stated.changed else 1,
        )
        said = f"{self.stated.output}: {self.stated.name} does not hold: {detail}"
        return PropertyJudgement(record, "" if passed else said)


def _same(left: NDArray[Any], right: NDArray[Any]) -> bool:
    if (left.dtype, left.shape) != (right.dtype, right.shape):
        return False
    return same_bytes(left, right)


def _worst(repetition: int, found: Deviations) -> _Worst | None:
    distance = np.abs(found.got - found.want)
    distance[np.isnan(distance)] = np.inf
    judged = np.ones(distance.shape, dtype=bool) if found.judged is None else found.judged
    count = int(np.count_nonzero(judged))
    if not count:
        return None
    severity = np.where(distance == 0, 0.0, distance / found.limit)
    severity = np.where(judged, severity, -1.0)
    place = int(np.argmax(severity))
    flat = (array.reshape(-1)[place] for array in (severity, distance, found.got, found.want))
    worst, far, got, want = map(float, flat)
    index = [int(part) for part in np.unravel_index(place, distance.shape)]
    index[0] += found.first
    return _Worst(
        severity=worst,
        repetition=repetition,
        index=index,
        distance=far,
        got=got,
        want=want,
        limit=float(found.limit.reshape(-1)[place]),
        exceeding=int(np.count_nonzero(judged & (distance > found.limit))),
        judged=count,
    )


def _joined(parts: Sequence[_Worst]) -> _Worst:
    """The worst of all parts, the first of equals, with the counts of all."""
    worst = max(parts, key=lambda one: one.severity)
    exceeding, judged = (
        sum(getattr(one, name) for one in parts) for name in ("exceeding", "judged")
    )
    return msgspec.structs.replace(worst, exceeding=exceeding, judged=judged)


def _detail(stated: StatedProperty, worst: _Worst) -> str:
    word = "exceeds" if worst.distance > worst.limit else "is within"
    text = (
        f"{stated.places} {shown_index(worst.index)}: {shown(worst.got)}, want {shown(worst.want)}, "
        f"difference {shown_short(worst.distance)} {word} the limit {shown_short(worst.limit)}; "
        f"{worst.exceeding} of {worst.judged} {stated.places}s exceed theirs"
    )
    if stated.change:
        text += f"; compared with a run with {stated.change}"
    return text + (f", in repetition {worst.repetition}" if worst.repetition else "")
