"""Settings that every case has alike, made to follow from a param that a suite varies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from tokitai_cli.adequacy.advice.edit import Advice, Edit
from tokitai_cli.adequacy.advice.suite_shapes import suite_of
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.case import LoadedSpec

# Largest denominator of a decimal number that a param counts the parts of.
_PARTS = 10**6


def of_settings(loaded: LoadedSpec) -> Iterator[Advice]:
    """Advice for each scalar of floats that is one number, the same in all variants or not."""
    spec, taken = loaded.spec, set(loaded.spec.names)
    found: dict[tuple[str, float], list[str]] = {}
    for name, variant in spec.variants.items():
        for key, scalar in variant.scalars.items():
            if isinstance(scalar.value, str | bool) or scalar.dtype not in FORMATS:
                continue
            if math.isfinite(scalar.value):
                found.setdefault((key, float(scalar.value)), []).append(name)
    for (key, value), variants in found.items():
        said = f"{', '.join(variants)}: {key} is {value:g} in every case"
        made = _param(key, value)
        if made is None:
            yield Advice(f"{said}; let its value follow from a param")
            continue
        name, param, expression, other = made
        names = (name, *(f"{name}_{index}" for index in range(2, 99)))
        free = next(one for one in names if one not in taken)
        taken.add(free)
        shape: dict[str, Any] = {"shape": {free: other}, "why": f"another {key}"}
        if len(variants) < len(spec.variants):
            shape["variants"] = variants
        edits = [Edit(("params", free), param)]
        for one in variants:
            at = ("variants", one, "scalars", key, "value")
            edits.append(Edit(at, expression.replace(name, free), instead=True))
        edits.append(Edit(("suites", suite_of(loaded)), shape, appended=True))
        yield Advice(said, tuple(edits))


def of_wide_integers(loaded: LoadedSpec) -> Iterator[Advice]:
    """Advice for each scalar of 64 bits, a seed or an offset, whose upper half is 0 in every case."""
    taken = set(loaded.spec.names)
    for name, variant in loaded.spec.variants.items():
        for key, scalar in variant.scalars.items():
            value = scalar.value
            if scalar.dtype not in ("int64", "uint64") or isinstance(value, str | float | bool):
                continue
            if not 0 <= value < 2**32:
                continue
            said = (
                f"{name}: {key} is below 2^32 in every case: a kernel that ignores its upper "
                "half would pass"
            )
            high = f"{key}_high"
            if high in taken:
                yield Advice(f"{said}; add 2 ** 32 in some shape")
                continue
            taken.add(high)
            param = {"default": 0, "min": 0, "max": 2**30, "help": f"upper half of {key}"}
            shape = {"shape": {high: 5}, "why": f"{key} above 2^32", "variants": [name]}
            at = ("variants", name, "scalars", key, "value")
            yield Advice(
                said,
                (
                    Edit(("params", high), param),
                    Edit(at, f"{high} * 2 ** 32 + {value}", instead=True),
                    Edit(("suites", suite_of(loaded)), shape, appended=True),
                ),
            )


def _param(name: str, value: float) -> tuple[str, dict[str, Any], str, int] | None:
    """A param by which the number is written, the expression of it, and another value of the param."""
    exact = Fraction(repr(value))
    for digits in range(1, 13):
        if exact == Fraction(1, 10**digits):
            param = {"default": digits, "help": f"{name} is 10 to the power of minus it"}
            return (
                f"{name}_digits",
                param,
                f"10 ** -{name}_digits",
                max(1, digits - 2) if digits > 1 else 2,
            )
    parts = 10
    while parts < _PARTS and (exact * parts).denominator != 1:
        parts *= 10
    whole = exact * parts
    if whole.denominator != 1 or abs(whole) > 2**31:
        return None
    count = int(whole)
    other = count // 2 if count // 2 != count else parts // 2
    param = {"default": count, "min": min(count, other), "help": f"{name} in parts of {parts}"}
    return f"{name}_parts", param, f"{name}_parts / {parts}", other
