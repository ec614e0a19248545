"""A program as its text has it: the files, what they declare, and what of that its kernels reach."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgspec

from tokitai_cli.cpp.program import Program as Tree
from tokitai_cli.cpp.source.blanking import Macro, SourceText, macros_of, source_text
from tokitai_cli.cpp.source.joined import definers
from tokitai_cli.cpp.source.pasted import pasted_words
from tokitai_cli.cpp.source.pieces import Declaration, pieces_of
from tokitai_cli.cpp.source.reachable import host_names, reached
from tokitai_cli.cpp.source.source_files import UserFile, user_files
from tokitai_cli.cpp.source_text import blank

_P = ParamSpec("_P")
_T = TypeVar("_T")


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
