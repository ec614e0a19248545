"""What an oracle or a replay gave, checked against its output and made a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.deferred import pass_of
from tokitai_cli.core.dtypes import FORMATS, numpy_dtype
from tokitai_cli.core.errors import OracleError
from tokitai_cli.core.larger_of import larger_of
from tokitai_cli.core.model.case import BufferPlan
from tokitai_cli.core.model.expectation import Expectation, Replay
from tokitai_cli.core.numerics import clamped
from tokitai_cli.judge.checks.numbers import index_of, shown, shown_index
from tokitai_cli.judge.checks.target import Target


def reference_target(
    buffer: BufferPlan, expectation: Expectation, *, flush_to_zero: bool
) -> Target:
    """Return the oracle's word on `buffer` as a target.

    Raises OracleError where the reference has another shape, cannot be held in an integer output's
    dtype, carries a negative error, or is not the constant that the spec says.
    """
    form = FORMATS.get(buffer.dtype)
    reference, later = expectation.reference, pass_of(expectation.reference) is not None
    reference = reference if later else np.asarray(reference)
    if reference.shape != buffer.shape:
        raise OracleError(
            f"the reference of {buffer.name} has the shape {list(reference.shape)}, "
            f"the output has {list(buffer.shape)}",
            hint="return one value for each element of the output",
        )
    if later:
        pass  # a format that holds infinity, in float64
    elif form is not None:
        reference = clamped(np.ascontiguousarray(reference, dtype=np.float64), form)
    else:
        reference = _integers(buffer, reference)
    sides = _sides(buffer, expectation)
    target = Target(
        name=buffer.name,
        dtype=buffer.dtype,
        shape=buffer.shape,
        reference=reference.reshape(-1),
        constant=buffer.constant,
        error=_errors(buffer, expectation.error) if sides is None else larger_of(*sides),
        probable=_errors(buffer, expectation.error_probable),
        flush_to_zero=flush_to_zero,
        sides=sides,
        refine=expectation.refine,
        low=None if expectation.low is None else np.asarray(expectation.low).reshape(-1),
        may_be_nan=None if expectation.may_be_nan is None else expectation.may_be_nan.reshape(-1),
        unbounded=None if expectation.unbounded is None else expectation.unbounded.reshape(-1),
        allowed=None if expectation.allowed is None else _choices(buffer, expectation.allowed),
    )
    _check_constant(target)
    return target


def _choices(buffer: BufferPlan, allowed: NDArray[Any]) -> NDArray[Any]:
    values = allowed.view(np.uint8) if allowed.dtype == bool else allowed
    form = FORMATS.get(buffer.dtype)
    values = values if form is None else clamped(values.astype(np.float64), form)
    return values.reshape(allowed.shape[0], -1)


def _check_constant(target: Target) -> None:
    """Raise OracleError where a finite reference is not the constant that the spec says it is."""
    if target.constant is None:
        return
    want = target.round(np.array([target.constant], dtype=target.reference.dtype))[0]
    other = (target.round(target.reference) != want) & np.isfinite(target.reference)
    if other.any():
        place = int(np.argmax(other))
        raise OracleError(
            f"the spec says that {target.name} is the constant {shown(target.constant)}, but its "
            f"reference at {shown_index(index_of(place, target.shape))} is "
            f"{shown(target.reference[place])}",
            hint="give with `when` the shapes at which it is constant, or remove `constant`",
        )


def refined_error(
    buffer: BufferPlan, target: Target, outputs: Mapping[str, NDArray[Any]]
) -> NDArray[np.float64] | None:
    """Return the flat error that `outputs`, those of one repetition, leave to `buffer`, or None."""
    return None if target.refine is None else _errors(buffer, target.refine(outputs))


def replay_target(buffer: BufferPlan, replay: Replay) -> Target:
    """Return the replay's values of `buffer` as a target, all rows or a sample of them.

    Raises OracleError where they do not fit the output.
    """
    rows = replay.rows
    count = buffer.shape[0] if buffer.shape and rows is None else (0 if rows is None else rows.size)
    shape = (count, *buffer.shape[1:]) if buffer.shape else ()
    values = np.asarray(replay.values)
    if values.shape != shape or values.dtype != numpy_dtype(buffer.dtype):
        raise OracleError(
            f"the replay of {buffer.name} is {values.dtype} {list(values.shape)}, expected "
            f"{buffer.dtype} {list(shape)}",
            hint="return the requested rows, in the output's dtype",
        )
    values = np.ascontiguousarray(values).reshape(-1)
    return Target(
        name=buffer.name,
        dtype=buffer.dtype,
        shape=buffer.shape,
        reference=values.view(np.uint8) if buffer.dtype == "bool" else values,
        exact=True,
        rows=None if rows is None else np.asarray(rows, dtype=np.int64),
    )


def _sides(
    buffer: BufferPlan, expectation: Expectation
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    below = _errors(buffer, expectation.error_below)
    above = _errors(buffer, expectation.error_above)
    return None if below is None or above is None else (below, above)


def _errors(buffer: BufferPlan, error: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    if error is None:
        return None
    if pass_of(error) is not None:
        return error.reshape(-1)  # of the formula's own rules, which give no negative ones
    error = np.asarray(error, dtype=np.float64)
    if error.shape != buffer.shape:
        error = np.broadcast_to(error, buffer.shape)
    if error.size and float(np.fmin.reduce(error, axis=None)) < 0:
        raise OracleError(f"the oracle's error bound of {buffer.name} is negative somewhere")
    return error.reshape(-1)


def _integers(buffer: BufferPlan, reference: NDArray[Any]) -> NDArray[Any]:
    """Return the reference of an integer or bool output in the output's dtype."""
    dtype = numpy_dtype(buffer.dtype)
    if reference.dtype != dtype:
        with np.errstate(all="ignore"):
            cast = reference.astype(dtype)
            same = bool(np.array_equal(cast.astype(reference.dtype), reference))
        if not same:
            raise OracleError(
                f"the reference of {buffer.name} is {reference.dtype} and does not fit {dtype}",
                hint=f"return a reference of dtype {buffer.dtype}",
            )
        reference = cast
    reference = np.ascontiguousarray(reference)
    return reference.view(np.uint8) if buffer.dtype == "bool" else reference
