"""Arrays of a draft: dtype and shape, and what is guessed of them."""

from __future__ import annotations

from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.drafts.known import Known
from tokitai_cli.drafts.model import ArrayDraft
from tokitai_cli.drafts.reaching import STRUCT_BYTES
from tokitai_cli.drafts.sizing import Sizing

_DIMENSIONS = 8  # that an array of a spec has at most
_DOES = {"inputs": "only reads", "outputs": "only writes", "inout": "reads and writes"}


def array_draft(known: Known, sizing: Sizing, one: Parameter) -> ArrayDraft:
    """An array of the spec."""
    if one.name in known.leaves.variables:
        return _variable(known, one)
    guess, said = "its shape" if one.dtypes else "its shape and dtype", known.text.said
    if any(one.name == other.array for other in known.leaves.accessors):
        guess += ", with rows one behind the other"
    elif one.name in said:
        guess += ", its comment says so"
    structs = one.kind == "structs"
    if structs:
        guess = f"its shape, the last extent the bytes of a {one.type}"
    role = known.roles[one.name]
    does = "keeps what lies behind its rows" if one.name in known.padded else f"{_DOES[role]} it"
    rows = 2 if one.name in known.leaves.rows else 0
    inner = known.leaves.inner.get(one.name, STRUCT_BYTES if structs else 0)
    sizes = [size.name for size in known.sizes[:3]] or ["elements"]
    extents = known.text.shape(one.name)[-(_DIMENSIONS - bool(rows) - bool(inner)) :]
    room = sizing.room(one.name, extents)
    return ArrayDraft(
        role=role,
        dtype="uint8" if structs else next(iter(one.dtypes), "float32"),
        rows=rows,
        extents=(room,) if room else tuple(extents or sizes),
        inner=inner,
        why=guess,
        room="may reach" if room else "",
        strides=tuple(extents),
        does="" if one.const else f", and that the kernel {does}",
        structs=structs,
    )


def _variable(known: Known, one: Parameter) -> ArrayDraft:
    """An array that is a variable of the source: its shape is certain."""
    variable, exact, role = known.leaves.variables[one.name]
    return ArrayDraft(
        role=role,
        dtype=next(iter(one.dtypes), "float32"),
        extents=tuple(exact),
        symbol=variable.qualified if role != "symbols" else "",
        why=f"that the kernel {_DOES[role]} it" if role != "symbols" else "",
    )
