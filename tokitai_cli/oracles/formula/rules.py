"""The table of rules: one entry for each numpy function that a formula may use.

Sources. Arithmetic, comparison, rounding to integers: IEEE 754-2019, sections 5.3, 5.4, 5.11. Functions:
`precision.ULPS`. Sums and products: `reductions`. Everything else moves elements and changes none.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tokitai_cli.oracles.formula import (
    arithmetic,
    comparisons,
    contraction,
    forms,
    places,
    scattered,
    unary,
)
from tokitai_cli.oracles.formula.array_protocol import MOVES
from tokitai_cli.oracles.formula.known import NoRuleError
from tokitai_cli.oracles.formula.parts import Rule, elementwise
from tokitai_cli.oracles.formula.precision import in_double
from tokitai_cli.oracles.formula.relations import (
    divided,
    exponential,
    joined,
    multiplied,
    selected,
    subtracted,
    summed,
)
from tokitai_cli.oracles.formula.tracked import Tracked, track

Ruled = Callable[..., Any]


def _blockwise(rule: Rule) -> Ruled:
    def apply(*operands: Tracked) -> Tracked:
        return Tracked(elementwise(rule, *(operand.parts for operand in operands)))

    return apply


def _power(a: Tracked, b: Tracked) -> Tracked:
    if b.parts.point and b.size == 1 and float(b.parts.v.flat[0]) == 2.0:
        return multiplied(a, a)
    return Tracked(elementwise(unary.power, a.parts, b.parts))


UFUNCS: Mapping[str, Ruled] = {
    "add": _blockwise(arithmetic.add),
    "subtract": subtracted,
    "multiply": multiplied,
    "divide": divided,
    "negative": _blockwise(arithmetic.negative),
    "positive": lambda a: a,
    "absolute": _blockwise(arithmetic.absolute),
    "fabs": _blockwise(arithmetic.absolute),
    "square": lambda a: multiplied(a, a),
    "reciprocal": lambda a: divided(track(np.float32(1)), a),
    "power": _power,
    "float_power": _power,
    "sqrt": _blockwise(unary.sqrt),
    "cbrt": _blockwise(unary.cbrt),
    "exp": lambda a: exponential(a, unary.exp, "exp"),
    "exp2": lambda a: exponential(a, unary.exp2, "exp2"),
    "expm1": _blockwise(unary.expm1),
    "log": _blockwise(unary.log),
    "log2": _blockwise(unary.log2),
    "log10": _blockwise(unary.log10),
    "log1p": _blockwise(unary.log1p),
    "sin": _blockwise(unary.wave("sin", np.sin)),
    "cos": _blockwise(unary.wave("cos", np.cos)),
    "arctan": _blockwise(unary.arctan),
    "tanh": _blockwise(unary.tanh),
    "sinh": _blockwise(unary.sinh),
    "cosh": _blockwise(unary.cosh),
    "rint": _blockwise(unary.stepwise(np.rint)),
    "floor": _blockwise(unary.stepwise(np.floor)),
    "ceil": _blockwise(unary.stepwise(np.ceil)),
    "trunc": _blockwise(unary.stepwise(np.trunc)),
    "sign": _blockwise(unary.stepwise(np.sign)),
    "maximum": _blockwise(arithmetic.maximum),
    "fmax": _blockwise(arithmetic.maximum),
    "minimum": _blockwise(arithmetic.minimum),
    "fmin": _blockwise(arithmetic.minimum),
    "floor_divide": places.whole(np.floor_divide),
    "remainder": places.whole(np.remainder),
    "fmod": places.whole(np.fmod),
    "matmul": contraction.matmul,
    "greater": comparisons.compared(np.greater),
    "greater_equal": comparisons.compared(np.greater_equal),
    "less": comparisons.compared(np.less),
    "less_equal": comparisons.compared(np.less_equal),
    "equal": comparisons.compared(np.equal),
    "not_equal": comparisons.compared(np.not_equal),
    "isnan": comparisons.is_nan,
    "isinf": comparisons.is_infinite,
    "isfinite": comparisons.is_finite,
}


def _reduced(name: str) -> Ruled:
    def apply(a: Any, axis: Any = None, *_: Any, keepdims: Any = False, **more: Any) -> Any:
        _refuse(name, more, ("ddof",))
        keep = keepdims is True
        return getattr(track(a), name)(axis=axis, keepdims=keep, **more)

    return apply


def _moved(function: Callable[..., Any]) -> Ruled:
    def apply(a: Any, *args: Any, **kwargs: Any) -> Tracked:
        return track(a).moved(lambda array: function(array, *args, **kwargs))

    return apply


def _split(function: Callable[..., Any]) -> Ruled:
    def apply(a: Any, *args: Any, **kwargs: Any) -> list[Tracked]:
        tracked = track(a)
        pieces = function(np.arange(tracked.size).reshape(tracked.shape), *args, **kwargs)
        return [tracked.ravel()[piece] for piece in pieces]

    return apply


def _joined(function: Callable[..., Any]) -> Ruled:
    def apply(arrays: Any, *args: Any, **kwargs: Any) -> Tracked:
        parts = [track(array) for array in arrays]
        return joined(parts, lambda fields: function(fields, *args, **kwargs))

    return apply


def _like(value: float | None) -> Ruled:
    def apply(a: Any, *args: Any, **kwargs: Any) -> Tracked:
        shape = kwargs.get("shape")
        fill = track(args[0] if value is None else value)
        return fill.moved(lambda array: np.broadcast_to(array, a.shape if shape is None else shape))

    return apply


def _pad(a: Any, width: Any, mode: str = "constant", **kwargs: Any) -> Tracked:
    values = kwargs.get("constant_values", 0.0)
    if mode != "constant" or np.ndim(values) != 0:
        raise NoRuleError("numpy.pad has a rule only for mode='constant' and one value")
    tracked, fill = track(a), track(values)
    index = np.arange(tracked.size).reshape(tracked.shape)
    padded = np.pad(index, width, constant_values=-1)
    return selected(padded >= 0, tracked.ravel()[np.maximum(padded, 0)], fill)


def _sorted(a: Any, axis: int = -1, **kwargs: Any) -> Tracked:
    """Order statistics are monotone in every element."""
    tracked = track(a)
    if tracked.parts.n is not None:
        raise NoRuleError("numpy.sort of values that may be NaN has no rule")
    return tracked.moved(lambda array: np.sort(array, axis=axis))


def _chosen_where(condition: Any, *sides: Any) -> Tracked:
    if len(sides) != 2:
        raise NoRuleError("numpy.where with one argument gives an index; give all three")
    return selected(condition, *sides)


def _clipped(a: Any, low: Any = None, high: Any = None, **kwargs: Any) -> Any:
    low, high = (
        kwargs.get("a_min", kwargs.get("min", low)),
        kwargs.get("a_max", kwargs.get("max", high)),
    )
    result = track(a)
    if low is not None:
        result = np.maximum(result, low)
    return result if high is None else np.minimum(result, high)


def _norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord not in (None, 2):
        raise NoRuleError("numpy.linalg.norm has a rule only for the Euclidean norm")
    tracked = track(a)
    return np.sqrt(summed(multiplied(tracked, tracked), axis, keepdims))


def _tri(function: Callable[..., Any]) -> Ruled:
    def apply(a: Any, k: int = 0) -> Tracked:
        tracked = track(a)
        return selected(function(np.ones(tracked.shape, bool), k), tracked, 0.0)

    return apply


FUNCTIONS: Mapping[str, Ruled] = {
    **{name: _reduced(name) for name in ("sum", "mean", "var", "std", "max", "min")},
    "amax": _reduced("max"),
    "amin": _reduced("min"),
    "argmax": lambda a, axis=None, **_: track(a).argmax(axis),
    "argmin": lambda a, axis=None, **_: track(a).argmin(axis),
    "argsort": lambda a, axis=-1, **_: track(a).argsort(axis),
    "any": lambda a, axis=None, keepdims=False, **_: a.any(axis, keepdims is True),
    "all": lambda a, axis=None, keepdims=False, **_: a.all(axis, keepdims is True),
    "count_nonzero": lambda a, axis=None, keepdims=False: (track(a) != 0).sum(axis, keepdims),
    "cumsum": lambda a, axis=None, **_: track(a).cumsum(axis),
    "where": _chosen_where,
    "clip": _clipped,
    "dot": lambda a, b: contraction.matmul(track(a), track(b)),
    "inner": lambda a, b: contraction.einsum("...i,...i->...", a, b),
    "outer": lambda a, b: multiplied(track(a).reshape(-1, 1), track(b).reshape(1, -1)),
    "einsum": lambda text, *operands, **_: contraction.einsum(text, *operands),
    "linalg.norm": _norm,
    "norm": _norm,
    "sort": _sorted,
    "pad": _pad,
    "round": lambda a, decimals=0, **_: _rounded(a, decimals),
    "around": lambda a, decimals=0, **_: _rounded(a, decimals),
    "take_along_axis": places.taken,
    "tril": _tri(np.tril),
    "triu": _tri(np.triu),
    **{name: _joined(getattr(np, name)) for name in ("concatenate", "stack", "vstack", "hstack")},
    **{name: _split(getattr(np, name)) for name in ("split", "array_split")},
    **{name: _moved(getattr(np, name)) for name in MOVES if hasattr(np, name)},
    "zeros_like": _like(0.0),
    "empty_like": _like(0.0),
    "ones_like": _like(1.0),
    "full_like": _like(None),
    "shape": lambda a: a.shape,
    "ndim": lambda a: a.ndim,
    "size": lambda a: a.size,
}  # fmt: skip


def _rounded(a: Any, decimals: int) -> Any:
    if decimals:
        raise NoRuleError("numpy.round has a rule for integers only")
    return np.rint(track(a))


def _missing(name: str, known: Mapping[str, Ruled]) -> NoRuleError:
    near = difflib.get_close_matches(name, known, 1, cutoff=0.8)  # no exp for frexp
    hint = f"; there is one of numpy.{near[0]}" if near else ""
    return NoRuleError(f"numpy.{name} has no error rule{hint}")


def _refuse(name: str, given: Mapping[str, Any], but: tuple[str, ...] = ()) -> None:
    meant = {"where": True, "dtype": None, "initial": None, "casting": "same_kind", "order": "K"}
    for word, value in given.items():
        if word not in but and not (word in meant and (value is meant[word] or word == "dtype")):
            if type(value).__name__ == "_NoValueType":
                continue
            raise NoRuleError(f"numpy.{name} has no error rule with {word}=")


def call(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A ufunc on arrays of which one is tracked."""
    name = ufunc.__name__
    rule = UFUNCS.get(name)
    if rule is None:
        raise _missing(name, UFUNCS)
    _refuse(name, kwargs)
    with np.errstate(all="ignore"):
        operands = tuple(track(x) for x in inputs)
        with in_double(any(operand.double for operand in operands)):
            return forms.either(name, operands, rule(*operands))


