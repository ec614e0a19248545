"""Whether the numbers of an output's record are those of one and the same comparison."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping

from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.expectation import ALWAYS_TRIED
from tokitai_cli.core.model.judged import (
    CheckRecord,
    ElementRecord,
    MetricsRecord,
    Number,
    OutputRecord,
)
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.judge.checks.output_checks import WORST_ELEMENTS

# Metrics whose value is the largest error in units of the limit, or that error itself.
_OF_WORST = {"bound", "bound-chained", "bound-prob", "abs"}
# Factor by which numbers that were rounded on their way may differ.
_NEARLY = 1.001
_JUDGED = {Verdict.VERIFIED, Verdict.VACUOUS}


def faults(case: CaseRecord) -> Iterator[str]:
    """Contradictions in what a case says of its outputs."""
    for output in case.outputs:
        if output.passed and (output.structure or any(map(_failed, output.checks))):
            yield f"output {output.name} says passed, but one of its checks failed"
        for check in output.checks:
            told = f"{check.metric} of {output.name}"
            yield from (f"{told}: {text}" for text in _check(output, check))
            if output.metrics is not None:
                yield from (f"{told}: {text}" for text in _against(check, output.metrics))
        if output.metrics is not None:
            yield from (
                f"output {output.name}: {text}" for text in _metrics(output, output.metrics)
            )


def lacking(cases: Iterable[CaseRecord]) -> Iterator[tuple[CaseRecord, str]]:
    """Wrong outputs that a case was not tried on, and others of its variant were."""
    tried: dict[tuple[str, str, str], list[tuple[CaseRecord, set[str]]]] = {}
    for case in cases:
        for output in case.outputs if case.verdict in _JUDGED else ():
            kinds = {one.kind for one in case.mutants if one.output == output.name}
            if output.metrics is not None:
                place = tried.setdefault((case.op, case.variant, output.name), [])
                place.append((case, kinds))
    for (_, _, name), found in tried.items():
        every = set().union(*(kinds for _, kinds in found))
        for case, kinds in found:
            if left := (every - kinds) & {*ALWAYS_TRIED}:  # others are of some cases alone
                yield case, f"the wrong output {min(left)} of {name} is not in it"
            elif not kinds:
                yield case, f"no wrong output of {name} was tried"


def _failed(check: CheckRecord) -> bool:
    return check.judges and not check.passed


def _real(value: Number | None) -> float | None:
    return None if value is None else float(value)


def _check(output: OutputRecord, check: CheckRecord) -> Iterator[str]:
    value, limit = _real(check.value), _real(check.limit)
    if value is None or limit is None or check.exceeding is None:
        return
    within = value <= limit and check.exceeding == 0
    if check.passed and not within:
        yield f"it says passed, with {value:g} against {limit:g} and {check.exceeding} elements beyond"
    if check.exceeding > max(check.elements, output.elements):
        yield "more elements exceed the limit than the output has"
    elif check.elements and not _close(check.fraction or 0.0, check.exceeding / check.elements):
        yield f"{check.exceeding} of {check.elements} elements are not the fraction {check.fraction:g}"
    yield from _worst(check, value, limit, output.dtype)
    if output.finite is not None:  # older evidence is rounded
        yield from _ranked(check, output)


def _worst(check: CheckRecord, value: float, limit: float, dtype: str) -> Iterator[str]:
    """What the worst elements say otherwise; a float64 is judged by more digits than stand there."""
    for one in check.worst:
        got, want, error = float(one.got), float(one.want), float(one.error)
        away = abs(got - want)
        if math.isfinite(away) and not math.isclose(away, error, rel_tol=1e-3, abs_tol=1e-300):
            yield f"the error at {one.index} is not that of {got:g} and {want:g}"
    if check.worst and check.metric in _OF_WORST and float(check.worst[0].limit):
        one = check.worst[0]
        unit = limit / float(one.limit)
        most = float(one.error) * unit
        lost = math.ulp(float(one.want)) * unit if dtype == "float64" else 0.0
        if math.isfinite(most) and not _close(most, value) and not abs(most - value) <= lost:
            yield f"its worst element gives {most:g}, and it says {value:g}"


def _against(check: CheckRecord, metrics: MetricsRecord) -> Iterator[str]:
    """What a check says and the metrics of the output do not."""
    if check.against != "reference" or check.value is None:
        return
    same = {"bound": metrics.over_bound, "abs": metrics.max_abs, "ulp": metrics.max_ulp}
    mine = _real(same.get(check.metric))
    if mine is not None and not _close(mine, float(check.value)):
        yield f"it says {float(check.value):g}, and the output's metrics {mine:g}"
    if check.metric == "bound" and metrics.bound_histogram and float(check.limit) == 1.0:
        beyond = sum(count for key, count in metrics.bound_histogram.items() if float(key) > 1)
        if check.exceeding is not None and beyond != check.exceeding:
            yield f"{check.exceeding} elements exceed it, and {beyond} in the histogram"


def _ranked(check: CheckRecord, output: OutputRecord) -> Iterator[str]:
    """Whether the worst elements come in order, those beyond the limit first, and as many of them."""
    units = [float(one.limit) for one in check.worst]
    if check.metric not in _OF_WORST or output.dtype == "float64" or not all(units):
        return
    shares = [float(one.error) / unit for one, unit in zip(check.worst, units, strict=True)]
    if any(later > earlier * _NEARLY for earlier, later in itertools.pairwise(shares)):
        yield "its worst elements are not in the order of their error over the limit"
    beyond = min(check.exceeding or 0, len(shares))
    if any(share < 1 / _NEARLY for share in shares[:beyond]) or any(
        share > _NEARLY for share in shares[beyond:]
    ):
        yield f"{check.exceeding} elements exceed it, and others of its worst elements do"


def _largest(output: OutputRecord, metrics: MetricsRecord) -> Iterator[str]:
    """What the worst elements say otherwise of the largest errors of all elements."""
    for check in output.checks:
        if check.against != "reference" or check.metric not in {"bound", "abs"}:
            continue
        proved = [_proved(one, output.dtype) for one in check.worst]
        for name, told, mine in (
            ("max_abs", float(metrics.max_abs), max((one[0] for one in proved), default=0.0)),
            ("max_rel", float(metrics.max_rel), max((one[1] for one in proved), default=0.0)),
        ):
            if mine > told * _NEARLY:
                yield f"{name} is {told:g}, and one of its worst elements has {mine:g}"
        most = max((float(one.error) for one in check.worst), default=0.0)
        every = len(check.worst) < WORST_ELEMENTS and not metrics.undecided_elements
        if every and output.dtype != "float64" and float(metrics.max_abs) > most * _NEARLY:
            text = f"max_abs is {float(metrics.max_abs):g}"
            yield f"{text}, and the largest of all elements with an error has {most:g}"


def _proved(one: ElementRecord, dtype: str) -> tuple[float, float]:
    """The least (absolute, relative) error that an element has, by its record.

    At a tie, where the limit is 0, the record has the distance from the rounded value: twice the error.
    A float64 is judged by more digits than stand there.
    """
    error, want = float(one.error), abs(float(one.want))
    if not math.isfinite(error) or not math.isfinite(want):
        return 0.0, 0.0
    error = error if float(one.limit) or "." not in one.want_hex else error / 2
    error = max(0.0, error - math.ulp(want)) if dtype == "float64" else error
    return error, error / want if want else 0.0


def _shares(output: OutputRecord, metrics: MetricsRecord) -> Iterator[str]:
    """What errors over the bound say otherwise: how many, and how much of the allowance they need."""
    compared, above = sum(metrics.ulp_histogram.values()), sum(metrics.bound_histogram.values())
    for check in output.checks:
        if check.metric == "bound" and check.against == "reference" and check.elements != compared:
            yield f"bound is of {check.elements} elements, and {compared} are in the histogram of ulp"
    if metrics.over_bound is None:
        return
    least = compared - metrics.exact_elements - metrics.undecided_elements
    if not least <= above <= compared:
        text = f"{compared - metrics.exact_elements} of {compared} elements are inexact"
        yield f"{text}, and {above} are in the histogram of bound"
    if metrics.allowance is None:
        return
    needed, over = float(metrics.allowance), float(metrics.over_bound)
    if not needed >= 0 or (
        needed > over * _NEARLY if over <= 1 else needed * _NEARLY < over < math.inf
    ):
        yield f"it needs {needed:g} of its allowance, with an error of {over:g} times the bound"


def _metrics(output: OutputRecord, metrics: MetricsRecord) -> Iterator[str]:
    yield from _counts(output, metrics)
    if output.finite is not None:  # older evidence is rounded, or has no such numbers
        yield from _largest(output, metrics)
        yield from _shares(output, metrics)


def _counts(output: OutputRecord, metrics: MetricsRecord) -> Iterator[str]:
    """What the histograms say otherwise."""
    ulp, bound = metrics.ulp_histogram, metrics.bound_histogram
    if metrics.exact_elements != ulp.get("0", 0):
        yield f"{metrics.exact_elements} elements are exact, and {ulp.get('0', 0)} in the histogram"
    for name, histogram in (("ulp", ulp), ("bound", bound)):
        if sum(histogram.values()) > output.elements or min(histogram.values(), default=0) < 0:
            yield f"the histogram of {name} does not count all elements"
    for name, value, histogram in (
        ("max_ulp", _real(metrics.max_ulp), ulp),
        ("over_bound", _real(metrics.over_bound), bound),
    ):
        if histogram and value is not None and not _in_last(value, histogram):
            yield f"{name} is {value:g}, and the histogram has no element there"


def _in_last(value: float, histogram: Mapping[str, int]) -> bool:
    """Whether the largest value falls in the last bin that counts any."""
    keys = sorted(float(key) for key, count in histogram.items() if count)
    if not keys or not math.isfinite(value):
        return True
    return (keys[-1] / 2 if keys[-1] > 1 else 0.0) <= value <= keys[-1]


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-300) or (math.isnan(a) and math.isnan(b))
