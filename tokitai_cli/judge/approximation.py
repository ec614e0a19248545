"""Runs in which instructions that the hardware only approximates give other results in their error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.case import Case, Role, RunResult
from tokitai_cli.core.model.expectation import Expectation
from tokitai_cli.core.model.judged import PropertyRecord
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.numerics import spacing
from tokitai_cli.judge.checks.numbers import number
from tokitai_cli.judge.failures import said_in
from tokitai_cli.judge.judgement import Judgement, judge

# In the order in which a run request counts them, from 1.
APPROXIMATIONS = (
    "approximate instructions an ulp up",
    "approximate instructions an ulp down",
    "subnormals flushed by approximate instructions",
)


def judge_approximation(
    case: Case,
    so_far: Judgement,
    which: int,
    expectations: Mapping[str, Expectation],
    nominal: Mapping[str, NDArray[Any]],
    another: RunResult,
) -> Judgement:
    """Add to a judgement what a run with other approximations says: the spread, and whether it holds.

    `which` of APPROXIMATIONS, from 1; `nominal` are the outputs of the first run. A replay is not
    asked for: bits that went through an approximation are no GPU's.
    """
    name = f"the judgement with {APPROXIMATIONS[which - 1]}"
    judgement = judge(case, expectations, {}, another)
    refuted = judgement.verdict is Verdict.REFUTED and so_far.verdict is not Verdict.REFUTED
    failing = {one.name for one in judgement.outputs if not one.passed}
    records = [
        _record(
            name,
            plan.name,
            plan.name not in failing,
            _spread(plan.dtype, nominal, another, plan.name),
        )
        for plan in case.buffers_of(Role.OUTPUT, Role.INOUT)
    ]
    said = f"with {APPROXIMATIONS[which - 1]}"
    return msgspec.structs.replace(
        so_far,
        properties=[*so_far.properties, *records],
        findings=[*so_far.findings, *judgement.findings] if refuted else so_far.findings,
        verdict=Verdict.REFUTED if refuted else so_far.verdict,
        reason=f"{said}: {judgement.reason}" if refuted else so_far.reason,
        failures=(*so_far.failures, *(said_in(said, one) for one in judgement.failures)),
    )


def _record(name: str, output: str, passed: bool, spread: float) -> PropertyRecord:
    words = f"outputs differ from the nominal ones by at most {spread:.4g} ulp"
    return PropertyRecord(
        name=name,
        output=output,
        value=number(spread),
        limit=number(np.inf),
        passed=passed,
        detail=words,
        runs=1,
    )


def _spread(
    dtype: str, nominal: Mapping[str, NDArray[Any]], another: RunResult, name: str
) -> float:
    """Largest distance of an element from the nominal one, in ulp of that (integers: in units)."""
    before = nominal[name].astype(np.float64)
    largest = 0.0
    for outputs in another.outputs:
        after = outputs[name].astype(np.float64)
        with np.errstate(all="ignore"):
            far = np.abs(after - before)
            far = np.where((after == before) | (np.isnan(after) & np.isnan(before)), 0.0, far)
            if dtype in FORMATS:
                far = far / spacing(np.where(np.isfinite(before), before, 0.0), FORMATS[dtype])
        far = np.where(np.isnan(far), np.inf, far)
        largest = max(largest, float(far.max(initial=0.0)))
    return largest
