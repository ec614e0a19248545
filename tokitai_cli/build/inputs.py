"""What a build really read, as compiler, assembler and linker tell it, and whether it is the same."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli.core import flags, resources
from tokitai_cli.core.errors import BuildError, Location
from tokitai_cli.core.file_kind import is_machine_code
from tokitai_cli.core.linked_folders import links_of
from tokitai_cli.core.storage import file_sha256, sha256
from tokitai_cli.cpp import lexing, source_text
from tokitai_cli.cpp.source.source_files import SYSTEM

if TYPE_CHECKING:
    from tokitai_cli.cpp.extraction import ExtractedProgram

# Ends of names of what a build makes: executables, objects, assembler's text.
_MADE = ("", ".o", ".s", ".co")
_MEMBER = r"\((?P<front>.+)\).+|(?P<back>.+)\(.+\)"  # of an archive


def read_depfile(text: str, folder: Path) -> list[Path]:
    r"""List the prerequisites of a Makefile rule, absolute and without doubles.

    Relative ones start at `folder`, or where its links lead. Escapes are those that GCC writes:
    `\ ` for a blank, `\#`, `$$`, and a backslash before a line break.
    """
    joined = re.sub(r"\\\r?\n", " ", text)
    rule = next((line for line in joined.splitlines() if ":" in line), "")
    _, _, prerequisites = rule.partition(": ")
    words = re.findall(r"(?:\\.|[^\s\\])+", prerequisites)
    plain = (re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in words)
    # Not resolved: a symbolic link that is turned to another file must be noticed.
    links = links_of(folder)
    return list(dict.fromkeys(folder / links.text(word) for word in plain))


def shadows(headers: Iterable[Path], folders: Sequence[Path]) -> list[str]:
    """Files that do not exist, and that would be included instead of one of `headers` if they did."""
    found: set[str] = set()
    for header in headers:
        # Every folder that the header lies under may be the one that it was found through.
        for position, folder in enumerate(folders):
            if header.is_relative_to(folder):
                name = header.relative_to(folder)
                places = (earlier / name for earlier in folders[:position])
                found.update(str(place) for place in places if not place.exists())
    return sorted(found)


def probed(
    files: Iterable[Path], folders: Sequence[Path], macros: bytes = b""
) -> tuple[set[str], set[str]]:
    """Files that `files` ask for by `__has_include`: those that are there, those that are not.

    No depfile names them where they are not included, yet they decide what is compiled. macros: of the
    command, which any of the files may use.
    """
    present: set[str] = set()
    absent: set[str] = set()
    by_macro = lexing.probed(macros)
    for file in files:
        for name in lexing.probed(source_text.read(file) or b"") | by_macro:
            for folder in (file.parent, *folders):
                place = folder / name
                (present if place.exists() else absent).add(str(place))
    return present, absent


def stamp(path: str) -> list[int]:
    """Size and time of last change (ns) of a file, empty where it is not there."""
    try:
        status = os.stat(path)  # noqa: PTH116 - hundreds of files in a warm run
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns]


class Digests:
    """sha256 of files, each read once in the life of this object."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, path: str) -> str:
        """Digest of a file, empty where it cannot be read or is a pipe, a device or a folder."""
        if path not in self._known:
            try:
                self._known[path] = file_sha256(path) if os.path.isfile(path) else ""  # noqa: PTH113
            except OSError:
                self._known[path] = ""
        return self._known[path]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What must hold for an artifact to fit: digests of what was read, and files that must not exist."""

    #: Headers, and what assembler and linker took in.
    headers: dict[str, str]
    absent: list[str]
    #: Size and mtime (ns) of those that come with the compiler. As for the compiler itself, equal
    #: ones spare reading the file: it is some two hundred files in every warm run.
    stamps: dict[str, list[int]]
    #: State of folders whose sources were looked through for functions that the kernels' own source
    #: lacks.
    beside: dict[str, str] = {}
    #: Digest of what was made, where a file may ask which others are there without saying their names:
    #: nothing tells then whether the artifact still fits, and it is built again. Else empty.
    made: str = ""

    def holds(self, digests: Digests) -> bool:
        """Whether every header is as it was and nothing shadows one."""
        if self.made:
            return False
        stamps = self.stamps
        for path, want in self.headers.items():
            known = stamps.get(path)
            if not (known and stamp(path) == known) and digests.of(path) != want:
                return False
        if any(_state(folder, digests) != want for folder, want in self.beside.items()):
            return False
        return not any(os.path.exists(path) for path in self.absent)  # noqa: PTH110 - as above

    def own_texts(self) -> dict[str, str]:
        """Texts of the user's own headers: those that came neither with the compiler nor this tool."""
        shipped = resources.kernels_dir()
        texts = {}
        for path, digest in self.headers.items():
            if path not in self.stamps and not Path(path).is_relative_to(shipped):
                data = source_text.read(path)
                if data is not None and b"\0" not in data and sha256(data) == digest:
                    texts[path] = data.decode("utf-8", "replace")
        return texts

    def merged(self, more: Manifest) -> Manifest:
        """What must hold for both."""
        return Manifest(
            headers={**self.headers, **more.headers},
            absent=sorted({*self.absent, *more.absent}),
            stamps={**self.stamps, **more.stamps},
            beside={**self.beside, **more.beside},
            made=self.made + more.made,
        )


