"""On which inputs and scalars a reference depends: it is asked again with one of them changed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Elements of inputs and outputs together, beyond which a case is not asked: a smaller one tells.
MOST_ELEMENTS = 1 << 20

Ask = Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]


def independent(
    ask: Ask, inputs: Mapping[str, NDArray[Any]], scalars: Mapping[str, Any]
) -> dict[str, list[str]] | None:
    """Of each output the inputs and scalars that it does not depend on; None where it is not asked.

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
    return found


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
