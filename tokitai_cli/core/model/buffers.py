"""What follows from a variant alone: its buffers by what becomes of them, and how they are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tokitai_cli.core.model.spec import Buffer, Draw, Expression, Spec, Variant


def passed_buffers(variant: Variant) -> dict[str, Buffer]:
    """Buffers that launches pass: all but symbols."""
    every = {**variant.inputs, **variant.outputs, **variant.inout, **variant.workspaces}
    return {name: buffer for name, buffer in every.items() if not buffer.symbol}


def symbols_of(variant: Variant) -> dict[str, Buffer]:
    """Variables of the source that hold buffers, by their names there, as a case has them in turn."""
    written = (*variant.outputs.values(), *variant.inout.values())
    return {one.symbol: one for one in written if one.symbol} | variant.symbols


def listed(variant: Variant, name: str) -> list[str]:
    """Arrays that the list `name` points into: those of its names, or the one that it has slices of."""
    given = variant.lists[name]
    return [given] if isinstance(given, str) else list(given)


def leaves_of(
    fields: Mapping[str, Any] | Sequence[Any], path: str = ""
) -> Iterator[tuple[str, Expression]]:
    """Every place of a struct, or of several, with what stands there: ".n", ".dims[1]", "[0].n"."""
    if not isinstance(fields, Mapping):
        for number, one in enumerate(fields):
            yield from leaves_of(one, f"{path}[{number}]")
        return
    for name, value in fields.items():
        here = f"{path}.{name}"
        parts = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, part in parts:
            place = here if index is None else f"{here}[{index}]"
            if isinstance(part, dict):
                yield from leaves_of(part, place)
            else:
                yield place, part


def drawn_buffers(variant: Variant) -> dict[str, Buffer]:
    """Buffers whose contents are drawn: inputs, in-outs and symbols, in this order."""
    return {**variant.inputs, **variant.inout, **variant.symbols}


def draw_of(spec: Spec, variant: Variant, profile: str, name: str) -> Draw:
    """How `profile` fills the drawn buffer `name`: profile.inputs, buffer.draw, profile.draw.

    A profile that says nothing of a buffer draws the kind that it is named after. KeyError for a
    profile or buffer that the spec does not have.
    """
    given = spec.profiles[profile]
    chosen = given.inputs.get(name) or drawn_buffers(variant)[name].draw or given.draw or profile
    return Draw(kind=chosen) if isinstance(chosen, str) else chosen
