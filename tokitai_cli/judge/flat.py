"""Flat limits beside a bound: whether they reject anything that the bound lets pass."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.case import Case, Role
from tokitai_cli.core.model.expectation import Expectation
from tokitai_cli.core.model.spec import Check
from tokitai_cli.judge.checks.compared import Compared
from tokitai_cli.judge.checks.metric import MEASURES
from tokitai_cli.judge.checks.output_checks import ResolvedCheck, checks_for
from tokitai_cli.judge.checks.target import Chunk
from tokitai_cli.judge.expected import reference_target

_FLAT = ("abs", "rel", "allclose", "ulp")


def covered(case: Case, check: Check, expectations: Mapping[str, Expectation]) -> bool | None:
    """Whether every value that the bound lets pass is within the flat limit of `check`, in this case.

    None where the check is no flat limit or judges nothing here.
    """
    if check.metric not in _FLAT or check.against == "replay":
        return None
    if check.profiles and case.profile not in check.profiles:
        return None
    said = []
    for buffer in case.buffers_of(Role.OUTPUT, Role.INOUT):
        if check.output not in ("", buffer.name) or not buffer.elements:
            continue
        if buffer.dtype not in FORMATS:
            return False
        expectation = expectations[buffer.name]
        flush = case.variant.flush_to_zero
        target = reference_target(buffer, expectation, flush_to_zero=flush)
        resolved = checks_for(case, buffer.name, target, None)
        bounded = any(one.metric == "bound" and one.judges and one.limit <= 1 for one in resolved)
        mine = ResolvedCheck(
            check.metric,
            check.against,
            float(check.limit),
            judges=True,
            note="",
            abs=check.abs or 0.0,
            rel=check.rel or 0.0,
        )
        with np.errstate(all="ignore"):
            said.append(bounded and all(_within(chunk, mine) for chunk in target.chunks()))
    return all(said) if said else None


def _within(chunk: Chunk, check: ResolvedCheck) -> bool:
    """Whether the bound is nowhere wider than the limit, which may be of the rounded reference."""
    measure, bound = MEASURES[check.metric], chunk.bound
    if bound is None:
        return False
    unit = measure.unit(Compared(chunk, chunk.want_native), check)
    limit = check.limit * (np.ones(bound.shape) if unit is None else unit)
    rounding = np.abs(chunk.want - chunk.reference) if measure.rounded else 0.0
    finite = np.isfinite(chunk.reference)
    return bool((bound + rounding <= limit)[finite].all())
