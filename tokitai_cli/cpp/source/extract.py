"""A program's kernels with what they reach, host code left out; every line keeps its number."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgspec

from tokitai_cli.cpp.policy import CUDA, RUNTIME
from tokitai_cli.cpp.program import Program as Tree
from tokitai_cli.cpp.source.blanking import Macro, SourceText, macros_of, source_text, words_in
from tokitai_cli.cpp.source.joined import definers
from tokitai_cli.cpp.source.pasted import pasted_words
from tokitai_cli.cpp.source.pieces import Declaration, pieces_of
from tokitai_cli.cpp.source.reachable import host_names, reached
from tokitai_cli.cpp.source.source_files import UserFile, user_files
from tokitai_cli.cpp.source_text import blank

_KEPT_DIRECTIVES = {"if", "ifdef", "ifndef", "elif", "else", "endif", "define", "undef", "elifdef"}
# Standard headers of the host alone, which cost a compiler time.
_HOST_HEADERS = """
    iostream fstream sstream ostream istream iomanip vector string map unordered_map set unordered_set
    list deque queue stack chrono random thread mutex future condition_variable filesystem regex memory
    functional numeric exception stdexcept locale atomic getopt.h unistd.h omp.h sys/time.h time.h ctime
    sys/stat.h sys/types.h string_view optional variant any iterator system_error cstdarg csignal
    signal.h dirent.h
