"""What an unquoted YAML scalar means: YAML 1.2 numbers, and errors where YAML 1.1 surprises."""

from __future__ import annotations

import math
import re

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS = {
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_FIRST = frozenset("0123456789+-.")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_BASED = re.compile(r"0(?:x[0-9a-fA-F]+|o[0-7]+|b[01]+)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)")
_NAN = frozenset({".nan", ".NaN", ".NAN"})
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
_UNDERSCORED = re.compile(r"[-+]?\.?[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9_]+)?")
_UNDERSCORED_BASE = re.compile(r"0[xob][0-9a-fA-F_]+")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?")

Plain = None | bool | int | float | str


class SurpriseError(ValueError):
    """An unquoted scalar that readers of YAML disagree about: the message, and the mend."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def plain(text: str) -> Plain:
    """Value of an unquoted scalar. yes, no, on, off stay text; raises SurpriseError."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if text[0] not in _FIRST:
        return text
    if _INTEGER.fullmatch(text):
        return _integer(text, 10)
    if _BASED.fullmatch(text):
        return _integer(text, 0)
    _refuse_surprises(text)
    if _FLOAT.fullmatch(text):
        value = float(text)
        if math.isinf(value):
            raise SurpriseError(f"{text} is too large for a number", "use .inf for infinity")
        return value
    if _INFINITE.fullmatch(text):
        return -math.inf if text[0] == "-" else math.inf
    return math.nan if text in _NAN else text


def _integer(text: str, base: int) -> int:
    # More digits than any 64-bit number has: int() itself would refuse some thousands of them.
    value = int(text, base) if len(text) <= 80 else 1 << 64
    if not -(2**63) <= value < 2**64:
        raise SurpriseError(f"{text[:40]} does not fit 64 bits", "use a smaller number")
    return value


def _refuse_surprises(text: str) -> None:
    if _LEADING_ZERO.fullmatch(text):
        decimal = str(int(text[:80]))
        raise SurpriseError(
            f"{text[:40]} has a leading zero, which some YAML readers take for base 8",
            f"write {decimal}, or put it in quotes if it is text",
        )
    if "_" in text and (_UNDERSCORED.fullmatch(text) or _UNDERSCORED_BASE.fullmatch(text)):
        raise SurpriseError(
            f"{text[:40]} is a number to some YAML readers and text to others",
            f"write {text[:40].replace('_', '')}, or put it in quotes if it is text",
        )
    if _SEXAGESIMAL.fullmatch(text):
        raise SurpriseError(
            f"{text[:40]} is a base-60 number to some YAML readers and text to others",
            "write the number in full, or put it in quotes if it is text",
        )
    if _DATE.fullmatch(text):
        raise SurpriseError(
            f"{text[:40]} is a date to some YAML readers and text to others",
            "put it in quotes",
        )
