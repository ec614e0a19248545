"""`recheck FILE`: saved arrays judged again, with other limits too; nothing is run."""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli import judge
from tokitai_cli.audit.consistency import recalled
from tokitai_cli.audit.opened import inside_bytes, opened
from tokitai_cli.core import native
from tokitai_cli.core.dtypes import DTYPES, numpy_dtype
from tokitai_cli.core.errors import EvidenceError, Location, TokitaiError, UsageError, near
from tokitai_cli.core.fills import fills_of, name_of
from tokitai_cli.core.model.audit_answer import Answer, Grid, Remark
from tokitai_cli.core.model.case import Case, LoadedSpec, Role, RunResult
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.expectation import Expectation, Replay
from tokitai_cli.core.model.judged import Number
from tokitai_cli.core.model.metrics import METRICS
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import number, plural
from tokitai_cli.core.numerics import array_sha256
from tokitai_cli.run.saved_arrays import CHAINED, REPLAY, REPLAYED_ROWS, saved_expectation
from tokitai_cli.spec import plan

_MOST_FILLS = 1000
_HEADS = ("case", "check", "output", "against", ">value", ">limit", ">exceeding", "result")

Arrays = Mapping[str, NDArray[Any]]


def recheck(file: str, limits: Sequence[str] = ()) -> Answer:
    """Judge every case whose arrays are beside the file; fine where all pass.

    limits: METRIC=VALUE, in place of the spec's. Raises EvidenceError and UsageError.
    """
    path, wanted = Path(file), _limits(limits)
    found = opened(path)
    cases = [case for case in found.cases if case.saved_arrays]
    if not cases:
        hint = "run it with --save-all-arrays, or with --save-arrays for those that fail"
        raise UsageError("it has no saved arrays", where=Location(path), hint=hint)
    rows: list[tuple[str, ...]] = []
    remarks: list[Remark] = []
    failed = 0
    for case in cases:
        judgement = _judged(found, case, path, wanted)
        faults = [] if wanted else list(_unlike(case, judgement))
        refuted = judgement.verdict is Verdict.REFUTED and not case.guesses
        failed += refuted
        told = (
            judgement.reason if judgement.verdict is not Verdict.VERIFIED else "every check passed"
        )
        if judgement.verdict is Verdict.REFUTED and case.guesses:  # further runs may have shown it
            guessed = case.guesses[0]
            told = f"{told}; it depends on a guess, {guessed.about} in {guessed.place}"
        remarks.append(Remark(f"{case.key}: {told}", fault=refuted))
        remarks += [Remark(f"{case.key}: {text}", fault=True) for text in faults]
        rows += [
            (case.key, check.metric, output.name, check.against, number(check.value),
             number(check.limit), number(check.exceeding), _result(check.judges, check.passed))
            for output in judgement.outputs
            for check in output.checks
        ]  # fmt: skip
    remarks += map(Remark, _not_asked(found, cases))
    text = f"{plural(len(cases), 'case')} of {len(found.cases)} judged again, {failed} refuted"
    return Answer(text, not any(one.fault for one in remarks), remarks, [Grid(_HEADS, rows)])


def _unlike(case: CaseRecord, judgement: judge.Judgement) -> Iterator[str]:
    """Checks whose record says otherwise than its arrays."""
    again = {
        (output.name, check.metric, check.against): check
        for output in judgement.outputs
        for check in output.checks
    }
    for output in case.outputs:
        for check in output.checks:
            mine = again.get((output.name, check.metric, check.against))
            if mine is None:
                yield f"{check.metric} of {output.name} cannot be judged from what was saved"
            elif (mine.passed, mine.exceeding) != (check.passed, check.exceeding) or not _alike(
                mine.value, check.value
            ):
                says, gives = number(check.value), number(mine.value)
                yield f"the record says {check.metric} {says} of {output.name}, its arrays {gives}"


def _alike(a: Number | None, b: Number | None) -> bool:
    """Equal but for what another numpy may round otherwise."""
    if a is None or b is None:
        return a is b
    first, second = float(a), float(b)
    return math.isclose(first, second, rel_tol=1e-9) or (math.isnan(first) and math.isnan(second))


def _not_asked(evidence: Evidence, judged: Sequence[CaseRecord]) -> Iterator[str]:
    """What recheck leaves open."""
    if left := len(evidence.cases) - len(judged):
        yield (
            f"{plural(left, 'case')} without saved arrays were not judged again: "
            "--save-all-arrays of the run keeps them"
        )
    yield "whether these checks would have rejected a wrong output was not tested again"
    if names := sorted({one.name for case in judged for one in case.properties}):
        yield f"properties were not tested again: {', '.join(names)}"
    if tools := sorted({one.tool for case in judged for one in case.findings}):
        yield f"memory errors and races were not searched for again: {', '.join(tools)}"
    yield "inputs and expected values are as they were saved; `reproduce` computes them again"


def _result(judges: bool, passed: bool) -> str:
    return ("passed" if passed else "failed") if judges else "reported only"


