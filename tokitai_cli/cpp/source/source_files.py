"""The files that a source is made of: itself, and what it includes of the user's own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tokitai_cli.core import resources
from tokitai_cli.cpp import source_text

VERSION = 7  # of what is taken out of a program: belongs to the key of a build
SYSTEM = (Path("/usr/local/include"), Path("/usr/include"))  # where every compiler looks
_INCLUDE = (
    r"^[ \t]*#[ \t]*(?:include(?:_next)?|import)[ \t]*(?P<mark>[\"<])(?P<name>[^\">\n]+)[\">]"
)
# What says that a program holds host code: launches, the runtime API, a main, headers of hosts and
# of CUDA; and groups of a whole grid, without which its other kernels can do.
_HOST = re.compile(
    r"<<<|\bthis_(?:multi_)?grid\b|\bhipLaunchKernelGGL\b|\bmain\s*\(|\b(?:hip|cuda)(?:Error|Stream|Event)_t\b"
    r"|\b(?:hip|cuda|cu)(?:Malloc|Memcpy|Free|Device|Stream|Event|Get|Launch|Func|Module)\w*\s*\("
    r"|#[ \t]*include[ \t]*[<\"](?:iostream|fstream|sstream|vector|string|chrono|random|map|torch|ATen"
    r"|cuda\w*|cu(?:rand|blas|dnn)\w*|cooperative_groups|device_launch_parameters|nvtx\w*"
    r"|c10|pybind11|gtest|gmock|Python\.h|thrust/(?:host|device)_vector|benchmark|mpi|omp)\b"
)
_GUARDED = re.compile(
    r"^[ \t]*#[ \t]*ifndef[ \t]+TOKITAI\b.*?^[ \t]*#[ \t]*(?:endif|else)\b", re.M | re.S
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
        if _HOST.search(text):
            plain = source_text.blank(_GUARDED.sub("", text)) if "TOKITAI" in text else text
            if _HOST.search(plain):
                return True
    return False


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
        for match, place in _led(path, text, own):
            if place is None:
                closing = ">" if match["mark"] == "<" else '"'
                one.foreign[match.start()] = match["mark"] + match["name"] + closing
            else:
                one.includes[match.start()] = place
                waiting.append(place)
    return found


def included(path: Path, folders: Sequence[Path]) -> list[Path]:
    """Files of the user's that `path` itself takes in."""
    text = (source_text.read(path) or b"").decode("utf-8", "replace")
    return [place for _, place in _led(path, text, folders) if place is not None]


def _led(
    path: Path, text: str, folders: Sequence[Path]
) -> Iterator[tuple[re.Match[str], Path | None]]:
    """Each #include of a file, and the file of the user's that it leads to, if any."""
    for match in re.finditer(_INCLUDE, text, re.MULTILINE):
        near = (path.parent, *folders) if match["mark"] == '"' else folders
        places = (_normal(folder / match["name"]) for folder in near)
        place = next((one for one in places if one.is_file()), None)
        yield match, None if match["name"].startswith("hip/") else place


def _normal(path: Path) -> Path:
    """`path` without `..`: links stay what they are."""
    return Path(os.path.normpath(path))
