"""What an oracle answers of one output, part by part: what an Expectation is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from numpy.typing import NDArray

T = TypeVar("T")
U = TypeVar("U")


class Part(NamedTuple):
    """Which of the parts: the field's name, and in a mapping the key."""

    field: str
    key: str = ""


class OutputParts(msgspec.Struct, Generic[T], frozen=True, forbid_unknown_fields=True):
    """The parts of an answer for one output (docs/spec/oracles.md), None where there is none.

    `OutputParts[NDArray[Any]]` holds arrays of the output's shape; `OutputParts[str]` the names of the
    .npy files in which they come from the process of a user's function.
    """

    #: Float64, or the output's integer or bool dtype.
    reference: T
    #: Float64: of values on both sides of the reference; else `error_below` and `error_above`.
    error: T | None = None
    error_below: T | None = None
    error_above: T | None = None
    #: Bool masks.
    may_be_unwritten: T | None = None
    may_be_nan: T | None = None
    unbounded: T | None = None
    #: Whole numbers, equal where elements may stand in each other's places.
    segments: T | None = None
    #: [choices, *shape].
    allowed: T | None = None
    #: The rest of a double-double reference, for float64 outputs.
    low: T | None = None
    #: Wrong outputs of a user's own oracle by its names for them.
    wrong: Mapping[str, T] = {}
    #: The probabilistic form of the error.
    error_probable: T | None = None
    #: Of a formula, what it gives with one operation changed, by words for the change.
    changes: Mapping[str, T] = {}
    #: [changed rows] of the first axis, which `changes` are of; None for all.
    rows: T | None = None
    #: Of a formula, what it gives in float32.
    replay: T | None = None

    def given(self) -> Iterator[tuple[Part, T]]:
        """The parts that there are."""
        for field in self.__struct_fields__:
            value = getattr(self, field)
            if isinstance(value, Mapping):
                yield from ((Part(field, key), one) for key, one in value.items())
            elif value is not None:
                yield Part(field), value

    def map(self, function: Callable[[Part, T], U]) -> OutputParts[U]:
        """The same parts, each as `function` makes it of the part and its value."""
        fields: dict[str, Any] = {}
        for part, value in self.given():
            made = function(part, value)
            if part.key:
                fields.setdefault(part.field, {})[part.key] = made
            else:
                fields[part.field] = made
        return OutputParts(**fields)

    def errors(self) -> tuple[T, T] | None:
        """The errors of values below and above the reference; None where there are none."""
        below = self.error if self.error_below is None else self.error_below
        above = self.error if self.error_above is None else self.error_above
        return None if below is None or above is None else (below, above)


ArrayParts = OutputParts[NDArray[Any]]
# What a user's own oracle may give; the rest is derived from formulas.
OF_USERS = tuple(
    name for name in OutputParts.__struct_fields__ if name not in ("changes", "rows", "replay")
)
