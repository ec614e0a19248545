"""Wrong outputs of a formula: the formula run again in float64 with one of its operations changed.

A change is a fault that kernels have: a term that a reduction drops, an operand left out, a sign, a
neighbour's value, a sum for a maximum, an intermediate kept in float16, a scale that is off by a
thousandth.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Call = Callable[[Callable[[Any], Any]], Mapping[str, Any]]

_SUMS = ("sum", "mean", "matmul", "einsum", "dot", "cumsum")
_EXTREMES = ("max", "min", "amax", "amin")
_OPPOSITE = {"add": np.subtract, "subtract": np.add, "multiply": np.divide, "divide": np.multiply}
_OFF = 1e-3

# What is changed, by what it is changed in.
OF_SUMS = {
    "first": "the first term dropped",
    "last": "the last term dropped",
    "heaviest": "the heaviest term dropped",
    "half": "the second half of the terms dropped",
}
OF_EXTREMES = {"summed": "a sum in its place", "last": "the last element dropped"}
OF_PAIRS = {
    "left": "the first operand alone",
    "right": "the second operand alone",
    "opposite": "the opposite",
}
OF_ALL = {
    "neighbour": "the neighbour's value along the last axis",
    "half-precision": "kept in float16",
    "scaled": "off by a thousandth",
}


class Operation(NamedTuple):
    """An operation: its place in the order of evaluation, numpy's name, its line in the file.

    nth: which of the operations of that name in that line it is, from 1.
    """

    place: int
    name: str
    line: int
    nth: int = 1

    def kinds(self) -> Mapping[str, str]:
        """Changes that it can have, with words for them."""
        if self.name in _SUMS:
            return {**OF_SUMS, **OF_ALL}
        if self.name in _EXTREMES:
            return {**OF_EXTREMES, **OF_ALL}
        return {**(OF_PAIRS if self.name in _OPPOSITE else {}), **OF_ALL}


class Change(NamedTuple):
    """One operation with one change."""

    operation: Operation
    kind: str

    @property
    def words(self) -> str:
        """For people, unique among the changes of a formula."""
        _, name, line, nth = self.operation
        which = f" {nth}" if nth > 1 else ""
        return f"line {line}, {name}{which}: {self.operation.kinds()[self.kind]}"


class _Tape:
    """Counts operations, and says of each whether it is the one to change."""

    def __init__(self, file: str, change: Change | None) -> None:
        self.operations: list[Operation] = []
        self._file = file
        self._change = change

    def next(self, name: str) -> str | None:
        """The change of the operation that comes now, if any."""
        place = len(self.operations)
        if self._change is not None:
            self.operations.append(Operation(place, name, 0))
            return self._change.kind if self._change.operation.place == place else None
        line = self._line()
        nth = 1 + sum(one.name == name and one.line == line for one in self.operations)
        self.operations.append(Operation(place, name, line, nth))
        return None

    def _line(self) -> int:
        frame = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_filename == self._file:
                return frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        return 0


class Changeable(np.lib.mixins.NDArrayOperatorsMixin):
    """Float64 values whose operations are counted and, one of them, changed."""

    __array_priority__ = 1000

    def __init__(self, values: Any, tape: _Tape) -> None:
        self.values: Array = np.asarray(values)
        self.tape = tape

    shape = property(lambda self: self.values.shape)
    ndim = property(lambda self: self.values.ndim)
    size = property(lambda self: self.values.size)
    dtype = property(lambda self: self.values.dtype)
    T = property(lambda self: Changeable(self.values.T, self.tape))

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Changeable]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Changeable:
        return Changeable(self.values[_bare(key)], self.tape)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.values = self.values.astype(np.result_type(self.values, np.asarray(_bare(value))))
        self.values[_bare(key)] = _bare(value)

    def __bool__(self) -> bool:
        return bool(self.values)

    def __array__(self, *args: Any, **kwargs: Any) -> Array:
        return self.values

    def __getattr__(self, name: str) -> Any:
        """Methods by numpy's function of that name, so that each has one rule."""
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(name)
        if name in (
            "astype",
            "copy",
            "reshape",
            "transpose",
            "swapaxes",
            "ravel",
            "flatten",
            "squeeze",
            "repeat",
        ):
            return lambda *args, **kwargs: Changeable(
                getattr(self.values, name)(*args, **kwargs), self.tape
            )
        function = getattr(np, name)
        return lambda *args, **kwargs: function(self, *args, **kwargs)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        plain = [_bare(x) for x in inputs]
        with np.errstate(all="ignore"):
            if method == "at":
                return getattr(ufunc, method)(*plain, **kwargs)
            if method == "reduce":
                reduction = {"add": "sum", "maximum": "max", "minimum": "min"}.get(
                    ufunc.__name__, ""
                )
                result = self._reduced(reduction or ufunc.__name__, ufunc.reduce, plain, kwargs)
            elif method == "__call__":
                result = self._called(ufunc, plain, kwargs)
            else:
                result = getattr(ufunc, method)(*plain, **kwargs)
        wrapped = Changeable(result, self.tape)
        if out is None:
            return wrapped
        out[0][...] = wrapped
        return out[0]

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        name = function.__name__
        if name in ("var", "std"):
            return _spread(function, *args, **kwargs)
        plain, named = [_bare(x) for x in args], {key: _bare(x) for key, x in kwargs.items()}
        with np.errstate(all="ignore"):
            if name in (*_SUMS, *_EXTREMES):
                result = self._reduced(name, function, plain, named)
            else:
                result = function(*plain, **named)
        if isinstance(result, (list, tuple)):
            return [Changeable(x, self.tape) for x in result]
        return (
            Changeable(result, self.tape)
            if isinstance(result, (np.ndarray, np.generic))
            else result
        )

    def _called(self, ufunc: np.ufunc, plain: list[Any], kwargs: Mapping[str, Any]) -> Any:
        name = ufunc.__name__
        if name == "matmul":
            return self._reduced(name, ufunc, plain, kwargs)
        result = ufunc(*plain, **kwargs)
        if np.asarray(result).dtype.kind != "f":
            return result
        kind = self.tape.next(name)
        if kind in ("left", "right"):
            return np.broadcast_to(plain[0 if kind == "left" else 1], np.shape(result)).astype(
                np.float64
            )
        if kind == "opposite":
            return _OPPOSITE[name](*plain)
        return _blurred(result, kind)

    def _reduced(
        self, name: str, function: Callable[..., Any], plain: list[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        kind = self.tape.next(name)
        result = function(*plain, **kwargs)
        if kind is None:
            return result
        if kind == "summed":
            return np.sum(*plain, **kwargs)
        if kind in ("first", "last", "heaviest", "half"):
            return _without(name, kind, function, plain, kwargs)
        return _blurred(result, kind)


def _spread(
    function: Callable[..., Any], a: Any, axis: Any = None, *, keepdims: bool = False, ddof: int = 0
) -> Any:
    """Variance or its root by the operations that it is made of."""
    away = a - np.mean(a, axis=axis, keepdims=True)
    squares: Any = away * away
    total: Any = np.sum(squares, axis=axis, keepdims=keepdims)
    variance = total / float(squares.size / max(total.size, 1) - ddof)
    return np.sqrt(variance) if function.__name__ == "std" else variance


def _blurred(result: Any, kind: str | None) -> Any:
    if kind == "scaled":
        return result * (1 + _OFF)
    if kind == "half-precision":
        return np.asarray(result).astype(np.float16).astype(np.float64)
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


def operations(call: Call, file: str) -> list[Operation]:
    """Operations of the formula that `call` runs on arrays that it wraps, in their order."""
    tape = _Tape(file, None)
    call(lambda x: Changeable(x, tape))
    return tape.operations


def changes(found: list[Operation]) -> list[Change]:
    """All changes of these operations."""
    return [Change(operation, kind) for operation in found for kind in operation.kinds()]


def outputs(call: Call, change: Change) -> dict[str, Array]:
    """Outputs of the formula with the change. What it raises is passed on."""
    tape = _Tape("", change)
    result = call(lambda x: Changeable(x, tape))
    return {name: np.asarray(_bare(value)) for name, value in result.items()}