def _state(folder: str, digests: Digests) -> str:
    """Digest of the names and contents of a folder's sources."""
    files = [str(one) for one in source_text.units_in(Path(folder))]
    return sha256("\n".join(f"{one} {digests.of(one)}" for one in files).encode())


def manifest_of(
    source: Path,
    command: Sequence[str],
    folder: Path,
    depfiles: Iterable[str],
    linked: Sequence[Path] = (),
    taken: ExtractedProgram | None = None,
) -> Manifest:
    """Manifest of a build of `source` by `command` in `folder`, whose own files are left out.

    depfiles: names of the rules that compiler and assembler wrote. linked: what the linker read.
    taken: what stood for the source and the user's headers.
    Raises BuildError where a file is read that no list names.
    """
    read = [
        path
        for name in depfiles
        for path in read_depfile((folder / name).read_text("utf-8", "surrogateescape"), folder)
        if path != source and not path.is_relative_to(folder)
    ]
    read += [path for path in (taken.files if taken else ()) if path != source]
    used = list(dict.fromkeys([*read, *linked]))
    includes = [source.parent, *flags.include_folders(command)]
    libraries, wanted = flags.libraries(command)
    near = [*includes, *libraries, *(path.parent for path in flags.included(command))]
    foreign = [path for path in used if not any(path.is_relative_to(one) for one in near)]
    ours = [path for path in (source, *read) if path not in foreign and not is_machine_code(path)]
    if not any("--MD" in word for word in command):
        _refuse_assembled(ours)
    macros = " ".join(word for word in command if word.startswith("-D")).encode()
    present, absent = probed(ours, includes, macros)
    late = flags.last_folders(command)
    behind = [path for path in read if any(path.is_relative_to(one) for one in late)]
    absent |= set(shadows(behind, [*(one for one in includes if one not in late), *SYSTEM, *late]))
    absent |= {str(one / name) for one in libraries for name in wanted if not (one / name).exists()}
    for name in taken.optional if taken else ():
        places = (one / name for one in (*includes, *SYSTEM))
        absent |= {str(place) for place in places if not place.exists()}
    digests = Digests()
    names = dict.fromkeys([*map(str, used), *sorted(present)])
    return Manifest(
        headers={name: digests.of(name) for name in names},
        absent=sorted({*shadows(read, includes), *absent}),
        stamps={str(path): stamp(str(path)) for path in foreign},
        beside={str(one): _state(str(one), digests) for one in (taken.beside if taken else ())},
        made=_digest_of_made(folder) if _asks_unseen(ours, macros) else "",
    )


def _asks_unseen(files: Iterable[Path], macros: bytes) -> bool:
    """Whether files, or macros of a command, ask which files are there without saying their names."""
    return any(
        map(lexing.probes_unseen, (macros, *(source_text.read(one) or b"" for one in files)))
    )


def _digest_of_made(folder: Path) -> str:
    """Digest of what the commands of a build left in its folder."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.suffix in _MADE)
    return sha256("\n".join(file_sha256(path) for path in files).encode())


def _refuse_assembled(files: Iterable[Path]) -> None:
    for path in files:
        line = lexing.assembled_line(source_text.read(path) or b"")
        if line:
            raise assembler_error(Location(path, line))


def assembler_error(where: Location) -> BuildError:
    """Error for a source whose assembler reads what the compiler does not tell, to be raised."""
    return BuildError(
        "the assembler includes a file here, and this compiler does not report which",
        where=where,
        hint="build with g++ and GNU as, or put the data into a header",
    )


def traced(printed: str, folder: Path) -> tuple[list[Path], str]:
    """Files that a linker under --trace says it read, and what it printed besides."""
    files: dict[Path, None] = {}
    rest: list[str] = []
    for line in printed.splitlines(keepends=True):
        member = re.fullmatch(_MEMBER, line.strip())
        path = folder / ((member["front"] or member["back"]) if member else line.strip())
        if line.strip() and os.path.isfile(path):  # noqa: PTH113 - no file of an impossible name
            if not path.is_relative_to(folder):
                files[path] = None
        else:
            rest.append(line)
    return list(files), "".join(rest)
