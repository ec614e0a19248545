"""The files that a source is made of: itself, and what it includes of the user's own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tokitai_cli.core import resources
from tokitai_cli.cpp import lexing, source_text
from tokitai_cli.cpp.lexing import blank, directive_in, included_names, names_in

VERSION = 7  # of what is taken out of a program: belongs to the key of a build
SYSTEM = (Path("/usr/local/include"), Path("/usr/include"))  # where every compiler looks
# What says that a program holds host code: launches, the runtime API, a main, headers of hosts and
# of CUDA; and groups of a whole grid, without which its other kernels can do.
_HANDLES = {
    f"{front}{kind}_t" for front in ("hip", "cuda") for kind in ("Error", "Stream", "Event")
}
_WORDS = _HANDLES | {"this_grid", "this_multi_grid", "hipLaunchKernelGGL"}
_KINDS = (
    "Malloc",
    "Memcpy",
    "Free",
    "Device",
    "Stream",
    "Event",
    "Get",
    "Launch",
    "Func",
    "Module",
)
_CALLED = tuple(f"{front}{kind}" for front in ("hip", "cuda", "cu") for kind in _KINDS)
# Members of a class with values, as nvcc takes them and C++ does not.
_CONSTANTS = tuple(f"static {order}" for kind in ("float", "double")
                   for order in (f"const {kind}", f"{kind} const"))  # fmt: skip
_HEADERS = {
    *(
        "iostream",
        "fstream",
        "sstream",
        "vector",
        "string",
        "chrono",
        "random",
        "map",
        "torch",
        "ATen",
    ),
    *(
        "cooperative_groups",
        "device_launch_parameters",
        "c10",
        "pybind11",
        "gtest",
        "gmock",
        "Python",
    ),
    *("benchmark", "mpi", "omp"),
}
_FRONTS = (
    "cuda",
    "curand",
    "cublas",
    "cudnn",
    "nvtx",
    "thrust/host_vector",
    "thrust/device_vector",
)


class UserFile(msgspec.Struct, frozen=True):
    """A file of the user's with its text, and where each of its includes leads."""

    path: Path
    text: str
    #: By offset of the directive, the file of the user's that it takes in.
    includes: dict[int, Path]
    #: The others, by offset, with their quotes or brackets.
    foreign: dict[int, str]


def has_host_code(texts: Sequence[str]) -> bool:
    """Whether a GPU's compiler is needed to read them: quick, and true of some that do without."""
    for text in texts:
        if _speaks_to_host(text):
            plain = blank(_without_guarded(text)) if "TOKITAI" in text else text
            if plain is text or _speaks_to_host(plain):
                return True
    return False


def _speaks_to_host(text: str) -> bool:
    if "<<<" in text or any(one in text for one in _CONSTANTS):
        return True
    if any(one in text for one in _WORDS) and not _WORDS.isdisjoint(names_in(text)):
        return True
    if any(one in text for one in ("main", *_CALLED)):
        called = lexing.called_names(text)
        if "main" in called or any(one.startswith(_CALLED) for one in called):
            return True
    names = [name[1:-1] for _, name in included_names(text)]
    return any(
        one.startswith(_FRONTS) or not _HEADERS.isdisjoint(names_in(one)[:1]) for one in names
    )


def _without_guarded(text: str) -> str:
    """The text without what `#ifndef TOKITAI` leaves out."""
    kept, left_out = list[str](), False
    for line in text.splitlines(keepends=True):
        directive, told = directive_in(line)
        if directive == "ifndef" and told.split()[:1] == ["TOKITAI"]:
            left_out = True
        elif left_out and directive in {"endif", "else"}:
            left_out = False
        elif not left_out:
            kept.append(line)
    return "".join(kept)


def user_files(source: Path, folders: Sequence[Path]) -> dict[Path, UserFile]:
    """`source` and the files that it includes from its own and the user's `folders`, by path."""
    shipped = resources.kernels_dir()
    own = [folder for folder in folders if not folder.is_relative_to(shipped)]
    found: dict[Path, UserFile] = {}
    waiting = [source]
    while waiting and len(found) < source_text.MAX_FILES:
        path = waiting.pop()
        data = source_text.read(path) if path not in found else None
        if data is None:
            continue
        text = data.decode("utf-8", "replace").replace("\ufeff", " ", 1)  # a byte order mark
        one = UserFile(path, text, {}, {})
        found[path] = one
        for at, name, place in _led(path, text, own):
            if place is None:
                one.foreign[at] = name
            else:
                one.includes[at] = place
                waiting.append(place)
    return found


def included(path: Path, folders: Sequence[Path]) -> list[Path]:
    """Files of the user's that `path` itself takes in."""
    text = (source_text.read(path) or b"").decode("utf-8", "replace")
    return [place for _, _, place in _led(path, text, folders) if place is not None]


def _led(path: Path, text: str, folders: Sequence[Path]) -> Iterator[tuple[int, str, Path | None]]:
    """Place and name of each #include of a file, and the file of the user's that it leads to, if any."""
    for at, name in included_names(text):
        near = (path.parent, *folders) if name[0] == '"' else folders
        places = (_normal(folder / name[1:-1]) for folder in near)
        place = next((one for one in places if one.is_file()), None)
        yield at, name, None if name[1:].startswith("hip/") else place


def _normal(path: Path) -> Path:
    """`path` without `..`: links stay what they are."""
    return Path(os.path.normpath(path))
