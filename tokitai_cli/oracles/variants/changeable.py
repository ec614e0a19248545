"""Arrays of a formula whose operations are counted and, one of them, changed (see `changes`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tokitai_cli.core.numerics import round_to
from tokitai_cli.oracles.formula.array_protocol import Moving
from tokitai_cli.oracles.formula.contraction import letters
from tokitai_cli.oracles.formula.products import multiplied
from tokitai_cli.oracles.formula.tracked import branch_on_values
from tokitai_cli.oracles.variants.lost_terms import add_without
from tokitai_cli.oracles.variants.wrong_branches import BRANCHING, branched
from tokitai_cli.oracles.variants.wrong_formulas import (
    EXTREMES,
    OF_SUMS,
    OPPOSITE,
    PLACES,
    PRODUCTS,
    RATIONAL,
    SUMS,
    Array,
    Behind,
    Call,
    Change,
    Recorded,
    Tape,
)

_REDUCTIONS = {"add": "sum", "maximum": "max", "minimum": "min"}
_REDUCING = frozenset((*SUMS, *EXTREMES))
# Multiplications of a product that take as long as an element of another operation, and elements
# of others that take as long as one that is added by its index.
_PER_ELEMENT, _SCATTERED = 16, 4
_OFF = 1e-3
NOTHING_BEHIND = Behind()


class Changeable(Moving):
    """Float64 values whose operations are counted and, one of them, changed."""

    def __init__(self, values: Any, tape: Tape, behind: Behind) -> None:
        self.values: Array = np.asarray(values)
        self.tape = tape
        self.behind = behind

    def plain(self) -> Array:
        """The values."""
        return self.values

    def moved(self, function: Callable[[Array], Array]) -> Changeable:
        """Apply what moves elements and changes none."""
        return Changeable(function(self.values), self.tape, self.behind)

    def astype(self, dtype: Any, **kwargs: Any) -> Changeable:
        """As numpy's."""
        return self.moved(lambda array: array.astype(dtype, **kwargs))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.values = self.values.astype(np.result_type(self.values, np.asarray(_bare(value))))
        self.values[_bare(key)] = _bare(value)
        self.behind |= _behind(value)

    def __bool__(self) -> bool:
        if self.values.size != 1:
            raise branch_on_values()
        return bool(self.values)

    def __array__(self, *args: Any, **kwargs: Any) -> Array:
        return self.values

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        plain = [_bare(x) for x in inputs]
        before = len(self.tape.operations)
        if method == "at":
            _added_at(inputs[0], ufunc, plain)
            return None
        if method == "reduce":
            result = self._reduced(
                _REDUCTIONS.get(ufunc.__name__, ufunc.__name__), ufunc.reduce, plain, kwargs
            )
        elif method == "__call__":
            result = self._called(ufunc, plain, kwargs)
        else:
            result = getattr(ufunc, method)(*plain, **kwargs)
        wrapped = Changeable(result, self.tape, self._behind(before, inputs))
        if out is None:
            return wrapped
        out[0][...] = wrapped
        return out[0]

    def _behind(self, before: int, inputs: Any) -> Behind:
        """What the result of the operation at `before`, if it is one, comes of; asked once a formula."""
        if not self.tape.is_recording:
            return NOTHING_BEHIND
        found = _behind(inputs)
        for place, operation in enumerate(self.tape.operations[before:], before):
            places = frozenset({place} if operation.name in SUMS else ())
            found |= Behind(places, operation.name in RATIONAL)
        return found

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        name = function.__name__
        if name in ("var", "std"):
            return _spread(function, *args, **kwargs)
        before = len(self.tape.operations)
        plain, named = [_bare(x) for x in args], {key: _bare(x) for key, x in kwargs.items()}
        if name in _REDUCING:
            result = self._reduced(name, function, plain, named)
        elif name in PLACES:
            kind = self.tape.next(name, np.size(plain[0]))
            result = _placed(kind, function, *plain, **named)
        elif name == "where" and len(plain) == 3:
            result = self._selected(*plain)
        elif name in BRANCHING:
            result = function(*plain, **named)
            if result.dtype.kind == "f":
                kind = self.tape.next(name, result.size)
                result = _blurred(branched(kind, result, plain, named), kind)
        else:
            result = function(*plain, **named)
        behind = self._behind(before, args)
        if isinstance(result, (list, tuple)):
            return [Changeable(x, self.tape, behind) for x in result]
        if isinstance(result, (np.ndarray, np.generic)):
            return Changeable(result, self.tape, behind)
        return result

    def _called(self, ufunc: np.ufunc, plain: list[Any], kwargs: Mapping[str, Any]) -> Any:
        name = ufunc.__name__
        if name == "matmul":
            return self._reduced(name, ufunc, plain, kwargs)
        result = ufunc(*plain, **kwargs)
        if np.asarray(result).dtype.kind != "f":
            return result
        kind = self.tape.next(name, np.size(result))
        if kind in ("left", "right"):
            whole = np.broadcast_to(plain[0 if kind == "left" else 1], np.shape(result))
            return whole.astype(np.float64)
        if kind == "opposite":
            return OPPOSITE[name](*plain)
        return _blurred(branched(kind, result, plain, kwargs), kind)

    def _selected(self, condition: Any, one: Any, other: Any) -> Any:
        result = np.where(condition, one, other)
        kind = self.tape.next("where", result.size) if result.dtype.kind == "f" else None
        if kind in ("left", "right"):
            return np.broadcast_to(one if kind == "left" else other, result.shape).astype(
                np.float64
            )
        return np.where(condition, other, one) if kind == "swapped" else _blurred(result, kind)

    def _reduced(
        self, name: str, function: Callable[..., Any], plain: list[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        if self.tape.is_recording:
            result = _recorded(name, function, plain, kwargs)
            terms = _terms(name, plain, np.size(result))
            is_product = name in PRODUCTS
            multiplications = np.size(result) * terms // _PER_ELEMENT
            self.tape.next(name, multiplications if is_product else np.size(plain[0]), terms)
            return result
        kind = self.tape.next(name, 0)
        if kind == "summed":
            return np.sum(*plain, **kwargs)
        if kind in OF_SUMS:
            return _without(name, kind, function, plain, kwargs)
        return _blurred(function(*plain, **kwargs), kind)


def _recorded(
    name: str, function: Callable[..., Any], plain: list[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The result of a reduction; the tracked formula comes to the same large products."""
    if name == "matmul" and not kwargs and all(np.ndim(x) == 2 for x in plain):
        a, b = (np.asarray(x) for x in plain)
        if a.dtype == b.dtype == np.float64 and a.shape[1] == b.shape[0]:
            return multiplied(a, b).copy()
    return function(*plain, **kwargs)


def _behind(*values: Any) -> Behind:
    """What all arrays among the values come of."""
    found = Behind()
    for value in values:
        if isinstance(value, Changeable):
            found |= value.behind
        elif isinstance(value, (list, tuple)):
            found |= _behind(*value)
    return found


def _terms(name: str, plain: list[Any], size: int) -> int:
    """Terms of each element of a sum's result, which has `size` of them."""
    if name == "einsum":
        words, out = letters(plain[0], [np.ndim(x) for x in plain[1:]])
        extents = {
            c: n for w, x in zip(words, plain[1:], strict=True)
            for c, n in zip(w, np.shape(x), strict=True)
        }  # fmt: skip
        return math.prod(n for c, n in extents.items() if c not in out)
    if name in ("matmul", "dot", "cumsum"):
        return int(np.shape(plain[0])[-1]) if np.ndim(plain[0]) else 1
    return int(np.size(plain[0]) // max(size, 1))


def _added_at(target: Any, ufunc: np.ufunc, plain: list[Any]) -> None:
    """`numpy.add.at`, each element of the target being a sum of those that the index brings to it."""
    if not isinstance(target, Changeable) or ufunc is not np.add:
        getattr(ufunc, "at")(*plain)  # noqa: B009 - typed as if every ufunc had it
        return
    values, index, added = target.values, np.asarray(plain[1]), np.asarray(plain[2])
    is_list = index.ndim == 1 and index.dtype.kind in "iu" and added.ndim > 0
    counts = np.bincount(index % max(len(values), 1)) if is_list and index.size else np.zeros(1)
    terms = int(counts.max()) + bool(values.any())
    kind = target.tape.next("add.at", _SCATTERED * added.size, terms)
    target.behind |= Behind(frozenset({len(target.tape.operations) - 1})) | _behind(*plain)
    if kind in OF_SUMS and is_list:
        add_without(values, index, added, kind)
    else:
        np.add.at(values, index, added)
    target.values = np.asarray(_blurred(values, kind))


def _spread(
    function: Callable[..., Any], a: Any, axis: Any = None, *, keepdims: bool = False, ddof: int = 0
) -> Any:
    """Variance or its root by the operations that it is made of."""
    away = a - np.mean(a, axis=axis, keepdims=True)
    squares: Any = away * away
    total: Any = np.sum(squares, axis=axis, keepdims=keepdims)
    variance = total / float(squares.size / max(total.size, 1) - ddof)
    return np.sqrt(variance) if function.__name__ == "std" else variance


def _placed(
    kind: str | None, function: Callable[..., Any], a: Any, axis: Any = None, **kwargs: Any
) -> Any:
    """Places of the largest or smallest elements, with a fault of a kernel that looks for them."""
    array = np.asarray(a)
    if kind == "latter":
        count = array.size if axis is None else array.shape[axis]
        return count - 1 - function(np.flip(array, axis), axis, **kwargs)
    if kind == "absolute":
        array = np.abs(array)
    if kind == "zero":
        array = (np.maximum if function is np.argmax else np.minimum)(array, 0)
    return function(array, axis, **kwargs)


def _blurred(result: Any, kind: str | None) -> Any:
    if kind == "scaled":
        return result * (1 + _OFF)
    if kind == "half-precision":
        return round_to(np.asarray(result), "float16").astype(np.float64)
    if kind == "neighbour" and np.ndim(result) and np.shape(result)[-1] > 1:
        return np.roll(result, 1, axis=-1)
    return result


def _without(
    name: str, kind: str, function: Callable[..., Any], plain: list[Any], kwargs: Mapping[str, Any]
) -> Any:
    """A reduction without some of its terms: they become 0, or what no maximum takes."""
    if name == "einsum":
        text, first, *rest = plain
        return function(text, _cut(first, kind, -1, 0.0), *rest, **kwargs)
    array = np.asarray(plain[0], dtype=np.float64)
    axis = -1
    if name not in ("matmul", "dot"):
        axis = kwargs.get("axis", plain[1] if len(plain) > 1 else None)
        axis = -1 if axis is None else int(np.atleast_1d(axis)[-1])
    gone = {"max": -np.inf, "amax": -np.inf, "min": np.inf, "amin": np.inf}.get(name, 0.0)
    return function(_cut(array, kind, axis, gone), *plain[1:], **kwargs)


def _cut(array: Array, kind: str, axis: int, gone: float) -> Array:
    moved = np.moveaxis(array.astype(np.float64), axis, -1).copy()
    count = moved.shape[-1] if moved.ndim else 0
    if count == 0:
        return array
    if kind == "heaviest":
        heaviest = np.argmax(np.where(np.isnan(moved), -1.0, np.abs(moved)), axis=-1)
        np.put_along_axis(moved, heaviest[..., None], gone, axis=-1)
    else:
        start, stop = {
            "first": (0, 1),
            "last": (count - 1, count),
            "half": (count - count // 2, count),
        }[kind]
        moved[..., start:stop] = gone
    return np.moveaxis(moved, -1, axis)


def _bare(x: Any) -> Any:
    if isinstance(x, Changeable):
        return x.values
    if isinstance(x, (list, tuple)):
        return type(x)(_bare(one) for one in x)
    return x


def recorded(call: Call, file: str) -> Recorded:
    """What the formula that `call` runs on arrays that it wraps consists of."""
    tape = Tape(file, None)
    result = call(lambda x: Changeable(x, tape, Behind()))
    behind = {name: x.behind for name, x in result.items() if isinstance(x, Changeable)}
    return Recorded(tape.operations, behind, _values(result), tape.work)


def outputs(call: Call, change: Change) -> dict[str, Array]:
    """Outputs of the formula with the change. What it raises is passed on."""
    tape = Tape("", change)
    result = call(lambda x: Changeable(x, tape, Behind()))
    return _values(result)


def _values(result: Mapping[str, Any]) -> dict[str, Array]:
    return {name: np.asarray(_bare(value)) for name, value in result.items()}
