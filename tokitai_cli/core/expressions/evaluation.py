"""Values of expressions: integers exactly, and real numbers as fractions that are rounded once."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tokitai_cli.core.errors import SpecError, near
from tokitai_cli.core.expressions.parser import Node, fault, parse

if TYPE_CHECKING:
    from fractions import Fraction

MAX_VALUE = 2**63 - 1
# Of a real expression: what float64 holds needs far less.
_MOST_BITS = 8192
_MOST_POWER = 1024

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "/": lambda left, right: _fraction(left) / right,
    "**": lambda base, exponent: _power(base, exponent),  # noqa: PLW0108 - it stands below
}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def evaluate(text: str | int, names: Mapping[str, int]) -> int:
    """Value of an integer expression with `names` filled in; an int is returned as it is.

    Raises SpecError (without a location) for text that is no expression of this language, for a
    comparison, an unknown name, a division by zero, and for |value| >= 2^63.
    """
    if not isinstance(text, str):
        return int(_bounded(text, str(text)))
    node = parse(text)
    if node.truth:
        raise SpecError(
            f"`{text}` is a comparison where a number is expected", hint="write a number"
        )
    value = _number(node, names, text)
    if not isinstance(value, int):
        raise SpecError(f"`{text}` is not an integer below 2^63", hint="use smaller values")
    return value


def evaluate_real(text: str | float, names: Mapping[str, int | Fraction]) -> float:
    """Value of a real expression: a fraction that is rounded once; a number is returned as it is.

    Raises SpecError as `evaluate_exactly` does, and for what float64 cannot hold.
    """
    try:
        return float(evaluate_exactly(text, names))
    except OverflowError:
        raise SpecError(f"`{text}` is too large for a float64") from None


def evaluate_exactly(text: str | float, names: Mapping[str, int | Fraction]) -> float | Fraction:
    """Value of a real expression as int or fraction; a number is returned as it is.

    A root that is no fraction is rounded to float64. Raises SpecError as `evaluate` does.
    """
    if not isinstance(text, str):
        return text
    node = parse(text, real=True)
    if node.truth:
        raise SpecError(
            f"`{text}` is a comparison where a number is expected", hint="write a number"
        )
    found: int | Fraction = _number(node, names, text)
    return found


def holds(text: str, names: Mapping[str, int | Fraction], *, real: bool = False) -> bool:
    """Whether a comparison, of real numbers or integers, holds with `names` filled in.

    Raises SpecError as `evaluate` does.
    """
    node = parse(text, real=real)
    if not node.truth:
        raise SpecError(
            f"`{text}` is a number where a comparison is expected",
            hint=f"compare it, such as {text} == 0",
        )
    return _truth(node, names, text)


def _fraction(value: Any) -> Fraction:
    from fractions import Fraction

    return Fraction(value)


def _power(base: Any, exponent: Any) -> int | Fraction:
    """An int where base and result are, and the result is below 2^63."""
    if exponent != int(exponent) or abs(exponent) > _MOST_POWER:
        raise SpecError(f"a power of {exponent}", hint="exponents must be integers, such as -3")
    if abs(base.numerator * base.denominator).bit_length() * abs(exponent) > _MOST_BITS:
        raise SpecError(f"{base} ** {exponent} is too large for float64", hint="use smaller values")
    found = _fraction(base) ** int(exponent)
    whole = isinstance(base, int) and abs(found) <= MAX_VALUE and found.denominator == 1
    return int(found) if whole else found


def _root(value: Any) -> Fraction:
    parts = (value.numerator, value.denominator)
    roots = [math.isqrt(part) for part in parts]
    if all(root * root == part for root, part in zip(roots, parts, strict=True)):
        return _fraction(roots[0]) / roots[1]
    return _fraction(math.sqrt(value))


def _bounded(value: Any, text: str) -> Any:
    if not isinstance(value, int):
        if max(abs(value.numerator), value.denominator).bit_length() > _MOST_BITS:
            raise SpecError(f"`{text}` has too many digits", hint="use smaller values")
    elif abs(value) > MAX_VALUE:
        raise SpecError(f"`{text}` gives a value of 2^63 or more", hint="use smaller values")
    return value


def _number(node: Node, names: Mapping[str, Any], text: str) -> Any:
    """An int; in real expressions also a Fraction."""
    if node.kind == "decimal":
        return _bounded(_fraction(node.value), text)
    if node.kind == "integer":
        return _bounded(node.value, text)
    if node.kind == "name":
        if node.value not in names:
            hint = near(node.value, names)
            raise fault(f"unknown name `{node.value}`", text, node.position, hint)
        return _bounded(names[node.value], text)
    word, *operands = node.value
    values = [_number(operand, names, text) for operand in operands]
    if node.kind == "call":
        return _bounded(_called(word, values, node, text), text)
    if (word in ("//", "%", "/") and values[1] == 0) or (
        word == "**" and values[0] == 0 and values[1] < 0
    ):
        raise fault("division by zero", text, node.position)
    return _bounded(_ARITHMETIC[word](*values), text)


def _called(word: str, values: list[Any], node: Node, text: str) -> Any:
    if word in ("min", "max"):
        return min(values) if word == "min" else max(values)
    if word == "sqrt":
        if values[0] < 0:
            raise fault(f"sqrt of {values[0]}, which is negative", text, node.position)
        return _root(values[0])
    if any(value != int(value) for value in values):
        raise fault(f"{word} takes integers", text, node.position)
    return _of_whole(word, [int(value) for value in values], node, text)


def _of_whole(word: str, values: list[int], node: Node, text: str) -> int:
    if word == "ceil_div":
        if values[1] <= 0:
            message = f"ceil_div divides by {values[1]}, which is not positive"
            raise fault(message, text, node.position)
        return -(-values[0] // values[1])
    if word == "next_pow2":
        if values[0] < 0:
            raise fault(f"next_pow2 of {values[0]}, which is negative", text, node.position)
        return 1 << max(values[0] - 1, 0).bit_length()
    if values[0] < 1:
        raise fault(f"ceil_log2 of {values[0]}, which is not positive", text, node.position)
    return (values[0] - 1).bit_length()


def _truth(node: Node, names: Mapping[str, Any], text: str) -> bool:
    if node.kind == "or":
        return any(_truth(part, names, text) for part in node.value)
    if node.kind == "and":
        return all(_truth(part, names, text) for part in node.value)
    values = [_number(part, names, text) for part in node.value[::2]]
    signs = node.value[1::2]
    pairs = zip(values, values[1:], signs, strict=False)
    return all(_COMPARE[sign](left, right) for left, right, sign in pairs)
