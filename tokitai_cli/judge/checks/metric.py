"""How each metric is computed, one entry per metric (see `tokitai_cli.core.model.metrics`)."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import FloatFormat
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.draws import draws_are_random
from tokitai_cli.core.numerics import spacing
from tokitai_cli.judge.checks.compared import Compared
from tokitai_cli.judge.checks.numbers import shown_short
from tokitai_cli.judge.checks.target import Target

Values = NDArray[np.float64]

# A limit above so many ulp is no statement of a few roundings.
_FEW_ULPS = 4.0

NO_BETTER = "the reference is float64 like the output, and its own error is not known"


class Tolerances(msgspec.Struct, frozen=True, kw_only=True):
    """The two numbers of a check that has an absolute and a relative one."""

    abs: float = 0.0
    rel: float = 0.0


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """What a check needs of its metric."""

    #: What one unit is as an absolute error, at each element; None for one, or where the oracle does
    #: not say it.
    unit: Callable[[Compared, Tolerances], Values | None] = lambda compared, said: None
    #: The metric at each element of a chunk, 0 where the numbers cannot be compared; without it the
    #: error over the unit.
    values: Callable[[Compared], Values | None] | None = None
    #: Only the whole output has a value, its mean error.
    whole: bool = False
    #: Why no check can make it against this reference, or "".
    missing: Callable[[Target], str] = lambda reference: ""
    #: Why its value is only reported in this case, or "".
    reported: Callable[[Case, Target], str] = lambda case, reference: ""
    #: A warning where one ulp of the format, (relative, at the largest value), is above the limit, or
    #: "".
    finer: Callable[[float, Target, FloatFormat], str] = lambda limit, reference, form: ""
    note: str = ""
    #: The element shown is compared with the reference rounded to the output's dtype.
    rounded: bool = False
    #: It compares NaN and infinities too, so that it counts all elements.
    everywhere: bool = False
    #: Whether a limit is above a few roundings, with no analysis of the computation behind it.
    loose: Callable[[float, FloatFormat | None], bool] = lambda limit, form: False


def no_better(reference: Target) -> bool:
    """Whether a float64 output has a reference that may be as far off as the output."""
    return reference.dtype == "float64" and reference.error is None and reference.low is None


def largest_finite(reference: Target) -> float:
    """Return the largest magnitude of the reference that the output's format holds.

    NaN for a large one that is computed while it is judged, before it was.
    """
    if reference.by_windows is not None:
        return reference.by_windows.largest
    largest = 0.0
    form = reference.form
    ceiling = math.inf if form is None else form.overflow
    for chunk in reference.chunks():
        magnitude = chunk.magnitude
        top = float(magnitude.max())
        if not top < ceiling:
            top = float(np.max(magnitude, initial=0.0, where=magnitude < ceiling))
        largest = max(largest, top)
    return largest


def _no_error(reference: Target) -> str:
    known = reference.error is not None or reference.form is None
    return "" if known else "the oracle gives no bound"


def _no_refinement(reference: Target) -> str:
    given = reference.refine is not None
    return "" if given else "the oracle gives no bound from the other outputs"


def _no_correct_digit(reference: Target) -> str:
    if not no_better(reference):
        return ""
    return f"{NO_BETTER}: the oracle gives neither `error` nor `low`"


def _not_probable(case: Case, reference: Target) -> str:
    if reference.probable is None:
        return "reported only: the oracle gives no probabilistic bound"
    if not draws_are_random(case.loaded.spec, case.variant, case.profile):
        return f"reported only: the profile {case.profile} is not random"
    return ""


def _finer(limit: float, ulp: float, form: FloatFormat, where: str) -> str:
    if not limit < ulp:
        return ""
    size = f" ({shown_short(ulp)} {where})" if where else ""
    return f"the limit {shown_short(limit)} is finer than one {form.name} ulp{size}"


def _finer_absolute(limit: float, reference: Target, form: FloatFormat) -> str:
    largest = largest_finite(reference)
    ulp = float(spacing(np.array(largest), form))
    return _finer(limit, ulp, form, f"at {shown_short(largest)}")


def _bound(compared: Compared, _: Tolerances) -> Values | None:
    bound = compared.chunk.bound_at(compared.signed)
    if bound is None or compared.misrounded is None:
        return bound
    return np.where(compared.misrounded, 0.0, bound)


MEASURES: dict[str, Measure] = {
    "bound": Measure(
        values=lambda compared: compared.over_bound,
        unit=_bound,
        missing=_no_error,
    ),
    "bound-chained": Measure(
        unit=lambda compared, _: compared.bound_chained, missing=_no_refinement
    ),
    "bound-prob": Measure(
        unit=lambda compared, _: compared.chunk.bound_probable, reported=_not_probable
    ),
    "abs": Measure(
        values=lambda compared: compared.error,
        finer=_finer_absolute,
        loose=lambda limit, _: limit > 0,
    ),
    "rel": Measure(
        unit=lambda compared, _: compared.chunk.magnitude,
        finer=lambda limit, _, form: _finer(limit, 2 * form.unit_roundoff, form, "relative"),
        loose=lambda limit, form: form is None or limit > _FEW_ULPS * 2 * form.unit_roundoff,
    ),
    "allclose": Measure(
        unit=lambda compared, said: said.abs + said.rel * compared.chunk.magnitude,
        loose=lambda limit, form: True,
    ),
    "ulp": Measure(
        values=lambda compared: compared.ulps,
        unit=lambda compared, _: compared.chunk.ulp,
        missing=_no_correct_digit,
        finer=lambda limit, _, form: _finer(limit, 1.0, form, ""),
        loose=lambda limit, _: limit > _FEW_ULPS,
        rounded=True,
    ),
    "exact": Measure(
        values=lambda compared: compared.differs.astype(np.float64),
        missing=_no_correct_digit,
        note="bitwise: -0.0 and +0.0 differ, NaN by class",
        rounded=True,
        everywhere=True,
    ),
    "bias": Measure(whole=True),
}
