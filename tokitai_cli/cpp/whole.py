"""A program: the units that belong together, each preprocessed, parsed and taken apart."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgspec

from tokitai_cli.core import resources
from tokitai_cli.cpp.joined import definers
from tokitai_cli.cpp.lexing import blank
from tokitai_cli.cpp.policy import CUDA, Pass, host_pass
from tokitai_cli.cpp.preprocessed_unit import Macro, Unit, preprocess
from tokitai_cli.cpp.program import Program as Tree
from tokitai_cli.cpp.program_parts import Part, parts_of
from tokitai_cli.cpp.source.source_files import SYSTEM

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Source(msgspec.Struct):
    """One unit of a program with its parts."""

    path: Path
    unit: Unit
    tree: Tree
    #: The unit's text without comments and literals, a letter for each byte.
    plain: str
    parts: list[Part]

    def line(self, offset: int) -> int:
        """Line of the user's file at an offset."""
        return self.unit.origin(offset).line

    def file(self, offset: int) -> Path:
        """The user's file at an offset."""
        return Path(self.unit.origin(offset).file)

    def is_parted(self, begin: int, end: int) -> bool:
        """Whether a condition of the preprocessor stands between two offsets."""
        return any(
            first < line < last
            for file, (first, last) in self.unit.spans(begin, end)
            for line in self.unit.conditions.get(str(file), ())
        )


class Program(msgspec.Struct):
    """A source with what it includes of the user's, and others that define device functions of it."""

    source: Path
    #: Its own first.
    sources: list[Source]
    #: By name, all definitions that differ.
    macros: dict[str, tuple[Macro, ...]]
    #: Macros of the command line.
    defines: Mapping[str, str] = {}
    #: Folders that were looked through for other sources.
    beside: tuple[Path, ...] = ()
    #: Of `remembered`.
    memory: dict[tuple[object, ...], Any] = {}

    @property
    def joined(self) -> list[Path]:
        """Sources that define device functions of it."""
        return [one.path for one in self.sources[1:]]

    @property
    def files(self) -> list[Path]:
        """The user's files that were read, the source first."""
        return list(dict.fromkeys(path for one in self.sources for path in one.unit.files))

    @property
    def trees(self) -> list[Tree]:
        """The sources' trees."""
        return [one.tree for one in self.sources]

    @property
    def texts(self) -> dict[Path, Source]:
        """The sources by their paths."""
        return {one.path: one for one in self.sources}

    @property
    def pieces(self) -> dict[Path, list[Part]]:
        """The sources' parts by their paths."""
        return {one.path: one.parts for one in self.sources}


def remembered(ask: Callable[_P, _T]) -> Callable[_P, _T]:
    """What `ask` gives of a program, its first argument, found once for each of its other arguments."""

    @functools.wraps(ask)
    def asked(*args: _P.args, **more: _P.kwargs) -> _T:
        program, *rest = args
        assert isinstance(program, Program)
        key = (ask, *rest, *sorted(more.items()))
        if key not in program.memory:
            program.memory[key] = ask(*args, **more)
        found: _T = program.memory[key]
        return found

    return asked


def program_of(
    source: Path, folders: Sequence[Path], defines: Mapping[str, str] | None = None
) -> Program:
    """Read a program as the host's compiler does. defines: macros of the command line."""
    given = Pass("", host_pass(source.suffix in CUDA, defines), {})
    found = read_program(source, folders, given)
    found.defines = defines or {}
    return found


def read_program(
    source: Path, folders: Sequence[Path], given: Pass, front: Sequence[Path] = ()
) -> Program:
    """Read `source`, what it includes of the user's, and sources that define what it only declares.

    From its folder and the include `folders`; as a compiler's pass does. front: headers that are
    taken in first. A file that is not there is passed over.
    """
    shipped = resources.kernels_dir()
    own = [folder for folder in folders if not folder.is_relative_to(shipped)]
    there = (shipped / "host", *SYSTEM)
    beside = set[Path]()
    sources: list[Source] = []
    waiting = [source]
    while waiting:
        for path in waiting:
            unit = preprocess(path, own, given.defines, None, given.known, there, front)
            tree = Tree(unit)
            plain = blank(unit.text.decode("latin-1"), quotes=True)
            sources.append(Source(path, unit, tree, plain, parts_of(tree, plain)))
            for one in sources[-1].parts if len(sources) > 1 else ():
                if one.kernel:  # it is that source's
                    one.marks = frozenset()
        files = dict.fromkeys(path for one in sources for path in one.unit.files)
        waiting, looked = definers([part for one in sources for part in one.parts], files)
        beside |= looked
    macros: dict[str, tuple[Macro, ...]] = {}
    for name, macro in (pair for one in sources for pair in one.unit.macros.items()):
        macros[name] = tuple(dict.fromkeys((*macros.get(name, ()), macro)))
    return Program(source, sources, macros, {}, tuple(sorted(beside)))
