"""A formula as an oracle: `function(params, inputs, scalars)` gives references and errors.

The function is called with tracked arrays; again with all sums probabilistic, where that is asked for;
in float32, as a replay; and with one operation changed at a time, for wrong outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.dtypes import FORMATS
from tokitai_cli.formula import changes, replay
from tokitai_cli.formula.bounds import Bounds, bounds
from tokitai_cli.formula.double import Double, double
from tokitai_cli.formula.precision import Precision, allowing
from tokitai_cli.formula.tracked import Decision, NoRuleError, Tracked, known_input, track

Function = Callable[[dict[str, int], dict[str, Any], dict[str, Any]], Mapping[str, Any]]
Parts = dict[str, Any]

# Values that an integer output may have where rounding leaves it open; more than that say nothing.
_MOST_VALUES = 64
# Elements of all wrong outputs of a case together, and changes that are tried in every case.
_MOST_ELEMENTS = 1 << 22
_LEAST_CHANGES = 8


class Wanted(msgspec.Struct, frozen=True):
    """What is asked of a formula.

    outputs: dtype by name. rounds: additions on the longest path of the sums behind an output, where the
    spec claims a tree. precision: permissions of its operations. probable, replay: whether these are
    wanted. file: the formula's file, for the lines of its operations. turn: which of the changes come
    first where there are too many for one case.
    """

    outputs: dict[str, str]
    precision: Precision
    file: str
    rounds: dict[str, int] = msgspec.field(default_factory=dict)
    probable: bool = False
    replay: bool = False
    turn: int = 0


def wanted_of(request: Mapping[str, Any], file: str) -> Wanted:
    """What a request, as plain JSON, asks of the formula in `file`."""
    wanted: Wanted = msgspec.convert({**request, "file": file}, Wanted)
    return wanted


class Asked(msgspec.Struct, frozen=True):
    """One case: what the function is called with."""

    function: Function
    params: dict[str, int]
    inputs: dict[str, NDArray[Any]]
    scalars: dict[str, Any]

    def call(self, wrap: Callable[[Any], Any]) -> Mapping[str, Any]:
        """The function's outputs on arrays and floats that `wrap` prepares; integers stay plain."""
        inputs = {name: _wrapped(array, wrap) for name, array in self.inputs.items()}
        scalars = {
            name: wrap(np.float32(value)) if isinstance(value, float) else value
            for name, value in self.scalars.items()
        }
        result = self.function(dict(self.params), inputs, scalars)
        if not isinstance(result, Mapping):
            raise NoRuleError(f"returned {type(result).__name__}, not a dict of outputs")
        return result


def _wrapped(array: NDArray[Any], wrap: Callable[[Any], Any]) -> Any:
    return array.copy() if array.dtype.kind in "iub" else wrap(array)


def answer(asked: Asked, wanted: Wanted) -> dict[str, Parts]:
    """Parts of every output, as an oracle that users write returns them.

    Raises NoRuleError where the formula does what has no rule, or returns no array of the output.
    """
    found: dict[str, Parts] = {}
    for rounds in sorted({wanted.rounds.get(name) for name in wanted.outputs}, key=str):
        precision = msgspec.structs.replace(wanted.precision, rounds=rounds)
        names = [name for name in wanted.outputs if wanted.rounds.get(name) == rounds]
        found |= _bounded(asked, wanted, names, precision)
    if wanted.replay:
        for name, values in replay.replay(asked.call).items():
            found.get(name, {})["replay"] = values
    _add_changes(found, asked, wanted)
    return found


def _bounded(
    asked: Asked, wanted: Wanted, names: list[str], precision: Precision
) -> dict[str, Parts]:
    """References and errors of the outputs `names`, and of all that the formula returns besides."""
    found: dict[str, Parts] = {}
    floats = {name for name in names if wanted.outputs[name] != "float64"}
    if floats:
        with allowing(precision):
            result = asked.call(known_input)
        for name in result:
            if name in floats:
                found[name] = _parts(name, wanted.outputs[name], result)
            elif name not in wanted.outputs:
                found[name] = {"reference": np.asarray(0.0)}  # the caller says that there is none
        if wanted.probable:
            _add_probable(found, asked, precision)
    wide = [name for name in names if name not in floats]
    if wide:
        with allowing(precision):
            result = asked.call(double)
        found |= {name: _wide_parts(result[name]) for name in wide if name in result}
    return found


