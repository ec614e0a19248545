"""Whether kernels read an array, for a verdict: what is not certain counts as not read."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tokitai_cli.cpp.body.reader import read, roles
from tokitai_cli.cpp.declarations import Declaration
from tokitai_cli.cpp.policy import CUDA, Pass, device_pass, host_pass, open_names
from tokitai_cli.cpp.program import Program
from tokitai_cli.cpp.programs import Programs

_READS = {"read", "update"}


class Reads:
    """What the kernels of a source read, under all conditions that a compiler may read it with."""

    def __init__(
        self,
        source: Path,
        folders: Sequence[Path],
        front: Iterable[Path] = (),
        defines: Mapping[str, str] | None = None,
        programs: Programs | None = None,
    ) -> None:
        """folders: of headers. front: headers that are taken in first. defines: of the command line."""
        self._source, self._folders = source, folders
        self._front = tuple(front)
        self._defines = defines or {}
        self._read = (programs or Programs()).read
        self._known: dict[tuple[int, int], Mapping[str, str]] = {}

    def certain(self, kernel: str, given: int, index: int, path: str = "") -> bool:
        """Whether a kernel reads an array that it is passed.

        kernel: its name without namespaces. given: how many arguments it gets. index: of the argument.
        path: of the field that holds the array, as `.inner.x`. Of several kernels that may be meant each
        has to.
        """
        place = re.sub(r"\[\d+\]", "", path)
        for program in self._programs:
            found = [one for one in program.kernels if one.name == kernel]
            meant = [one for one in found if len(one.parameters) >= given]
            if not meant:
                return False
            for one in meant:
                array = f"{one.parameters[index].name}{place}"
                if self._roles(program, one).get(array) not in _READS:
                    return False
        return True

    @functools.cached_property
    def _programs(self) -> list[Program]:
        """The source as each compiler reads it, and with all that another one may define."""
        cuda = self._source.suffix in CUDA
        macros = [host_pass(cuda, self._defines), device_pass(cuda, self._defines)]
        found = [self._program(given) for given in macros]
        more = {name: "1" for one in found for name in open_names(one.unit.undecided)}
        if more:
            found.append(self._program(macros[0] | more))
        return [*{one.unit.text: one for one in found}.values()]

    def _program(self, macros: Mapping[str, str]) -> Program:
        given = Pass("", macros, {})
        return self._read(self._source, self._folders, given, self._front).trees[0]

    def _roles(self, program: Program, kernel: Declaration) -> Mapping[str, str]:
        key = id(program), kernel.node.start_byte
        if key not in self._known:
            self._known[key] = roles(read(program, kernel))
        return self._known[key]
