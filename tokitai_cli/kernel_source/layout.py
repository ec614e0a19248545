"""Sizes of types as a C++ compiler lays them out, as far as the text says them."""

from __future__ import annotations

import re

from tokitai_cli.kernel_source.signatures import Parameter, fields_of
from tokitai_cli.kernel_source.take import Program
from tokitai_cli.kernel_source.types import lanes

_POINTER = (8, 8)
_WIDEST = 16  # alignment of a vector


def bytes_of(program: Program, one: Parameter) -> tuple[int, int] | None:
    """Bytes and alignment of what a parameter or field is, of a pointer to structs those of a struct.

    None where it is not known.
    """
    if one.pointers and one.kind != "structs":
        return _POINTER
    if one.kind in {"struct", "structs"} and lanes(one.type) == 1:
        return _struct(program, one.type)
    if not one.dtypes:
        return None
    bits = re.search(r"\d+", one.dtypes[0])
    single = int(bits[0]) // 8 if bits else 1
    count = lanes(one.type)
    aligned = single if count == 3 else single * count
    return single * count, min(aligned, _WIDEST)


def _struct(program: Program, name: str) -> tuple[int, int] | None:
    fields = fields_of(program, name)
    if not fields:
        return None
    size, widest = 0, 1
    for field, extent in fields:
        pointer = field.pointers or field.kind == "structs"
        known = _POINTER if pointer else bytes_of(program, field)
        if known is None:
            return None
        size = -(-size // known[1]) * known[1] + known[0] * max(1, extent)
        widest = max(widest, known[1])
    return -(-size // widest) * widest, widest
