"""Cases whose failures hang on what their spec marks as a guess."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli import judge
from tokitai_cli.core.errors import ChildCrashedError, ChildError, ChildTimeoutError, TokitaiError
from tokitai_cli.core.model.case import Case, Role, RunResult
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.numerics import bits_of
from tokitai_cli.judge import STEP_FINDINGS, Failure, Judgement, Kind
from tokitai_cli.run.case_record import ended

Outputs = Mapping[str, NDArray[Any]]
_MOST = 8  # arrays that are asked for one by one


def weighed(
    case: Case, judgement: Judgement, outputs: Sequence[Outputs], serve: Callable[..., RunResult]
) -> Judgement:
    """The judgement in the light of the spec's guesses.

    outputs: of each repetition of the case's own run, copied. serve: runs the case again, and takes
    `among_zeros` and `one_fill` as `DeviceSession.serve` does. Where a failure hangs on none by itself,
    further runs show whether the kernel takes in what lies around an array, or what an output held.
    """
    seen = judge.in_light_of_guesses(case, judgement)
    if seen.verdict is not Verdict.REFUTED or not case.loaded.guesses:
        return seen
    try:
        found = _traces(case, outputs, serve)
    except TokitaiError:  # the machine has no more of something: nothing explains the failure
        found = []
    traces = [one for one in found if judge.hanging(case, [one]).guesses]
    return judge.in_light_of_guesses(case, judgement, traces) if traces else seen


def crashed(record: CaseRecord, case: Case, error: ChildError) -> CaseRecord:
    """The record of a case whose child failed: inconclusive, where that hangs on a guess."""
    if not case.loaded.guesses:
        return record
    array = error.array if isinstance(error, ChildCrashedError) else ""
    kind: Kind = "time" if isinstance(error, ChildTimeoutError) else "outside" if array else "crash"
    return in_light(record, case, [Failure(STEP_FINDINGS, str(error), kind, array)])


def in_light(record: CaseRecord, case: Case, failures: Sequence[Failure]) -> CaseRecord:
    """The record of a case with such failures: inconclusive, where all hang on guesses."""
    if not case.loaded.guesses:
        return record
    found = judge.hanging(case, failures)
    verdict = Verdict.INCONCLUSIVE if found.guesses else record.verdict
    return msgspec.structs.replace(
        ended(record, verdict, record.stage, found.reason), guesses=found.guesses
    )


def _traces(
    case: Case, outputs: Sequence[Outputs], serve: Callable[..., RunResult]
) -> list[Failure]:
    """What the outputs depend on and should not; nothing where they differ from run to run."""
    differs = functools.partial(_differs, outputs, serve)
    if differs():
        return []
    inputs = [one.name for one in case.buffers if one.role in (Role.INPUT, Role.SYMBOL)]
    around = []
    if differs(among_zeros=inputs):
        around = [name for name in inputs[:_MOST] if differs(among_zeros=[name])]
    changing = [
        name
        for name in outputs[0]
        if any(not np.array_equal(*_pair(outputs[0], one, name)) for one in outputs[1:])
    ]
    held = []
    if changing:
        try:
            again = serve(one_fill=True).outputs
        except ChildError:
            again = ()
        held = [
            name
            for name in changing
            if again and all(np.array_equal(*_pair(again[0], one, name)) for one in again)
        ]
    return [
        *(
            Failure(STEP_FINDINGS, f"{name}: the contents around it matter", "outside", name)
            for name in around
        ),
        *(
            Failure(STEP_FINDINGS, f"{name}: its previous contents matter", "unset", name)
            for name in held
        ),
    ]


def _differs(first: Sequence[Outputs], serve: Callable[..., RunResult], **changed: Any) -> bool:
    """Whether another run gives other bits, or comes to no end."""
    try:
        other = serve(**changed).outputs
    except ChildError:
        return True
    return any(
        not np.array_equal(*_pair(one, two, name))
        for one, two in zip(first, other, strict=True)
        for name in one
    )


def _pair(one: Outputs, other: Outputs, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    return bits_of(one[name].reshape(-1)), bits_of(other[name].reshape(-1))
