"""A formula as an oracle: `function(params, inputs, scalars)` gives references and errors.

The function is called with tracked arrays, once for the worst case and for probabilistic sums; in
float32, as a replay; and with one operation changed at a time, for wrong outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.oracles.formula.bounds import Bounds, bounds, bracketed, largest_error
from tokitai_cli.oracles.formula.double import Double, double
from tokitai_cli.oracles.formula.known import NoRuleError, ReductionError
from tokitai_cli.oracles.formula.parts import BLOCK
from tokitai_cli.oracles.formula.precision import OVERFLOW, STEP, Precision, allowing
from tokitai_cli.oracles.formula.relations import stored
from tokitai_cli.oracles.formula.tape import Tape
from tokitai_cli.oracles.formula.tracked import Decision, Tracked, known_input, track
from tokitai_cli.oracles.formula.twofold import PROBABLE, WORST, side_of, twofold
from tokitai_cli.oracles.output_parts import ArrayParts, OutputParts
from tokitai_cli.oracles.variants import replay
from tokitai_cli.oracles.variants.by_rows import by_rows, replay_by_rows
from tokitai_cli.oracles.variants.by_windows import ByWindows
from tokitai_cli.oracles.variants.request import FormulaCall, Request
from tokitai_cli.oracles.variants.row_fields import row_fields
from tokitai_cli.oracles.variants.wrong_formulas import Recorded
from tokitai_cli.oracles.variants.wrong_outputs import recorded, recorded_on_few, with_changes

# Values that an integer output may have where rounding leaves it open; more than that say nothing.
_MOST_VALUES = 64
_ALIKE = 2.0**-48
_FEW = 1 << 10
# A limit that is so many times wider for an overflow is owed to it.
_MUCH = 2.0


def answer(
    call: FormulaCall,
    request: Request,
    formula: Recorded | None = None,
    *,
    only_error: bool = False,
    windows: ByWindows | None = None,
) -> dict[str, ArrayParts]:
    """Parts of every output, as an oracle that users write returns them.

    formula: what it consists of, where that is known already. Where outputs of a kernel are given, or
    other forms asked for, the errors are those that they leave, and all else is left out. only_error:
    of a large case the references too, and one error serves for both sides. windows: what computes it
    while it is judged, in place of a whole answer. Raises
    NoRuleError where it does what has no rule, or returns no array of the output.
    """
    formula = formula or recorded_on_few(call, request)
    apart = windows and windows.parts()
    apart = apart or (formula and by_rows(call, request, formula, _sides, only_error=only_error))
    found = apart or evaluated(call, request)
    if request.precision.outputs or request.precision.forms:
        return found
    if request.replay:
        replayed = formula and apart and replay_by_rows(call, request, formula)
        replayed = replayed or replay.replay(call.call)
        for name, values in replayed.items():
            if name in found:
                found[name] = msgspec.structs.replace(found[name], replay=values)
    return with_changes(found, call, request, formula or recorded(call, request))


def by_windows(call: FormulaCall, request: Request, formula: Recorded) -> ByWindows | None:
    """What computes the answer while it is judged; None for a case whose answer is kept whole."""
    rows = row_fields(call, request, formula, _sides)
    return None if rows is None else ByWindows(rows)


def evaluated(call: FormulaCall, request: Request) -> dict[str, ArrayParts]:
    """References and errors of all outputs; one error for both sides where they are alike."""
    found, alike = _sides(call, request)
    return {
        name: parts if parts.error_below is None or not alike[name] else _one_error(parts)
        for name, parts in found.items()
    }


def _one_error(parts: ArrayParts) -> ArrayParts:
    errors = parts.errors()
    assert errors is not None
    error = np.maximum(*errors, out=errors[0])
    return msgspec.structs.replace(parts, error=error, error_below=None, error_above=None)


def _sides(call: FormulaCall, request: Request) -> tuple[dict[str, ArrayParts], dict[str, bool]]:
    """The same, errors by side, those of one tree together; and which outputs' sides are alike."""
    found: dict[str, ArrayParts] = {}
    for rounds in sorted({request.rounds.get(name) for name in request.outputs}, key=str):
        precision = msgspec.structs.replace(request.precision, rounds=rounds, applied_rules=set())
        names = [name for name in request.outputs if request.rounds.get(name) == rounds]
        found |= _bounded(call, request, names, precision)
    return found, {name: _alike(parts) for name, parts in found.items()}


