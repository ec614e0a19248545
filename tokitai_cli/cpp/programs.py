"""The programs of a run: each source read once for all that ask, and again where it has changed."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from tokitai_cli.core.storage import sha256
from tokitai_cli.cpp import source_text
from tokitai_cli.cpp.lexing import names_in
from tokitai_cli.cpp.policy import CUDA, Pass, host_pass
from tokitai_cli.cpp.whole import Program, read_program

_Key = tuple[Path, tuple[Path, ...], tuple[Path, ...]]


class Programs:
    """Programs by source, folders and pass. Threads may share it."""

    def __init__(self) -> None:
        self._kept: dict[_Key, list[_Kept]] = {}
        self._lock = threading.Lock()

    def of(
        self, source: Path, folders: Sequence[Path], defines: Mapping[str, str] | None = None
    ) -> Program:
        """The program as the host's compiler reads it. defines: macros of the command line."""
        given = Pass("", host_pass(source.suffix in CUDA, defines), {})
        return self.read(source, folders, given)

    def read(
        self, source: Path, folders: Sequence[Path], given: Pass, front: Sequence[Path] = ()
    ) -> Program:
        """The program as `read_program` reads it.

        One that another pass has read serves where no text speaks of what the two differ in.
        """
        key = source, tuple(folders), tuple(front)
        with self._lock:
            kept = self._kept[key] = [one for one in self._kept.get(key, ()) if one.is_current()]
            for one in kept:
                if one.serves(given):
                    return one.program
            kept.append(_Kept(read_program(source, folders, given, front), given))
            return kept[-1].program


class _Kept:
    """A program with the pass that read it, and what it was read from."""

    def __init__(self, program: Program, read_by: Pass) -> None:
        self.program, self._read_by = program, read_by
        self._beside = {folder: _contents(folder) for folder in program.beside}

    def is_current(self) -> bool:
        """Whether each file that was looked for is as it was."""
        return all(
            source_text.text_of(path) == text
            for one in self.program.sources
            for path, text in one.unit.looked_for.items()
        ) and all(_contents(folder) == known for folder, known in self._beside.items())

    def serves(self, given: Pass) -> bool:
        """Whether another pass would read the same."""
        units = [one.unit for one in self.program.sources]
        asked = _differing(self._read_by.known, given.known)
        if not all(asked.isdisjoint(one.tested) for one in units):
            return False
        put_in = _differing(self._read_by.defines, given.defines)
        texts = (one.looked_for.get(str(path)) or "" for one in units for path in one.files)
        return not put_in or not any(
            "##" in text or not put_in.isdisjoint(names_in(text))
            for text in (*given.defines.values(), *self._read_by.defines.values(), *texts)
        )


def _differing(first: Mapping[str, str], second: Mapping[str, str]) -> set[str]:
    names = first.keys() | second.keys()
    return {name for name in names if first.get(name) != second.get(name)}


def _contents(folder: Path) -> dict[Path, str]:
    """Digests of a folder's sources."""
    return {one: sha256(source_text.read(one) or b"") for one in source_text.units_in(folder)}
