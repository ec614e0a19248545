"""Structs that a spec fills, held against their fields as the kernel's source declares them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tokitai_cli.core.model.spec import Expression
from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.cpp.source.struct_layout import certain_fields
from tokitai_cli.cpp.whole import Program


class FieldValue(NamedTuple):
    """What a spec puts at a place of a struct: ".n", ".dims[1]", and the field there, if it is known."""

    at: str
    value: Expression
    #: The struct's that has the field.
    type: str = ""
    field: Parameter | None = None
    #: Its fields, where it has none of that name.
    names: tuple[str, ...] = ()


def places(
    program: Program | None,
    fields: Mapping[str, Any] | Sequence[Any],
    type_name: str,
    path: str = "",
) -> Iterator[FieldValue]:
    """Every place of a struct of that type, or of several, that the spec fills."""
    if not isinstance(fields, Mapping):
        for number, one in enumerate(fields):
            yield from places(program, one, type_name, f"{path}[{number}]")
        return
    known = certain_fields(program, type_name) if program is not None and type_name else None
    for name, value in fields.items():
        field = known.get(name) if known is not None else None
        if known is not None and field is None:
            yield FieldValue(f"{path}.{name}", "", type_name, None, tuple(known))
            continue
        parts = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, part in parts:
            here = f"{path}.{name}" + (f"[{index}]" if index is not None else "")
            if isinstance(part, dict):
                inner = field.type if field is not None and field.kind == "struct" else ""
                yield from places(program, part, inner, here)
            else:
                yield FieldValue(here, part, type_name, field)
