"""Kinds of draws that give an array as a whole, whatever its dtype: places, orders, ends of a type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import FORMATS, numpy_dtype
from tokitai_cli.core.numerics import round_to
from tokitai_cli.spec.inputs.draw_request import ArrayRequest
from tokitai_cli.spec.inputs.transforms import below

Values = NDArray[Any]


def draw_pattern(request: ArrayRequest) -> tuple[Values, str]:
    """Array of a kind of `PATTERNS`, with words for it. NotRunError where the dtype cannot hold it."""
    kind, plan = request.draw.kind, request.plan
    values, words = PATTERNS[kind](request)
    if plan.dtype in FORMATS:
        array = round_to(values.astype(np.float64), plan.dtype)
    else:
        array = values.astype(numpy_dtype(plan.dtype))
    if kind != "limits" and not np.array_equal(array.astype(np.float64), values.astype(np.float64)):
        raise request.not_applicable(f"{plan.dtype} cannot hold the numbers of {kind}")
    return array.reshape(plan.shape), kind + words


def _rows(request: ArrayRequest) -> tuple[int, int]:
    columns = request.plan.shape[-1] if request.plan.shape else 1
    return request.plan.elements // max(1, columns), columns


def _arange(request: ArrayRequest) -> tuple[Values, str]:
    rows, columns = _rows(request)
    first = _whole(request)
    return np.tile(np.arange(first, first + columns), rows), f"(value={first})" if first else ""


def _permutation(request: ArrayRequest) -> tuple[Values, str]:
    keys = request.source().random_raw(request.plan.elements).reshape(_rows(request))
    return np.argsort(keys, axis=1, kind="stable"), ""


def _one_hot(request: ArrayRequest) -> tuple[Values, str]:
    rows, columns = _rows(request)
    value = request.setting("value")
    values = np.zeros((rows, columns))
    if values.size:
        values[np.arange(rows), below(request.source().random_raw(rows), columns)] = value
    return values, "" if value == 1 else f"(value={value:g})"


def _limits(request: ArrayRequest) -> tuple[Values, str]:
    """Ends of the type and their neighbours, zeros and ones; of floats also the least of each sort."""
    plan = request.plan
    if plan.dtype in FORMATS:
        form = FORMATS[plan.dtype]
        sizes = (form.largest, 2.0**form.min_exponent, form.smallest, 1.0, 0.0)
        table = np.array([sign * size for size in sizes for sign in (1.0, -1.0)])
    elif plan.dtype == "bool":
        table = np.array([False, True])
    else:
        ends = np.iinfo(numpy_dtype(plan.dtype))
        numbers = {ends.min, ends.min + 1, ends.max - 1, ends.max, 0, 1, max(ends.min, -1)}
        table = np.array(sorted(numbers), dtype=numpy_dtype(plan.dtype))
    return table[below(request.source().random_raw(plan.elements), table.size)], ""


def _offsets(request: ArrayRequest) -> tuple[Values, str]:
    """From 0 to `end` in steps of every size; about a quarter of the steps are 0."""
    rows, columns = _rows(request)
    end = request.whole("end")
    if end < 0 or (columns == 1 and end):
        raise request.not_applicable(f"{columns} offsets cannot rise from 0 to {end}")
    raw = request.source().random_raw(request.plan.elements).reshape(rows, columns)
    values = below(raw, end + 1)
    values[:, 1:] = np.where((raw & np.uint64(3))[:, 1:] == 0, values[:, :-1], values[:, 1:])
    values[:, :1] = 0
    if columns > 1:
        values[:, -1] = end
    return np.sort(values, axis=1), f"(end={end})"


def _segments(request: ArrayRequest) -> tuple[Values, str]:
    """The segment that each element is of, in rising order; about a quarter are empty."""
    count = request.whole("below")
    if count < 1:
        raise request.not_applicable(f"there are {count} segments")
    raw = request.source("kept").random_raw(count)
    kept = np.flatnonzero((raw & np.uint64(3)) != 0)
    kept = kept if kept.size else np.arange(1)
    values = kept[below(request.source().random_raw(request.plan.elements), kept.size)]
    return np.sort(values.reshape(_rows(request)), axis=1), f"(below={count})"


def _whole(request: ArrayRequest) -> int:
    value = request.setting("value")
    if value != int(value):
        raise request.refuse(f"{value:g} is not an integer", "give an integer to start at")
    return int(value)


PATTERNS: dict[str, Callable[[ArrayRequest], tuple[Values, str]]] = {
    "arange": _arange,
    "permutation": _permutation,
    "one-hot": _one_hot,
    "limits": _limits,
    "segments": _segments,
    "offsets": _offsets,
}
