"""Draws of a draft: what each array is to hold so that the kernel comes to its end and tells faults."""

from __future__ import annotations

import re

from tokitai_cli.cpp.layout_relations import values_below
from tokitai_cli.cpp.size_words import in_sizes
from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.cpp.value_constraints import ValueConstraint
from tokitai_cli.drafts.known_facts import Known
from tokitai_cli.drafts.likely_values import value_of
from tokitai_cli.drafts.model import Flow

_BYTES = {"int8": (-127, 127), "uint8": (0, 255)}
# Second moments, variances and what is made of them.
_NOT_BELOW_0 = re.compile(r"_sq$|moment2|second|^var|variance|std$|norms?$|^rand", re.I)
_POSITIVE: Flow = {"kind": "uniform"}


def draw_of(known: Known, parameter: Parameter) -> Flow:
    """Draw of an array that is not N(0,1); empty for one that may be."""
    if parameter.kind == "structs":  # whole numbers in it may be indices, or no links yet
        told = known.values.constraint(known.path(parameter.name), 32, signed=True)
        return _constant(255 if told == ValueConstraint("fixed", -1) else 0)
    dtype = parameter.dtypes[0] if parameter.dtypes else ""
    if "float" in dtype:
        return _of_floats(known, parameter)
    return _of_whole(known, parameter, dtype) if "int" in dtype else {}


def draw_for_ending(known: Known, parameter: Parameter) -> Flow:
    """Draw of whole numbers with which loops, asserts and divisions do well; else empty."""
    dtype = parameter.dtypes[0] if parameter.dtypes else ""
    if parameter.kind == "structs" or "int" not in dtype:
        return {}
    array = known.path(parameter.name)
    told = known.values.constraint(array, bits_of(dtype), not dtype.startswith("u"))
    places = values_below(known.layouts, parameter.name)
    if told is None:
        return _divisors(known, array, places) if known.values.divides(array) else {}
    below = places or known.last
    if told.kind == "own":
        return {"kind": "arange"}
    fixed = _constant(_exactly(told.least or 0))
    if told.kind == "fixed":
        return fixed
    if told.kind == "slots":
        other = {"kind": "index-uniform", "below": below}
        return {"kind": "mix", "parts": [_part(fixed, 0.5), _part(other, 0.5)]}
    least = 0 if told.least is None else told.least
    most = f"max({least}, {below} - 1)" if told.most is None else told.most
    return {"kind": "uniform", "lo": least, "hi": most}


def _divisors(known: Known, array: str, places: str) -> Flow:
    """Draw of what the kernel divides by: 0 too where it tests that; empty where places have it."""
    if known.values.tests_zero(array):
        return {} if places else {"kind": "index-uniform", "below": known.last}
    return {"kind": "uniform", "lo": 1, "hi": f"max(1, {places} - 1)" if places else known.last}


def bits_of(dtype: str) -> int:
    """Bits of a whole number."""
    return int(re.findall(r"\d+", dtype)[0])


def _of_whole(known: Known, one: Parameter, dtype: str) -> Flow:
    """Draw of whole numbers: what the text asks, indices, offsets, what their type holds."""
    if re.search("mask", one.name, re.I):
        return {"kind": "index-uniform", "below": 2}
    if told := draw_for_ending(known, one):
        return told
    if end := _behind_last(known, one.name) or known.layouts.offsets_to(one.name):
        return {"kind": "offsets", "end": end}
    if below := values_below(known.layouts, one.name):
        places = {"kind": "index-uniform", "below": below}
        other = _no_place(known, one, dtype)
        return places if other is None else _beside(places, other)
    if is_packed(known, one.name):
        top = 1 << (bits_of(dtype) - (not dtype.startswith("u")))
        least = 0 if dtype.startswith("u") else -top
        return {"kind": "uniform", "lo": _exactly(least), "hi": _exactly(top - 1)}
    if dtype in _BYTES:
        return {"kind": "uniform", "lo": _BYTES[dtype][0], "hi": _BYTES[dtype][1]}
    return {"kind": "index-uniform", "below": 100 if "pos" in one.name else known.last}


def _behind_last(known: Known, array: str) -> str:
    """The size that stands in for the offset behind the last: `i + 1 < n ? at[i + 1] : total`."""
    said = known.paths_said
    told = (in_sizes(one, said) for one in known.values.behind_last(known.path(array)))
    return next(filter(None, told), "")


def is_packed(known: Known, array: str) -> bool:
    """Whether parts of an element's bits are taken apart, so that it is several small numbers."""
    return known.values.is_packed(known.path(array))


def _no_place(known: Known, one: Parameter, dtype: str) -> float | str | None:
    """A value of indices that the kernel tells from places: an argument's, or -1; None for none."""
    array = known.path(one.name)
    compared = known.values.compared_with(array)
    for number in known.numbers:
        if number.integer and known.path(number.name) in compared:
            return value_of(known, number).value
    signed = not dtype.startswith("u")
    return -1 if signed and known.values.tests_below_zero(array) else None


def _of_floats(known: Known, one: Parameter) -> Flow:
    """Draw of floats that rise, are not below 0, or are factors of bytes; empty for others."""
    array = known.path(one.name)
    bytes_ = any(set(other.dtypes) & {*_BYTES} for other in known.parameters if other.pointers)
    if bytes_ and re.search("scale|inv|dequant", one.name, re.I):
        return {"kind": "uniform", "lo": 0.001, "hi": 0.02}
    if known.roles.get(one.name) == "inputs" and known.values.is_bisected(array):
        return {"kind": "sorted", "lo": -3, "hi": 3}
    squares = one.name == "v" and "m" in known.roles
    rooted = known.roles.get(one.name) == "inout" and known.numerics.takes_root(array)
    is_place = known.values.indexes(array)
    if is_place and (below := values_below(known.layouts, one.name)):
        return {"kind": "uniform", "lo": 0, "hi": f"{below} - 0.5"}
    named = is_place or _NOT_BELOW_0.search(one.name)
    return _POSITIVE if squares or rooted or named else {}


def _beside(draw: Flow, value: float | str) -> Flow:
    """A draw with one value at some places."""
    return {"kind": "mix", "parts": [_part(draw, 0.8), _part(_constant(value), 0.2)]}


def _constant(value: Flow) -> Flow:
    return {"kind": "constant", "value": value}


def _part(draw: Flow, share: float) -> Flow:
    return {"draw": draw, "share": share}


def _exactly(value: int) -> int | str:
    """A whole number; as an expression where a float64 may not hold it."""
    bits = value.bit_length()
    return value if bits <= 53 else f"2 ** {bits} - {2**bits - value}"
