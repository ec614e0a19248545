"""Real numbers of the host as ratios of whole ones, until they are rounded to a whole one.

`ceil((float)n / 256)` is `(n + 255) / 256`, and `ceil(n / 256)` of whole numbers is `n / 256`.
"""

from __future__ import annotations

from fractions import Fraction

from tree_sitter import Node

from tokitai_cli.cpp.body.expressions import EXPRESSIONS
from tokitai_cli.cpp.body.operators import combined
from tokitai_cli.cpp.body.polynomial import Polynomial, composite, constant, quotient
from tokitai_cli.cpp.body.symbolic_values import Value
from tokitai_cli.cpp.body.walk import Walk
from tokitai_cli.cpp.tree import child, text_of

_RATIO = "ratio"
#: Bits of a literal's numerator and denominator.
_MOST_BITS = 80
_ROUNDED = ("ceil", "floor", "round", "trunc")


def ratio(above: Polynomial, below: Polynomial) -> Polynomial:
    """A real number."""
    return composite(_RATIO, above, below)


def parts_of(value: Value) -> tuple[Polynomial, Polynomial] | None:
    """Numerator and denominator of a real number; None for any other value."""
    if not isinstance(value, Polynomial) or len(value.terms) != 1:
        return None
    ((key, count),) = value.terms.items()
    if len(key) != 1 or getattr(key[0], "function", "") != _RATIO or isinstance(key[0], str):
        return None
    above, below = key[0].parts
    return above * constant(count), below


def literal(text: str) -> Polynomial | None:
    """The number of a literal with a decimal point, an exponent or an `f`; None for another."""
    bare = text.rstrip("fFlL")
    if text[:2] in {"0x", "0X"} or not {*text} & {*".eEfF"}:
        return None
    try:
        value = Fraction(bare)
    except ValueError:
        return None
    if max(abs(value.numerator), value.denominator).bit_length() > _MOST_BITS:
        return None
    return ratio(constant(value.numerator), constant(value.denominator))


def combined_ratios(sign: str, left: Value, right: Value) -> Polynomial | None:
    """The ratio that an operator makes of two numbers, one of them a ratio; None of others."""
    pairs = parts_of(left), parts_of(right)
    if pairs == (None, None) or sign not in {"+", "-", "*", "/"}:
        return None
    both = []
    for value, pair in zip((left, right), pairs, strict=True):
        if pair is None and not isinstance(value, Polynomial):
            return None
        both.append(pair or (value, constant(1)))
    (a, b), (c, d) = both
    assert isinstance(a, Polynomial)
    assert isinstance(c, Polynomial)
    if sign == "*":
        return ratio(a * c, b * d)
    if sign == "/":
        return ratio(a * d, b * c) if c else None
    return ratio(a * d + c * b if sign == "+" else a * d - c * b, b * d)


def binary(walk: Walk, node: Node, *, real: bool = False) -> Value:
    """An operator between two numbers of the host. real: whether it divides whole ones as real ones."""
    sign = text_of(child(node, "operator"))
    if sign not in {"+", "-", "*", "/"}:
        return EXPRESSIONS[node.type](walk, node)
    left, right = walk.evaluate(child(node, "left")), walk.evaluate(child(node, "right"))
    left = as_real(left) if real and sign == "/" else left
    return combined_ratios(sign, left, right) or combined(walk, sign, left, right)


def as_real(value: Value) -> Value:
    """A whole number as a real one."""
    whole = isinstance(value, Polynomial) and parts_of(value) is None
    return ratio(value, constant(1)) if whole and isinstance(value, Polynomial) else value


def as_whole(value: Value) -> Value:
    """A real number without its fraction; any other value as it is."""
    pair = parts_of(value)
    return value if pair is None or not pair[1] else quotient(*pair)


def rounded(function: str, value: Value) -> Polynomial | None:
    """What `ceil`, `floor` and their like give, as a real number; None for other functions."""
    name = function.removeprefix("std::").removesuffix("f")
    if name not in _ROUNDED or not isinstance(value, Polynomial):
        return None
    above, below = parts_of(value) or (value, constant(1))
    if not below:
        return None
    if name == "ceil":
        above = above + below - constant(1)
    elif name == "round":
        above, below = above + above + below, below + below
    return ratio(quotient(above, below), constant(1))


def fraction_of(value: Polynomial | None) -> Fraction | None:
    """The number that a value is; None for one with names."""
    if value is None:
        return None
    if value.number is not None:
        return Fraction(value.number)
    above, below = (one.number for one in parts_of(value) or (value, value))
    return Fraction(above, below) if above is not None and below else None
