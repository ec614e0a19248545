"""What a walk over a kernel's body tells of its arrays, in a spec's names."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tokitai_cli.cpp.body.polynomial import Atom, Polynomial, Quotient
from tokitai_cli.cpp.body.reader import read, roles
from tokitai_cli.cpp.body.values import Facts
from tokitai_cli.cpp.body.walk import row_of
from tokitai_cli.cpp.shapes import shape_of
from tokitai_cli.cpp.source.extract import Program
from tokitai_cli.cpp.source.signatures import Kernel, Parameter
from tokitai_cli.cpp.source.variables import Variable

_ROLES = {
    "none": "inputs",
    "read": "inputs",
    "write": "outputs",
    "update": "inout",
    "part": "inout",
}


def facts_of(program: Program, kernel: Kernel, arguments: Mapping[str, str]) -> Facts:
    """What the kernel's body does; nothing where the tree does not have it.

    arguments: of its template, by the parameters' names.
    """
    for tree in program.trees:
        for one in tree.by_name.get(kernel.name, ()):
            same = one.kind == "kernel" and len(one.parameters) == len(kernel.parameters)
            if same and tree.place(one.outer) == (kernel.file, kernel.line):
                return read(tree, one, given=arguments)
    return Facts([], {}, [], {}, frozenset())


class Reading:
    """Roles and shapes of a draft's arrays.

    paths: how the kernel's text calls each array and number of the spec, `mesh.edges.next`.
    """

    def __init__(self, facts: Facts, paths: Mapping[str, str]) -> None:
        self._facts = facts
        self._paths = paths
        self._roles = roles(self._facts)

    def role(self, one: Parameter) -> str:
        """inputs, outputs or inout; inout where the body does not decide it, but of what is const."""
        path = self._paths.get(one.name, "")
        array, opened, index = path.removesuffix("]").partition("[")
        known = self._roles if not opened else roles(self._of_row(array, int(index)))
        told = known.get(array, "unknown")
        return _ROLES.get(told, "inputs" if one.const else "inout")

    def _of_row(self, array: str, index: int) -> Facts:
        """What is done with the array that one of several pointers leads to."""
        found = []
        for one in self._facts.accesses:
            parts = one.offset.linear(row_of(array)) if one.array == array else None
            number = parts[0].number if parts is not None else None
            if number is None or number == index:
                found.append(one)
        return msgspec.structs.replace(self._facts, accesses=found)

    def variable(self, one: Variable) -> str:
        """symbols, outputs or inout of a variable of the program; empty where the kernel has it not."""
        told = self._roles.get(one.element.name, "")
        if not told or one.constant:
            return "symbols" if told else ""
        return {"read": "symbols", "none": "symbols", "write": "outputs"}.get(told, "inout")

    def shape(self, name: str, sizes: Mapping[str, str]) -> list[str]:
        """Extents, the outermost first; empty where accesses do not tell them.

        sizes: how the spec says whole numbers of the kernel's, by their names.
        """
        array = self._paths.get(name)
        if array is None or array in self._facts.escapes or self._facts.undecided:
            return []
        found = shape_of([one for one in self._facts.accesses if one.array == array])
        if isinstance(found, str):
            return []
        names = {self._paths[one]: said for one, said in sizes.items() if one in self._paths}
        extents = [_text(one, names) for one in found]
        return extents if all(extents) else []


def _text(extent: Polynomial, names: Mapping[str, str]) -> str:
    """An extent in the language of sizes; empty where it has names that the spec does not."""
    parts = []
    for key, count in sorted(extent.terms.items(), key=lambda one: -len(one[0])):
        factors = [_atom(atom, names) for atom in key]
        if len(key) > 1 or abs(count) != 1:
            factors = [f"({one})" if "//" in one else one for one in factors]
        if not all(factors):
            return ""
        number = [str(abs(count))] if abs(count) != 1 or not key else []
        parts.append(("-" if count < 0 else "+") + " " + " * ".join([*number, *factors]))
    text = " ".join(parts).removeprefix("+ ")
    return text if not text.startswith("-") else ""


def _atom(atom: Atom, names: Mapping[str, str]) -> str:
    if not isinstance(atom, Quotient):
        return names.get(atom, "")
    above, below = _text(atom.dividend, names), _text(atom.divisor, names)
    return f"{_grouped(above)} // {_grouped(below)}" if above and below else ""


def _grouped(text: str) -> str:
    return f"({text})" if " " in text else text
