"""Kinds of draws for integer and bool arrays: plain ranges, and indices into another array's axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import numpy_dtype
from tokitai_cli.core.expressions import evaluate
from tokitai_cli.spec.inputs.draw_request import ArrayRequest
from tokitai_cli.spec.inputs.transforms import Raw, below, signs

Fill = Callable[[Raw], NDArray[Any]]
_MOST = 1 << 52
_RANGE = 100


def integer_fill(request: ArrayRequest) -> tuple[Fill, str]:
    """How a plain integer or bool request is filled, element by element, and the words for it.

    Kinds that are for floating-point numbers draw uniformly from a small range. SpecError where the
    settings do not fit the dtype.
    """
    dtype = numpy_dtype(request.plan.dtype)
    kind = request.draw.kind
    if dtype == np.bool_:
        if kind == "constant":
            flag = request.setting("value") != 0.0
            return (lambda raw: np.full(raw.shape, flag)), f"constant(value={str(flag).lower()})"
        return (lambda raw: (raw & np.uint64(1)).astype(np.bool_)), "random bits"
    limits = np.iinfo(dtype)
    if kind == "constant":
        value = int(_whole(request, request.exact("value"), limits))
        return (lambda raw: np.full(raw.shape, value)), f"constant(value={value})"
    if kind in {"exact-int", "exact-int-ramp"}:
        if limits.min == 0:
            return _magnitudes, "uniform from 1, 2"
        return (lambda raw: _magnitudes(raw) * signs(raw)), "uniform from -2, -1, 1, 2"
    return _range(request, limits)


def _magnitudes(raw: Raw) -> NDArray[Any]:
    return 1 + ((raw >> np.uint64(1)) & np.uint64(1)).astype(np.int64)


def _range(request: ArrayRequest, limits: np.iinfo[Any]) -> tuple[Fill, str]:
    low = 0.0 if limits.min == 0 else -float(_RANGE)
    high = min(low + 2.0 * _RANGE, float(limits.max))
    if request.draw.kind in {"uniform", "sorted", "falling"}:
        low = low if request.draw.lo is None else request.setting("lo")
        high = high if request.draw.hi is None else request.setting("hi")
    lo, hi = int(_whole(request, low, limits)), int(_whole(request, high, limits))
    if lo > hi or hi - lo >= _MOST:
        raise request.refuse(f"no integers to draw from {lo} to {hi}", "give lo <= hi")
    return (lambda raw: lo + below(raw, hi - lo + 1)), f"uniform integers(lo={lo}, hi={hi})"


def _whole(
    request: ArrayRequest, value: float | Fraction, limits: np.iinfo[Any]
) -> float | Fraction:
    if not math.isfinite(value) or value != int(value) or not limits.min <= value <= limits.max:
        raise request.refuse(
            f"{float(value):g} is no {request.plan.dtype}",
            f"give an integer from {limits.min} to {limits.max}",
        )
    return value


def draw_indices(request: ArrayRequest) -> tuple[NDArray[Any], str]:
    """Array of indices below a bound, and the words for how it was drawn.

    Hot: half of them name one row. Out of range: one in eight is outside. SpecError where the bound
    is missing or the array is not of integers, NotRunError where the kind has no meaning at the shape.
    """
    kind = request.draw.kind
    raw = request.source().random_raw(request.plan.elements)
    if numpy_dtype(request.plan.dtype).kind not in "iu":
        raise request.refuse(f"{kind} draws integers, {request.plan.name} is {request.plan.dtype}")
    if request.draw.below is None:
        raise request.refuse(f"{kind} needs the number of rows", "add below: EXPRESSION")
    count = int(evaluate(request.draw.below, request.case.sizes))
    limits = np.iinfo(numpy_dtype(request.plan.dtype))
    if count < 1:
        raise request.not_applicable(f"{kind} cannot name a row: below is {count}")
    if count - 1 > limits.max or count >= _MOST:
        raise request.not_applicable(f"{count} rows are more than {request.plan.dtype} can count")
    values = below(raw, count)
    words = f"{kind}(below={count}"
    if kind == "index-unique":
        if count < raw.size:
            raise request.not_applicable(f"{raw.size} different indices below {count}")
        keys = request.source("order").random_raw(count)
        values = np.argsort(keys, kind="stable")[: raw.size].astype(np.int64)
    elif kind == "index-hot":
        row = int(below(request.source("hot").random_raw(1), count)[0])
        values[(raw & np.uint64(1)) == 0] = row
        words += f", row={row}"
    elif kind == "index-out-of-range":
        _put_outside(values, raw, count, limits)
    dtype = numpy_dtype(request.plan.dtype)
    return values.astype(dtype).reshape(request.plan.shape), words + ")"


def _put_outside(values: NDArray[np.int64], raw: Raw, count: int, limits: np.iinfo[Any]) -> None:
    """Make one index in eight a wrong one: just past either end, or the farthest of the dtype."""
    wrong = [count, count + 1, -1, -count, limits.max, limits.min]
    usable = [v for v in wrong if limits.min <= v <= limits.max and not 0 <= v < count]
    if usable and values.size:
        where = np.flatnonzero((raw & np.uint64(7)) == 0)
        if where.size == 0:
            where = np.array([0])
        table = np.array([min(v, 2**63 - 1) for v in usable], dtype=np.int64)
        values[where] = table[below(raw[where], len(usable))]
