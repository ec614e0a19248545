"""What a user's oracle answered, part by part: checked, and made an Expectation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import FORMATS, numpy_dtype
from tokitai_cli.core.larger_of import larger_of
from tokitai_cli.core.model.case import BufferPlan
from tokitai_cli.core.model.expectation import Expectation
from tokitai_cli.core.numerics import round_to, spacing
from tokitai_cli.oracles.output_parts import ArrayParts, OutputParts, Part

# Elements of an answer that are looked at together.
_PART = 1 << 17


class AnswerError(Exception):
    """What is wrong with a part of the answer, and how to mend it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def loaded(plan: BufferPlan, files: OutputParts[str], folder: Path) -> ArrayParts:
    """The parts of the answer for one output out of its .npy files. Raises AnswerError."""
    return files.map(lambda part, file: _load(plan, part, folder / file))


def expectation(plan: BufferPlan, given: ArrayParts) -> Expectation:
    """The answer for one output. Raises AnswerError."""
    parts = given.map(lambda part, array: _fitting(plan, part, array))
    reference = parts.reference
    parts = parts.map(
        lambda part, array: (
            _CHECKS[part.field](plan, part.field, array, reference)
            if part.field in _CHECKS
            and isinstance(array, np.ndarray)  # not one that is computed later
            else array
        )
    )
    error, below, above = parts.error, parts.error_below, parts.error_above
    if (below is None) is not (above is None):
        raise AnswerError(
            f"{plan.name} has one of error_below and error_above",
            "give both; use 0 if there is no error on one side",
        )
    if below is not None and above is not None:
        if error is not None:
            raise AnswerError(f"{plan.name} has error beside error_below", "give one or the other")
        error = larger_of(below, above)
    if plan.dtype in FORMATS and parts.allowed is not None and parts.low is not None:
        raise AnswerError(f"{plan.name} has low beside allowed", "give one of them")
    return Expectation(
        reference=reference,
        error=error,
        error_below=below,
        error_above=above,
        may_be_unwritten=parts.may_be_unwritten,
        may_be_nan=parts.may_be_nan,
        unbounded=parts.unbounded,
        allowed=parts.allowed,
        segments=parts.segments,
        low=parts.low,
        terms=None,
        dropped={name: lambda array=array: array for name, array in parts.wrong.items()},
        error_probable=parts.error_probable,
        changes=parts.changes,
        rows=parts.rows,
        replay=_replay(plan, parts.replay),
    )


def _replay(plan: BufferPlan, values: NDArray[Any] | None) -> NDArray[Any] | None:
    if values is None or plan.dtype not in FORMATS:
        return None if values is None else values.astype(numpy_dtype(plan.dtype))
    flat = values.reshape(-1)
    rounded = np.empty(flat.shape, numpy_dtype(plan.dtype))
    for at in _slices(flat.size):
        rounded[at] = round_to(flat[at].astype(np.float64), plan.dtype)
    return rounded.reshape(values.shape)


def _slices(size: int) -> Iterator[slice]:
    """Parts of a flat array, so that nothing of its whole size is made on the way."""
    return (slice(start, start + _PART) for start in range(0, size, _PART))


def _said(plan: BufferPlan, part: Part) -> str:
    words = f"{part.field} output {part.key}" if part.field == "wrong" else part.field
    return f"{words} of {plan.name}"


def _load(plan: BufferPlan, part: Part, file: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as failure:
        raise AnswerError(f"{_said(plan, part)} cannot be read: {failure}") from failure
    return array


def _fitting(plan: BufferPlan, part: Part, array: NDArray[Any]) -> NDArray[Any]:
    said = _said(plan, part)
    if part.field == "rows":
        return array
    shape = array.shape[1:] if part.field == "allowed" else array.shape
    of_rows = part.field == "changes" and shape[1:] == plan.shape[1:]
    if shape != plan.shape and not of_rows:
        wanted = list(plan.shape)
        more = "a row of values for each choice, " if part.field == "allowed" else ""
        raise AnswerError(f"{said} has shape {list(array.shape)}, not {more}{wanted}")
    rounded = part.field == "changes" and array.dtype == numpy_dtype(plan.dtype)
    return _values(plan, said, array) if part.field in _LIKE_THE_OUTPUT and not rounded else array


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
    off, at = (x.reshape(-1) for x in np.broadcast_arrays(error, reference))
    for some in _slices(off.size):
        if np.any((np.isnan(off[some]) & np.isfinite(at[some])) | (off[some] < 0)):
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
    return _values(plan, f"{part} of {plan.name}", allowed)


def _segments(
    plan: BufferPlan, part: str, segments: NDArray[Any], reference: NDArray[Any]
) -> NDArray[Any]:
    if segments.dtype.kind not in "iu":
        raise AnswerError(f"{part} of {plan.name} is {segments.dtype}, not of integers")
    return segments


_LIKE_THE_OUTPUT = ("reference", "wrong", "changes")
_CHECKS: dict[str, Callable[[BufferPlan, str, NDArray[Any], NDArray[Any]], NDArray[Any]]] = {
    "error": _error,
    "error_below": _error,
    "error_above": _error,
    "may_be_unwritten": _mask,
    "may_be_nan": _mask,
    "unbounded": _mask,
    "low": _low,
    "allowed": _allowed,
    "segments": _segments,
}