def _bounded(
    call: FormulaCall, request: Request, names: list[str], precision: Precision
) -> dict[str, ArrayParts]:
    """References and errors of the outputs `names`, and of all that the formula returns besides."""
    found: dict[str, ArrayParts] = {}
    floats = {name for name in names if request.outputs[name] != "float64"}
    if floats:
        result, probable = _by_both(call, request, precision)
        if precision.welford and not precision.applied_rules & {"mean", "variance"}:
            raise ReductionError(
                "the formula has no bound for the reduction welford: it contains no mean or "
                "variance; write x.mean(...), x.var(...) or ((x - x.mean(...)) ** "
                "2).mean(...), or claim a tree",
                "reduction",
            )
        for name in result:
            if name in floats:
                found[name] = _parts(name, request.outputs[name], result)
            elif name not in request.outputs:
                found[name] = OutputParts(
                    reference=np.asarray(0.0)
                )  # the caller says that there is none
        if OVERFLOW in precision.applied_rules:
            _add_unbounded(found, call, request.outputs, precision)
        if request.probable:
            _add_probable(found, probable, call, request.outputs, precision)
    wide = [name for name in names if name not in floats]
    if wide:
        with allowing(precision):
            result = call.call(double)
        found |= {name: _wide_parts(result[name]) for name in wide if name in result}
    return found


def _by_both(
    call: FormulaCall, request: Request, precision: Precision
) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """What the formula returns, and with probabilistic sums; None where these ask for another call."""
    if not request.probable or request.kept:
        return _tracked(call, request, precision), None
    try:
        with allowing(precision):
            result = call.call(lambda array: twofold(known_input(array)))
    except Exception:  # noqa: BLE001 - the calls for one bound alone say what is wrong
        precision.applied_rules.clear()
        return _tracked(call, request, precision), None
    return side_of(result, WORST), side_of(result, PROBABLE)


def _tracked(call: FormulaCall, request: Request, precision: Precision) -> Mapping[str, Any]:
    """What the formula returns; outputs that a kernel kept go on from these."""
    kept: dict[int, NDArray[np.float64]] = {}
    if request.kept:
        with allowing(msgspec.structs.replace(precision, tape=Tape())):
            numbered = call.call(known_input)
        for name, values in precision.outputs.items():
            if isinstance(array := numbered.get(name), Tracked):
                kept[array.number] = np.asarray(values, np.float64)
        precision = msgspec.structs.replace(precision, tape=Tape(kept))
    with allowing(precision):
        return call.call(known_input)


def _parts(name: str, dtype: str, result: Mapping[str, Any]) -> ArrayParts:
    value = result[name]
    if not isinstance(value, (Tracked, Decision)):
        value = track(value)
    if dtype not in FORMATS:
        return _whole_parts(name, dtype, value)
    told = _bounds_of(value, dtype)
    may_be_nan = told.may_be_nan if told.may_be_nan.any() else None
    if told.error_below is told.error_above:
        return OutputParts(reference=told.reference, error=told.error, may_be_nan=may_be_nan)
    return OutputParts(
        reference=told.reference,
        error_below=told.error_below,
        error_above=told.error_above,
        may_be_nan=may_be_nan,
    )


def _bounds_of(value: Any, dtype: str) -> Bounds:
    """The bounds of a float output before its last rounding; float32 has none."""
    tracked = track(value)
    told = bounds(stored(tracked) if tracked.double else tracked, ends=False)
    return bracketed(told) if dtype == "float32" else told


def _largest_error(value: Any, dtype: str) -> NDArray[np.float64]:
    """The larger of both errors of the same."""
    tracked = track(value)
    if dtype == "float32" or tracked.double:
        return _bounds_of(tracked, dtype).error
    return largest_error(tracked)


