"""What a walk over a kernel's body tells of its arrays, in a spec's names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from tokitai_cli.cpp.body.reader import roles
from tokitai_cli.cpp.body.symbolic_values import Access, Facts
from tokitai_cli.cpp.body.walk import row_of
from tokitai_cli.cpp.float_arithmetic import Numerics
from tokitai_cli.cpp.layouts import Layouts
from tokitai_cli.cpp.recurrences import divisors, looped, recurrences
from tokitai_cli.cpp.size_words import in_words, polynomial_of
from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.cpp.source.variables import Variable
from tokitai_cli.cpp.tiles import Tiles, divided, tiles_of, untailed
from tokitai_cli.cpp.value_constraints import Values

_ROLES = {
    "none": "inputs",
    "read": "inputs",
    "write": "outputs",
    "update": "inout",
    "part": "inout",
}


class Reading:
    """Roles and shapes of a draft's arrays, by `facts` of the kernel's body.

    paths: how the kernel's text calls each array and number of the spec, `mesh.edges.next`. elsewhere:
    arrays that some instance of the kernel's template accesses.
    """

    def __init__(
        self, facts: Facts, paths: Mapping[str, str], elsewhere: Collection[str] = ()
    ) -> None:
        self.facts = facts
        self._paths = paths
        self._elsewhere = elsewhere
        self._roles = roles(self.facts)

    def role(self, parameter: Parameter) -> str:
        """inputs, outputs or inout; inout where the body does not decide it, but of what is const."""
        path = self._paths.get(parameter.name, "")
        array, opened, index = path.removesuffix("]").partition("[")
        known = self._roles if not opened else roles(self._of_row(array, int(index)))
        told = known.get(array, "unknown")
        return _ROLES.get(told, "inputs" if parameter.const else "inout")

    def reads_back(self, name: str) -> bool:
        """Whether the kernel writes elements of an array, and reads some further down in its text."""
        mine = [one.kind for one in self.facts.accesses if one.array == self._paths.get(name)]
        return "write" in mine and "read" in mine[mine.index("write") :]

    def is_added_to(self, name: str) -> bool:
        """Whether atomic operations change an array."""
        return self.path(name) in self.facts.atomics

    @property
    def untouched(self) -> set[str]:
        """Arrays that other instances of the kernel access, and this one does not."""
        seen = {one.array for one in self.facts.accesses} | self.facts.escapes.keys()
        left = set(self._elsewhere) - seen if not self.facts.undecided else set()
        return {name for name, path in self._paths.items() if path in left}

    def needs(self, name: str) -> bool:
        """Whether the kernel accesses an array and asks nowhere whether its address is one.

        Numbers of the draft's own decide such conditions as `if (masked)`, and may take the host's way
        or another.
        """
        path = self._paths.get(name, "")
        accessed = any(one.array == path for one in self.facts.accesses)
        return accessed and path not in self.facts.tested

    def _of_row(self, array: str, index: int) -> Facts:
        """What is done with the array that one of several pointers leads to."""
        found = []
        for one in self.facts.accesses:
            parts = one.offset.linear(row_of(array)) if one.array == array else None
            number = parts[0].number if parts is not None else None
            if number is None or number == index:
                found.append(one)
        return msgspec.structs.replace(self.facts, accesses=found)

    def variable(self, variable: Variable) -> str:
        """symbols, outputs or inout of a variable of the program; empty where the kernel has it not."""
        told = self._roles.get(variable.element.name, "")
        if not told or variable.constant:
            return "symbols" if told else ""
        return {"read": "symbols", "none": "symbols", "write": "outputs"}.get(told, "inout")

    def layouts(self, arrays: Sequence[str], sizes: Mapping[str, str]) -> Layouts:
        """Shapes of arrays. sizes: how the spec says whole numbers of the kernel's, by their names."""
        values = {self._paths.get(one, one): polynomial_of(said) for one, said in sizes.items()}
        named = {path: one for path, one in values.items() if one is not None}
        fields = {path: path.partition(".") for path in named if "." in path}
        named |= {f"{of}[0].{field}": named[path] for path, (of, _, field) in fields.items()}
        facts = in_words(self.facts, named)
        words = {name for name, path in self._paths.items()
                 if path.rpartition(".")[2].partition("[")[0] in facts.words}  # fmt: skip
        accesses = {one: self._accesses(one, facts) for one in arrays}
        plain = [name for name, said in sizes.items() if name == said]
        # Sizes of tensors have no word of their own: they are read where indices or bounds have them.
        indexed = {
            name for mine in accesses.values() for one in mine for name in one.offset.names()
        }
        compared = {name for one in facts.compared for side in (one.left, one.right)
                    for name in side.names()}  # fmt: skip
        words |= {one for one in plain if one not in self._paths} & (indexed | compared)
        facts = msgspec.structs.replace(facts, words=frozenset(words))
        return Layouts(facts, accesses, plain)

    def _accesses(self, name: str, facts: Facts) -> list[Access]:
        """Accesses to an array; of a row that several pointers lead to, within the row."""
        path = self._paths.get(name, "")
        array, opened, index = path.removesuffix("]").partition("[")
        found, row = [], row_of(array)
        for one in (*facts.accesses, *facts.lent):
            parts = one.offset.linear(row) if one.array == array else None
            number = parts[0].number if parts is not None else None
            if parts is not None and (not opened or number is None or number == int(index)):
                found.append(one._replace(offset=parts[1]))
        return found

    def divided(self, sizes: Mapping[str, str]) -> list[tuple[str, str]]:
        """Sizes that are multiples of others, or of numbers, by the kernel's indices."""
        return divided(self.facts, self._said(sizes))

    def untailed(self, sizes: Mapping[str, str]) -> list[tuple[str, str]]:
        """Of `divided` those that only loops say, which may leave a tail out."""
        return untailed(self.facts, self._said(sizes))

    def _said(self, sizes: Mapping[str, str]) -> dict[str, str]:
        return {self._paths.get(one, one): said for one, said in sizes.items()}

    def path(self, name: str) -> str:
        """How the kernel's body calls an array or a number of the spec."""
        return self._paths.get(name, name).partition("[")[0]

    def values(self, constants: Mapping[str, str]) -> Values:
        """What the body asks of whole numbers in arrays. constants: what names stand for."""
        return Values(self.facts, constants)

    def numerics(self, floats: Iterable[str]) -> Numerics:
        """What the body computes of arrays of floats."""
        return Numerics(self.facts, {self.path(one) for one in floats})

    def looped(self, names: Mapping[str, str]) -> set[str]:
        """Sizes that loops go up to. names: as in `tiles`."""
        return looped(self.facts, self._said(names))

    def divisors(self, names: Mapping[str, str]) -> set[str]:
        """What the body divides by, where sizes say it. names: as in `tiles`."""
        return divisors(self.facts, self._said(names))

    def recurrences(self, names: Mapping[str, str], written: Iterable[str]) -> set[str]:
        """Sizes that loops go over with a state that each step changes. names: as in `tiles`."""
        return recurrences(self.facts, self._said(names), {self.path(one) for one in written})

    def tiles(self, names: Mapping[str, str]) -> list[Tiles]:
        """Loops over tiles. names: how the spec says sizes and extents of the launch."""
        return tiles_of(self.facts, self._said(names))
