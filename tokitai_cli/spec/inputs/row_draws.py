"""Kinds of draws for ops that work on rows: the last axis of an array, whatever its other axes.

As everywhere in this package, numbers come from IEEE 754 operations on the request's own bits alone;
sums are added in an order that is fixed here, and not by how numpy was built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.expressions import evaluate
from tokitai_cli.core.numerics import round_to
from tokitai_cli.spec.inputs.draw_request import ArrayRequest
from tokitai_cli.spec.inputs.transforms import Floats, Raw, below, exp2, signs

# float64 elements at a time.
_SLAB = 1 << 16
_LOG2_E = 1.44269504088896340735992468100
# 2^-1000 is nothing beside a row's largest term, which is 1.
_LEAST_EXPONENT = -999.0

Finish = Callable[[ArrayRequest, NDArray[Any]], None]


def _slabs(rows: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    step = max(1, _SLAB // max(1, rows.shape[1]))
    for start in range(0, rows.shape[0], step):
        yield start, rows[start : start + step]


def _as_rows(array: NDArray[Any]) -> NDArray[Any]:
    """View of a contiguous array that has elements as [rows, columns]."""
    return array.reshape(-1, array.shape[-1] if array.shape else 1)


def finish_constant_rows(request: ArrayRequest, array: NDArray[Any]) -> None:
    """Repeat the first number of each row."""
    rows = _as_rows(array)
    rows[:, 1:] = rows[:, :1]


def finish_one_large(request: ArrayRequest, array: NDArray[Any]) -> None:
    """Put `value` at one place of each row, the places of `at` in turn; those outside move inside."""
    _put_large(request, _as_rows(array))


def finish_placed(request: ArrayRequest, array: NDArray[Any]) -> None:
    """Put `value` at each place of `at` in every row; those outside move inside."""
    _as_rows(array)[:, places_of(request)] = request.setting("value")


def finish_sorted(request: ArrayRequest, array: NDArray[Any]) -> None:
    """Let each row rise."""
    rows = _as_rows(array)
    if request.is_float:
        rows[...] = round_to(np.sort(rows.astype(np.float64), axis=1), request.plan.dtype)
    else:
        rows.sort(axis=1)


def finish_falling(request: ArrayRequest, array: NDArray[Any]) -> None:
    """Let each row fall."""
    finish_sorted(request, array)
    rows = _as_rows(array)
    rows[...] = rows[:, ::-1].copy()


def finish_ties(request: ArrayRequest, array: NDArray[Any]) -> None:
    """Let each element be one of the first `value` of its row."""
    rows = _as_rows(array)
    count = request.setting("value")
    if count < 1 or count != int(count):
        raise request.refuse(f"{count:g} different values", "give an integer, 1 or more")
    raw = request.source("ties").random_raw(rows.size)
    chosen = below(raw, min(int(count), rows.shape[1])).reshape(rows.shape)
    rows[...] = np.take_along_axis(rows, chosen, axis=1)


def finish_sorted_ties(request: ArrayRequest, array: NDArray[Any]) -> None:
    """Let each row have equal values, and rise."""
    finish_ties(request, array)
    finish_sorted(request, array)


def finish_zero_rows(request: ArrayRequest, array: NDArray[Any]) -> None:
    """Fill every other row with zeros, the first one included."""
    _as_rows(array)[::2] = 0


ROW_ORDERS: Mapping[str, Finish] = {
    "sorted": finish_sorted,
    "falling": finish_falling,
    "ties": finish_ties,
    "sorted-ties": finish_sorted_ties,
    "zero-rows": finish_zero_rows,
}


def _put_large(request: ArrayRequest, rows: NDArray[Any]) -> None:
    places = places_of(request)
    for turn, place in enumerate(places):
        rows[turn :: len(places), place] = request.setting("value")


def places_of(request: ArrayRequest) -> list[int]:
    """Return the columns that `at` names, the last and the first where it names none."""
    last = request.plan.shape[-1] - 1 if request.plan.shape else 0
    if request.draw.at is None:
        return [last, 0]
    shape = request.case.sizes
    return [min(max(int(evaluate(text, shape)), 0), max(last, 0)) for text in request.draw.at]


def finish_masked(request: ArrayRequest, array: NDArray[Any]) -> None:
    """Put -inf at half of the places in even rows, and from a random column on in odd rows.

    That is what masks and padding look like; one place of each row is always kept.
    """
    rows = _as_rows(array)
    count, width = int(rows.shape[0]), int(rows.shape[1])
    kept = below(request.source("kept").random_raw(count), max(1, width))
    ends = 1 + below(request.source("ends").random_raw(count), max(1, width))
    bits = request.source("mask")
    columns = np.arange(width)
    for start, slab in _slabs(rows):
        raw = bits.random_raw(slab.size).reshape(slab.shape)
        masked = (raw & np.uint64(1)).astype(bool)
        numbers = np.arange(start, start + slab.shape[0])
        even = numbers % 2 == 0
        masked[even, kept[numbers][even]] = False
        masked[~even] = columns >= ends[numbers][~even, None]
        slab[masked] = -np.inf


def finish_all_masked(request: ArrayRequest, array: NDArray[Any]) -> None:
    """Fill every other row with -inf, the first one included."""
    _as_rows(array)[::2] = -np.inf


def every_other(value: float) -> Finish:
    """Return a finish that puts `value` at a random place of every other row, the first included."""

    def finish(request: ArrayRequest, array: NDArray[Any]) -> None:
        rows = _as_rows(array)
        hit = np.arange(0, rows.shape[0], 2)
        rows[hit, below(request.source("places").random_raw(hit.size), rows.shape[1])] = value

    return finish


def finish_softmax(request: ArrayRequest, array: NDArray[Any]) -> None:
    """Replace rows of logits by their softmax, rounded once; `at` makes one logit large first."""
    rows = _as_rows(array)
    if request.draw.at is not None:
        _put_large(request, rows)
    for _, slab in _slabs(rows):
        logits = slab.astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        terms = exp2(np.maximum(logits * _LOG2_E, _LEAST_EXPONENT))
        slab[...] = round_to(terms / row_sums(terms)[:, None], request.plan.dtype)


def fill_power_of_two(request: ArrayRequest, raw: Raw) -> Floats:
    """2^k with k uniform among the integers from `lo` to `hi`."""
    lo, hi = int(request.setting("lo")), int(request.setting("hi"))
    return np.ldexp(np.ones(raw.shape), (lo + below(raw, hi - lo + 1)).astype(np.int32))


def fill_halfway(request: ArrayRequest, raw: Raw) -> Floats:
    """Numbers of either sign in 1/8 to 8, halfway between two of a format of `value` bits."""
    bits = int(request.setting("value"))
    whole = 2.0**bits + 2.0 * below(raw << np.uint64(8), 1 << (bits - 1)) + 1.0
    exponent = (below(raw << np.uint64(4), 6) - 3 - bits).astype(np.int32)
    return np.asarray(np.ldexp(whole, exponent) * signs(raw))


def row_sums(terms: Floats) -> Floats:
    """Add up each row pairwise, in an order that depends on its length alone."""
    terms = terms.copy()
    while terms.shape[1] > 1:
        half = terms.shape[1] // 2
        folded = terms[:, :half] + terms[:, half : 2 * half]
        if terms.shape[1] % 2:
            folded[:, 0] += terms[:, -1]
        terms = folded
    return np.asarray(terms[:, 0])


def draw_derived(
    request: ArrayRequest, arrays: Mapping[str, NDArray[Any]]
) -> tuple[NDArray[Any], str]:
    """Array that follows from another one, and the words for it.

    row-mean: mean over the last axis. row-rstd: 1 / sqrt(variance + `value`), the biased variance
    and `value` as a float32, 1e-5 by itself. In float64, rounded once; NaN and infinities as IEEE
    arithmetic has them. SpecError where there is no such array, or its rows are not the elements.
    """
    kind, of = request.draw.kind, request.draw.of
    if of is None or of not in arrays:
        known = ", ".join(arrays)
        raise request.refuse(
            f"{kind} needs an array to depend on", f"add of: NAME; there is {known}"
        )
    source = arrays[of]
    if source.dtype.kind in "iub" or source.shape[:-1] != request.plan.shape:
        raise request.refuse(
            f"{kind} of {of}, {source.dtype.name} {list(source.shape)}, does not fill "
            f"{request.plan.name} {list(request.plan.shape)}",
            "one element for each row of floating-point numbers",
        )
    eps = float(np.float32(request.setting("value") if kind == "row-rstd" else 0.0))
    values = np.zeros(math.prod(request.plan.shape))
    rows = _as_rows(source) if source.size else source.reshape(0, 1)
    with np.errstate(all="ignore"):
        for start, slab in _slabs(rows):
            x = slab.astype(np.float64)
            result = row_sums(x) / x.shape[1]
            if kind == "row-rstd":
                result = 1.0 / np.sqrt(row_sums((x - result[:, None]) ** 2) / x.shape[1] + eps)
            values[start : start + result.size] = result
    words = f"{kind}(of={of}" + (f", value={eps:g})" if kind == "row-rstd" else ")")
    return round_to(values, request.plan.dtype).reshape(request.plan.shape), words
