"""Comparisons by which a kernel goes one way or another, and values on both sides of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tokitai_cli.cpp.body.polynomial import Polynomial
from tokitai_cli.cpp.body.symbolic_values import Line

#: What a comparison is called from its other side.
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
#: What holds where a comparison does not.
OPPOSITE = {"<": ">=", ">=": "<", "<=": ">", ">": "<=", "==": "!=", "!=": "=="}
# How far from the number that it is compared with a value lies for which a comparison holds.
_BESIDE = {"==": 0, "!=": 1, "<": -1, ">=": 0, "<=": 0, ">": 1}
_HOLDS: Mapping[str, Callable[[Any, float], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">=": operator.ge,
    "<=": operator.le, ">": operator.gt,
}  # fmt: skip
_WORDS = {"==": "{}", "!=": "another than {}", "<": "below {}", ">=": "{} or more",
          "<=": "{} or less", ">": "above {}"}  # fmt: skip


class Branch(NamedTuple):
    """A comparison of a value with `operand`, the sign as from the value on."""

    sign: str
    operand: Polynomial
    at: Line | None


class Way(NamedTuple):
    """One of the two ways that a kernel may go at a comparison with a number."""

    sign: str
    number: float
    at: Line | None

    @property
    def beside(self) -> int:
        """How far from the number a value lies that goes this way."""
        return _BESIDE[self.sign]

    @property
    def value(self) -> float:
        """A value that goes this way."""
        return self.number + self.beside

    @property
    def words(self) -> str:
        """What a value that goes this way is: `below 0`."""
        return _WORDS[self.sign].format(f"{self.number:g}")

    def takes(self, values: Any) -> Any:
        """Whether a value goes this way; of an array each of its values."""
        return _HOLDS[self.sign](values, self.number)


def ways_of(branch: Branch, number: float) -> tuple[Way, Way]:
    """Both ways, where `operand` is that number."""
    return (
        Way(branch.sign, number, branch.at),
        Way(OPPOSITE[branch.sign], number, branch.at),
    )
