"""Judging the values of one output: every repetition against its standards, and what fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.case import BufferPlan, RunResult
from tokitai_cli.core.model.judged import (
    ChangesRecord,
    CheckRecord,
    MutantRecord,
    OutputRecord,
    PatternRecord,
    StructureRecord,
)
from tokitai_cli.core.numerics import bits_of, same_bytes
from tokitai_cli.judge.checks.compared import Mask
from tokitai_cli.judge.checks.output_checks import CheckTally, ResolvedCheck
from tokitai_cli.judge.checks.target import Target
from tokitai_cli.judge.element_walk import Gathered, Given, walked
from tokitai_cli.judge.failures import STEP_NUMBERS, STEP_STRUCTURE, STEP_UNWRITTEN, Failure
from tokitai_cli.judge.findings import check_reason, place_words
from tokitai_cli.judge.pattern import pattern_of
from tokitai_cli.judge.repetition import Repetition
from tokitai_cli.judge.structure import (
    Difference,
    can_tell_unwritten,
    difference,
    never_written,
    never_written_failure,
)


class OutputJudgement(msgspec.Struct, frozen=True):
    """One output. `open` says why it could not be judged though nothing failed, "" where it was."""

    record: OutputRecord
    mutants: list[MutantRecord]
    failures: list[Failure]
    undecided: str = ""
    difference: Difference | None = None
    replayed: int | None = None
    changes: ChangesRecord | None = None


class Standards(msgspec.Struct, frozen=True):
    """What the values of one output are held against."""

    reference: Target
    replayed: Target | None
    checks: list[ResolvedCheck]
    #: Elements that may hold anything if unwritten.
    excused: Mask | None
    #: Of each repetition, the error of the reference where a second look made it narrower.
    refined: Sequence[NDArray[np.float64] | None]
    #: The checks once more, after the walk: of a large reference they tell more then.
    again: Callable[[], list[ResolvedCheck]]

    @property
    def targets(self) -> tuple[Target, Target | None]:
        """The reference, and the replay where there is one."""
        return self.reference, self.replayed

    @property
    def first(self) -> tuple[Mask | None, NDArray[np.float64] | None]:
        """What wrong outputs are tried with: the excused elements, and the first repetition's error."""
        return self.excused, self.refined[0]


def flat(buffer: BufferPlan, array: NDArray[Any]) -> NDArray[Any]:
    """The array as one row; truth values as bytes."""
    row = np.ascontiguousarray(array).reshape(-1)
    return row.view(np.uint8) if buffer.dtype == "bool" else row


def judge_values(
    buffer: BufferPlan, result: RunResult, standards: Standards, gather: Callable[[], Gathered]
) -> tuple[OutputJudgement, Gathered]:
    """Judge every repetition; also what was met on the way, added to what `gather` gives."""
    refined, excused = standards.refined, standards.excused
    arrays = [flat(buffer, outputs[buffer.name]) for outputs in result.outputs]
    bits = [bits_of(array) for array in arrays]
    # Equal bytes need no second look: they get the same answer, and an element that kept its fill
    # would differ from its complement.
    differing = [
        number
        for number in range(1, len(bits))
        if not same_bytes(bits[number], bits[0]) or not _equal(refined[number], refined[0])
    ]
    unwritten = never_written(buffer, bits, result.fills) if differing else None

    def tallies() -> list[Repetition]:
        return [
            Repetition(number, buffer, standards.reference, standards.checks, refined[number])
            for number in (0, *differing)
        ]

    given = Given(arrays, unwritten, excused)
    repetitions, gathered = walked(tallies, gather, given, standards.targets)
    checks = standards.checks
    if standards.reference.by_windows is not None:
        checks = standards.again()
        for one in repetitions:
            one.told_more(checks)
    changed = difference(buffer, arrays, differing, unwritten)
    chosen = next((one for one in repetitions if not one.passed), repetitions[0])

    left = 0
    if unwritten is not None and excused is not None:
        left = int(np.count_nonzero(unwritten & excused))
        unwritten &= ~excused
    failures, structure, pattern = _failures(buffer, chosen, unwritten, arrays)
    record = OutputRecord(
        name=buffer.name,
        dtype=buffer.dtype,
        shape=list(buffer.shape),
        elements=buffer.elements,
        passed=not failures,
        structure=structure,
        checks=_check_records(chosen, checks, can_tell_unwritten(buffer, result.fills)),
        metrics=chosen.metrics.record(),
        pattern=pattern,
        unwritten=left,
    )
    return OutputJudgement(record, [], failures, difference=changed), gathered


def _equal(left: NDArray[np.float64] | None, right: NDArray[np.float64] | None) -> bool:
    return left is right or (left is not None and right is not None and np.array_equal(left, right))


def _failures(
    buffer: BufferPlan, chosen: Repetition, unwritten: Mask | None, arrays: Sequence[NDArray[Any]]
) -> tuple[list[Failure], list[StructureRecord], PatternRecord | None]:
    """Put together what is wrong; `arrays` are the values of each repetition."""
    failures: list[Failure] = []
    structure: list[StructureRecord] = []
    if unwritten is not None and unwritten.any():
        value = float(arrays[0][int(np.argmax(unwritten))])
        structure.append(never_written_failure(buffer, unwritten, value))
        chosen.mark(slice(None), unwritten)
    pattern = None
    if chosen.failing is not None:
        got = None if structure else arrays[chosen.number]  # what was not written is a fill
        pattern = pattern_of(chosen.failing, buffer.shape, got)
    for one in structure:
        text = f"{buffer.name}: {one.message}{place_words(pattern)}"
        failures.append(Failure(STEP_UNWRITTEN, text, "unwritten", buffer.name))
    for one in chosen.structure.records():
        structure.append(one)
        text = f"{buffer.name}: {one.message}{place_words(pattern)}{chosen.shown}"
        failures.append(Failure(STEP_STRUCTURE, text, array=buffer.name))
    for tally in chosen.failed_checks:
        record = tally.record()
        text = check_reason(buffer.name, record, tally.bias.means)
        text += place_words(pattern) + chosen.shown
        failures.append(Failure(STEP_NUMBERS, text, array=buffer.name, metric=record.metric))
    return failures, structure, pattern


def form_record(
    buffer: BufferPlan, structure: list[StructureRecord], *, passed: bool = False
) -> OutputRecord:
    """Return the record of an output of which no value could be compared."""
    return OutputRecord(
        name=buffer.name,
        dtype=buffer.dtype,
        shape=list(buffer.shape),
        elements=buffer.elements,
        passed=passed,
        structure=structure,
        checks=[],
        metrics=None,
        pattern=None,
    )


def _check_records(
    repetition: Repetition, checks: Sequence[ResolvedCheck], note: str
) -> list[CheckRecord]:
    """All checks in the order of the spec; the first carries what holds for the whole output."""
    tallies = iter(repetition.tallies)
    records: list[CheckRecord] = []
    for check in checks:
        tally = CheckTally(check, repetition.metrics.target) if check.missing else next(tallies)
        record = tally.record()
        notes = [record.note, "" if records else note]
        if repetition.number and not record.passed:
            notes.append(f"repetition {repetition.number}")
        text = "; ".join(part for part in notes if part)
        passed = record.passed and not check.missing
        records.append(msgspec.structs.replace(record, note=text, passed=passed))
    return records
