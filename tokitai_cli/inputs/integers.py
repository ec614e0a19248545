"""Kinds of draws for integer and bool arrays: plain ranges, and indices into another array's axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.dtypes import numpy_dtype
from tokitai_cli.expressions import evaluate
from tokitai_cli.inputs.field import Field
from tokitai_cli.inputs.transforms import Raw, below, signs

Fill = Callable[[Raw], NDArray[Any]]
INDEX_KINDS = ("index-uniform", "index-unique", "index-hot", "index-out-of-range")
_MOST = 1 << 52
_RANGE = 100


def integer_fill(field: Field) -> tuple[Fill, str]:
    """How a plain integer or bool field is filled, element by element, and the words for it.

    Kinds that are for floating-point numbers draw uniformly from a small range. SpecError where the
    settings do not fit the dtype.
    """
    dtype = numpy_dtype(field.plan.dtype)
    kind = field.draw.kind
    if dtype == np.bool_:
        if kind == "constant":
            flag = field.setting("value", 1.0) != 0.0
            return (lambda raw: np.full(raw.shape, flag)), f"constant(value={str(flag).lower()})"
        return (lambda raw: (raw & np.uint64(1)).astype(np.bool_)), "random bits"
    limits = np.iinfo(dtype)
    if kind == "constant":
        value = int(_whole(field, field.setting("value", 1.0), limits))
        return (lambda raw: np.full(raw.shape, value)), f"constant(value={value})"
    if kind in {"exact-int", "exact-int-ramp"}:
        if limits.min == 0:
            return _magnitudes, "uniform from 1, 2"
        return (lambda raw: _magnitudes(raw) * signs(raw)), "uniform from -2, -1, 1, 2"
    return _range(field, limits)


def _magnitudes(raw: Raw) -> NDArray[Any]:
    return 1 + ((raw >> np.uint64(1)) & np.uint64(1)).astype(np.int64)


def _range(field: Field, limits: np.iinfo[Any]) -> tuple[Fill, str]:
    low = 0.0 if limits.min == 0 else -float(_RANGE)
    high = min(low + 2.0 * _RANGE, float(limits.max))
    if field.draw.kind == "uniform":
        low, high = field.setting("lo", low), field.setting("hi", high)
    lo, hi = int(_whole(field, low, limits)), int(_whole(field, high, limits))
    if lo > hi or hi - lo >= _MOST:
        raise field.refuse(f"no integers to draw from {lo} to {hi}", "give lo <= hi")
    return (lambda raw: lo + below(raw, hi - lo + 1)), f"uniform integers(lo={lo}, hi={hi})"


def _whole(field: Field, value: float, limits: np.iinfo[Any]) -> float:
    if not math.isfinite(value) or value != int(value) or not limits.min <= value <= limits.max:
        raise field.refuse(
            f"{value:g} is no {field.plan.dtype}",
            f"give a whole number from {limits.min} to {limits.max}",
        )
    return value


def draw_indices(field: Field) -> tuple[NDArray[Any], str]:
    """Array of indices below a bound, and the words for how it was drawn.

    Hot: half of them name one row. Out of range: one in eight is outside. SpecError where the bound
    is missing or the array is not of integers, NotRunError where the kind has no meaning at the shape.
    """
    kind = field.draw.kind
    raw = field.source().random_raw(field.plan.elements)
    if numpy_dtype(field.plan.dtype).kind not in "iu":
        raise field.refuse(f"{kind} draws integers, {field.plan.name} is {field.plan.dtype}")
    if field.draw.below is None:
        raise field.refuse(f"{kind} needs the number of rows", "add below: EXPRESSION")
    count = int(evaluate(field.draw.below, field.case.shape))
    limits = np.iinfo(numpy_dtype(field.plan.dtype))
    if count < 1:
        raise field.not_applicable(f"{kind} has no row to name: below is {count}")
    if count - 1 > limits.max or count >= _MOST:
        raise field.not_applicable(f"{count} rows are more than {field.plan.dtype} can count")
    values = below(raw, count)
    words = f"{kind}(below={count}"
    if kind == "index-unique":
        if count < raw.size:
            raise field.not_applicable(f"{raw.size} different indices below {count}")
        keys = field.source("order").random_raw(count)
        values = np.argsort(keys, kind="stable")[: raw.size].astype(np.int64)
    elif kind == "index-hot":
        row = int(below(field.source("hot").random_raw(1), count)[0])
        values[(raw & np.uint64(1)) == 0] = row
        words += f", row={row}"
    elif kind == "index-out-of-range":
        _put_outside(values, raw, count, limits)
    dtype = numpy_dtype(field.plan.dtype)
    return values.astype(dtype).reshape(field.plan.shape), words + ")"


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
