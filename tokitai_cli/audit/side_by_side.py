"""`compare`: two kernels side by side, on the same inputs: errors, bits, times.

Ratios have an interval from a bootstrap of the medians (Efron and Tibshirani, An Introduction to the
Bootstrap, 1993, 13.3: percentiles), with random numbers of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.audit.door import sound
from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError, UsageError
from tokitai_cli.core.model.audit_answer import Answer, Grid, Remark
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.device import DeviceClass
from tokitai_cli.core.model.events import Listener
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import number, plural, shape_text
from tokitai_cli.evidence import queries
from tokitai_cli.run.loop import RunOutcome, verify
from tokitai_cli.run.run_options import RunOptions
from tokitai_cli.spec import plan

_RESAMPLES, _LEAST_TIMES = 2000, 5
_ERRORS = (
    "case", "output", "verdicts", ">max ulp, first", ">second", ">error / bound, first", ">second",
    "bits",
)  # fmt: skip
_TIMES = (
    "case", ">median us, first", ">quartiles", ">median us, second", ">quartiles", ">ratio", ">95 %",
)  # fmt: skip

Side = tuple[Evidence, CaseRecord]


def compare_variants(options: RunOptions, listener: Listener) -> tuple[Answer, RunOutcome]:
    """Run two variants of a spec on the inputs of the first, and compare. Raises UsageError."""
    chosen = options.selection.variants
    if len(chosen) != 2:
        hint = f"it has {', '.join(options.loaded.spec.variants)}"
        raise UsageError("compare needs two variants: --variant A --variant B", hint=hint)
    cases = plan.plan(options.loaded, options.selection).cases
    outcome = verify(options, listener, _paired(cases, *chosen))
    found = outcome.evidence
    sides = [
        [(found, one) for one in queries.cases(found) if one.variant == name] for name in chosen
    ]
    return _answer(sides[0], sides[1], chosen), outcome


def compare_files(first: str, second: str) -> Answer:
    """Compare the cases of two files that have shape, profile, seed and device in common."""
    files = [sound(first), sound(second)]
    sides = [[(found, case) for case in queries.cases(found)] for found in files]
    return _answer(sides[0], sides[1], (first, second))


def _paired(cases: Iterable[Case], first: str, second: str) -> list[Case]:
    """Cases that both variants have, beside each other, the second with the inputs of the first."""
    found: dict[tuple[str, str, int], dict[str, Case]] = {}
    for case in cases:
        place = (shape_text(case.shape), case.profile, case.seed)
        found.setdefault(place, {})[case.variant_name] = case
    pairs = []
    for pair in found.values():
        if len(pair) == 2:
            pairs += [pair[first], msgspec.structs.replace(pair[second], drawn_as=first)]
    if not pairs:
        hint = "choose shapes and profiles that both support"
        raise UsageError(f"{first} and {second} have no case in common", hint=hint)
    return pairs


def _answer(left: Sequence[Side], right: Sequence[Side], names: Sequence[str]) -> Answer:
    pairs = list(_pairs(left, right))
    if not pairs:
        raise UsageError("no case of the two has shape, profile, seed and device in common")
    bad = sum(
        case.reads not in (Verdict.VERIFIED, Verdict.VACUOUS) for pair in pairs for _, case in pair
    )
    remarks = [Remark(f"first: {names[0]}; second: {names[1]}; ratio: first over second")]
    remarks += [Remark(text) for text in dict.fromkeys(_said(pairs))]
    if bad:
        remarks.append(Remark(f"{plural(bad, 'case')} not verified", fault=True))
    grids = [
        Grid(_ERRORS, [row for one, other in pairs for row in _errors(one[1], other[1])]),
        Grid(_TIMES, [row for one, other in pairs for row in _times(one, other)]),
        Grid(("case", "", ">GB/s", ">GFLOP/s"), [row for pair in pairs for row in _rates(pair)]),
    ]
    text = f"{plural(len(pairs), 'pair')} of cases compared"
    return Answer(text, not bad, remarks, [grid for grid in grids if grid.rows])


def _pairs(left: Sequence[Side], right: Sequence[Side]) -> Iterator[tuple[Side, Side]]:
    """Cases at the same place; where a file has several variants there, those of one name."""
    places: dict[tuple[object, ...], list[Side]] = {}
    for side in right:
        places.setdefault(_place(side[1]), []).append(side)
    for side in left:
        met = places.get(_place(side[1]), [])
        same = [one for one in met if one[1].variant == side[1].variant]
        if len(met) == 1 or len(same) == 1:
            yield side, (met if len(met) == 1 else same)[0]


def _place(case: CaseRecord) -> tuple[object, ...]:
    return (tuple(sorted(case.shape.items())), case.profile, case.seed, case.device)


def _said(pairs: Iterable[tuple[Side, Side]]) -> Iterator[str]:
    """What has to be known of the times."""
    for found, case in (side for pair in pairs for side in pair):
        own = found.settings
        if own is not None:
            yield f"{own.repeat} repetitions timed, {plural(own.warmup, 'warm-up')} before them"
        if found.devices[case.device].device_class == DeviceClass.HOST_SIMT:
            yield "not claimed: speed. Times of the cpu device say nothing of a GPU"
    yield "not claimed: production speedup. No baseline was reviewed"


def _name(case: CaseRecord) -> str:
    return f"{shape_text(case.shape)}/{case.profile}/{case.seed}@{case.device}"


def _errors(left: CaseRecord, right: CaseRecord) -> Iterator[tuple[str, ...]]:
    """Outputs by name, or by place where the two call them otherwise."""
    inputs = [[one.sha256 for one in case.inputs] for case in (left, right)]
    others = {one.name: one for one in right.outputs}
    for at, one in enumerate(left.outputs):
        other = others.get(one.name) or (right.outputs[at] if at < len(right.outputs) else None)
        if other is None:
            continue
        mine, yours = one.metrics, other.metrics
        equal = one.sha256[:1] == other.sha256[:1] and one.dtype == other.dtype
        known = bool(one.sha256 and other.sha256)
        bits = ("equal" if equal else "differ") if known else "not recorded"
        yield (
            _name(left),
            one.name if one.name == other.name else f"{one.name}, {other.name}",
            str(left.reads) if left.reads is right.reads else f"{left.reads}, {right.reads}",
            *(number(metrics.max_ulp) if metrics else "-" for metrics in (mine, yours)),
            *(number(metrics.over_bound) if metrics else "-" for metrics in (mine, yours)),
            bits if inputs[0] == inputs[1] else "other inputs",
        )


def _spent(side: Side) -> NDArray[np.float64]:
    found, case = side
    return np.array(found.volatile.case_times_ns.get(case.key, []), dtype=np.float64)


def _times(one: Side, other: Side) -> Iterator[tuple[str, ...]]:
    left, right = _spent(one), _spent(other)
    if not left.size or not right.size:
        return
    middle = float(np.median(left)), float(np.median(right))
    ratio = number(middle[0] / middle[1], 4) if middle[1] else "-"
    yield (
        _name(one[1]),
        number(middle[0] / 1000, 4),
        _quartiles(left),
        number(middle[1] / 1000, 4),
        _quartiles(right),
        ratio,
        interval(left, right),
    )


def _quartiles(times: NDArray[np.float64]) -> str:
    low, high = np.quantile(times, [0.25, 0.75]) / 1000
    return f"{number(float(low), 4)} to {number(float(high), 4)}"


def interval(left: NDArray[np.float64], right: NDArray[np.float64]) -> str:
    """95 % interval of the ratio of the medians; a dash below five repetitions of each."""
    if min(left.size, right.size) < _LEAST_TIMES:
        return "-"
    draw = np.random.Generator(np.random.Philox(0))
    medians = [
        np.median(draw.choice(times, (_RESAMPLES, times.size)), axis=1) for times in (left, right)
    ]
    ratios = medians[0] / np.maximum(medians[1], 1.0)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return f"{number(float(low), 4)} to {number(float(high), 4)}"


def _rates(pair: Sequence[Side]) -> Iterator[tuple[str, ...]]:
    for word, side in zip(("first", "second"), pair, strict=True):
        found, case = side
        kernel = found.contract.variants.get(case.variant) if found.contract else None
        times = _spent(side)
        if kernel is None or not (kernel.bytes or kernel.flops) or not times.size:
            continue
        middle = float(np.median(times))
        counts = [_count(text, case.shape) for text in (kernel.bytes, kernel.flops)]
        rates = [number(count / middle, 4) if count and middle else "-" for count in counts]
        yield (_name(case), word, *rates)


def _count(text: str, shape: Mapping[str, int]) -> int:
    """What an expression of the parameters counts at a shape; 0 where it is none."""
    try:
        return expressions.evaluate(text, shape) if text else 0
    except SpecError:
        return 0
