"""What is known of a kernel before a draft is made of it: arguments, sizes, roles, how it indexes."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tokitai_cli.core import expressions
from tokitai_cli.cpp.indices.indexing import Indexing
from tokitai_cli.cpp.indices.kernel_text import CAST
from tokitai_cli.cpp.source.launches import HostLaunch
from tokitai_cli.cpp.source.macros import closing
from tokitai_cli.cpp.source.signatures import Kernel, Parameter
from tokitai_cli.drafts.accessors import blocks_of
from tokitai_cli.drafts.host_words import in_sizes
from tokitai_cli.drafts.leaves import LaunchArguments, free
from tokitai_cli.drafts.model import fitting
from tokitai_cli.drafts.reading import Reading

_NO_ADDRESS = re.compile(r"\s*(?:\([\w\s:<>*]+\)\s*)?(?:nullptr|NULL)\s*")
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
    launch: HostLaunch | None
    origin: DraftContext
    #: Those of its text.
    constants: Mapping[str, str]
    #: Text of its file.
    source: str
    #: Of the kernel and all that it calls.
    reached: str
    #: Numbers that the host passes.
    host: Mapping[str, float]
    #: What a walk over its body tells.
    reading: Reading
    #: Whether the draft finds shapes of its own: an op that it starts from has others.
    own_shapes: bool


class Known:
    """Arguments, sizes and roles of a draft, and the readers of the kernel's text.

    parameters: arrays and numbers, those of structs too, without null pointers. sizes: whole numbers
    that say extents. passed: those that the host makes of others. text: the reader of indices. plain:
    the kernel's text by the names of the spec. values, numerics: what the body asks of values in
    arrays, and computes of them. padded: outputs that keep what lies behind their rows, by how numpy
    says that. sizes_of_host: variables of the host's that are sizes here. host_values: numbers that
    these are there, by the sizes.
    """

    def __init__(self, subject: DraftSubject) -> None:
        self.subject = subject
        self.kernel, self.leaves, self.origin = subject.kernel, subject.leaves, subject.origin
        self.launch, self.constants = subject.launch, subject.constants
        self.reached = subject.reached
        self.sizes_of_host: dict[str, str] = {}
        self.host_values: dict[str, int] = {}
        self.nulls = self._nulls()
        self.parameters = [one for one in self.leaves.found if one.name not in self.nulls]
        self.plain = self.leaves.plain(self.kernel.body)
        own = {one.name for one in self.parameters}
        self.values = subject.reading.values(
            {name: told for name, told in self.constants.items() if name not in own}
        )
        self.sizes = [one for one in self.parameters if one.integer and self._may_be_size(one)]
        self.passed = {} if self.origin.room else self._passed()
        self.sizes = [one for one in self.sizes if one.name not in self.passed]
        self.text = self._indexing()
        floats = [
            one.name for one in self.parameters if any("float" in kind for kind in one.dtypes)
        ]
        self.numerics = subject.reading.numerics(floats)
        self.roles = self._roles()
        self.padded: dict[str, str] = {}
        self.limits: Mapping[str, int] = {}
        self.multiples: dict[str, int] = {}

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
            if "bool" not in one.dtypes and self.subject.host.get(one.name) is None:
                told = self.values.branches(self.path(one.name))
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
        sentinel = -1 in self.values.branches(name) and not self.values.multiplies(name)
        own = not self.origin.room and self.subject.own_shapes
        return "bool" not in one.dtypes and not (_NO_SIZE.search(one.name) or (own and sentinel))

    def in_sizes(self, text: str, numbers: Mapping[str, str] = {}) -> str:
        """The host's C++ as an expression of the sizes; empty where it is none.

        numbers: of variables of the host's that are extents of its block.
        """
        passed = zip(self.launch.args if self.launch else (), self.leaves.args, strict=False)
        given = self._of_fields | {host: one.name for host, one in passed} | self.sizes_of_host
        names = {one.name for one in self.sizes}
        return in_sizes(text, given | dict(numbers), names, self.constants)

    def fitting(self, size: str, value: int) -> int:
        """About `value`, as the kernel takes the size."""
        return fitting(value, self.multiples.get(size, 1), self.limits.get(size))

    def add_size(self, name: str) -> str:
        """A size that no argument of the kernel is, and what the spec calls it."""
        taken = {one.name for one in (*self.parameters, *self.sizes)}
        name = next(
            one for one in (free(name), f"{name}_rows", f"{name}_count") if one not in taken
        )
        self.sizes.insert(0, Parameter(name, "int", "scalar", ("int32",), 0, False, ""))
        self.text.sizes.append(name)
        return name

    def _nulls(self) -> set[str]:
        """Pointers that the host passes no address for, or that this instance does not access."""
        passed = zip(self.launch.args if self.launch else (), self.leaves.args, strict=False)
        nulls = {one.name for text, one in passed if one.pointers and _NO_ADDRESS.fullmatch(text)}
        fields = self.launch.fields if self.launch else {}
        nulls |= {
            one.name
            for one in self.leaves.found
            if one.pointers and fields.get(self.leaves.paths.get(one.name, "")) == "0"
        }
        pointers = {one.name for one in self.leaves.args if one.pointers and one.const}
        return nulls | (pointers & self.subject.reading.untouched)

    @functools.cached_property
    def _of_fields(self) -> dict[str, str]:
        """Names of the spec for variables that the host puts into fields of structs."""
        told = self.launch.fields if self.launch else {}
        names = {path: name for name, path in self.leaves.paths.items()}
        return {text: names[path] for path, text in told.items()
                if path in names and text.isidentifier()}  # fmt: skip

    def _passed(self) -> dict[str, str]:
        """Sizes that the host passes as products of others: the stride of a batch, m * k."""
        found = {}
        given = [CAST.sub("", one) for one in self.launch.args] if self.launch else []
        names = {one.name for one in self.sizes}
        for host, one in zip(given, self.leaves.args, strict=False):
            told = self.in_sizes(host) if re.search(r"\w\s*\*\s*\w", host) else ""
            if told and one.integer and {*expressions.names_in(told)} <= names - {one.name}:
                found[one.name] = told
        return found

    def _indexing(self) -> Indexing:
        fixed = self.leaves.variables
        arrays = [one.name for one in self.parameters if one.pointers and one.name not in fixed]
        sizes = [one.name for one in self.sizes]
        text = Indexing(self.plain, arrays, sizes, self.constants, self.passed)
        text.by_tree = {one: self.shape_in(one) for one in arrays}
        text.divided_by_tree = self.subject.reading.divided(self.said)
        text.said = {one.array: one.sizes for one in self.leaves.accessors}
        text.axes |= blocks_of(self.leaves.accessors, self.kernel.body)
        return text

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

    def shape_in(self, array: str, grid: Sequence[str] = ()) -> list[str]:
        """Extents of an array by the kernel's tree, in a launch of that many blocks if it is told."""
        blocks = {
            f"gridDim.{axis}": f"({one})" if " " in one else one
            for axis, one in zip("xyz", grid, strict=False)
        }
        found = self.subject.reading.shape(array, self.said | blocks)
        return [_outer(one) for one in found]

    def _roles(self) -> dict[str, str]:
        fixed = self.leaves.variables
        arrays = [one for one in self.parameters if one.pointers and one.name not in fixed]
        roles = {one.name: self.subject.reading.role(one) for one in arrays}
        roles |= {name: role for name, (_, _, role) in fixed.items()}
        if not {"outputs", "inout"} & {*roles.values()}:
            # At least one is written: a call or a macro hides it.
            roles |= {p.name: "inout" for p in self.parameters if p.pointers and not p.const}
        return roles


def _outer(extent: str) -> str:
    """An extent without parentheses around it all."""
    whole = extent[:1] == "(" and closing(extent, 0) == len(extent) - 1
    return extent[1:-1] if whole else extent