def _limits(given: Sequence[str]) -> dict[str, float]:
    found = {}
    for text in given:
        metric, _, value = text.partition("=")
        if metric not in METRICS or not METRICS[metric].limited:
            known = [name for name, one in METRICS.items() if one.limited]
            raise UsageError(f"--limit {text}: not a metric with a limit", hint=near(metric, known))
        try:
            limit = float(value)
        except ValueError:
            limit = -1.0
        if not 0 <= limit < float("inf"):
            raise UsageError(f"--limit {text}: no limit", hint=f"write {metric}=2, say")
        found[metric] = limit
    return found


def _judged(
    evidence: Evidence, record: CaseRecord, path: Path, limits: Mapping[str, float]
) -> judge.Judgement:
    loaded = recalled(evidence.specs[record.spec]) if record.spec in evidence.specs else None
    if loaded is None or record.variant not in loaded.spec.variants:
        raise EvidenceError(f"has no spec of {record.key} that is read here", where=Location(path))
    try:
        case = plan.case_of(
            _loosened(loaded, record.variant, limits),
            record.variant,
            record.shape,
            record.profile,
            record.seed,
            empty=not any(output.elements for output in record.outputs),
        )
        arrays = _loaded(record, path)
        got = _got(case, record, arrays, path)
        expectations, replays = _expected(case, arrays, got)
        with native.by_numpy():
            return judge.judge(case, expectations, replays, got)
    except EvidenceError:
        raise
    except (TokitaiError, ValueError, TypeError, LookupError, ArithmeticError) as error:
        message = f"has arrays or a spec of {record.key} that do not fit: {error}"
        raise EvidenceError(message, where=Location(path)) from error


def _loosened(loaded: LoadedSpec, name: str, limits: Mapping[str, float]) -> LoadedSpec:
    variant = loaded.spec.variants[name]
    checks = [
        msgspec.structs.replace(one, limit=limits[one.metric]) if one.metric in limits else one
        for one in variant.checks
    ]
    variants = {name: msgspec.structs.replace(variant, checks=checks)}
    given = msgspec.structs.replace(loaded.spec, variants=variants)
    return msgspec.structs.replace(loaded, spec=given)


def _loaded(record: CaseRecord, path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a case by name. Raises EvidenceError for others than were saved."""
    arrays = {}
    for one in record.saved_arrays:
        data = inside_bytes(path.parent, one.file, path)
        try:
            array = np.load(io.BytesIO(data), allow_pickle=False)
        except (ValueError, EOFError, OSError, SyntaxError, OverflowError, MemoryError) as error:
            raise EvidenceError(
                f"is not an array: {error}", where=Location(path.parent / one.file)
            ) from error
        if one.dtype in DTYPES and array.dtype != numpy_dtype(one.dtype):
            array = array.astype(numpy_dtype(one.dtype))
        if list(array.shape) != one.shape or array_sha256(array) != one.sha256:
            message = "is not the array that was saved: its digest differs"
            raise EvidenceError(message, where=Location(path.parent / one.file))
        arrays[one.name] = array
    return arrays


def _expected(
    case: Case, arrays: Arrays, got: RunResult
) -> tuple[dict[str, Expectation], dict[str, Replay]]:
    expectations, replays = {}, {}
    for buffer in case.buffers_of(Role.OUTPUT, Role.INOUT):
        name = buffer.name
        expectation = saved_expectation(buffer, arrays)
        chained = [
            arrays[key]
            for key in (f"{CHAINED}_{name}_{at}" for at in range(len(got.outputs)))
            if key in arrays
        ]
        if expectation is not None:
            whole = len(chained) == len(got.outputs)
            refine = functools.partial(_chained, got, chained) if whole else None
            expectations[name] = msgspec.structs.replace(expectation, refine=refine)
        if (replay := arrays.get(f"{REPLAY}_{name}")) is not None:
            replays[name] = Replay(replay, arrays.get(f"{REPLAYED_ROWS}_{name}"))
    return expectations, replays


def _chained(
    got: RunResult, errors: Sequence[NDArray[Any]], outputs: Arrays
) -> NDArray[np.float64]:
    """The saved error of the repetition whose outputs these are."""
    at = next(at for at, one in enumerate(got.outputs) if one is outputs)
    return np.asarray(errors[at], np.float64)


def _got(case: Case, record: CaseRecord, arrays: Arrays, path: Path) -> RunResult:
    """What the kernel gave, repetition by repetition, with the fill that each began with."""
    names = [buffer.name for buffer in case.buffers_of(Role.OUTPUT, Role.INOUT)]
    outputs: list[dict[str, NDArray[Any]]] = []
    while f"got_{names[0]}_{len(outputs)}" in arrays:
        outputs.append({name: arrays[f"got_{name}_{len(outputs)}"] for name in names})
    if not outputs:
        message = f"has no output of {record.key}: it did not finish"
        raise EvidenceError(message, where=Location(path))
    known = {name_of(fill): fill for fill in fills_of(_MOST_FILLS)}
    told = record.repeats.sentinels if record.repeats else []
    fills = tuple(known.get(word, at) for at, word in enumerate(told)) or fills_of(len(outputs))
    return RunResult(tuple(outputs), fills[: len(outputs)], ())
