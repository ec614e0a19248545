"""Draws of a draft: what each array is to hold so that the kernel comes to its end and tells faults."""

from __future__ import annotations

import re

from tokitai_cli.cpp.indices.value_constraints import ValueConstraint
from tokitai_cli.cpp.source.macros import closing
from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.drafts.known_facts import Known
from tokitai_cli.drafts.likely_values import value_of
from tokitai_cli.drafts.model import Flow

_BYTES = {"int8": (-127, 127), "uint8": (0, 255)}
# Second moments, variances and what is made of them.
_NOT_BELOW_0 = re.compile(r"_sq$|moment2|second|^var|variance|std$|norms?$|^rand", re.I)
_ROOT = re.compile(r"\b(?:__f)?r?sqrt(?:_rn)?f?\s*(?=\()")
_MADE = 3  # steps from an element to a root
_POSITIVE: Flow = {"kind": "uniform"}


def draw_of(known: Known, parameter: Parameter) -> Flow:
    """Draw of an array that is not N(0,1); empty for one that may be."""
    if parameter.kind == "structs":  # whole numbers in it may be indices, or no links yet
        nothing = known.values.constraint(parameter.name, 32, signed=True) == ValueConstraint(
            "fixed", -1
        )
        return _constant(255 if nothing else 0)
    dtype = parameter.dtypes[0] if parameter.dtypes else ""
    if "float" in dtype:
        return _of_floats(known, parameter)
    return _of_whole(known, parameter, dtype) if "int" in dtype else {}


def draw_for_ending(known: Known, parameter: Parameter) -> Flow:
    """Draw of whole numbers with which loops, asserts and divisions do well; else empty."""
    dtype = parameter.dtypes[0] if parameter.dtypes else ""
    if parameter.kind == "structs" or "int" not in dtype:
        return {}
    told = known.values.constraint(parameter.name, bits_of(dtype), not dtype.startswith("u"))
    if told is None:
        divides = known.values.divides(parameter.name)
        return {"kind": "uniform", "lo": 1, "hi": known.last} if divides else {}
    below = known.text.values_below(parameter.name) or known.last
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


def bits_of(dtype: str) -> int:
    """Bits of a whole number."""
    return int(re.findall(r"\d+", dtype)[0])


def _of_whole(known: Known, one: Parameter, dtype: str) -> Flow:
    """Draw of whole numbers: what the text asks, indices, offsets, what their type holds."""
    if re.search("mask", one.name, re.I):
        return {"kind": "index-uniform", "below": 2}
    if told := draw_for_ending(known, one):
        return told
    if end := _behind_last(known, one.name) or known.text.offsets_to(one.name):
        return {"kind": "offsets", "end": end}
    if below := known.text.values_below(one.name):
        places = {"kind": "index-uniform", "below": below}
        left = [number for number in known.numbers if _means(known, number, one.name)]
        if not left:
            return places
        other = _constant(value_of(known, left[0]).value)
        return {"kind": "mix", "parts": [_part(places, 0.8), _part(other, 0.2)]}
    if is_packed(known, one.name):
        top = 1 << (bits_of(dtype) - (not dtype.startswith("u")))
        least = 0 if dtype.startswith("u") else -top
        return {"kind": "uniform", "lo": _exactly(least), "hi": _exactly(top - 1)}
    if dtype in _BYTES:
        return {"kind": "uniform", "lo": _BYTES[dtype][0], "hi": _BYTES[dtype][1]}
    return {"kind": "index-uniform", "below": 100 if "pos" in one.name else known.last}


def _behind_last(known: Known, array: str) -> str:
    """The size that stands in for the offset behind the last: `i + 1 < n ? at[i + 1] : total`."""
    sizes = "|".join(re.escape(one.name) for one in known.sizes) or "(?!)"
    told = re.search(rf"\?\s*{array}\s*\[[^\]]*\+\s*1\s*\]\s*:\s*({sizes})\b", known.text.body)
    return told[1] if told else ""


def is_packed(known: Known, array: str) -> bool:
    """Whether parts of an element's bits are taken apart, so that it is several small numbers."""
    body = known.text.body
    held = re.findall(rf"\b(\w+)\s*=(?!=)\s*(?:__ldg\s*\(\s*&\s*)?{array}\s*\[", body)
    words = "|".join([rf"{array}\s*\[[^\[\];]*\]", *(rf"{one}\b" for one in held)])
    taken = rf"(?<![\w.])(?:{words})\s*\)?\s*(?:>>|&\s*(?:0x[0-9a-fA-F]+|\d+))"
    return bool(re.search(taken, body))


def _means(known: Known, number: Parameter, array: str) -> bool:
    """Whether a value of the array that equals the number means something else than a place."""
    compared = rf"(\w+)\s*[!=]=\s*{number.name}\b|\b{number.name}\s*[!=]=\s*(\w+)"
    found = (one or other for one, other in re.findall(compared, known.text.body))
    return number.integer and any(
        re.search(rf"\b{name}\s*=\s*{array}\s*\[", known.text.body) for name in found
    )


def _of_floats(known: Known, one: Parameter) -> Flow:
    """Draw of floats that are not below 0, or are factors of bytes; empty for others."""
    whole = rf"\(\s*(?:unsigned\s+)?int\s*\)\s*\(?[^;]*(?<![\w.]){one.name}\s*\["  # an index
    bytes_ = any(set(other.dtypes) & {*_BYTES} for other in known.parameters if other.pointers)
    if bytes_ and re.search("scale|inv|dequant", one.name, re.I):
        return {"kind": "uniform", "lo": 0.001, "hi": 0.02}
    squares = one.name == "v" and "m" in known.roles
    rooted = known.roles.get(one.name) == "inout" and _is_rooted(known.text.body, one.name)
    named = _NOT_BELOW_0.search(one.name) or re.search(whole, known.plain)
    return _POSITIVE if squares or rooted or named else {}


def _is_rooted(body: str, array: str) -> bool:
    """Whether a root is taken of what becomes of an array in place, as of second moments."""
    ends = ((one.end(), closing(body, one.end())) for one in _ROOT.finditer(body))
    texts = [body[begin:end] for begin, end in ends if end > begin]
    for _ in range(_MADE):
        names = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*(?!\w*\s*[\[(])", " ".join(texts)))
        texts += [
            told for name in names
            for told in re.findall(rf"(?<![\w.]){name}\s*=(?!=)([^;]*);", body) if told not in texts
        ]  # fmt: skip
    return any(re.search(rf"(?<![\w.]){array}\s*\[", one) for one in texts)


def _constant(value: Flow) -> Flow:
    return {"kind": "constant", "value": value}


def _part(draw: Flow, share: float) -> Flow:
    return {"draw": draw, "share": share}


def _exactly(value: int) -> int | str:
    """A whole number; as an expression where a float64 may not hold it."""
    bits = value.bit_length()
    return value if bits <= 53 else f"2 ** {bits} - {2**bits - value}"
