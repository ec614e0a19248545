"""Params by which numbers of a spec are written, so that suites vary them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

# Largest denominator of a decimal number that a param counts the parts of.
_PARTS = 10**6


def free_name(name: str, taken: Iterable[str]) -> str:
    """The name, or it with a number, where others have it already."""
    names = (name, *(f"{name}_{index}" for index in range(2, 99)))
    return next(one for one in names if one not in {*taken})


class Made(NamedTuple):
    """A param by which a number is written, how it is, and other values of it with the reasons."""

    name: str
    param: dict[str, Any]
    expression: str
    others: list[tuple[int, str]]


def of_decimals(name: str, value: float, tested: Sequence[float]) -> Made | None:
    """Of a number with decimals. tested: values that are to be among the others."""
    exact = Fraction(repr(value))
    for digits in range(1, 13) if not tested else ():
        if exact == Fraction(1, 10**digits):
            param = {"default": digits, "help": f"{name} is 10 to the power of minus it"}
            other = max(1, digits - 2) if digits > 1 else 2
            key = f"{name}_digits"
            return Made(key, param, f"10 ** -{key}", [(other, f"another {name}")])
    every, parts = [exact, *(Fraction(repr(float(one))) for one in tested)], 10
    while parts < _PARTS and any((one * parts).denominator != 1 for one in every):
        parts *= 10
    if any((one * parts).denominator != 1 or abs(one * parts) > 2**31 for one in every):
        return None
    count, *counts = (int(one * parts) for one in every)
    other = count // 2 if count // 2 != count else parts // 2
    others = [] if other in counts else [(other, f"another {name}")]
    others += [(one, f"{name} is {at:g}") for one, at in zip(counts, tested, strict=True)]
    return _counted(f"{name}_parts", count, others, f"{name} in parts of {parts}", parts)


def of_whole(name: str, value: float, tested: Sequence[float]) -> Made | None:
    """Of a whole number, or a flag."""
    if not all(one.is_integer() and abs(one) <= 2**31 for one in map(float, (value, *tested))):
        return None
    others = [(int(one), f"{name} is {one:g}") for one in tested]
    return _counted(f"{name}_value", int(value), others, name, 1)


def _counted(
    name: str, value: int, others: Sequence[tuple[int, str]], told: str, parts: int
) -> Made:
    """A param that counts from 0, of which as much is taken away as makes it the least of the values."""
    least = min(value, *(one for one, _ in others))
    less = max(0, -least)
    told += f", plus {less}" if less else ""
    param = {"default": value + less, "min": least + less, "help": told}
    own = f"{name} - {less}" if less else name
    if parts > 1:
        own = f"({own}) / {parts}" if less else f"{own} / {parts}"
    return Made(name, param, own, [(one + less, why) for one, why in others])
