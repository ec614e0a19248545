"""What came of a case, and of its passes under several tools as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from numpy.typing import NDArray

from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.judged import FindingRecord, RepeatRecord

Outputs = Mapping[str, NDArray[Any]]


class CaseOutcome(msgspec.Struct, frozen=True):
    """Record of a case, and what of it differs from run to run."""

    record: CaseRecord
    times_ns: tuple[int, ...] = ()
    log: str = ""
    seconds: dict[str, float] = msgspec.field(default_factory=dict)
    #: Those of the first repetition, where they were asked for.
    outputs: Outputs | None = None
    oracle_log: str = ""
    #: Inputs, and outputs of all repetitions.
    arrays_bytes: int = 0


def merged(first: CaseOutcome, second: CaseOutcome) -> CaseOutcome:
    """One outcome of a case in two passes: the worse verdict, all findings and examinations."""
    one, other = first.record, second.record
    worse, better = (other, one) if other.verdict.rank < one.verdict.rank else (one, other)
    record = msgspec.structs.replace(
        worse,
        build=one.build or other.build,
        findings=_joined(one.findings, other.findings),
        examined=list(dict.fromkeys([*one.examined, *other.examined])),
        inputs=worse.inputs or better.inputs,
        outputs=worse.outputs or better.outputs,
        mutants=worse.mutants or better.mutants,
        changes=worse.changes or better.changes,
        repeats=max(one.repeats, other.repeats, key=_repetitions),
        properties=worse.properties or better.properties,
        replay_fraction=one.replay_fraction
        if other.replay_fraction is None
        else other.replay_fraction,
        known_bug=worse.known_bug or better.known_bug,
        debug=worse.debug or better.debug,
        saved_arrays=worse.saved_arrays or better.saved_arrays,
    )
    seconds = {
        stage: first.seconds.get(stage, 0.0) + second.seconds.get(stage, 0.0)
        for stage in {**first.seconds, **second.seconds}
    }
    log = "\n".join(text for text in (first.log, second.log) if text)
    return msgspec.structs.replace(first, record=record, log=log, seconds=seconds)


def _joined(*passes: Sequence[FindingRecord]) -> list[FindingRecord]:
    """Findings of passes; what several tell of one place is told once."""
    found: dict[tuple[str, ...], FindingRecord] = {}
    for one in (one for findings in passes for one in findings):
        found.setdefault((one.kind, one.location or one.message, one.kernel), one)
    return list(found.values())


def _repetitions(repeats: RepeatRecord | None) -> tuple[bool, int]:
    """Order of what two passes tell of repetitions: bits that were compared say more."""
    if repeats is None:
        return False, 0
    return repeats.bitwise_equal is not None, repeats.repetitions
