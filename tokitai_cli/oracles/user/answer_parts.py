"""What a user's oracle answered, part by part: checked, and made an Expectation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import FORMATS, numpy_dtype
from tokitai_cli.core.model.case import BufferPlan, Expectation
from tokitai_cli.core.numerics import round_to, spacing
from tokitai_cli.oracles.user.oracle_call import CHANGE, WRONG

Arrays = dict[str, NDArray[Any]]


class AnswerError(Exception):
    """What is wrong with a part of the answer, and how to mend it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def loaded(plan: BufferPlan, files: Mapping[str, str], folder: Path) -> Arrays:
    """The parts of the answer for one output out of its .npy files. Raises AnswerError."""
    return {part: _load(plan, part, folder / file) for part, file in files.items()}


def expectation(plan: BufferPlan, given: Mapping[str, NDArray[Any]]) -> Expectation:
    """The answer for one output, by part. Raises AnswerError."""
    parts = {part: _fitting(plan, part, array) for part, array in given.items()}
    reference = _reference(plan, parts["reference"])
    for part, check in _CHECKS.items():
        if part in parts:
            parts[part] = check(plan, part, parts[part], reference)
    error, below, above = (parts.get(part) for part in ("error", "error_below", "error_above"))
    if (below is None) is not (above is None):
        raise AnswerError(
            f"{plan.name} has one of error_below and error_above",
            "give both; 0 where there is none",
        )
    if below is not None and above is not None:
        if error is not None:
            raise AnswerError(f"{plan.name} has error beside error_below", "give one or the other")
        error = np.maximum(below, above)
    wrong = {
        part.removeprefix(WRONG): lambda array=array: array
        for part, array in parts.items()
        if part.startswith(WRONG)
    }
    return Expectation(
        reference=reference,
        error=error,
        error_below=below,
        error_above=above,
        may_be_unwritten=parts.get("may_be_unwritten"),
        may_be_nan=parts.get("may_be_nan"),
        unbounded=parts.get("unbounded"),
        allowed=parts.get("allowed"),
        low=parts.get("low"),
        terms=None,
        dropped=wrong,
        error_probable=parts.get("error_probable"),
        changes={
            part.removeprefix(CHANGE): array
            for part, array in parts.items()
            if part.startswith(CHANGE)
        },
        rows=parts.get("rows"),
        replay=_replay(plan, parts.get("replay")),
    )


def _replay(plan: BufferPlan, values: NDArray[Any] | None) -> NDArray[Any] | None:
    if values is None or plan.dtype not in FORMATS:
        return None if values is None else values.astype(numpy_dtype(plan.dtype))
    return round_to(values.astype(np.float64), plan.dtype)


def _said(plan: BufferPlan, part: str) -> str:
    return f"{part.replace(WRONG, 'wrong output ')} of {plan.name}"


def _load(plan: BufferPlan, part: str, file: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as failure:
        raise AnswerError(f"{_said(plan, part)} cannot be read: {failure}") from failure
    return array


def _fitting(plan: BufferPlan, part: str, array: NDArray[Any]) -> NDArray[Any]:
    said = _said(plan, part)
    if part == "rows":
        return array
    shape = array.shape[1:] if part == "allowed" else array.shape
    of_rows = part.startswith(CHANGE) and shape[1:] == plan.shape[1:]
    if shape != plan.shape and not of_rows:
        wanted = list(plan.shape)
        more = "a row of values for each choice, " if part == "allowed" else ""
        raise AnswerError(f"{said} has shape {list(array.shape)}, not {more}{wanted}")
    return _values(plan, said, array) if part.startswith((WRONG, CHANGE)) else array


def _reference(plan: BufferPlan, array: NDArray[Any]) -> NDArray[Any]:
    return _values(plan, f"reference of {plan.name}", array)


def _values(plan: BufferPlan, said: str, array: NDArray[Any]) -> NDArray[Any]:
    """Check the dtype: float64 for floats, else integers (or bools) that the output can hold."""
    if plan.dtype in FORMATS:
        if array.dtype != np.float64:
            raise AnswerError(f"{said} is {array.dtype}, not float64", "compute and return float64")
        return array
    dtype = numpy_dtype(plan.dtype)
    if dtype == np.bool_ or array.dtype.kind not in "iu":
        if array.dtype != dtype:
            raise AnswerError(f"{said} is {array.dtype}, not {plan.dtype}")
        return array
    limits = np.iinfo(dtype)
    if array.size and not limits.min <= int(array.min()) <= int(array.max()) <= limits.max:
        raise AnswerError(f"{said} is {array.dtype} with values that {plan.dtype} cannot hold")
    return array.astype(dtype)


def _error(
    plan: BufferPlan, part: str, error: NDArray[Any], reference: NDArray[Any]
) -> NDArray[np.float64]:
    if plan.dtype == "bool":
        raise AnswerError(f"{part} of {plan.name}: bool outputs are exact and have none")
    if error.dtype != np.float64:
        raise AnswerError(f"{part} of {plan.name} is {error.dtype}, not float64")
    if np.any((np.isnan(error) & np.isfinite(reference)) | (error < 0)):
        raise AnswerError(f"{part} of {plan.name} has negative values or NaN")
    return error


def _mask(
    plan: BufferPlan, part: str, mask: NDArray[Any], reference: NDArray[Any]
) -> NDArray[np.bool_]:
    if mask.dtype != np.bool_:
        raise AnswerError(f"{part} of {plan.name} is {mask.dtype}, not bool")
    if part == "may_be_nan" and plan.dtype not in FORMATS:
        raise AnswerError(f"{part} of {plan.name}: {plan.dtype} has no NaN")
    return mask


def _low(
    plan: BufferPlan, part: str, low: NDArray[Any], reference: NDArray[Any]
) -> NDArray[np.float64]:
    """Check the low part of a double-double; zero where the reference is not finite."""
    if plan.dtype != "float64" or low.dtype != np.float64:
        raise AnswerError(f"{part} of {plan.name}: only float64 outputs have one, in float64")
    finite = np.isfinite(reference)
    half = 0.5 * spacing(reference, FORMATS["float64"])
    with np.errstate(invalid="ignore"):
        if not np.all(np.abs(low[finite]) <= half[finite]):
            raise AnswerError(
                f"{part} of {plan.name} has NaN, or values above half an ulp of the reference",
                "let the reference be the nearest float64, and low the rest",
            )
    return np.where(finite, low, 0.0)


def _allowed(
    plan: BufferPlan, part: str, allowed: NDArray[Any], reference: NDArray[Any]
) -> NDArray[Any]:
    if plan.dtype in FORMATS:
        raise AnswerError(f"{part} of {plan.name}: floats have no set of allowed values")
    return _values(plan, f"{part} of {plan.name}", allowed)


_CHECKS: dict[str, Callable[[BufferPlan, str, NDArray[Any], NDArray[Any]], NDArray[Any]]] = {
    "error": _error,
    "error_below": _error,
    "error_above": _error,
    "may_be_unwritten": _mask,
    "may_be_nan": _mask,
    "unbounded": _mask,
    "low": _low,
    "allowed": _allowed,
}
