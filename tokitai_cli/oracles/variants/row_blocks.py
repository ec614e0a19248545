"""Cases taken apart by rows, where each row of the outputs comes of its own rows of the inputs.

A row of the inputs is a row's own by its place, or because an index names the row (`Naming`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.oracles.variants.request import FormulaCall, Request

# Of the same float64 formula on more and fewer rows.
_CLOSE = 1e-9
# What a formula may raise on few rows that it does not raise on all: they are not independent then.
TOO_FEW = (ArithmeticError, IndexError, TypeError, ValueError)


class Naming(NamedTuple):
    """An input whose elements name rows of the outputs, and the param that counts these elements."""

    name: str
    counted: str


def naming_of(call: FormulaCall, request: Request, param: str) -> Naming | None:
    """The one input whose elements name the rows that `param` counts; None for none or several.

    What has an element for each of its elements is taken apart with it, so no output may have one.
    """
    found = [
        Naming(name, counted)
        for name, rows in request.indices.items()
        for counted in request.shapes.get(name, ())
        if rows == param != counted and counted in call.params and counted not in request.tied
    ]
    written = {text for name in request.outputs for text in request.shapes.get(name, ())}
    if len(found) != 1 or call.inputs[found[0].name].ndim != 1 or found[0].counted in written:
        return None
    return found[0]


def param_of(call: FormulaCall, request: Request) -> str:
    """The param that counts the first axis of every output, and an axis of an input or rows that
    an input names; "" for none.

    Whether rows are correlated is seen when values are compared (`alike`).
    """
    fronts = {tuple(request.shapes.get(name, ()))[:1] for name in request.outputs}
    front = fronts.pop() if len(fronts) == 1 else ()
    if not front or front[0] in request.tied or front[0] not in call.params:
        return ""
    read = {text for name in call.inputs for text in request.shapes.get(name, ())}
    return front[0] if front[0] in read or naming_of(call, request, front[0]) else ""


def elements(call: FormulaCall, request: Request, name: str) -> int:
    """Elements of an output as its shape says, where it is made of params alone; else 0."""
    shape = request.shapes.get(name, ())
    return math.prod(call.params.get(text, 0) for text in shape)


def some_rows(call: FormulaCall, request: Request, param: str, number: int) -> NDArray[np.int64]:
    """So many of the rows, evenly, and among them the one that is named most: its sums are longest."""
    count, naming = call.params[param], naming_of(call, request, param)
    if not naming:
        return np.unique(np.linspace(0, count - 1, number).astype(np.int64))
    numbers = call.inputs[naming.name]
    named = np.bincount(numbers[(numbers >= 0) & (numbers < count)], minlength=1)
    rows = np.linspace(0, count - 1, number - 1).astype(np.int64)
    return np.unique(np.append(rows, named.argmax()))


def share_of(less: FormulaCall, call: FormulaCall, request: Request, param: str) -> tuple[int, int]:
    """How much of a case there is to do with some of its rows, over how much with all."""
    naming = naming_of(call, request, param)
    counted = naming.counted if naming else param
    return max(less.params[counted], 1), max(call.params[counted], 1)


def with_rows(
    call: FormulaCall, request: Request, param: str, rows: NDArray[np.int64] | slice
) -> FormulaCall:
    """The case with these alone of the rows that `param` counts, of a slice with views of them."""
    naming = naming_of(call, request, param)
    if naming:
        numbers, kept = _numbered_anew(call.inputs[naming.name], rows, call.params[param])
        named = {**call.inputs, naming.name: numbers}
        params = {**call.params, naming.counted: kept.size}
        inputs = _along(naming.counted, kept, named, request)
        call = FormulaCall(call.function, params, inputs, call.scalars)
    inputs = _along(param, rows, call.inputs, request)
    count = len(range(call.params[param])[rows] if isinstance(rows, slice) else rows)
    return FormulaCall(call.function, {**call.params, param: count}, inputs, call.scalars)


def in_double(
    call: FormulaCall, request: Request, param: str, rows: NDArray[np.int64] | slice
) -> Mapping[str, Any] | None:
    """What the formula gives of these rows in float64; None where they are too few for it."""
    try:
        return with_rows(call, request, param, rows).in_double()
    except TOO_FEW:
        return None


def by_steps(
    call: FormulaCall,
    request: Request,
    param: str,
    step: int,
    ask: Callable[[FormulaCall], Mapping[str, NDArray[Any]]],
) -> Mapping[str, NDArray[Any]]:
    """What `ask` gives of the outputs' rows, so many at a time; 0: of all of them at once."""
    if not step or step >= call.params[param]:
        return ask(call)
    starts = range(0, call.params[param], step)
    found = [ask(with_rows(call, request, param, slice(at, at + step))) for at in starts]
    return {name: np.concatenate([one[name] for one in found]) for name in request.outputs}


def _along(
    param: str,
    rows: NDArray[np.int64] | slice,
    inputs: Mapping[str, NDArray[Any]],
    request: Request,
) -> dict[str, NDArray[Any]]:
    """The inputs with these places alone along the axes that `param` counts."""
    found = dict(inputs)
    for name, array in inputs.items():
        axes = [axis for axis, text in enumerate(request.shapes.get(name, ())) if text == param]
        found[name] = functools.reduce(lambda some, axis: taken(some, rows, axis), axes, array)
    return found


def _numbered_anew(
    numbers: NDArray[Any], rows: NDArray[np.int64] | slice, count: int
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The numbers as those of these rows alone, and the places of those that are left.

    Numbers outside of all rows stay, below or above: what a formula makes of them shows beside others.
    """
    chosen = np.arange(count)[rows]
    place = np.full(count, -1)
    place[chosen] = np.arange(chosen.size)
    inside = (numbers >= 0) & (numbers < count)
    beyond = numbers.astype(np.int64) - count + chosen.size
    found = np.where(numbers < 0, numbers, beyond)
    found[inside] = place[numbers[inside]]
    return found.astype(numbers.dtype), np.flatnonzero(~inside | (found >= 0))


def taken(array: NDArray[Any], rows: NDArray[np.int64] | slice, axis: int = 0) -> NDArray[Any]:
    """Rows along an axis, one behind the other in memory; of a slice a view where it is that."""
    if isinstance(rows, slice):
        return np.ascontiguousarray(array[(*(slice(None),) * axis, rows)])
    return np.take(array, rows, axis)


def alike(want: NDArray[Any], got: NDArray[Any]) -> bool:
    """Whether rows by themselves came out as they do among all: mostly to the bit."""
    if want.shape == got.shape and bool((want == got).all()):
        return True
    with np.errstate(invalid="ignore"):
        wide = np.abs(want.astype(np.float64))
        largest = float(np.max(wide, where=np.isfinite(wide), initial=0.0))
    return want.shape == got.shape and np.allclose(
        got, want, rtol=_CLOSE, atol=_CLOSE * largest, equal_nan=True
    )