def _parts(name: str, dtype: str, result: Mapping[str, Any]) -> Parts:
    value = result[name]
    if not isinstance(value, (Tracked, Decision)):
        value = track(value)
    if dtype not in FORMATS:
        return _whole_parts(name, dtype, value)
    told = bounds(track(value))
    parts: Parts = {"reference": told.reference, "error": told.error}
    if not np.array_equal(told.error_below, told.error_above):
        del parts["error"]
        parts |= {"error_below": told.error_below, "error_above": told.error_above}
    if told.may_be_nan.any():
        parts["may_be_nan"] = told.may_be_nan
    return parts


def _whole_parts(name: str, dtype: str, value: Tracked | Decision) -> Parts:
    """An integer or bool output: the value of the formula, and what else rounding may make of it."""
    told = bounds(track(value))
    low, high = np.rint(told.low), np.rint(told.high)
    limits = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if told.may_be_nan.any() or np.isnan(told.reference).any():
        raise NoRuleError(
            f"{name} is {dtype}, and NaN may be cast to it: no value is right for sure"
        )
    if low.size and (float(low.min()) < limits[0] or float(high.max()) > limits[1]):
        raise NoRuleError(f"{name} may leave {dtype}: clip it in the formula, as the kernel does")
    reference = told.reference.astype(dtype)
    if told.choices is not None:
        every = np.moveaxis(told.choices, -1, 0)
        numbers = np.arange(every.shape[0]).reshape(-1, *(1,) * reference.ndim)
        return _with_choices(name, reference, np.where(every, numbers, reference))
    spread = int((high - low).max(initial=0))
    if spread == 0:
        return {"reference": reference}
    if spread >= _MOST_VALUES:
        raise NoRuleError(f"rounding leaves {spread + 1} values of {name} open")
    steps = np.arange(spread + 1).reshape(-1, *(1,) * reference.ndim)
    return _with_choices(name, reference, np.minimum(low + steps, high))


def _with_choices(name: str, reference: NDArray[Any], every: NDArray[Any]) -> Parts:
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
    return {
        "reference": reference,
        "allowed": np.where(kept, packed, reference).astype(reference.dtype),
    }


def _wide_parts(value: Any) -> Parts:
    if not isinstance(value, Double):
        value = double(value)
    return {"reference": value.pair.high, "error": value.off, "low": value.pair.low}


def _add_probable(found: dict[str, Parts], asked: Asked, precision: Precision) -> None:
    with allowing(msgspec.structs.replace(precision, probable=True)):
        result = asked.call(known_input)
    for name, parts in found.items():
        if name in result and parts.keys() & {"error", "error_below"}:
            told: Bounds = bounds(track(result[name]))
            parts["error_probable"] = told.error


def _add_changes(found: dict[str, Parts], asked: Asked, wanted: Wanted) -> None:
    """Wrong outputs, as many as there is room for; each by the change that made it."""
    size = sum(np.asarray(parts["reference"]).size for parts in found.values())
    made = changes.changes(changes.operations(_in_double(asked), wanted.file))
    most = max(_LEAST_CHANGES, _MOST_ELEMENTS // max(size, 1))
    start = wanted.turn % max(len(made), 1)
    for change in (made[start:] + made[:start])[:most]:
        try:
            outputs = changes.outputs(_in_double(asked), change)
        except (ArithmeticError, IndexError, TypeError, ValueError):
            continue  # such a change makes no output
        for name, values in outputs.items():
            parts = found.get(name, {"reference": None})
            if np.shape(parts["reference"]) == values.shape and not _same(
                parts["reference"], values
            ):
                parts.setdefault("changes", {})[change.words] = _as_output(
                    values, parts["reference"]
                )


def _in_double(asked: Asked) -> changes.Call:
    def call(wrap: Callable[[Any], Any]) -> Mapping[str, Any]:
        return asked.call(lambda x: wrap(np.asarray(x, dtype=np.float64)))

    return call


def _same(reference: NDArray[Any], values: NDArray[Any]) -> bool:
    return bool(np.array_equal(reference, values, equal_nan=reference.dtype.kind == "f"))


def _as_output(values: NDArray[Any], reference: NDArray[Any]) -> NDArray[Any]:
    if reference.dtype.kind == "f":
        return values.astype(np.float64)
    limits = (
        (0, 1)
        if reference.dtype == bool
        else (np.iinfo(reference.dtype).min, np.iinfo(reference.dtype).max)
    )
    return np.asarray(np.clip(np.nan_to_num(values), *limits), dtype=reference.dtype)
