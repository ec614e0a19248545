"""Operations of numpy on plain arrays, each with the change that a tape asks for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tokitai_cli.core.numerics import round_to
from tokitai_cli.oracles.formula.contraction import letters
from tokitai_cli.oracles.formula.products import multiplied
from tokitai_cli.oracles.variants.lost_terms import add_without
from tokitai_cli.oracles.variants.wrong_branches import BRANCHING, branched
from tokitai_cli.oracles.variants.wrong_formulas import (
    EXTREMES,
    OF_SUMS,
    OPPOSITE,
    PLACES,
    PRODUCTS,
    SUMS,
    Array,
)

_REDUCTIONS = {"add": "sum", "maximum": "max", "minimum": "min"}
_REDUCING = frozenset((*SUMS, *EXTREMES))
# Multiplications of a product that take as long as an element of another operation, and elements
# of others that take as long as one that is added by its index.
_PER_ELEMENT, _SCATTERED = 16, 4
_OFF = 1e-3


class Counting(Protocol):
    """A tape, or what stands for one where an operation is done again."""

    @property
    def is_recording(self) -> bool:
        """Whether nothing is changed, and all is noted."""

    @property
    def is_repeating(self) -> bool:
        """Whether what it is given must stay as it is."""

    def next(self, name: str, work: int, terms: int = 0, elements: int | None = None) -> str | None:
        """The change of the operation that comes now, if any."""

    def multiplies(self, extents: tuple[int, ...]) -> None:
        """Note the extents of the matrices of a product."""


def added_at(tape: Counting, values: Array, index: Any, added: Any) -> Array:
    """`numpy.add.at`."""
    values = values.copy() if tape.is_repeating else values
    index, added = np.asarray(index), np.asarray(added)
    is_list = index.ndim == 1 and index.dtype.kind in "iu" and added.ndim > 0
    counts = np.bincount(index % max(len(values), 1)) if is_list and index.size else np.zeros(1)
    terms = int(counts.max()) + bool(values.any())
    elements = max(added.size, values.size)
    kind = tape.next("add.at", _SCATTERED * added.size, terms, elements)
    if kind in OF_SUMS and is_list:
        add_without(values, index, added, kind)
    else:
        np.add.at(values, index, added)
    return np.asarray(_blurred(values, kind))


def taken(_: Counting, values: Array, key: Any) -> Array:
    """Some of the elements."""
    return np.asarray(values[key])


def written(_: Counting, values: Array, key: Any, value: Any) -> Array:
    """The array with some elements replaced; it itself stays as it is."""
    values = values.astype(np.result_type(values, np.asarray(value)))
    values[key] = value
    return values


def by_function(function: Callable[..., Any], tape: Counting, *plain: Any, **named: Any) -> Any:
    """What a function of numpy gives."""
    name = function.__name__
    if name in _REDUCING:
        return _reduced(tape, name, function, plain, named)
    if name in PLACES:
        kind = tape.next(name, np.size(plain[0]))
        return _placed(kind, function, *plain, **named)
    if name == "where" and len(plain) == 3:
        return _selected(tape, *plain)
    result = function(*plain, **named)
    if name in BRANCHING and result.dtype.kind == "f":
        kind = tape.next(name, result.size)
        return _blurred(branched(kind, result, plain, named), kind)
    return result


def by_ufunc(ufunc: np.ufunc, method: str, tape: Counting, *plain: Any, **kwargs: Any) -> Any:
    """What a method of a numpy ufunc gives."""
    if method == "reduce":
        name = _REDUCTIONS.get(ufunc.__name__, ufunc.__name__)
        return _reduced(tape, name, ufunc.reduce, plain, kwargs)
    if method != "__call__":
        return getattr(ufunc, method)(*plain, **kwargs)
    return _called(tape, ufunc, plain, kwargs)


def _called(
    tape: Counting, ufunc: np.ufunc, plain: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    name = ufunc.__name__
    if name == "matmul":
        return _reduced(tape, name, ufunc, plain, kwargs)
    result = ufunc(*plain, **kwargs)
    if np.asarray(result).dtype.kind != "f":
        return result
    kind = tape.next(name, np.size(result))
    if kind in ("left", "right"):
        whole = np.broadcast_to(plain[0 if kind == "left" else 1], np.shape(result))
        return whole.astype(np.float64)
    if kind == "opposite":
        return OPPOSITE[name](*plain)
    return _blurred(branched(kind, result, plain, kwargs), kind)


def _selected(tape: Counting, condition: Any, one: Any, other: Any) -> Any:
    result = np.where(condition, one, other)
    kind = tape.next("where", result.size) if result.dtype.kind == "f" else None
    if kind in ("left", "right"):
        return np.broadcast_to(one if kind == "left" else other, result.shape).astype(np.float64)
    return np.where(condition, other, one) if kind == "swapped" else _blurred(result, kind)


def _reduced(
    tape: Counting,
    name: str,
    function: Callable[..., Any],
    plain: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    if tape.is_recording:
        result = _recorded(name, function, plain, kwargs)
        terms = _terms(name, plain, np.size(result))
        if name not in PRODUCTS:
            tape.next(name, np.size(plain[0]), terms)
            return result
        # Of a stack of matrices, those of each alone.
        last = -2 if name == "matmul" else 0
        tape.multiplies(tuple(extent for x in plain for extent in np.shape(x)[last:]))
        multiplications = np.size(result) * terms // _PER_ELEMENT
        tape.next(name, multiplications, terms, np.size(result))
        return result
    kind = tape.next(name, 0)
    if kind == "summed":
        return np.sum(*plain, **kwargs)
    if kind in OF_SUMS:
        return _without(name, kind, function, plain, kwargs)
    return _blurred(function(*plain, **kwargs), kind)


def _recorded(
    name: str, function: Callable[..., Any], plain: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The result of a reduction; the tracked formula comes to the same large products."""
    if name == "matmul" and not kwargs and all(np.ndim(x) == 2 for x in plain):
        a, b = (np.asarray(x) for x in plain)
        if a.dtype == b.dtype == np.float64 and a.shape[1] == b.shape[0]:
            return multiplied(a, b).copy()
    return function(*plain, **kwargs)


def _terms(name: str, plain: Sequence[Any], size: int) -> int:
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
    name: str,
    kind: str,
    function: Callable[..., Any],
    plain: Sequence[Any],
    kwargs: Mapping[str, Any],
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
