"""Cases whose failures hang on what their spec marks as a guess."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli import judge
from tokitai_cli.core.errors import ChildCrashedError, ChildError, ChildTimeoutError, TokitaiError
from tokitai_cli.core.model.case import Case, Role, RunResult
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.guesses import GUESS
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import shape_text
from tokitai_cli.core.numerics import bits_of
from tokitai_cli.judge import STEP_FINDINGS, Failure, Judgement, Kind
from tokitai_cli.run.case_record import ended
from tokitai_cli.spec import plan

Outputs = Mapping[str, NDArray[Any]]
_MOST = 8  # arrays that are asked for one by one
_FAILED = {Verdict.REFUTED, Verdict.CRASHED, Verdict.TIMED_OUT}
_TRIED, _FEW = 24, 3  # other sizes, and those where runs are slow or a guess explains the failure
_LESS = "if it does not, say by `multiple_of`, `min` and `max` what it takes"


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


def at_guessed_sizes(
    record: CaseRecord, case: Case, run: Callable[[Case], CaseRecord]
) -> CaseRecord:
    """The record of a case; inconclusive, where it may fail only as some of its sizes are a guess.

    run: gives the record of another case. The failure stands if the kernel fails at every round value
    of these sizes that could be tried, too.
    """
    hangs = record.verdict is Verdict.INCONCLUSIVE and bool(record.guesses)
    sizes = judge.guessed_sizes(case) if hangs or record.verdict in _FAILED else []
    if not sizes:
        return record
    others = plan.at_round_sizes(case, [one.name for one in sizes])
    most = _FEW if hangs or record.verdict is Verdict.TIMED_OUT else _TRIED
    told, failed = "", hangs
    for other in itertools.islice(others, most):
        again = run(other)
        shape = shape_text({one.name: other.shape[one.name] for one in sizes})
        if again.verdict is Verdict.VERIFIED:
            told, failed = f"it does not fail at {shape}", False
            break
        failed = failed or again.verdict in _FAILED
        if again.guesses and not told:
            told = f"at {shape} its failures depend on other guesses"
    if failed:
        return record
    told = told or "no round values could be tried"
    first = sizes[0].record
    failure = record.reason.removesuffix(judge.CONFIRM)
    reason = f"{first.about} in {first.place} is a guess ({first.words}); {told}: {failure}"
    reason += f" (if the kernel takes any {sizes[0].name}, remove the mark `{GUESS}`; {_LESS})"
    ended_so = ended(record, Verdict.INCONCLUSIVE, record.stage, reason)
    return msgspec.structs.replace(ended_so, guesses=[one.record for one in sizes])


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
