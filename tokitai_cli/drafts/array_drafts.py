"""Arrays of a draft: dtype and shape, and what is guessed of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tokitai_cli.core import expressions
from tokitai_cli.core.dtypes import numpy_dtype
from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.drafts.host_memory import allocated_for
from tokitai_cli.drafts.known_facts import Known
from tokitai_cli.drafts.model import ArrayDraft
from tokitai_cli.drafts.reaching import STRUCT_BYTES, count
from tokitai_cli.drafts.sizing import Sizing

_DIMENSIONS = 8  # that an array of a spec has at most
_DOES = {"inputs": "only reads", "outputs": "only writes", "inout": "reads and writes"}


def array_draft(
    known: Known, sizing: Sizing, parameter: Parameter, shapes: Sequence[Mapping[str, int]]
) -> ArrayDraft:
    """An array of the spec; shapes: those of its suites."""
    if parameter.name in known.leaves.variables:
        return _variable(known, parameter)
    if extents := known.texture_extents.get(parameter.name):
        inner = known.leaves.inner.get(parameter.name, 0)
        return ArrayDraft(
            role="inputs",
            dtype=parameter.dtypes[0],
            extents=tuple(extents),
            inner=inner,
            why="its shape",
        )
    guess, said = "its shape" if parameter.dtypes else "its shape and dtype", known.layouts.said
    if any(parameter.name == other.array for other in known.leaves.accessors):
        guess += ", with rows one behind the other"
    elif parameter.name in said:
        guess += ", according to its comment"
    structs = parameter.kind == "structs"
    if structs:
        guess = f"its shape, the last extent the bytes of a {parameter.type}"
    role = known.roles[parameter.name]
    does = (
        "keeps the elements after its rows"
        if parameter.name in known.padded
        else f"{_DOES[role]} it"
    )
    rows = 2 if parameter.name in known.leaves.rows else 0
    inner = known.leaves.inner.get(parameter.name, STRUCT_BYTES if structs else 0)
    sizes = [size.name for size in known.sizes[:3]] or ["elements"]
    extents = known.layouts.shape(parameter.name)[-(_DIMENSIONS - bool(rows) - bool(inner)) :]
    room = sizing.room(parameter.name, extents, shapes)
    doing = "" if parameter.const else f"that the kernel {does}"
    if (
        parameter.dtypes
        and not (room or rows or inner)
        and _is_allocated(known, parameter, extents)
    ):
        guess = ""
    return ArrayDraft(
        role=role,
        dtype="uint8" if structs else next(iter(parameter.dtypes), "float32"),
        rows=rows,
        extents=(room,) if room else tuple(extents or sizes),
        inner=inner,
        why=guess,
        room="may reach" if room else "",
        strides=tuple(extents),
        does=f", and {doing}" if guess and doing else doing,
        structs=structs,
    )


def _is_allocated(known: Known, parameter: Parameter, extents: Sequence[str]) -> bool:
    """Whether the host allocates just these extents, at the sizes that it has as numbers."""
    host = {**known.host_values, **known.at_host}
    sizes = {name for one in extents for name in expressions.names_in(one)}
    known_sizes = extents and sizes <= host.keys() and not known.origin.room
    told = allocated_for(known.launch, known.leaves).get(parameter.name) if known_sizes else None
    elements = math.prod(count(one, host) for one in extents)
    return told == elements * numpy_dtype(parameter.dtypes[0]).itemsize


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
