"""Why a right kernel may exceed the bound of a formula: another form of it, or a narrow intermediate.

Or a form that cancels where the formula does not, which is not right.

These are words of a refutation. No verdict hangs on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.expectation import CANCELLING, ROUNDED_MORE, Expectation, Further
from tokitai_cli.judge.checks.compared import Compared
from tokitai_cli.judge.checks.numbers import index_of, shown_index, shown_short
from tokitai_cli.judge.checks.target import Target

_U = FORMATS["float32"].unit_roundoff
# Ulp of the output up to which another form may be all that is wrong.
_NEAR = 2.0
# Errors of other forms, over the largest number of the output, that are worth asking about.
_MOST = 2.0**-16
# The same of forms that cancel, and how much larger than the value what cancels is at least.
_MOST_CANCELLED = 2.0**-8
_CANCELLED = 4.0
# Elements of an output above which the formula is not asked again.
_LARGE = 1 << 20

Outputs = Mapping[str, NDArray[Any]]


class _Excess(msgspec.Struct, frozen=True):
    """Of the elements beyond the bound: how far they are from the reference, at most."""

    count: int
    ulps: float
    #: Error over the largest finite number of the reference.
    share: float
    #: Further roundings of relative size u that would take them in.
    roundings: float
    #: The element that is off by most ulp: its position, its reference and its error.
    worst: tuple[int, float, float]


def explanation(reference: Target, expectation: Expectation, repetitions: Sequence[Outputs]) -> str:
    """What to add to the reason of an output that exceeds the bound of its formula; often nothing."""
    if expectation.again is None or reference.form is None:
        return ""
    for outputs in repetitions:
        excess = _excess(reference, outputs[reference.name])
        if excess.count:
            return _words(reference, expectation, outputs, excess)
    return ""


def _words(reference: Target, expectation: Expectation, outputs: Outputs, excess: _Excess) -> str:
    kept, form = "", ""
    if reference.size <= _LARGE:
        kept = _kept(reference, expectation, outputs)
        form = "" if kept else _form(reference, expectation, outputs, excess)
        form = form or ("" if kept else _other(reference, expectation, outputs, excess))
    near = "; within 2 ulp of the exact value everywhere" if excess.ulps <= _NEAR else ""
    if kept or form or not near:
        return f"{near}{kept or form}"
    if reference.dtype != "float32":
        return (
            f"{near}. Such an error has one of these causes: an intermediate that the kernel keeps in "
            f"{reference.dtype} (then write `stored`), truncation, or a wrong result. Another form of "
            "the formula in float32 does not cause it"
        )
    enough = math.ceil(excess.roundings) if math.isfinite(excess.roundings) else "..."
    return (
        f"{near}; the formula's own form is tighter: write it as the kernel does, or "
        f"`loosen({reference.name}, {enough})`"
    )


def _kept(reference: Target, expectation: Expectation, outputs: Outputs) -> str:
    """Whether it fits where other outputs, which are narrow, are what the formula goes on from."""
    narrow = [
        name
        for name, array in outputs.items()
        if name != reference.name and array.dtype.name in FORMATS and array.dtype.itemsize < 4
    ]
    for name in narrow:
        further = Further(outputs={name: outputs[name]}, kept=True)
        if _fits(reference, expectation, outputs, further):
            dtype = outputs[name].dtype.name
            return (
                f"; it fits if {name} is taken as the kernel stored it: write "
                f'`stored({name}, "{dtype}")` in the formula, if the kernel continues from that value'
            )
    return ""


def _form(reference: Target, expectation: Expectation, outputs: Outputs, excess: _Excess) -> str:
    """The form of the formula that the kernel fits, if all of them together hold it."""
    if not excess.share <= _MOST:
        return ""
    forms = expectation.forms
    if not _fits(reference, expectation, outputs, Further(forms=tuple(forms))):
        return ""
    single = (one for one in forms if _fits(reference, expectation, outputs, Further(forms=(one,))))
    form = next(single, "")
    cancelled = "" if excess.ulps <= _NEAR else _where_cancelled(reference, excess)
    more = Further(forms=(ROUNDED_MORE,))
    if form and cancelled and not _fits(reference, expectation, outputs, more):
        return (
            f"; the kernel fits the formula with another form ({form}), in which terms cancel: "
            + cancelled
        )
    if not form:
        return "; the kernel fits the formula with several other forms: write it as the kernel does"
    return f"; the kernel fits the formula with another form ({form}): {forms[form]}"


def _other(reference: Target, expectation: Expectation, outputs: Outputs, excess: _Excess) -> str:
    """Whether the errors are those of some more roundings, or of terms that cancel, and where."""
    if excess.ulps <= _NEAR or excess.share > _MOST_CANCELLED:
        return ""
    if _fits(reference, expectation, outputs, Further(forms=(ROUNDED_MORE,))):
        return (
            "; the errors are those of some float32 roundings more than the formula has (a sum in "
            "float32 where it keeps float64, an approximate function): write it as the kernel computes "
            "it, or `loosen` what it rounds more often"
        )
    where = _where_cancelled(reference, excess)
    if not where or not _fits(reference, expectation, outputs, Further(forms=(CANCELLING,))):
        return ""
    return (
        "; the errors are those of a form in which terms cancel that the formula does not have: "
        + where
    )


def _where_cancelled(reference: Target, excess: _Excess) -> str:
    """The element that is off by most, if only numbers much larger than it round by that much."""
    flat, want, error = excess.worst
    terms = error / _U
    if terms < _CANCELLED * abs(want):
        return ""
    place = f"{reference.name}{shown_index(index_of(flat, reference.shape))}"
    return (
        f"at {place} the value is {shown_short(want)}, and the error is one rounding of numbers near "
        f"{shown_short(terms)}: compute it as the formula does, or write the formula as the kernel does"
    )


def _fits(reference: Target, expectation: Expectation, outputs: Outputs, further: Further) -> bool:
    """Whether nothing exceeds the bound under what is asked further."""
    assert expectation.again is not None
    answered = expectation.again(further)
    if answered is None or answered[0].size != reference.size:
        return False
    want, below, above = (np.asarray(part, np.float64).reshape(-1) for part in answered)
    other = msgspec.structs.replace(
        reference, reference=want, error=np.maximum(below, above), sides=(below, above)
    )
    return not _excess(other, outputs[reference.name]).count


def _excess(target: Target, got: NDArray[Any]) -> _Excess:
    flat = np.ascontiguousarray(got).reshape(-1)
    count, ulps, error, roundings, largest = 0, 0.0, 0.0, 0.0, 0.0
    worst = (0, 0.0, 0.0)
    with np.errstate(all="ignore"):
        for chunk in target.chunks():
            compared = Compared(chunk, flat[chunk.index])
            over, bound = compared.over_bound, chunk.bound_at(compared.signed)
            finite = chunk.magnitude[np.isfinite(chunk.magnitude)]
            largest = max(largest, float(finite.max(initial=0.0)))
            if over is None or bound is None or not (beyond := over > 1).any():
                continue
            count += int(np.count_nonzero(beyond))
            off = np.where(beyond, compared.error / chunk.ulp, 0.0)
            if (most := float(off.max())) > ulps:
                at, index = int(off.argmax()), chunk.index
                place = index.start + at if isinstance(index, slice) else int(index[at])
                worst = (place, float(chunk.reference[at]), float(compared.error[at]))
            ulps = max(ulps, most)
            error = max(error, float(compared.error[beyond].max()))
            more = (compared.error - bound) / (_U * chunk.magnitude)
            roundings = max(roundings, float(more[beyond].max()))
    share = error / largest if largest else math.inf
    return _Excess(count, ulps, share, roundings, worst)
