"""One call of a formula for two bounds: that of the worst case, and that of probabilistic sums.

They differ behind a sum alone: what comes before the first one is computed once and serves both.
"""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from tokitai_cli.oracles.formula.precision import SUMS_BOUNDED, allowing, current
from tokitai_cli.oracles.formula.tracked import Decision, Tracked

WORST, PROBABLE = 0, 1


class Twofold(np.lib.mixins.NDArrayOperatorsMixin):
    """An array or condition of a formula by both bounds; one object serves where they do not differ."""

    __array_priority__ = 1002

    def __init__(self, worst: Tracked | Decision, probable: Tracked | Decision) -> None:
        self.sides = [worst, probable]

    @property
    def differs(self) -> bool:
        """Whether there are two objects."""
        return self.sides[WORST] is not self.sides[PROBABLE]

    shape = property(lambda self: self.sides[WORST].shape)
    ndim = property(lambda self: self.sides[WORST].ndim)
    size = property(lambda self: self.sides[WORST].size)
    dtype = property(lambda self: self.sides[WORST].dtype)
    T = property(lambda self: _by_both(operator.attrgetter("T"), (self,)))

    def __len__(self) -> int:
        return len(self.sides[WORST])  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        return _by_both(operator.getitem, (self, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        _by_both(operator.setitem, (self, key, value), changed=(self,))

    def __bool__(self) -> bool:
        return bool(_by_both(bool, (self,)))

    def __float__(self) -> float:
        return float(_by_both(float, (self,)))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return _by_both(lambda one: one.__array__(*args, **kwargs), (self,))

    def __getattr__(self, name: str) -> Any:
        """A method of both."""
        if name.startswith("_") or not callable(getattr(self.sides[WORST], name)):
            raise AttributeError(name)
        method = operator.attrgetter(name)
        return lambda *args, **kwargs: _by_both(
            lambda one, *given, **named: method(one)(*given, **named), (self, *args), kwargs
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        changed = inputs[:1] if method == "at" else kwargs.get("out", ())
        return _by_both(function, inputs, kwargs, changed)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        return _by_both(function, args, kwargs)


def twofold(array: Tracked) -> Twofold:
    """What both bounds begin with."""
    return Twofold(array, array)


def side_of(value: Any, side: int) -> Any:
    """The value, and all that is nested in it, by one of the bounds."""
    if isinstance(value, Twofold):
        return value.sides[side]
    if isinstance(value, (list, tuple)):
        return type(value)([side_of(one, side) for one in value])
    if isinstance(value, Mapping):
        return {name: side_of(one, side) for name, one in value.items()}
    return value


def on_both(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tracked arrays that takes those by both bounds too."""

    @functools.wraps(function)
    def by_both(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(one, Twofold) for one in (*args, *kwargs.values())):
            return _by_both(function, args, kwargs)
        return function(*args, **kwargs)

    return by_both


def _by_both(
    function: Callable[..., Any],
    given: Sequence[Any],
    named: Mapping[str, Any] | None = None,
    changed: Sequence[Any] = (),
) -> Any:
    """What the function gives by either bound; changed: arguments that it changes in place."""
    named, precision = named or {}, current()
    arguments = list(_twofolds((given, named)))
    spare = [(one, copy.copy(one.sides[WORST])) for one in _twofolds(changed) if not one.differs]
    precision.applied_rules.discard(SUMS_BOUNDED)
    worst = function(*side_of(tuple(given), WORST), **side_of(named, WORST))
    if SUMS_BOUNDED not in precision.applied_rules and not any(one.differs for one in arguments):
        return _joined(worst, worst, arguments)
    for one, before in spare:
        one.sides[PROBABLE] = before
    permits = msgspec.structs.replace(precision, probable=True, applied_rules=set())
    with allowing(permits):
        probable = function(*side_of(tuple(given), PROBABLE), **side_of(named, PROBABLE))
    return _joined(worst, probable, arguments)


def _twofolds(value: Any) -> Iterator[Twofold]:
    if isinstance(value, Twofold):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _twofolds(one)
    elif isinstance(value, Mapping):
        yield from _twofolds(list(value.values()))


def _joined(worst: Any, probable: Any, arguments: list[Twofold]) -> Any:
    """One result of both: an argument that was handed through stays the same object."""
    if isinstance(worst, (list, tuple)):
        pairs = zip(worst, probable, strict=True)
        return type(worst)([_joined(*pair, arguments) for pair in pairs])
    if not isinstance(worst, (Tracked, Decision)):
        return worst
    for one in arguments:
        if one.sides[WORST] is worst and one.sides[PROBABLE] is probable:
            return one
    return Twofold(worst, probable)
