"""A program's kernels with what they reach, as its preprocessor leaves them; no code of the host."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import msgspec

from tokitai_cli.cpp.lexing import names_in, without_comments
from tokitai_cli.cpp.policy import Pass
from tokitai_cli.cpp.preprocessed_unit import Unit
from tokitai_cli.cpp.program_parts import Part
from tokitai_cli.cpp.reach import reached, recursive
from tokitai_cli.cpp.unit_text import edited, write_lines
from tokitai_cli.cpp.whole import Program, Source, read_program

_OF_STD = {"chrono", "filesystem", "literals", "placeholders", "this_thread"}
#: Namespaces that our headers have under another name as well.
_ALIASES = {"cub": "hipcub"}


class ExtractedProgram(msgspec.Struct, frozen=True):
    """What a build takes of a program."""

    #: What stands for the source and its headers: each line's place is given by #line.
    text: str
    #: The user's files that were read, the source first.
    files: tuple[Path, ...]
    #: By file, first and last lines of what was left out.
    left_out: dict[Path, list[tuple[int, int]]]
    #: Names of headers that are taken in only where they are there.
    optional: list[str]
    #: Folders that were looked through for other sources of the program.
    beside: tuple[Path, ...] = ()


def extracted(
    source: Path,
    folders: Sequence[Path],
    names: Collection[str],
    passes: Sequence[Pass],
    read: Callable[[Path, Sequence[Path], Pass], Program] = read_program,
) -> ExtractedProgram:
    """Take the kernels of these names out of `source`, or all of them where there are none.

    folders: of headers. passes: of the compiler, over each of which a text is made; the last stands for
    all others. read: reads the program.
    """
    found: list[tuple[str, ExtractedProgram]] = []
    for one in passes:
        program = read(source, folders, one)
        found.append((one.condition, _taken(program, names)))
        differing = {name for other in passes for name in other.known}
        if not any(other.unit.tested & differing for other in program.sources):
            break  # no condition asks what this compiler's passes differ in
    (condition, whole), *more = found
    for other, last in more:
        if last.text != whole.text:
            parted = f"#if {condition}\n{whole.text}#else\n{last.text}#endif\n"
            whole = msgspec.structs.replace(
                whole,
                text=parted,
                files=tuple(dict.fromkeys([*whole.files, *last.files])),
                optional=[*dict.fromkeys([*whole.optional, *last.optional])],
            )
        condition = other
    return whole


def _taken(program: Program, wanted: Collection[str]) -> ExtractedProgram:
    units = program.sources
    every = [part for one in units for part in one.parts]
    kept = {id(every[index]): part for index, part in reached(every, wanted).items()}
    words = {word for part in kept.values() for word in part.words}
    opener = _Opener(every)
    again = recursive(every)
    optional: dict[str, None] = {}
    left: dict[Path, set[tuple[int, int]]] = {}
    held: dict[tuple[str, int, str], Source] = {}
    opened: dict[str, None] = {}
    texts = []
    for one in units:
        edits = []
        for part in one.parts:
            place = one.unit.origin(part.begin)
            key = (place.file, place.line, part.plain)
            twice = held.setdefault(key, one) is not one
            mine = kept.get(id(part))
            if mine is None or twice:
                edits.append((part.begin, part.end, ""))
            else:
                edits += [(cut.begin, cut.end, cut.text) for cut in mine.cuts]
                edits += _inlined(part, again)
                opened[_opened(part, opener)] = None
            for begin, end in [(part.begin, part.end)] if mine is None else [
                (cut.begin, cut.end) for cut in mine.cuts]:  # fmt: skip
                for path, span in one.unit.spans(begin, end):
                    left.setdefault(path, set()).add(span)
        text = edited(without_comments(one.unit.text.decode("latin-1")), edits)
        lines = write_lines(one.unit, text, "std" in words, optional)
        texts.append(lines if one is units[0] else _renamed(one, lines, units, kept))
    texts.append(_named_macros(units[0].unit, wanted))
    spans = {path: _joined(left[path]) for path in program.files if path in left}
    return ExtractedProgram(
        "".join([*opened, *texts]), tuple(program.files), spans, [*optional], program.beside
    )


def _renamed(one: Source, text: str, units: Sequence[Source], kept: Collection[int]) -> str:
    """Lines of another source: what it and a further one have for themselves gets another name."""
    others = {
        name
        for other in units
        for part in other.parts
        if other is not one and id(part) in kept
        for name in part.names
    }
    own = set[str]()
    for part in one.parts:
        inner = {"static", "constexpr"} | ({"const"} if part.kind == "variable" else set())
        if id(part) in kept and part.kind in {"function", "variable"} and part.marks & inner:
            own |= part.names & others
    number = next(at for at, other in enumerate(units) if other is one)
    before = "".join(f"#define {name} {name}_{number}\n" for name in sorted(own))
    return before + text + "".join(f"#undef {name}\n" for name in sorted(own))


def _named_macros(unit: Unit, wanted: Collection[str]) -> str:
    """Macros that the names of the kernels speak of, as `k<TILE>` does."""
    names, waiting = dict[str, None](), [one for one in wanted if one in unit.macros]
    while waiting:
        names |= dict.fromkeys(waiting)
        inner = {word for one in waiting for word in names_in(unit.macros[one].written)}
        waiting = [one for one in inner if one in unit.macros and one not in names]
    return unit.definitions(sorted(names))


def _inlined(part: Part, again: Collection[str]) -> list[tuple[int, int, str]]:
    """`__forceinline__` of a function that reaches itself becomes `inline`."""
    if not part.function or part.names.isdisjoint(again):
        return []
    begin = part.plain.partition("{")[0].find("__forceinline__")
    end = begin + len("__forceinline__")
    return [(part.begin + begin, part.begin + end, "inline")] if begin >= 0 else []


class _Opener:
    """Namespaces that a program may speak of and no header that is there declares."""

    def __init__(self, parts: Sequence[Part]) -> None:
        told = (_alias(part) for part in parts)
        self._aliases = {one[0]: one[1] for one in told if one is not None and one[0] not in one[1]}

    def text(self, names: list[str]) -> str:
        """Declarations of a namespace and those within it."""
        if names and names[0] in _OF_STD:
            names = ["std", *names]  # by `using namespace std`
        for _ in range(len(self._aliases)):  # one may lead to the next
            names = [*self._aliases.get(names[0], names[:1]), *names[1:]] if names else []
        ours = _ALIASES.get(names[0], "") if names else ""
        names = [ours, *names[1:]] if ours else names
        opened = "".join(f"namespace {name} {{ " for name in names) + "} " * len(names)
        return opened + (f"namespace cub = {ours}; " if ours else "")


def _alias(part: Part) -> tuple[str, list[str]] | None:
    if part.node.type != "namespace_alias_definition":
        return None
    front, _, told = part.plain.partition("=")
    return names_in(front)[-1], names_in(told)


def _opened(part: Part, opener: _Opener) -> str:
    """Declarations of the namespaces that a part speaks of; they stand in front of all else."""
    alias = _alias(part)
    if alias is not None:
        names = alias[1]
    elif part.kind == "space":
        names = [one for one in names_in(part.plain) if one not in {"using", "namespace"}]
    else:
        return ""
    return f"{opener.text(names)}\n" if names else ""


def _joined(spans: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that follow each other as one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found
