"""On which inputs and scalars a reference depends: it is asked again with one of them changed.

And whether all its elements are one number, whatever the inputs are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

# Elements of inputs and outputs together, beyond which a case is not asked: a smaller one tells.
MOST_ELEMENTS = 1 << 20

Ask = Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]


class Dependence(msgspec.Struct, frozen=True):
    """What outputs, by name, depend on."""

    #: Of each the inputs and scalars that it does not depend on.
    independent: dict[str, list[str]]
    #: Those whose elements are one number at this shape, which one being up to the inputs.
    alike: list[str]


def dependence(
    ask: Ask, inputs: Mapping[str, NDArray[Any]], scalars: Mapping[str, Any]
) -> Dependence | None:
    """What the outputs depend on; None where it is not asked.

    ask: gives the outputs, by name, of inputs and scalars. Each input is reversed, scaled and moved,
    each scalar moved; an output that keeps all its values under all of that does not depend on it here.
    What cannot be computed of a changed input depends on it.
    """
    if sum(array.size for array in inputs.values()) > MOST_ELEMENTS:
        return None
    right = _values(ask(inputs, scalars))
    if sum(array.size for array in right.values()) > MOST_ELEMENTS:
        return None
    found: dict[str, list[str]] = {name: [] for name in right}
    for name, array in inputs.items():
        if array.size:
            changed = ({**inputs, name: other} for other in _others(array))
            _note(found, name, right, (functools.partial(ask, one, scalars) for one in changed))
    for name, value in scalars.items():
        moved = ({**scalars, name: other} for other in (value + 1, value * 2 + 3))
        _note(found, name, right, (functools.partial(ask, inputs, one) for one in moved))
    return Dependence(found, _alike(ask, inputs, scalars, right))


def _alike(
    ask: Ask,
    inputs: Mapping[str, NDArray[Any]],
    scalars: Mapping[str, Any],
    right: Mapping[str, NDArray[Any]],
) -> list[str]:
    """Outputs that are one number in the case, and of two draws of normally distributed inputs too.

    These numbers differ: the shape makes it so, not the inputs of the case. What is always the same
    number (a ticket, an argmax of one column) is not among them.
    """
    found = [name for name, array in right.items() if array.size > 1 and _number(array) is not None]
    if not found:
        return []
    numbers: dict[str, set[float | None]] = {name: set() for name in found}
    for seed in range(2):
        draws = np.random.default_rng(seed)
        drawn = {
            name: draws.standard_normal(array.shape).astype(array.dtype)
            if array.dtype.kind not in "biu"
            else array
            for name, array in inputs.items()
        }
        try:
            other = _values(ask(drawn, scalars))
        except Exception:  # noqa: BLE001 - whatever stops it, it comes of the draw
            return []
        for name in found:
            numbers[name].add(_number(other[name]) if name in other else None)
    return [name for name, few in numbers.items() if None not in few and len(few) > 1]


def _number(array: NDArray[Any]) -> float | None:
    """The one finite number that all elements are."""
    first = float(array.flat[0])
    return first if math.isfinite(first) and bool((array == array.flat[0]).all()) else None


def _note(
    found: dict[str, list[str]],
    name: str,
    right: Mapping[str, NDArray[Any]],
    asks: Iterator[Callable[[], Mapping[str, Any]]],
) -> None:
    """Add `name` to each output that none of `asks` changes."""
    same = set(right)
    for ask in asks:
        if not same:
            return
        try:
            other = _values(ask())
        except Exception:  # noqa: BLE001 - whatever stops it, it comes of the change
            return
        same = {one for one in same if one in other and _equal(right[one], other[one])}
    for one in same:
        found[one].append(name)


def _values(outputs: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    return {
        name: np.asarray(one["reference"] if isinstance(one, Mapping) else one)
        for name, one in outputs.items()
    }


def _equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    floats = one.dtype.kind == "f" and other.dtype.kind == "f"
    return bool(np.array_equal(one, other, equal_nan=floats))


def _others(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The array changed: what sorts or normalises, sums or selects sees one of these."""
    yield array.reshape(-1)[::-1].reshape(array.shape)
    if array.dtype.kind == "b":
        yield ~array
    elif array.dtype.kind in "iu":
        yield np.zeros_like(array)
        yield np.where(array == 1, array.dtype.type(0), array.dtype.type(1))
    else:
        with np.errstate(all="ignore"):
            yield (array.astype(np.float64) * -0.75 + 0.375).astype(array.dtype)
