"""What arrays hold in the cases of a spec, and what arguments by value are there."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from numpy.typing import NDArray

from tokitai_cli.core import expressions
from tokitai_cli.core.dtypes import DTYPES, FORMATS
from tokitai_cli.core.errors import SpecError, TokitaiError
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.cpp.value_branches import Way
from tokitai_cli.spec import plan
from tokitai_cli.spec.inputs import draw

# Bytes of a case beyond which its arrays are not drawn, and seconds for all arrays of a variant.
_LARGEST, _SECONDS = 1 << 24, 20.0
_T = TypeVar("_T")
Arrays = Mapping[str, NDArray[Any]]


def cases_of_suites(loaded: LoadedSpec, variant: str) -> list[Case]:
    """Cases of a variant that any suite has, the smallest first; of the default shape without suites."""
    found: dict[tuple[object, ...], Case] = {}
    chosen = [plan.Selection(variants=(variant,), suite=one) for one in loaded.spec.suites]
    for selection in chosen or [plan.Selection(variants=(variant,))]:
        try:
            cases = plan.plan(loaded, selection).cases
        except TokitaiError:
            continue
        kept = (one for one in cases if not one.expect_empty)
        found |= {(one.profile, *one.shape.values()): one for one in kept}
    return sorted(found.values(), key=lambda one: plan.memory_bytes(one, 1))


def number_at(case: Case, text: str) -> float | None:
    """What a scalar or an expression of sizes is in a case; None where nothing says it."""
    scalar = case.variant.scalars.get(text)
    value = text if scalar is None else scalar.value
    if not isinstance(value, str):
        return float(value)
    try:
        return expressions.evaluate_real(value, case.names)
    except SpecError:
        return None


def unreached(
    cases: Sequence[Case], goals: Mapping[_T, Callable[[Case, Arrays], bool]]
) -> tuple[list[_T], str]:
    """Goals that no case meets, and why some cases were not looked at; empty where all were."""
    left, start = dict(goals), time.monotonic()
    for case in cases:
        if not left:
            break
        if time.monotonic() - start > _SECONDS:
            return list(left), f"some cases were not drawn: {_SECONDS:g} seconds were over"
        if plan.memory_bytes(case, 1) > _LARGEST:
            return list(left), f"cases of more than {_LARGEST >> 20} MiB were not drawn"
        try:
            arrays = {name: one.array for name, one in draw(case).items()}
        except TokitaiError:  # a run has no such case
            continue
        for key in [key for key, met in left.items() if met(case, arrays)]:
            del left[key]
    return list(left), ""


def elements(arrays: Arrays, names: Sequence[str]) -> Iterator[NDArray[Any]]:
    """Those of the arrays that hold something."""
    return (arrays[one] for one in names if one in arrays and arrays[one].size)


def taking(way: Way, dtype: str) -> float:
    """A value that goes a way as a dtype has it: of large floats not all whole numbers are there."""
    if dtype not in FORMATS:
        return way.value
    _, exponent = math.frexp(way.number)
    return way.number + way.beside * max(1.0, 2.0 ** (exponent - FORMATS[dtype].precision + 1))


def fits(value: float, dtype: str) -> bool:
    """Whether a dtype has about such a value."""
    known = DTYPES[dtype]
    if dtype in FORMATS:
        return abs(value) <= FORMATS[dtype].largest
    if known.kind == "bool":
        return value in (0, 1)
    bits = 8 * known.nbytes - (known.kind == "signed")
    return (-(2.0**bits) if known.kind == "signed" else 0) <= value < 2.0**bits
