"""A program as its preprocessor leaves it: for what is read of it, not for what is built of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tokitai_cli.core import resources
from tokitai_cli.cpp.policy import CUDA, host_pass
from tokitai_cli.cpp.program import Program as Tree
from tokitai_cli.cpp.source.blanking import SourceText, macros_of, source_text
from tokitai_cli.cpp.source.extract import Program
from tokitai_cli.cpp.source.joined import definers
from tokitai_cli.cpp.source.pieces import pieces_of
from tokitai_cli.cpp.source.source_files import UserFile, user_files
from tokitai_cli.cpp.source_text import blank
from tokitai_cli.cpp.unit import Unit, preprocess


def expanded_program(source: Path, folders: Sequence[Path], defines: Mapping[str, str]) -> Program:
    """Read `source` and what it includes of the user's, macros put in and branches decided.

    And sources beside it that define device functions which it only declares. defines: macros of the
    command line.
    """
    found, trees = _read([source], folders, defines)
    own = frozenset(found.files)
    more, beside = definers(found.pieces, found.files)
    while more:
        found, trees = _read([source, *found.joined, *more], folders, defines)
        more, also = definers(found.pieces, found.files)
        beside |= also
    found.beside = tuple(sorted(beside))
    found.trees = trees
    for path in found.files.keys() - own:
        for piece in found.pieces[path]:
            if piece.kernel:
                piece.marks = frozenset()  # it is that source's
    return found


def _read(
    roots: Sequence[Path], folders: Sequence[Path], defines: Mapping[str, str]
) -> tuple[Program, list[Tree]]:
    shipped = resources.kernels_dir()
    own = [folder for folder in folders if not folder.is_relative_to(shipped)]
    files, texts, trees = dict[Path, UserFile](), dict[Path, SourceText](), list[Tree]()
    for root in roots:
        unit = preprocess(root, own, host_pass(root.suffix in CUDA, defines))
        trees.append(Tree(unit))
        listed = user_files(root, folders)
        parts = _parts(unit, listed)
        for path in (one for one in listed if one in parts and one not in texts):
            text, starts, numbers = parts[path]
            texts[path] = _placed(source_text(text, {}), starts, numbers)
        files |= {path: one for path, one in listed.items() if path not in files}
    files = {path: one for path, one in files.items() if path in texts}
    pieces = {path: pieces_of(text) for path, text in texts.items()}
    plain = [blank(one.text, quotes=True) for one in files.values()]
    given = (f"#define {name} {value}" for name, value in defines.items() if value)
    macros = macros_of(given) | macros_of(plain)
    joined = tuple(roots[1:])
    return Program(roots[0], files, texts, pieces, macros, defines, joined), trees


def _parts(
    unit: Unit, known: Mapping[Path, object]
) -> dict[Path, tuple[str, list[int], list[int]]]:
    """The unit's text file by file: offsets at which the line changes, and the lines."""
    found: dict[Path, tuple[list[str], list[int], list[int]]] = {}
    sizes: dict[Path, int] = {}
    ends = [*unit.starts[1:], len(unit.text)][: len(unit.starts)]
    paths: dict[str, Path] = {}
    for begin, end, origin in zip(unit.starts, ends, unit.origins, strict=True):
        path = paths.setdefault(origin.file, Path(origin.file))
        if path not in known:
            continue
        text = unit.text[begin:end].decode("utf-8", "replace")
        parts, starts, numbers = found.setdefault(path, ([], [], []))
        if not numbers or numbers[-1] != origin.line:
            starts.append(sizes.get(path, 0))
            numbers.append(origin.line)
        parts.append(text)
        sizes[path] = sizes.get(path, 0) + len(text)
    return {
        path: ("".join(parts), starts, numbers) for path, (parts, starts, numbers) in found.items()
    }


def _placed(text: SourceText, starts: list[int], numbers: list[int]) -> SourceText:
    text.lines, text.numbers = starts, numbers
    return text
