"""Settings that every case has alike, made to follow from a param that a suite varies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tokitai_cli.adequacy.advice.edit import Advice, Edit
from tokitai_cli.adequacy.advice.made_params import Made, free_name, of_decimals, of_whole
from tokitai_cli.adequacy.advice.suite_shapes import suite_of
from tokitai_cli.adequacy.advice.tested_numbers import Untested, untested
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.case import LoadedSpec


def of_settings(loaded: LoadedSpec) -> Iterator[Advice]:
    """Advice for each scalar that is one number, the same in all variants or not: of floats for any, of
    whole numbers and flags for one that a kernel branches on.
    """
    taken = set(loaded.spec.names)
    asked = {name: untested(loaded, name) for name in loaded.spec.variants}
    for (key, value), variants in _fixed(loaded, asked).items():
        scalar = loaded.spec.variants[variants[0]].scalars[key]
        ways = [one for name in variants for one in asked[name] if one.passed.text == key]
        shown = f"{value:g}" if scalar.dtype in FORMATS else str(scalar.value).lower()
        said = f"{', '.join(variants)}: {key} is {shown} in every case"
        said = "; ".join([said, *dict.fromkeys(f"{one.at} tests {one.way.words}" for one in ways)])
        values = list(dict.fromkeys(one.way.value for one in ways))
        make = of_decimals if scalar.dtype in FORMATS else of_whole
        made = make(key, value, values)
        if made is None:
            yield Advice(f"{said}; let its value follow from a param")
            continue
        free = free_name(made.name, taken)
        taken.add(free)
        yield Advice(said, tuple(_edits(loaded, key, variants, free, made)))


def _fixed(
    loaded: LoadedSpec, asked: Mapping[str, Sequence[Untested]]
) -> dict[tuple[str, float], list[str]]:
    """Variants of each scalar that is one number, by its name and value."""
    found: dict[tuple[str, float], list[str]] = {}
    for name, variant in loaded.spec.variants.items():
        tested = {one.passed.text for one in asked[name]}
        for key, scalar in variant.scalars.items():
            if isinstance(scalar.value, str) or not (scalar.dtype in FORMATS or key in tested):
                continue
            if math.isfinite(scalar.value):
                found.setdefault((key, float(scalar.value)), []).append(name)
    return found


def _edits(
    loaded: LoadedSpec, key: str, variants: Sequence[str], param: str, made: Made
) -> Iterator[Edit]:
    """A scalar made to follow from a param, and shapes at which that is another."""
    yield Edit(("params", param), made.param)
    for one in variants:
        at = ("variants", one, "scalars", key, "value")
        yield Edit(at, made.expression.replace(made.name, param), instead=True)
    for other, why in made.others:
        shape: dict[str, Any] = {"shape": {param: other}, "why": why}
        if len(variants) < len(loaded.spec.variants):
            shape["variants"] = variants
        yield Edit(("suites", suite_of(loaded)), shape, appended=True)


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
