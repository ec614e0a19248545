"""Profiles that count: sums that float32 adds without rounding, whatever the order."""

from __future__ import annotations

import numpy as np

from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.errors import Location, NotRunError
from tokitai_cli.core.model.case import BufferPlan, Case
from tokitai_cli.core.model.draws import kind_of
from tokitai_cli.core.model.expectation import Expectation
from tokitai_cli.core.numerics import round_to
from tokitai_cli.oracles.variants.wrong_formulas import Recorded


def require_exact(
    case: Case, plan: BufferPlan, expectation: Expectation, formula: Recorded
) -> None:
    """Raise NotRunError where a profile that counts is not exact at this shape, or hides a term.

    It is one that draws whole numbers; an output counts where it comes of + - * and sums alone.
    """
    spec, total = case.loaded.spec, formula.sum_of(plan.name)
    draw = spec.profiles[case.profile].draw or ""
    kind = kind_of(draw) if draw else None
    form, error, size = FORMATS.get(plan.dtype), expectation.error, plan.elements
    if kind is None or not kind.exact or total is None or form is None or not size:
        return
    if plan.name not in formula.behind or not formula.behind[plan.name].rational or error is None:
        return
    reason = ""
    hidden = round_to(expectation.reference, plan.dtype).astype(np.float64) != expectation.reference
    if error.any():
        reason = "float32 counts exactly only below 2^24, and a sum of magnitudes exceeds it"
    elif hidden.any():
        largest = float(np.abs(expectation.reference).max())
        reason = (
            f"a result of {plan.name} reaches {largest:g}; above {form.countable:g} {form.name} "
        )
        reason += "hides a changed term"
    if reason:
        raise NotRunError(
            f"profile {case.profile} is not applicable to this shape: {reason}",
            where=Location(file=case.loaded.path, key=f"profiles.{case.profile}"),
            hint="choose a shape with a shorter sum, or another profile",
        )
