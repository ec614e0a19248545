"""Sums that float32 adds without rounding, whatever the order: those of few units of a power of two."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.dtypes import FORMATS
from tokitai_cli.errors import Location, NotRunError
from tokitai_cli.model.case import BufferPlan, Case
from tokitai_cli.model.draws import kind_of
from tokitai_cli.model.spec import draw_of

# Largest count of units that float32 adds without rounding.
EXACT_UNITS = FORMATS["float32"].countable
# float64 entries of a block.
_BLOCK = 1 << 15


def unit_of(array: NDArray[Any]) -> float:
    """Largest power of two that divides all finite entries; infinite for an array of zeros."""
    form = FORMATS[array.dtype.name]
    # Where 62 bits hold every number as a count of the smallest, or-ing the counts does.
    is_fixed = form.largest < form.smallest * 2.0**62
    flat = array.reshape(-1)
    lowest, result = np.int64(0), math.inf
    for part in (flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK)):
        values = part.astype(np.float64)
        values[~np.isfinite(values)] = 0.0
        if is_fixed:
            values *= 1.0 / form.smallest
            lowest |= np.bitwise_or.reduce(np.abs(values).astype(np.int64))
            continue
        mantissa, exponent = np.frexp(values)
        whole = np.ldexp(mantissa, 53).astype(np.int64)
        ones = np.ldexp((whole & -whole).astype(np.float64), exponent - 53)
        result = min(result, float(np.min(ones, where=whole != 0, initial=np.inf)))
    return float(lowest & -lowest) * form.smallest if lowest else result


def meant_exact(case: Case, names: Iterable[str]) -> bool:
    """Whether the case draws every one of the arrays so that sums are to be exact."""
    draws = (draw_of(case.loaded.spec, case.variant, case.profile, name) for name in names)
    return all(kind_of(draw).exact for draw in draws)


def require_exact(
    case: Case,
    names: Iterable[str],
    sums: NDArray[np.float64],
    reference: NDArray[np.float64],
    unit: float,
    output: BufferPlan,
) -> None:
    """Raise NotRunError where an exact-int profile is not exact at this shape, or hides a term.

    names: arrays whose draws make the sums; sums: S of each element; unit: what they are counted in.
    """
    if not reference.size or not meant_exact(case, names):
        return
    form = FORMATS[output.dtype]
    largest, result = float(sums.max()), float(np.abs(reference).max())
    reason = ""
    if not unit or largest >= EXACT_UNITS * unit:
        reason = f"sum |terms| reaches {largest:g}, and float32 counts exactly only below 2^24"
    elif result > form.countable * unit:
        reason = f"a result of {output.name} reaches {result:g}; above {form.countable * unit:g} "
        reason += f"{form.name} hides a changed term"
    if reason:
        raise NotRunError(
            f"profile {case.profile} is not applicable to this shape: {reason}",
            where=Location(file=case.loaded.path, key=f"profiles.{case.profile}"),
            mend="choose a shape with a shorter sum, or another profile",
        )
