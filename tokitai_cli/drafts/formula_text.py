"""Text of formula.py: a function that raises until its body is written."""

from __future__ import annotations

import keyword
import re

from tokitai_cli.core.dtypes import DTYPES, FORMATS
from tokitai_cli.cpp.layout_relations import padded
from tokitai_cli.drafts.known_facts import Known
from tokitai_cli.spec.reader.gaps import GAP


def formula_text(known: Known) -> str:
    """The function's names are those of the spec; comments say what numpy has no word for."""
    name = known.kernel.name
    lines = [
        *("import numpy as np", "", ""),
        f"def {function_of(known)}(params, inputs, scalars):",
        f'    """What {name} computes, in numpy."""',
    ]
    read = [one for one, role in known.roles.items() if role != "outputs"]
    sizes, numbers = ([one.name for one in told] for told in (known.sizes, known.numbers))
    for role, names in (("inputs", read), ("params", sizes), ("scalars", numbers)):
        lines += [f'    {local(one)} = {role}["{one}"]' for one in names]
    lines += [
        f"    # {one} is added to: its previous content is one more term of the sum"
        for one in added_to(known)
        if known.roles.get(one) == "inout"
    ]
    lines += [
        f"    # {one} is stored in {dtype} and read again: continue with"
        f' stored({local(one)}, "{dtype}") from tokitai_cli.formula'
        for one, dtype in _narrow(known)
    ]
    lines += [
        f"    # {one} keeps the elements after its rows: {so}" for one, so in known.padded.items()
    ]
    told = ", ".join(
        f'"{one}": ...' for one, role in known.roles.items() if role in {"outputs", "inout"}
    )
    lines += [
        f"    {GAP} in place of the next line, return {{{told}}}, each with the shape of its array",
        f'    raise NotImplementedError("write here what {name} computes")',
    ]
    return "\n".join(lines) + "\n"


def function_of(known: Known) -> str:
    """Name of the function."""
    return local(re.sub(r"\W", "_", known.kernel.name))


def local(name: str) -> str:
    """A name for it in the formula: no word of Python's, nor one that stands there already."""
    taken = keyword.iskeyword(name) or name in ("np", "params", "inputs", "scalars")
    return f"{name}_" if taken else name


def added_to(known: Known) -> list[str]:
    """Arrays of floats that are added to with atomics."""
    return [
        one.name for one in known.parameters
        if one.pointers and one.dtypes and "float" in one.dtypes[0]
        and known.subject.reading.is_added_to(one.name)
    ]  # fmt: skip


def kept_behind_rows(known: Known) -> dict[str, str]:
    """How numpy says what outputs with rows longer than what is written keep behind it."""
    found = {}
    for name in (one for one, role in known.roles.items() if role == "outputs"):
        axis, end = padded(known.layouts, name) if name in known.layouts.arrays else (0, "")
        if end:
            kept = f"{local(name)}[{':, ' * axis}{local(end)}:]"
            found[name] = f"np.concatenate([new, {kept}], axis={axis})"
    return found


def _narrow(known: Known) -> list[tuple[str, str]]:
    """Written arrays of a narrow float that the kernel goes on from, and their dtypes."""
    return [
        (one.name, one.dtypes[0])
        for one in known.written
        if one.dtypes
        and one.dtypes[0] in FORMATS
        and DTYPES[one.dtypes[0]].nbytes < DTYPES["float32"].nbytes
        and known.subject.reading.reads_back(one.name)
    ]
