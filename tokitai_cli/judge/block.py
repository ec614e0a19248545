"""Judging a large product: a block of its elements by the checks, all of them by random vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.case import BufferPlan, Case, RunResult
from tokitai_cli.core.model.expectation import Block, Expectation
from tokitai_cli.core.model.judged import SampleRecord
from tokitai_cli.core.numerics import bits_of, same_bytes
from tokitai_cli.judge.failures import STEP_FORM, STEP_NUMBERS, STEP_UNWRITTEN, Failure
from tokitai_cli.judge.freivalds import Proof, factors, proved
from tokitai_cli.judge.output import judged_by_checks
from tokitai_cli.judge.output_values import OutputJudgement, form_record
from tokitai_cli.judge.structure import (
    Difference,
    difference,
    form_failures,
    never_written,
    never_written_failure,
)


def judge_block(
    case: Case, buffer: BufferPlan, expectation: Expectation, block: Block, result: RunResult
) -> OutputJudgement:
    """The checks on the block; of the whole its form, what was written, equal bits, and its proof."""
    if structure := form_failures(buffer, result):
        failures = [Failure(STEP_FORM, structure[0].message, "form", buffer.name)]
        return OutputJudgement(form_record(buffer, structure), [], failures)
    part = msgspec.structs.replace(buffer, shape=(block.rows.size, block.columns.size))
    place = np.ix_(block.rows, block.columns)
    outputs = tuple({**one, buffer.name: one[buffer.name][place]} for one in result.outputs)
    inner = msgspec.structs.replace(expectation, block=None)
    judged = judged_by_checks(
        case, part, inner, None, msgspec.structs.replace(result, outputs=outputs)
    )
    arrays = [np.ascontiguousarray(one[buffer.name]) for one in result.outputs]
    changed, unwritten, differing = _repetitions(buffer, result, arrays)
    failures = [
        msgspec.structs.replace(one, text=f"{one.text} (places among {_words(block)})")
        for one in judged.failures
    ]
    structure = list(judged.record.structure)
    if unwritten is not None and unwritten.any():
        value = float(arrays[0].reshape(-1)[int(np.argmax(unwritten))])
        structure.insert(0, never_written_failure(buffer, unwritten, value))
        text = f"{buffer.name}: {structure[0].message}"
        failures.append(Failure(STEP_UNWRITTEN, text, "unwritten", buffer.name))
    proof = _proof(buffer, block, [arrays[0], *(arrays[number] for number in differing)])
    if proof.failure:
        text = f"{buffer.name}: {proof.failure}"
        failures.append(Failure(STEP_NUMBERS, text, array=buffer.name))
    record = msgspec.structs.replace(
        judged.record,
        shape=list(buffer.shape),
        elements=buffer.elements,
        passed=not failures,
        structure=structure,
        pattern=None,
        sample=SampleRecord(rows=block.rows.size, columns=block.columns.size, proof=proof.record),
    )
    not_covered = judged.undecided or (
        f"{buffer.name}: {proof.undecided}" if proof.undecided else ""
    )
    return msgspec.structs.replace(
        judged, record=record, failures=failures, undecided=not_covered, difference=changed
    )


def _words(block: Block) -> str:
    return f"the {block.rows.size} rows and {block.columns.size} columns that were sampled"


def _repetitions(
    buffer: BufferPlan, result: RunResult, arrays: Sequence[NDArray[Any]]
) -> tuple[Difference | None, NDArray[np.bool_] | None, list[int]]:
    """How repetitions differ over the whole output, what none of them wrote, and which they are."""
    flat = [array.reshape(-1) for array in arrays]
    bits = [bits_of(array) for array in flat]
    differing = [number for number in range(1, len(bits)) if not same_bytes(bits[number], bits[0])]
    unwritten = never_written(buffer, bits, result.fills) if differing else None
    return difference(buffer, flat, differing, unwritten), unwritten, differing


def _proof(buffer: BufferPlan, block: Block, arrays: Sequence[NDArray[Any]]) -> Proof:
    """That of all repetitions with bits of their own: the first that fails."""
    given = factors(block.left, block.right, block.counted)
    found = Proof()
    for array in arrays:
        found = proved(given, array, buffer.dtype)
        if found.failure or found.undecided:
            break
    return found
