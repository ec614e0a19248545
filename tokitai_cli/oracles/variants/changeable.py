"""Arrays of a formula whose operations are counted and, one of them, changed (see `changes`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tokitai_cli.oracles.formula.array_protocol import Moving
from tokitai_cli.oracles.formula.tracked import branch_on_values
from tokitai_cli.oracles.variants.changed_operations import (
    added_at,
    by_function,
    by_ufunc,
    taken,
    written,
)
from tokitai_cli.oracles.variants.steps import Slot, Steps
from tokitai_cli.oracles.variants.wrong_formulas import (
    RATIONAL,
    SUMS,
    Array,
    Behind,
    Call,
    Change,
    Recorded,
    Tape,
)

NOTHING_BEHIND = Behind()


class Changeable(Moving):
    """Float64 values whose operations are counted and, one of them, changed."""

    def __init__(self, values: Any, tape: Tape, behind: Behind) -> None:
        self.values: Array = np.asarray(values)
        self.tape = tape
        self.behind = behind
        self.slot = Slot(tape.steps.kept(self.values))

    def plain(self) -> Array:
        """The values."""
        return self.values

    def moved(self, function: Callable[[Array], Array]) -> Changeable:
        """Apply what moves elements and changes none."""
        moved: Changeable = _done(self.tape, lambda _, x: function(x), (self,), behind=self.behind)
        return moved

    def astype(self, dtype: Any, **kwargs: Any) -> Changeable:
        """As numpy's."""
        return self.moved(lambda array: array.astype(dtype, **kwargs))

    def __getitem__(self, key: Any) -> Changeable:
        some: Changeable = _done(self.tape, taken, (self, key), behind=self.behind)
        return some

    def __setitem__(self, key: Any, value: Any) -> None:
        behind = self.behind | _behind(value)
        self.become(_done(self.tape, written, (self, key, value), behind=behind))

    def become(self, made: Changeable) -> None:
        """Stand for what was made of it."""
        self.values, self.behind, self.slot = made.values, made.behind, made.slot

    def __bool__(self) -> bool:
        if self.values.size != 1:
            raise branch_on_values()
        self.tape.steps.lose()
        return bool(self.values)

    def __array__(self, *args: Any, **kwargs: Any) -> Array:
        self.tape.steps.lose()
        return self.values

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if method == "at":
            _added_at(self.tape, inputs[0], ufunc, inputs)
            return None
        operate = functools.partial(by_ufunc, ufunc, method)
        wrapped = _done(self.tape, operate, inputs, kwargs)
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
        if not kwargs.keys().isdisjoint(("out", "copy")):
            self.tape.steps.lose()  # it may write to what it is given
        return _done(self.tape, functools.partial(by_function, function), args, kwargs)


def _done(
    tape: Tape,
    operate: Callable[..., Any],
    args: Sequence[Any],
    named: Mapping[str, Any] | None = None,
    behind: Behind | None = None,
) -> Any:
    """What `operate` makes of a tape and plain arrays, in arrays that go on.

    behind: what it comes of, where the operation and its operands do not say.
    """
    before, named = len(tape.operations), named or {}
    read = [_bare(one, by_slot=True) for one in args]
    read_named = {name: _bare(one, by_slot=True) for name, one in named.items()}
    result = operate(tape, *map(_bare, args), **{name: _bare(x) for name, x in named.items()})
    several = isinstance(result, (list, tuple))
    if not several and not isinstance(result, (np.ndarray, np.generic)):
        tape.steps.lose()
        return result
    behind = _comes_of(tape, before, args) if behind is None else behind
    made = [Changeable(one, tape, behind) for one in (result if several else [result])]
    if tape.is_recording:
        place = before if len(tape.operations) > before else -1
        tape.steps.took(operate, read, read_named, [one.slot.number for one in made], place)
    return made if several else made[0]


def _comes_of(tape: Tape, before: int, args: Any) -> Behind:
    """What the result of the operation at `before`, if it is one, comes of; asked once a formula."""
    if not tape.is_recording:
        return NOTHING_BEHIND
    found = _behind(args)
    for place, operation in enumerate(tape.operations[before:], before):
        places = frozenset({place} if operation.name in SUMS else ())
        found |= Behind(places, operation.name in RATIONAL)
    return found


def _behind(*values: Any) -> Behind:
    """What all arrays among the values come of."""
    found = Behind()
    for value in values:
        if isinstance(value, Changeable):
            found |= value.behind
        elif isinstance(value, (list, tuple)):
            found |= _behind(*value)
    return found


def _added_at(tape: Tape, target: Any, ufunc: np.ufunc, inputs: Sequence[Any]) -> None:
    """`numpy.add.at`, each element of the target being a sum of those that the index brings to it."""
    if not isinstance(target, Changeable) or ufunc is not np.add:
        tape.steps.lose()
        getattr(ufunc, "at")(*map(_bare, inputs))  # noqa: B009 - typed as if every ufunc had it
        return
    tape.steps.part_with(target.slot.number)
    behind = target.behind | Behind(frozenset({len(tape.operations)}))
    target.become(_done(tape, added_at, inputs, behind=behind))


def _spread(
    function: Callable[..., Any], a: Any, axis: Any = None, *, keepdims: bool = False, ddof: int = 0
) -> Any:
    """Variance or its root by the operations that it is made of."""
    away = a - np.mean(a, axis=axis, keepdims=True)
    squares: Any = away * away
    total: Any = np.sum(squares, axis=axis, keepdims=keepdims)
    variance = total / float(squares.size / max(total.size, 1) - ddof)
    return np.sqrt(variance) if function.__name__ == "std" else variance


def _bare(x: Any, *, by_slot: bool = False) -> Any:
    """Plain arrays in the place of those that are counted; by_slot: what stands for them in a step."""
    if isinstance(x, Changeable):
        return x.slot if by_slot else x.values
    if isinstance(x, (list, tuple)):
        return type(x)(_bare(one, by_slot=by_slot) for one in x)
    return x


def recorded(call: Call, file: str) -> Recorded:
    """What the formula that `call` runs on arrays that it wraps consists of."""
    tape = Tape(file, None)
    result = call(lambda x: Changeable(x, tape, Behind()))
    behind = {name: x.behind for name, x in result.items() if isinstance(x, Changeable)}
    values = _values(result)
    tape.steps.end({name: _bare(x, by_slot=True) for name, x in result.items()}, values)
    largest = (tape.largest, tape.matrices)
    return Recorded(tape.operations, behind, values, tape.work, *largest, steps=tape.steps)


def outputs(call: Call, change: Change, steps: Steps | None = None) -> dict[str, Array]:
    """Outputs of the formula with the change. What it raises is passed on.

    steps: those of the formula without it, where they are known.
    """
    found = None if steps is None else steps.outputs(change.operation.place, change.kind)
    if found is not None:
        return found
    tape = Tape("", change)
    result = call(lambda x: Changeable(x, tape, Behind()))
    return _values(result)


def _values(result: Mapping[str, Any]) -> dict[str, Array]:
    return {name: np.asarray(_bare(value)) for name, value in result.items()}
