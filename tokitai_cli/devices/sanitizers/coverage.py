"""Lines and branches of kernels that no case has executed, as gcov tells them of a build by g++."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tokitai_cli.core import process
from tokitai_cli.core.linked_folders import links_of
from tokitai_cli.devices.environment import compiler_environment
from tokitai_cli.devices.programs import first_program
from tokitai_cli.devices.sanitizers import source_lines

_SECONDS = 60.0
_MOST = 12  # ranges and names that are told
_NOTES, _COUNTS = "child.gcno", "child.gcda"


def gcov_of(driver: Sequence[str]) -> str:
    """The gcov that belongs to a g++; empty where there is none, or the compiler is another one."""
    path = Path(driver[0])
    real = path.resolve().name
    if "g++" not in real or "clang" in real:
        return ""
    names = [str(path.resolve().with_name(real.replace("g++", "gcov"))), "gcov"]
    found = first_program([(name, "PATH") for name in names])
    return str(found[0]) if found is not None else ""


class Coverage:
    """Counts of lines, branches and functions over all children so far, by file."""

    def __init__(self, gcov: str) -> None:
        self._gcov = gcov
        self._lines: dict[str, dict[int, int]] = {}
        self._branches: dict[str, dict[int, list[int]]] = {}
        self._functions: dict[str, dict[str, tuple[int, int, int]]] = {}

    def add(self, built: Path, counts: Path) -> None:
        """Take in what a child left in the folder `counts`; `built` is its executable's folder."""
        if not ((counts / _COUNTS).is_file() and (built / _NOTES).is_file()):
            return
        shutil.copyfile(built / _NOTES, counts / _NOTES)
        argv = [self._gcov, "-b", "-m", "--json-format", "--stdout", str(counts / _COUNTS)]
        done = process.run(argv, env=compiler_environment(), timeout=_SECONDS, cwd=counts)
        for text in done.stdout.splitlines():
            for file in json.loads(text)["files"] if text.startswith("{") else []:
                file["file"] = links_of(built).text(file["file"])
                # What the harness is made of has no path.
                if file["file"].startswith("/") and source_lines.own(
                    [f"{file['file']}:1"], only=True
                ):
                    self._take(file)

    def _take(self, file: dict[str, Any]) -> None:
        lines = self._lines.setdefault(file["file"], {})
        branches = self._branches.setdefault(file["file"], {})
        for one in file["lines"]:
            at = one["line_number"]
            lines[at] = lines.get(at, 0) + one["count"]
            taken = [way["count"] for way in one["branches"] if not way["throw"]]
            known = branches.get(at, [])
            # Instances of a template have branches of their own: any that was taken both ways will do.
            if len(taken) == len(known):
                taken = [a + b for a, b in zip(known, taken, strict=True)]
            if len(taken) >= len(known):
                branches[at] = taken
        functions = self._functions.setdefault(file["file"], {})
        for one in file["functions"]:
            name = one["demangled_name"].partition("(")[0].rpartition(" ")[2]
            count = functions.get(name, (0, 0, 0))[0] + one["execution_count"]
            functions[name] = (count, one["start_line"], one["end_line"])

    def texts(self) -> tuple[str, ...]:
        """What no case has executed, a sentence for each file and kind; files by their names."""
        return tuple(text for file in sorted(self._lines) for text in self._of_file(file))

    def _of_file(self, file: str) -> Iterator[str]:
        name, lines = Path(file).name, self._lines[file]
        never = {key: one for key, one in self._functions[file].items() if not one[0]}
        if never:
            yield f"functions of {name} that no case executed: {_few(sorted(never))}"
        inside = {at for _, first, last in never.values() for at in range(first, last + 1)}
        left = [at for at, count in lines.items() if not count and at not in inside]
        if left:
            yield f"lines of {name} that no case executed: {_few(_ranges(left))}"
        half = [
            at
            for at, ways in self._branches[file].items()
            if lines[at] and ways and not all(ways) and at not in inside
        ]
        if half:
            yield f"lines of {name} with a branch that no case took: {_few(_ranges(half))}"


def _ranges(numbers: Iterable[int]) -> list[str]:
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return [str(first) if first == last else f"{first}-{last}" for first, last in found]


def _few(words: Sequence[str]) -> str:
    rest = f" and {len(words) - _MOST} more" if len(words) > _MOST else ""
    return ", ".join(words[:_MOST]) + rest
