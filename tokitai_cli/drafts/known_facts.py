"""What is known of a kernel before a draft is made of it: arguments, sizes, roles, how it indexes."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tokitai_cli.core import expressions
from tokitai_cli.cpp.body.polynomial import Polynomial, variable
from tokitai_cli.cpp.host.launch import Launch, name_in
from tokitai_cli.cpp.launch_facts import untailed_parts, whole_parts
from tokitai_cli.cpp.layouts import Layouts
from tokitai_cli.cpp.program_parts import Part
from tokitai_cli.cpp.source.signatures import Kernel, Parameter
from tokitai_cli.drafts.host_words import said
from tokitai_cli.drafts.leaves import LaunchArguments, free
from tokitai_cli.drafts.model import fitting
from tokitai_cli.drafts.reading import Reading
from tokitai_cli.drafts.texturing import texture_extents

_STEPS = 4  # of names that stand for names
# Whole numbers that say no extent.
_NO_SIZE = re.compile(
    r"ignore|pad|seed|offset|flag|mode|step$|iter(?:ation)?s?$|repeats?$|bits?$|ind(?:ex|ices)$|idx$",
    re.I,
)


class Varied(NamedTuple):
    """A size by which a suite varies a number: `(size - less) / parts` is its value."""

    size: str
    parts: int
    less: int

    @property
    def value(self) -> str:
        """The number, as an expression."""
        own = f"{self.size} - {self.less}" if self.less else self.size
        return (
            own
            if self.parts == 1
            else f"({own}) / {self.parts}"
            if self.less
            else f"{own} / {self.parts}"
        )

    def at(self, value: float) -> int:
        """The size at which the number has a value."""
        return round(self.parts * value) + self.less


class DraftContext(NamedTuple):
    """Where a kernel comes from: its source and folders of headers from the spec on, and flags."""

    source: str
    include: Sequence[str]
    flags: Sequence[str]
    #: Whether arrays that nothing bounds get room enough for a run, in place of a likely shape.
    room: bool
    #: Macros whose values are guesses: the build defines them, the source does not.
    supposed: Sequence[str] = ()


class DraftSubject(NamedTuple):
    """A kernel and what is known of it."""

    kernel: Kernel
    #: As a spec names it.
    instance: str
    #: Its template's parameters whose arguments are guesses.
    guessed: Sequence[str]
    leaves: LaunchArguments
    launch: Launch | None
    origin: DraftContext
    #: Those of its text.
    constants: Mapping[str, str]
    #: Text of its file.
    source: str
    #: The kernel and all that it calls.
    reached: Sequence[Part]
    #: Numbers that the host passes.
    host: Mapping[str, float]
    #: What a walk over its body tells.
    reading: Reading
    #: Threads that a block may have by the kernel's `__launch_bounds__`; 0 where they do not say it.
    most_threads: int
    #: Whether the draft finds shapes of its own: an op that it starts from has others.
    own_shapes: bool


class Known:
    """Arguments, sizes and roles of a draft, and the readers of the kernel's text.

    parameters: arrays and numbers, those of structs too, without null pointers. sizes: whole numbers
    that say extents. passed: those that the host makes of others. layouts: shapes of arrays. values,
    numerics: what the body asks of values in arrays, and computes of them. divided: sizes that are
    multiples, and of what; untailed: those of these that a kernel says which leaves a tail out.
    multiples: of sizes; supposed: of those of which nothing else says so. guessed: why values of sizes
    are guesses. padded: outputs that keep what lies behind
    their rows, by how numpy says that. sizes_of_host: variables of the host's that are sizes here.
    host_values: numbers that these are there, by the sizes.
    """

    def __init__(self, subject: DraftSubject) -> None:
        self.subject = subject
        self.kernel, self.leaves, self.origin = subject.kernel, subject.leaves, subject.origin
        self.launch, self.constants = subject.launch, subject.constants
        self.sizes_of_host: dict[str, str] = {}
        self.host_values: dict[str, int] = {}
        self.nulls = self._nulls()
        self.parameters = [one for one in self.leaves.found if one.name not in self.nulls]
        own = {one.name for one in self.parameters}
        self.values = subject.reading.values(
            {name: told for name, told in self.constants.items() if name not in own}
        )
        self.sizes = [one for one in self.parameters if one.integer and self._may_be_size(one)]
        self.passed: dict[str, str] = {}
        self.passed = {} if self.origin.room else self._passed()
        self.sizes = [one for one in self.sizes if one.name not in self.passed]
        arrays = [one.name for one in self.parameters if one.pointers and not self._is_fixed(one)]
        self.layouts = self._layouts(arrays)
        self.texture_extents = texture_extents(self)
        floats = [
            one.name for one in self.parameters if any("float" in kind for kind in one.dtypes)
        ]
        self.numerics = subject.reading.numerics(floats)
        self.roles = self._roles()
        self.padded: dict[str, str] = {}
        self.limits: dict[str, int] = {}
        self.multiples: dict[str, int] = {}
        self.divided, self.untailed = self._divided()
        self.supposed: dict[str, int] = {}
        self.guessed: dict[str, str] = {}

    @property
    def total(self) -> str:
        """Elements of an array, where nothing says it: the product of the sizes."""
        return " * ".join(one.name for one in self.sizes[:3]) or "elements"

    @property
    def last(self) -> str:
        """The last size, which most likely counts elements."""
        return self.sizes[-1].name if self.sizes else "elements"

    @property
    def numbers(self) -> list[Parameter]:
        """Arguments by value that are no sizes."""
        known = {*self.passed, *(one.name for one in self.sizes)}
        return [one for one in self.parameters if not one.pointers and one.name not in known]

    @property
    def divisors(self) -> list[tuple[str, str]]:
        """Sizes that others divide, and these."""
        return [(many, few) for many, few in self.divided if not few.isdigit()]

    @property
    def written(self) -> list[Parameter]:
        """Arrays that the kernel writes."""
        return [one for one in self.parameters if self.roles.get(one.name) in ("outputs", "inout")]

    @property
    def read(self) -> list[Parameter]:
        """Arrays that the kernel reads."""
        return [one for one in self.parameters if self.roles.get(one.name, "outputs") != "outputs"]

    @functools.cached_property
    def tested(self) -> dict[str, list[float]]:
        """Numbers that the kernel compares with 0 or -1, by which it branches."""
        found: dict[str, list[float]] = {}
        for one in self.numbers if not self.origin.room and self.subject.own_shapes else ():
            if self.subject.host.get(one.name) is None:
                told = self.values.tested(self.path(one.name))
                found |= {one.name: told} if told else {}
        return found

    def varied(self, parameter: Parameter) -> Varied:
        """The size that a tested number follows from, so that suites vary it."""
        parts = 10 if "float" in parameter.dtypes[0] else 1
        less = round(-parts * min([0, *self.tested[parameter.name]]))
        return Varied(f"{parameter.name}_{'tenths' if parts > 1 else 'value'}", parts, less)

    def _may_be_size(self, one: Parameter) -> bool:
        """Whether a whole number may say an extent: -1, which it is compared with, says none."""
        name = self.path(one.name)
        is_mark = -1 in self.values.tested(name) or self.values.marks(name)
        sentinel = is_mark and not self.values.multiplies(name)
        own = not self.origin.room and self.subject.own_shapes
        return "bool" not in one.dtypes and not (_NO_SIZE.search(one.name) or (own and sentinel))

    @property
    def at_host(self) -> dict[str, int]:
        """Sizes that the host has as numbers."""
        told = {name: int(n) for name, n in self.subject.host.items() if n > 0 and n == int(n)}
        return {one.name: n for one in self.sizes if (n := told.get(one.name))}

    def number(self, name: str) -> str:
        """Number that a constant stands for; empty where it is none."""
        for _ in range(_STEPS):
            if name.isdigit():
                return name
            name = self.constants.get(name, "").strip("() ")
        return ""

    def in_sizes(self, number: Polynomial, numbers: Mapping[str, str] = {}) -> str:
        """A number of the host's as an expression of the sizes; empty where it is none.

        numbers: of variables of the host's that are extents of its block.
        """
        words = self._words | self.sizes_of_host | dict(numbers)
        values = self.launch.values if self.launch is not None else {}
        return said(number, words) or said(number.with_values(values), words)

    @property
    def _words(self) -> dict[str, str]:
        """What the spec has for names of the host's that are handed to the kernel."""
        own = {one.name for one in self.parameters}
        words = {one.name: one.name for one in self.sizes if one.name not in own}
        words |= {host: self.passed[name] for name, number in self.handed.items()
                  if name in self.passed and (host := name_in(number))}  # fmt: skip
        words = {host: f"({told})" if " " in told else told for host, told in words.items()}
        several = {host: f"max({', '.join(sizes)})" for host, sizes in self.of_one_number.items()}
        handed = {host: size for size, host in self._hosts.items()}
        for one in self.leaves.accessors:
            words |= one.words(name_in(self.handed.get(one.struct)))
        return words | handed | several

    @property
    def _hosts(self) -> dict[str, str]:
        """What the host calls sizes that it hands over."""
        handed = {one.name: name_in(self.handed.get(one.name)) for one in self.sizes}
        return {size: host for size, host in handed.items() if host}

    @property
    def of_one_number(self) -> dict[str, list[str]]:
        """Sizes that the host hands over the same variable for, by what it calls that."""
        found: dict[str, list[str]] = {}
        for size, host in self._hosts.items():
            found.setdefault(host, []).append(size)
        return {host: sizes for host, sizes in found.items() if len(sizes) > 1}

    @functools.cached_property
    def handed(self) -> dict[str, Polynomial]:
        """Numbers that the host hands over, null pointers as 0, by the names of the spec."""
        if self.launch is None:
            return {}
        pairs = zip(self.leaves.args, self.launch.arguments, strict=False)
        known = {one.name: number for one, number in pairs if number is not None}
        paths, fields = self.leaves.paths, self.launch.fields
        wholes = {paths.get(name, name): name_in(number) for name, number in known.items()}
        for leaf in self.leaves.found:
            path = paths.get(leaf.name, "")
            root, _, field = path.partition(".")
            if path in fields:
                known[leaf.name] = fields[path]
            elif field and wholes.get(root):  # of a struct whose fields the host does not set
                known[leaf.name] = variable(f"{wholes[root]}.{field}")
        return known

    def fitting(self, size: str, value: int) -> int:
        """About `value`, as the kernel takes the size."""
        return fitting(value, self.multiples.get(size, 1), self.limits.get(size))

    def _is_fixed(self, array: Parameter) -> bool:
        """Whether its extents follow from no index: a variable's, or a texture's of several axes."""
        textures = self.leaves.textures.values()
        several = any(one.array == array.name and one.axes > 1 for one in textures)
        return array.name in self.leaves.variables or several

    def add_size(self, name: str, *, last: bool = False) -> str:
        """A size that no argument of the kernel is, and what the spec calls it.

        last: behind the others, so that no array whose size nothing says gets it as a factor.
        """
        taken = {one.name for one in (*self.parameters, *self.sizes)}
        name = next(
            one for one in (free(name), f"{name}_rows", f"{name}_count") if one not in taken
        )
        at = len(self.sizes) if last else 0
        self.sizes.insert(at, Parameter(name, "int", "scalar", ("int32",), 0, False, ""))
        self.layouts.add_size(name)
        return name

    def _nulls(self) -> set[str]:
        """Pointers that the host passes no address for, or that this instance does not access."""
        nulls = {
            one.name
            for one in self.leaves.found
            if one.pointers and one.name in self.handed and self.handed[one.name].number == 0
        }
        pointers = {one.name for one in self.leaves.args if one.pointers and one.const}
        nulls = {one for one in nulls if not self.subject.reading.needs(one)}
        unfetched = {*self.leaves.texture_arguments} - self.leaves.textures.keys()
        return nulls | (pointers & self.subject.reading.untouched) | unfetched

    def _passed(self) -> dict[str, str]:
        """Sizes that the host passes as products of others: the stride of a batch, m * k."""
        found = {}
        names = {one.name for one in self.sizes}
        values = self.launch.values if self.launch is not None else {}
        for one in self.leaves.args:
            number = self.handed.get(one.name)
            number = values.get(name_in(number), number)
            if number is None or not one.integer or not _is_product(number):
                continue
            told = self.in_sizes(number)
            if told and {*expressions.names_in(told)} <= names - {one.name}:
                found[one.name] = told
        return found

    def _layouts(self, arrays: Sequence[str]) -> Layouts:
        words = {one.name: one.name for one in self.sizes} | self.passed
        for one in self.leaves.accessors:
            path = self.leaves.paths[one.array]
            words |= {f"{path}.size({at})": size for at, size in enumerate(one.sizes)}
            words |= {
                f"{path}.stride({at})": " * ".join(one.sizes[at + 1 :] or ["1"])
                for at in range(len(one.sizes))
            }
        layouts = self.subject.reading.layouts(arrays, words)
        layouts.said = {one.array: one.sizes for one in self.leaves.accessors}
        return layouts

    def _divided(self) -> tuple[list[tuple[str, str]], set[tuple[str, str]]]:
        """Sizes that are multiples of others, or of numbers, as indices and assertions have it.

        Behind them those of these that loops and comparisons alone say: the kernel may leave a tail out.
        """
        facts, sizes = self.layouts.facts, {one.name for one in self.sizes}
        divided, parts = self.subject.reading.divided(self.said), whole_parts(facts, sizes)
        loops, compared = self.subject.reading.untailed(self.said), untailed_parts(facts, parts)
        certain = ({*divided} - {*loops}) | ({*parts} - compared)
        return list(dict.fromkeys([*divided, *parts])), ({*loops} | compared) - certain

    def path(self, name: str) -> str:
        """How the kernel's body calls an array or a number."""
        return self.subject.reading.path(name)

    @property
    def paths_said(self) -> dict[str, str]:
        """How the spec says the kernel's whole numbers, by how its body calls them."""
        return {self.path(name): told for name, told in self.said.items()}

    @property
    def said(self) -> dict[str, str]:
        """How the spec says the kernel's whole numbers."""
        said = {one.name: one.name for one in self.sizes}
        return said | {name: f"({told})" for name, told in self.passed.items()}

    def _roles(self) -> dict[str, str]:
        fixed = self.leaves.variables
        arrays = [one for one in self.parameters if one.pointers and one.name not in fixed]
        roles = {one.name: self.subject.reading.role(one) for one in arrays}
        roles |= {name: role for name, (_, _, role) in fixed.items()}
        if not {"outputs", "inout"} & {*roles.values()}:
            # At least one is written: a call or a macro hides it.
            roles |= {p.name: "inout" for p in self.parameters if p.pointers and not p.const}
        return roles


def _is_product(number: Polynomial) -> bool:
    """Whether something is multiplied in a number."""
    return any(len(key) + (abs(count) != 1) > 1 for key, count in number.terms.items())
