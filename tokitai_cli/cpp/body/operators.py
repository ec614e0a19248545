"""Operators on values, and what two ways of a program leave of them where they meet."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction

from tokitai_cli.cpp.body.polynomial import Polynomial, constant, is_left, quotient, remainder
from tokitai_cli.cpp.body.symbolic_values import (
    Applied,
    Choice,
    Condition,
    Guard,
    Pointer,
    Record,
    Value,
    truth,
)
from tokitai_cli.cpp.body.walk import Walk
from tokitai_cli.cpp.structs import bare, resolved, size_of

OPPOSITE = {"<": ">=", ">=": "<", "<=": ">", ">": "<=", "==": "!=", "!=": "=="}
_BITS: Mapping[str, Callable[[int, int], int]] = {
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
_MOST_PRODUCTS = 256  # of the terms of two factors
_MOST_FACTORS, _MOST_BITS = 32, 128  # of a term, of its number
_LARGEST_SHIFT = 63
_NOTED = {*OPPOSITE, "/", "%", "<<", ">>", "&", "|", "^"}


def cast(walk: Walk, value: Value, type_text: str) -> Value:
    """A value as another type: a pointer to wider elements takes larger steps."""
    if not isinstance(value, Pointer):
        return walk.converted(value, type_text)
    if bare(type_text) == "auto":
        return value
    if "*" not in type_text and "&" not in type_text:
        walk.escape(value, "is cast to an integer")
        return value
    inner = type_text.partition("(")[0].rstrip("*& ")
    own = walk.facts.type_of(value.array)
    if resolved(walk.program, inner) == own:
        return Pointer(value.array, value.offset, 1)
    new, old = size_of(walk.program, inner), size_of(walk.program, own)
    unit = Fraction(new, old) if new and old else None
    return Pointer(
        value.array, value.offset, int(unit) if unit is not None and unit == int(unit) else unit
    )


def combined(walk: Walk, sign: str, left: Value, right: Value) -> Value:
    """Two values and an operator between them."""
    if sign in {"&&", "||"}:
        sides = [(truth(one), one, other) for one, other in ((left, right), (right, left))]
        for known, _, other in sides:
            if known is not None:  # the other one decides, or is not asked
                return constant(int(known)) if known == (sign == "||") else _condition(walk, other)
        one, two = _condition(walk, left), _condition(walk, right)
        text = f"({one.text} {sign} {two.text})"
        if sign == "&&":
            return Condition(one.holds + two.holds, (), text)
        return Condition((), one.fails + two.fails, text)
    if sign in {"+", "-"} and isinstance(left, Pointer) and not isinstance(right, Pointer):
        steps = walk.number(right)
        return walk.moved(left, steps if sign == "+" else -steps)
    if sign == "+" and isinstance(right, Pointer):
        return walk.moved(right, walk.number(left))
    if isinstance(left, Pointer) or isinstance(right, Pointer):
        return _compared_pointers(walk, sign, left, right)
    numbers = (
        (indicator(one) if isinstance(one, Condition) else None) or walk.number(one)
        for one in (left, right)
    )
    return _arithmetic(walk, sign, *numbers)


def _compared_pointers(walk: Walk, sign: str, left: Value, right: Value) -> Value:
    same = isinstance(left, Pointer) and isinstance(right, Pointer) and left.array == right.array
    if sign == "-" and same and isinstance(left, Pointer) and isinstance(right, Pointer):
        return left.offset - right.offset
    if sign in OPPOSITE:
        for one in (left, right):
            walk.facts.note_condition(one)
        return Condition((), (), "?")
    for one in (left, right):
        walk.escape(one, f"is next to {sign}")
    return walk.fresh("?")


def _condition(walk: Walk, value: Value) -> Condition:
    if isinstance(value, Condition):
        return value
    walk.facts.note_condition(value)
    return as_condition(walk, walk.number(value))


def as_condition(walk: Walk, number: Polynomial) -> Condition:
    """A number as a condition."""
    zero = constant(0)
    walk.note("!=", number, zero)
    number = walk.settled(number)
    return Condition((Guard(number, "!=", zero),), (Guard(number, "==", zero),), str(number))


def opposite(guard: Guard) -> Guard:
    """What holds where a comparison does not."""
    return Guard(guard.left, OPPOSITE[guard.sign], guard.right)


def _arithmetic(walk: Walk, sign: str, left: Polynomial, right: Polynomial) -> Value:
    if sign in _NOTED:
        walk.note(sign, left, right)
    if sign in OPPOSITE:
        left, right = walk.settled(left), walk.settled(right)
        text = f"{left} {sign} {right}"
        walk.facts.compared.append(Guard(left, sign, right))
        return Condition((Guard(left, sign, right),), (Guard(left, OPPOSITE[sign], right),), text)
    told = Applied(sign, (left, right))
    if sign == "+":
        return walk.number(left + right)
    if sign == "-":
        return walk.number(left - right)
    if sign == "*":
        _note_product(walk, left, right)
        small = _is_small(left, right)
        return walk.number(left * right) if small else walk.fresh("product", told)
    if sign in {"/", "%"} and right:
        return walk.number(quotient(left, right) if sign == "/" else remainder(left, right))
    number = right.number
    if sign in _BITS and number is not None and left.number is not None:
        return constant(_BITS[sign](left.number, number))
    if sign in {"<<", ">>"} and number is not None and 0 <= number <= _LARGEST_SHIFT:
        power = constant(1 << number)
        return walk.number(left * power if sign == "<<" else quotient(left, power))
    if sign == "&" and number and number > 0 and (number + 1) & number == 0:
        return walk.number(remainder(left, constant(number + 1)))
    return walk.named(f"({left}) {sign} ({right})", "?", told)


def _is_small(left: Polynomial, right: Polynomial) -> bool:
    """Whether a product is worth to be multiplied out: squares of squares grow without an end."""
    if len(left.terms) * len(right.terms) > _MOST_PRODUCTS:
        return False
    degree = sum(max(map(len, one.terms), default=0) for one in (left, right))
    bits = sum(
        max((n.bit_length() for n in one.terms.values()), default=0) for one in (left, right)
    )
    return degree <= _MOST_FACTORS and bits <= _MOST_BITS


def _note_product(walk: Walk, left: Polynomial, right: Polynomial) -> None:
    """Note the order of factors, which a polynomial does not have."""
    if len(left.terms) == len(right.terms) == 1:
        (one,), (other,) = left.terms, right.terms
        known = walk.facts.products
        whole = (*known.get(one, one), *known.get(other, other))
        known.setdefault(tuple(sorted(whole, key=str)), whole)


def indicator(value: Value) -> Polynomial | None:
    """1 where a comparison of a remainder with 0 holds, else 0; None for any other value."""
    if isinstance(value, Polynomial):
        return is_left(value)
    if not isinstance(value, Condition) or len(value.holds) != 1 or value.holds[0].right:
        return None
    (guard,) = value.holds
    sign, found = guard.sign, is_left(guard.left)
    if found is None or sign not in {">", "!=", "=="}:
        return None
    return constant(1) - found if sign == "==" else found


def either(walk: Walk, first: Value, second: Value, test: Condition | None = None) -> Value:
    """One of two values, by a condition."""
    if first == second:
        return first
    holds, fails = (test.holds, test.fails) if test is not None else ((), ())
    if isinstance(first, Pointer) and isinstance(second, Pointer) and first.array == second.array:
        ways = Choice(((first.offset, holds), (second.offset, fails)))
        unit = first.unit if first.unit == second.unit else None
        return Pointer(first.array, walk.fresh("either", ways), unit, first.rows)
    if isinstance(first, Pointer) or isinstance(second, Pointer):
        for value in (first, second):
            walk.escape(value, "is one of two pointers")
        return None
    if isinstance(first, Record) and isinstance(second, Record):
        names = dict.fromkeys([name for name, _ in first.fields + second.fields])
        both = ((name, walk.member(first, name), walk.member(second, name)) for name in names)
        if first.path != second.path:
            walk.escape(first, "is one of two structs")
            walk.escape(second, "is one of two structs")
        return Record(
            first.path, first.type, tuple((name, either(walk, a, b, test)) for name, a, b in both)
        )
    if isinstance(first, Polynomial) and isinstance(second, Polynomial):
        ways = Choice(((first, holds), (second, fails)))
        if test is not None and test.text:
            return walk.named(f"{test.text} ? {first} : {second}", "either", ways)
        return walk.fresh("either", ways)
    return walk.fresh("either")


def join(
    walk: Walk,
    first: Mapping[int, Value],
    second: Mapping[int, Value],
    test: Condition | None = None,
) -> None:
    """What variables hold where two ways meet."""
    walk.store = {**first, **second}
    for key, value in first.items():
        other = second.get(key, value)
        if other is not value and other != value:
            walk.store[key] = either(walk, value, other, test)