def _alike(parts: ArrayParts) -> bool:
    """Whether the sides differ by float64's own roundings of the ends at most."""
    errors = parts.errors()
    if errors is None or errors[0] is errors[1]:
        return True
    below, above, reference = (x.reshape(-1) for x in (*errors, parts.reference))
    # Where they are not alike, a few elements mostly tell.
    starts = [0, *range(_FEW, reference.size, BLOCK)]
    for start, stop in zip(starts, [*starts[1:], reference.size], strict=True):
        under, over, at = (x[start:stop] for x in (below, above, reference))
        with np.errstate(invalid="ignore"):
            near = np.abs(under - over) <= _ALIKE * np.abs(at)
        if not np.all(near | (under == over)):
            return False
    return True


def _whole_parts(name: str, dtype: str, value: Tracked | Decision) -> ArrayParts:
    """An integer or bool output: the value of the formula, and what else rounding may make of it."""
    told = bounds(track(value))
    low, high = np.rint(told.low), np.rint(told.high)
    limits = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if told.may_be_nan.any() or np.isnan(told.reference).any():
        raise NoRuleError(
            f"{name} is {dtype}, and NaN may be cast to it: no value is certainly correct"
        )
    if low.size and (float(low.min()) < limits[0] or float(high.max()) > limits[1]):
        raise NoRuleError(f"{name} may leave {dtype}: clip it in the formula, like the kernel")
    reference = told.reference.astype(dtype)
    if told.choices is not None:
        every = np.moveaxis(told.choices, -1, 0)
        numbers = np.arange(every.shape[0]).reshape(-1, *(1,) * reference.ndim)
        return _with_choices(name, reference, np.where(every, numbers, reference))
    spread = int((high - low).max(initial=0))
    if spread == 0:
        return OutputParts(reference=reference)
    if spread >= _MOST_VALUES:
        raise NoRuleError(f"rounding leaves {spread + 1} values of {name} open")
    steps = np.arange(spread + 1).reshape(-1, *(1,) * reference.ndim)
    return _with_choices(name, reference, np.minimum(low + steps, high))


def _with_choices(name: str, reference: NDArray[Any], every: NDArray[Any]) -> ArrayParts:
    """`every` [choices, ...] in as few choices as the element with the most of them needs."""
    several = np.sort(every.astype(np.float64), axis=0)
    new = np.ones(several.shape, bool)
    new[1:] = several[1:] != several[:-1]
    most = int(new.sum(axis=0).max(initial=1))
    if most > _MOST_VALUES:
        raise NoRuleError(f"rounding leaves {most} values of {name} open")
    order = np.argsort(~new, axis=0, kind="stable")
    packed = np.take_along_axis(several, order, axis=0)[:most]
    kept = np.take_along_axis(new, order, axis=0)[:most]
    allowed = np.where(kept, packed, reference).astype(reference.dtype)
    return OutputParts(reference=reference, allowed=allowed)


def _wide_parts(value: Any) -> ArrayParts:
    if not isinstance(value, Double):
        value = double(value)
    return OutputParts(reference=value.pair.high, error=value.off, low=value.pair.low)


def _add_unbounded(
    found: dict[str, ArrayParts],
    call: FormulaCall,
    dtypes: Mapping[str, str],
    precision: Precision,
) -> None:
    """Mark elements whose limit is what an overflow on the way leaves: 0 may pass for any number there.

    They are those whose limit is much narrower where nothing overflows.
    """
    with allowing(msgspec.structs.replace(precision, unlimited=True)):
        result = call.call(known_input)
    for name, parts in found.items():
        errors = parts.errors()
        if errors is None or name not in result:
            continue
        apart = _largest_error(result[name], dtypes[name])
        with np.errstate(invalid="ignore"):
            wide = np.maximum(*errors) > _MUCH * apart + STEP
        wide &= np.isfinite(parts.reference)
        if wide.any():
            found[name] = msgspec.structs.replace(parts, unbounded=wide)


def _add_probable(
    found: dict[str, ArrayParts],
    result: Mapping[str, Any] | None,
    call: FormulaCall,
    dtypes: Mapping[str, str],
    precision: Precision,
) -> None:
    """Add the errors of what the formula returns with probabilistic sums, which may be known."""
    if result is None:
        with allowing(msgspec.structs.replace(precision, probable=True, applied_rules=set())):
            result = call.call(known_input)
    for name, parts in found.items():
        if name in result and parts.errors() is not None:
            probable = _largest_error(result[name], dtypes[name])
            found[name] = msgspec.structs.replace(parts, error_probable=probable)
