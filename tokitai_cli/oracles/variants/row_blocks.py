"""Cases taken apart by rows, where each row of the outputs comes of its own rows of the inputs."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.oracles.variants.request import FormulaCall, Request

# Of the same float64 formula on more and fewer rows.
_CLOSE = 1e-9


def param_of(call: FormulaCall, request: Request) -> str:
    """The param that counts the first axis of every output, and an axis of an input; "" for none.

    Whether rows are correlated is seen when values are compared (`alike`).
    """
    fronts = {tuple(request.shapes.get(name, ()))[:1] for name in request.outputs}
    front = fronts.pop() if len(fronts) == 1 else ()
    if front and front[0] in request.tied:
        return ""
    read = {text for name in call.inputs for text in request.shapes.get(name, ())}
    return front[0] if front and front[0] in call.params and front[0] in read else ""


def elements(call: FormulaCall, request: Request, name: str) -> int:
    """Elements of an output as its shape says, where it is made of params alone; else 0."""
    shape = request.shapes.get(name, ())
    return math.prod(call.params.get(text, 0) for text in shape)


def with_rows(
    call: FormulaCall, request: Request, param: str, rows: NDArray[np.int64] | slice
) -> FormulaCall:
    """The case with these alone of the rows that `param` counts, of a slice with views of them."""
    inputs = dict(call.inputs)
    for name, array in call.inputs.items():
        axes = [axis for axis, text in enumerate(request.shapes.get(name, ())) if text == param]
        inputs[name] = functools.reduce(lambda some, axis: taken(some, rows, axis), axes, array)
    count = len(range(call.params[param])[rows] if isinstance(rows, slice) else rows)
    return FormulaCall(call.function, {**call.params, param: count}, inputs, call.scalars)


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
