"""A unit's text written anew: parts blanked, headers asked for, and #line where a place jumps."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

from tokitai_cli.core import resources
from tokitai_cli.cpp.lexing import included_names, without_comments
from tokitai_cli.cpp.preprocessed_unit import Unit

# Standard headers of the host alone, which cost a compiler time.
_HOST_HEADERS = """
    iostream fstream sstream ostream istream iomanip vector string map unordered_map set unordered_set
    list deque queue stack chrono random thread mutex future condition_variable filesystem regex memory
    functional numeric exception stdexcept locale atomic getopt.h unistd.h omp.h sys/time.h time.h ctime
    sys/stat.h sys/types.h string_view optional variant any iterator system_error cstdarg csignal
    signal.h dirent.h
"""
# Libraries of tests and bindings: no kernel needs them, and they would have to be linked.
_HOST_LIBRARIES = ("benchmark/", "gtest/", "gmock/", "catch2/", "doctest/", "pybind11/", "nanobind/",
                   "CLI/", "nlohmann/", "spdlog/")  # fmt: skip
_HOST_FILES = frozenset({"mpi.h", "mpi.hpp", "cxxopts.h", "cxxopts.hpp"})
_OF_C = frozenset(
    f"{name}.h" for name in
    """assert complex ctype errno fenv float inttypes limits malloc math memory stdarg stdbool stddef
       stdint stdio stdlib string wchar hip/hip_runtime hip/hip_runtime_api hip/hip_fp16 hip/hip_bf16
       hip/hip_bfloat16""".split()  # noqa: SIM905 - a line in place of a page
)  # fmt: skip
_TORCH = ("torch/", "ATen/", "c10/")  # where they are not installed, ours has what kernels use
# Macros by which a program sets up headers that are not its own.
_SETTINGS = ("_USE_MATH", "_GNU", "__STDC_", "__HIP_NO", "__CUDA_NO", "CUB_", "THRUST_", "CCCL_",
             "HIP_ENABLE", "NDEBUG")  # fmt: skip
_NEAR = 4  # lines that are left blank rather than told by a #line


def is_standard(name: str) -> bool:
    """Whether a header is C's, C++'s or HIP's own."""
    return name in _OF_C or (name.isascii() and name.islower() and name.replace("_", "a").isalnum())


def edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """The text with parts of it blanked, and others in the place of some; it keeps its lines."""
    parts: list[str] = []
    at = 0
    for begin, end, new in sorted(edits):
        if begin < at:
            continue
        parts += [text[at:begin], new, "\n" * text.count("\n", begin, end)]
        at = end
    return "".join(parts) + text[at:]


def write_lines(unit: Unit, text: str, std: bool, optional: dict[str, None]) -> str:
    """The lines of a unit's edited text, each at its place in the user's files.

    std: whether a kernel uses the standard library. optional: gets the names of headers that are taken
    in only where they are there.
    """
    out = [_settings(unit)]
    asked = set[str]()
    place, offset = ("", 0), 0
    # The unit's own lines say where each begins; the edited text has as many.
    for own, line in zip(unit.text.decode("latin-1").split("\n"), text.split("\n"), strict=True):
        begin = offset
        offset += len(own) + 1
        if not line.strip():
            continue
        name = next((told for _, told in included_names(line)), None)
        if name is not None:
            if name not in asked or name == "<assert.h>":
                asked.add(name)
                out += _taken_in(name, std, optional)
                place = ("", 0)
            continue
        origin = unit.origin(begin + len(own) - len(own.lstrip()))
        out += _led(place, (origin.file, origin.line))
        out.append(line.rstrip().encode("latin-1").decode("utf-8", "replace") + "\n")
        place = (origin.file, origin.line + 1)
    return "".join(out)


def _led(expected: tuple[str, int], place: tuple[str, int]) -> Iterator[str]:
    """What makes the next line stand at `place`, where it would stand at `expected`."""
    gap = place[1] - expected[1]
    if expected[0] == place[0] and 0 <= gap <= _NEAR:
        yield "\n" * gap
    else:
        yield f"#line {place[1]} {quoted(Path(place[0]))}\n"


def _taken_in(name: str, std: bool, optional: dict[str, None]) -> Iterator[str]:
    plain = name[1:-1]
    if plain.startswith(_HOST_LIBRARIES) or plain in _HOST_FILES:
        return
    if plain in _HOST_HEADERS.split() and not std:
        return
    if is_standard(plain):
        yield f"#include {name}\n"
        return
    optional[plain] = None
    taken = f"#include {name}\n"
    if not plain.startswith("hip"):
        taken = f"{_votes('off')}{taken}{_votes('on')}"
    if plain.startswith(_TORCH):
        taken = f"{taken}#else\n#include <tokitai_torch.hpp>\n"
    yield f"#if __has_include({name})\n{taken}#endif\n"


@functools.cache
def _votes(way: str) -> str:
    """What puts HIP's votes aside for headers that are not ours, "off" and "on" again.

    They are macros on cuda, and CUDA's headers have functions of their own by these names.
    """
    file = resources.kernels_dir() / "cuda" / "tokitai_cuda" / f"votes_{way}.h"
    return without_comments(file.read_text(encoding="utf-8")).lstrip()


def _settings(unit: Unit) -> str:
    """Macros by which the program sets up headers that are not its own."""
    names = (one for one in unit.macros if one.startswith(_SETTINGS))
    return unit.definitions(names)


def quoted(path: Path) -> str:
    """A path as a literal of C++."""
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