def method(ufunc: np.ufunc, kind: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`ufunc.reduce` and `ufunc.at` where they have a rule."""
    name = ufunc.__name__
    reductions_of = {"add": "sum", "maximum": "max", "minimum": "min"}
    if kind == "reduce" and name in reductions_of:
        return _reduced(reductions_of[name])(
            inputs[0], kwargs.get("axis", 0), keepdims=kwargs.get("keepdims", False)
        )
    if kind == "accumulate" and name == "add":
        return track(inputs[0]).cumsum(kwargs.get("axis", 0))
    if kind == "at" and name == "add":
        target, index, values = inputs
        if not isinstance(target, Tracked):
            raise NoRuleError(
                "numpy.add.at into a plain array discards the error: make the array with "
                "numpy.zeros_like"
            )
        with np.errstate(all="ignore"):
            target.hold(scattered.added_at(target.parts, index, track(values).parts))
        return None
    raise NoRuleError(f"numpy.{name}.{kind} has no error rule")


def function(called: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A numpy function on arrays of which one is tracked."""
    name = called.__name__
    rule = FUNCTIONS.get(name)
    if rule is None:
        raise _missing(name, {**FUNCTIONS, **UFUNCS})
    with np.errstate(all="ignore"), in_double(_holds_double((args, kwargs))):
        return rule(*args, **kwargs)


def _holds_double(given: Any) -> bool:
    """Whether an array among nested arguments is held in float64."""
    if isinstance(given, Tracked):
        return given.double
    if isinstance(given, Mapping):
        return any(map(_holds_double, given.values()))
    return isinstance(given, (tuple, list)) and any(map(_holds_double, given))


def decide(ufunc: np.ufunc, kind: str, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A ufunc on conditions: logic stays a condition, arithmetic counts 1 and 0."""
    if kind != "__call__":
        return method(ufunc, kind, tuple(track(x) for x in inputs), dict(kwargs))
    decided = comparisons.logic(ufunc.__name__, inputs)
    return call(ufunc, inputs, kwargs) if decided is None else decided
