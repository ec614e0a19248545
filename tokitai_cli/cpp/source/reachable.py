"""What of a program's declarations its kernels reach, by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from tokitai_cli.cpp.source.blanking import DEVICE_WORDS, Macro
from tokitai_cli.cpp.source.pieces import Declaration

# Of the host alone, whoever declares it.
_HOST = re.compile(r"(?:hip|cuda|cu)[A-Z]\w*|std|malloc|free|\w*printf|exit|new|delete|throw")


def host_names(pieces: Sequence[Declaration]) -> set[str]:
    """Names that stand for the host's alone: functions and members that no GPU can run, and its API."""
    own = [one for one in pieces if one.kind == "function"]
    host = {name for one in own if not one.device for name in one.names}
    host |= {hole.name for one in pieces for hole in one.holes if hole.name}
    host -= {name for one in own if one.device for name in one.names}
    return host | {word for one in pieces for word in one.words if _HOST.fullmatch(word)}


def reached(
    pieces: Sequence[Declaration],
    macros: Mapping[str, Macro],
    wanted: Collection[str],
    host: set[str],
) -> set[int]:
    """Indices of the pieces to keep: kernels, and what they reach.

    wanted: all names of the kernels and symbols to serve, those of template arguments among them;
    empty for every kernel. host: names of the host's. Host functions are never kept. A name reaches
    every declaration of that name.
    """
    kernels = [one for one in pieces if one.kernel]
    roots = {name for one in kernels for name in one.names}
    chosen = roots & set(wanted) or roots
    classes = {name for one in pieces if one.kind == "class" for name in one.names}
    keeper = _Keeper(macros, host, classes)
    keeper.use({*wanted, *chosen})
    kept: set[int] = set()
    while True:
        more = {i for i, one in enumerate(pieces) if i not in kept and keeper.keeps(one)}
        if not more:
            return kept
        kept |= more
        for index in more:
            keeper.use(pieces[index].words)


class _Keeper:
    def __init__(self, macros: Mapping[str, Macro], host: set[str], classes: set[str]) -> None:
        self._macros = macros
        self._host = host
        self._classes = classes
        self._used: set[str] = set()

    def use(self, words: set[str]) -> None:
        """Take `words`, and those of the macros among them, as used."""
        waiting = words - self._used
        while waiting:
            self._used |= waiting
            bodies = (self._macros[word].words for word in waiting if word in self._macros)
            waiting = {word for body in bodies for word in body} - self._used

    def _closure(self, words: set[str]) -> set[str]:
        found: set[str] = set()
        waiting = set(words)
        while waiting:
            found |= waiting
            waiting = {
                word for one in waiting if one in self._macros for word in self._macros[one].words
            } - found
        return found

    def keeps(self, piece: Declaration) -> bool:
        if piece.kind == "space":
            return True
        if piece.kind in {"using", "instantiation"} and piece.names & self._host:
            return False
        if piece.kind in {"call", "unknown"} or not piece.names:
            return self._keeps_unnamed(piece)
        if piece.kind in {"function", "prototype", "instantiation"}:
            if not piece.device and piece.kind != "instantiation":
                return False
            if any(name.startswith("operator") for name in piece.names):
                own = piece.head & self._classes
                return not own or bool(own & self._used)
        return bool(piece.names & self._used)

    def _keeps_unnamed(self, piece: Declaration) -> bool:
        """A call of a macro, or what could not be read: kept where it is the device's."""
        closure = self._closure(piece.words)
        if piece.kind == "call" and not piece.words & self._macros.keys():
            return False
        if closure & DEVICE_WORDS:
            return True
        return piece.kind == "call" and not closure & self._host