"""
# Libraries of tests and bindings: no kernel needs them, and they would have to be linked.
_HOST_LIBRARIES = re.compile(
    r"(?:benchmark|gtest|gmock|catch2|doctest|pybind11|nanobind|CLI|nlohmann|spdlog)/|(?:mpi|cxxopts)\.hp*$"
)
ALWAYS = re.compile(  # of C, C++ and HIP itself
    r"[a-z_0-9]+|(?:assert|complex|ctype|errno|fenv|float|inttypes|limits|malloc|math|memory|stdarg"
    r"|stdbool|stddef|stdint|stdio|stdlib|string|wchar|hip/hip_(?:runtime|runtime_api|fp16|bf16|bfloat16))\.h"
)
_TORCH = re.compile(
    r'[<"](?:torch|ATen|c10)/'
)  # where it is not installed, ours has what kernels use
_OF_STD = {"chrono", "filesystem", "literals", "placeholders", "this_thread"}
_INLINED = re.compile(r"\b__forceinline__\b")
# HIP's votes are macros on cuda, and CUDA's headers have functions of their own by these names.
_VOTES = ("__any", "__all")
_VOTES_OFF = "\n".join(f'#pragma push_macro("{name}")\n#undef {name}' for name in _VOTES)
_VOTES_ON = "\n".join(f'#pragma pop_macro("{name}")' for name in _VOTES)


_P = ParamSpec("_P")
_T = TypeVar("_T")


class ExtractedProgram(msgspec.Struct, frozen=True):
    """What a build takes of a program."""

    #: By names of files that lie in one folder, the source first: what is taken of each of `files`,
    #: behind a line that gives the place.
    texts: dict[str, str]
    files: tuple[Path, ...]
    #: By file, first and last lines of what was left out.
    left_out: dict[Path, list[tuple[int, int]]]
    #: Names of headers that are taken in only where they are there.
    optional: list[str]
    #: See Program.
    beside: tuple[Path, ...] = ()


class Program(msgspec.Struct):
    """The files of a program, read and parsed."""

    source: Path
    files: dict[Path, UserFile]
    texts: dict[Path, SourceText]
    pieces: dict[Path, list[Declaration]]
    macros: dict[str, Macro]
    #: Macros of the command line.
    defines: Mapping[str, str] = {}
    #: Other sources that define device functions of it.
    joined: tuple[Path, ...] = ()
    #: Folders that were looked through for such.
    beside: tuple[Path, ...] = ()
    #: Where macros are put in and branches decided, the sources' own trees, the program's first.
    trees: Sequence[Tree] = ()
    #: Names that macros put together, by the lines of their calls.
    pasted: Mapping[tuple[Path, int], frozenset[str]] = {}
    #: Of `remembered`.
    memory: dict[tuple[object, ...], Any] = {}


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


def program(source: Path, folders: Sequence[Path]) -> Program:
    """Read `source` and what it includes of the user's, from its folder and the include `folders`.

    And sources beside these that define device functions which they declare. Macros and all branches
    stay.
    """
    found = _read([source], folders)
    own = frozenset(found.files)
    more, beside = definers(found.pieces, found.files)
    while more:
        found = _read([source, *found.joined, *more], folders)
        more, also = definers(found.pieces, found.files)
        beside |= also
    found.beside = tuple(sorted(beside))
    found.pasted = pasted_words([source, *found.joined], folders, found.macros)
    for path in found.files.keys() - own:
        for piece in found.pieces[path]:
            if piece.kernel:
                piece.marks = frozenset()  # it is that source's
    return found


def _read(roots: Sequence[Path], folders: Sequence[Path]) -> Program:
    files: dict[Path, UserFile] = {}
    for root in roots:
        files = {**files, **(user_files(root, folders) if root not in files else {})}
    macros = macros_of(blank(one.text, quotes=True) for one in files.values())
    texts = {path: source_text(one.text, macros) for path, one in files.items()}
    pieces = {path: pieces_of(text) for path, text in texts.items()}
    return Program(roots[0], files, texts, pieces, macros, {}, tuple(roots[1:]))


def needed(
    whole: Program, wanted: Collection[str]
) -> tuple[list[tuple[Path, Declaration]], set[int]]:
    """All declarations with their files, and which of them the kernels that `wanted` names reach."""
    every = [(path, piece) for path, found in whole.pieces.items() for piece in found]
    pieces = [piece for _, piece in every]
    host = host_names(pieces)
    for path, piece in every:
        piece.without(host, whole.texts[path].plain)
        if whole.pasted:
            line = whole.texts[path].line
            lines = range(line(piece.begin), line(max(piece.begin, piece.end - 1)) + 1)
            piece.words = piece.words.union(*(whole.pasted.get((path, n), ()) for n in lines))
    return every, reached(pieces, whole.macros, wanted, host)


def extracted(source: Path, folders: Sequence[Path], wanted: Collection[str]) -> ExtractedProgram:
    """Take the kernels that `wanted` names out of `source`, or all of them where it names none."""
    whole = program(source, folders)
    every, kept = needed(whole, wanted)
    aliases, recursive = _aliases(whole), _recursive(whole, every)
    words = {word for index in kept for word in every[index][1].words}
    names = {path: f"{index}-{path.name}" for index, path in enumerate(whole.files)}
    texts: dict[str, str] = {}
    left: dict[Path, list[tuple[int, int]]] = {}
    optional: dict[str, None] = {}
    for path in whole.files:
        mine = [
            (index in kept, piece) for index, (where, piece) in enumerate(every) if where == path
        ]
        edits = _edits(whole.texts[path], mine, aliases, recursive)
        line = whole.texts[path].line
        lines = [(line(a), line(b - 1)) for a, b, _ in edits if b > a]
        edits += _includes(whole, path, names, "std" in words, optional)
        front = _of_nvcc(whole) if path == source else ""
        text = _edited(whole.files[path].text, edits)
        texts[names[path]] = f"{front}#line 1 {_quoted(path)}\n{text}"
        if path == source:
            held = [(where, piece) for index, (where, piece) in enumerate(every) if index in kept]
            texts[names[path]] += "".join(_behind(whole, one, held, names) for one in whole.joined)
        if lines:
            left[path] = _joined(lines)
    return ExtractedProgram(texts, tuple(whole.files), left, list(optional), whole.beside)


def _of_nvcc(whole: Program) -> str:
    """Macros that nvcc gives a .cu file before its first line, those that the program asks for."""
    if whole.source.suffix not in CUDA:
        return ""
    asked = [name for name in RUNTIME if any(name in one.text for one in whole.files.values())]
    return "".join(f"#ifndef {name}\n#define {name} {RUNTIME[name]}\n#endif\n" for name in asked)


def _behind(
    whole: Program, joined: Path, held: list[tuple[Path, Declaration]], names: Mapping[Path, str]
) -> str:
    """Lines that take in another source: what both have for themselves gets another name in it."""
    others = {name for path, piece in held if path != joined for name in piece.names}
    plain, own = whole.texts[joined].plain, set[str]()
    for path, piece in held:
        words = words_in(plain[piece.begin : piece.body].partition("(")[0])
        inner = {"static", "constexpr"} | ({"const"} if piece.kind == "variable" else set())
        if path == joined and piece.kind in {"function", "variable"} and words & inner:
            own |= piece.names & others
    number = names[joined].partition("-")[0]
    before = "".join(f"\n#define {name} {name}_{number}" for name in sorted(own))
    after = "".join(f"\n#undef {name}" for name in sorted(own))
    return f'{before}\n#include "{names[joined]}"{after}'


def _edits(
    source: SourceText,
    pieces: list[tuple[bool, Declaration]],
    aliases: Mapping[str, list[str]],
    recursive: set[str],
) -> list[tuple[int, int, str]]:
    """What is blanked of a file: pieces that are not kept, and members that only the host calls.

    Preprocessor lines that decide or define something stay.
    """
    edits: list[tuple[int, int, str]] = []
    for keep, piece in pieces:
        if keep:
            # A namespace may be of a header that is not there; it is declared first.
            opened = _opened(source.plain[piece.begin : piece.end], aliases)
            edits += [(piece.begin, piece.begin, opened)] if opened else []
            edits += [(one.begin, one.end, one.text) for one in piece.holes]
            if piece.kind in {"function", "prototype"} and piece.names & recursive:
                found = _INLINED.finditer(source.plain, piece.begin, piece.body)
                edits += [(one.start(), one.end(), "inline") for one in found]
            continue
        at = piece.begin
        for one in source.directives:
            if piece.begin <= one.begin < piece.end and one.word in _KEPT_DIRECTIVES:
                edits.append((at, one.begin, ""))
                at = one.end
        edits.append((at, piece.end, ""))
    return [one for one in edits if one[2] or source.plain[one[0] : one[1]].strip()]


def _recursive(whole: Program, every: list[tuple[Path, Declaration]]) -> set[str]:
    """Functions that reach themselves: none of them can be inlined always, as a host takes the word."""
    called: dict[str, set[str]] = {}
    for path, piece in every:
        if piece.kind == "function" and "__forceinline__" in piece.marks:
            words = words_in(whole.texts[path].plain[piece.body : piece.end])
            for name in piece.names:
                called[name] = called.get(name, set()) | words
    for _ in range(len(called)):
        known = {
            n: w | {o for one in w & called.keys() for o in called[one]} for n, w in called.items()
        }
        if known == called:
            break
        called = known
    return {name for name, words in called.items() if name in words}


def _opened(text: str, aliases: Mapping[str, list[str]]) -> str:
    """Declarations of the namespaces that `using namespace a::b;` or `namespace c = a::b;` speaks of."""
    match = re.fullmatch(r"(?:using\s+namespace|namespace\s+\w+\s*=)\s*([\w:\s]+);", text.strip())
    names = re.findall(r"\w+", match[1]) if match is not None else []
    if names and names[0] in _OF_STD:
        names = ["std", *names]  # by `using namespace std`
    for _ in range(len(aliases)):  # one may lead to the next
        names = [*aliases.get(names[0], names[:1]), *names[1:]] if names else []
    return "".join(f"namespace {name} {{ " for name in names) + "} " * len(names)


def _aliases(whole: Program) -> dict[str, list[str]]:
    """What `namespace a = b::c;` stands for, by name."""
    texts = (text.plain for text in whole.texts.values())
    found = (re.finditer(r"\bnamespace\s+(\w+)\s*=\s*([\w:\s]+);", text) for text in texts)
    known = {one[1]: re.findall(r"\w+", one[2]) for matches in found for one in matches}
    return {name: names for name, names in known.items() if name not in names}


def _includes(
    whole: Program, path: Path, names: dict[Path, str], std: bool, optional: dict[str, None]
) -> list[tuple[int, int, str]]:
    """The user's files lead to what is taken of them; what is not there is asked for first."""
    edits: list[tuple[int, int, str]] = []
    one, source = whole.files[path], whole.texts[path]
    for directive in source.directives:
        if directive.word not in {"include", "include_next", "import"}:
            continue
        begin, end = directive.begin, directive.end
        if begin in one.includes:
            edits.append((begin, end, f'#include "{names[one.includes[begin]]}"'))
        elif begin in one.foreign:
            name = one.foreign[begin]
            of_host = name[1:-1] in _HOST_HEADERS.split() and not std
            if of_host or _HOST_LIBRARIES.match(name[1:-1]):
                edits.append((begin, end, ""))
            elif not ALWAYS.fullmatch(name[1:-1]):
                line = source.line(begin) + 1
                optional[name.strip('<>"')] = None
                taken = f"#include {name}"
                if not name.startswith(("<hip", '"hip')):
                    taken = f"{_VOTES_OFF}\n{taken}\n{_VOTES_ON}"
                if _TORCH.match(name):
                    taken = f"{taken}\n#else\n#include <tokitai_torch.hpp>"
                asked = f"#if __has_include({name})\n{taken}\n#endif\n#line {line}"
                edits.append((begin, end, asked))
    return edits


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    at = 0
    for begin, end, new in sorted(edits):
        if begin < at:
            continue
        parts.append(text[at:begin])
        blanked = re.sub(r"[^\n]", " ", text[begin:end])
        parts.append(new + (blanked[len(new) :] if "\n" not in new else ""))
        at = end
    return "".join(parts) + text[at:]


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _joined(lines: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for first, last in sorted(lines):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found
