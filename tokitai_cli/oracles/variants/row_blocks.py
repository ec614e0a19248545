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


def param_of(asked: FormulaCall, wanted: Request) -> str:
    """The param that counts the first axis of every output, and an axis of an input; "" for none.

    Whether rows hang together is seen when values are compared (`alike`).
    """
    fronts = {tuple(wanted.shapes.get(name, ()))[:1] for name in wanted.outputs}
    front = fronts.pop() if len(fronts) == 1 else ()
    if front and front[0] in wanted.tied:
        return ""
    read = {text for name in asked.inputs for text in wanted.shapes.get(name, ())}
    return front[0] if front and front[0] in asked.params and front[0] in read else ""


def elements(asked: FormulaCall, wanted: Request, name: str) -> int:
    """Elements of an output as its shape says, where it is made of params alone; else 0."""
    shape = wanted.shapes.get(name, ())
    return math.prod(asked.params.get(text, 0) for text in shape)


def with_rows(
    asked: FormulaCall, wanted: Request, param: str, rows: NDArray[np.int64]
) -> FormulaCall:
    """The case with these alone of the rows that `param` counts."""
    inputs = dict(asked.inputs)
    for name, array in asked.inputs.items():
        axes = [axis for axis, text in enumerate(wanted.shapes.get(name, ())) if text == param]
        inputs[name] = functools.reduce(lambda some, axis: np.take(some, rows, axis), axes, array)
    return FormulaCall(asked.function, {**asked.params, param: len(rows)}, inputs, asked.scalars)


def alike(want: NDArray[Any], got: NDArray[Any]) -> bool:
    """Whether rows by themselves came out as they do among all."""
    with np.errstate(invalid="ignore"):
        wide = np.abs(want.astype(np.float64))
        largest = float(np.max(wide, where=np.isfinite(wide), initial=0.0))
    return want.shape == got.shape and np.allclose(
        got, want, rtol=_CLOSE, atol=_CLOSE * largest, equal_nan=True
    )
