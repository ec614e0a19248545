"""A translation unit: what a compiler would read of a source once its preprocessor has run."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tokitai_cli.cpp.preprocessor import Preprocessor


class Origin(NamedTuple):
    """Where a part of a unit was written."""

    file: str
    line: int
    #: The outermost macro that made it; empty for text that stands there as it is.
    macro: str


class Macro(msgspec.Struct, frozen=True):
    """A definition of a macro."""

    body: str
    #: As its definition lists them; None for a macro that takes no arguments.
    parameters: tuple[str, ...] | None = None

    @property
    def written(self) -> str:
        """What stands behind the name in its definition."""
        taken = "" if self.parameters is None else f"({', '.join(self.parameters)})"
        return f"{taken} {self.body}"


class Unit(msgspec.Struct):
    """A preprocessed source. Offsets are those of `text` in bytes."""

    text: bytes
    #: Offsets at which the origin changes, rising.
    starts: list[int]
    origins: list[Origin]
    #: Files that were read, the source first.
    files: list[Path]
    #: Includes that lead to no file: file, line, and the name with its quotes or brackets.
    missing: list[tuple[str, int, str]]
    #: Kernels that conditions leave out: file, line, and name.
    inactive: list[tuple[str, int, str]]
    #: Names that conditions ask for and that neither the program nor the command line defines.
    undecided: frozenset[str]
    #: All names that conditions ask for and that the command line does not define.
    tested: frozenset[str]
    #: What a compiler would refuse: file, line, and why.
    problems: list[tuple[str, int, str]]
    #: Macros that the program has at its end, by name.
    macros: Mapping[str, Macro]
    #: Lines of directives that begin, part or end a condition, by file.
    conditions: Mapping[str, Sequence[int]]
    #: Text of each file that was looked for, by path; None where there is none that can be read.
    looked_for: Mapping[str, str | None]

    def origin(self, offset: int) -> Origin:
        """Where the byte at `offset` was written."""
        at = bisect.bisect_right(self.starts, offset) - 1
        return self.origins[max(at, 0)] if self.origins else Origin("", 0, "")

    def definitions(self, names: Iterable[str]) -> str:
        """Lines that define macros of those names where nothing else has."""
        told = ((name, self.macros[name].written) for name in names)
        return "".join(f"#ifndef {name}\n#define {name}{text}\n#endif\n" for name, text in told)

    def offset(self, file: Path, line: int) -> int:
        """The first offset of what a line of a file has; 0 where the unit has none of it."""
        place = str(file), line
        return next((at for at, one in zip(self.starts, self.origins, strict=True)
                     if (one.file, one.line) == place), 0)  # fmt: skip

    def spans(self, begin: int, end: int) -> Iterator[tuple[Path, tuple[int, int]]]:
        """By file, the first and the last line of what stands between two offsets."""
        first = max(bisect.bisect_right(self.starts, begin) - 1, 0)
        last = bisect.bisect_left(self.starts, end)
        found: dict[str, list[int]] = {}
        for one in self.origins[first:last]:
            found.setdefault(one.file, []).append(one.line)
        for file, lines in found.items():
            yield Path(file), (min(lines), max(lines))


def _definition(macro: Any) -> Macro:
    """A macro of pcpp's as it was defined."""
    body = "".join(token.value for token in macro.value)
    if macro.arglist is None or not macro.variadic:
        return Macro(body, None if macro.arglist is None else tuple(macro.arglist))
    *front, rest = macro.arglist
    return Macro(body, (*front, "..." if rest == "__VA_ARGS__" else f"{rest}..."))


def preprocess(
    source: Path,
    folders: Sequence[Path] = (),
    defines: Mapping[str, str] | None = None,
    text: str | None = None,
    known: Mapping[str, str] | None = None,
    there: Sequence[Path] = (),
    front: Sequence[Path] = (),
) -> Unit:
    """Preprocess a source.

    folders: of headers, as -I names them. defines: macros of the command line and of the compiler. text:
    in place of the file's own. known: macros of the compiler's own that conditions may ask for; they are
    put in nowhere. there: folders of headers that are the compiler's to read. front: headers
    that are taken in first. A file that cannot be read, and an include that leads nowhere, are passed
    over and named.
    """
    reader = Preprocessor(folders, defines or {}, known, there)
    parts, starts, origins = [], list[int](), list[Origin]()
    size, last = 0, None
    for token in reader.tokens(source, text, front):
        origin = Origin(
            getattr(token, "source", "") or "", token.lineno, getattr(token, "macro", "")
        )
        if origin != last:
            starts.append(size)
            origins.append(origin)
            last = origin
        data = str(token.value).encode()
        parts.append(data)
        size += len(data)
    undecided = frozenset(reader.undecided - reader.defined)
    return Unit(
        b"".join(parts),
        starts,
        origins,
        reader.files,
        reader.missing,
        reader.inactive,
        undecided,
        frozenset(reader.undecided),
        reader.problems,
        {
            name: _definition(macro)
            for name, macro in reader.macros.items()
            if name in reader.defined
        },
        reader.conditions,
        reader.looked_for,
    )
