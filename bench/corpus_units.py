"""The translation units with kernels of two public repositories, from their git folders."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec

SOURCES = (".cu", ".cpp", ".cc", ".cxx", ".hip", ".C")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.M)


class Unit(msgspec.Struct, frozen=True):
    """A source with the include folders, macros and standard that its program compiles it with."""

    name: str
    source: Path
    flags: tuple[str, ...]


def extract(git: Path, folder: Path, prefix: str) -> None:
    """Write the files of HEAD below `prefix` into `folder`, but for those that the git lacks."""
    if (folder / ".done").exists():
        return
    git_words = ["git", "-C", str(git)]
    listing = subprocess.run(
        [*git_words, "ls-tree", "-r", "-z", "HEAD"], capture_output=True, check=True
    )
    with subprocess.Popen(
        [*git_words, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as batch:
        assert batch.stdin is not None
        assert batch.stdout is not None
        for entry in filter(None, listing.stdout.split(b"\0")):
            meta, _, path = entry.partition(b"\t")
            mode, kind, digest = meta.split()
            name = os.fsdecode(path)
            if kind != b"blob" or mode == b"120000" or not name.startswith(prefix):
                continue
            batch.stdin.write(digest + b"\n")
            batch.stdin.flush()
            head = batch.stdout.readline().split()
            if len(head) == 3:
                data = batch.stdout.read(int(head[2]) + 1)[:-1]
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(data)
        batch.stdin.close()
    (folder / ".done").touch()


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace")


def holds_kernels(source: Path, folders: tuple[Path, ...], root: Path) -> bool:
    """Whether `__global__` stands in `source` or in what it includes from below `root`."""
    seen: set[Path] = set()
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        text = _text(path)
        if "__global__" in text:
            return True
        for name in _INCLUDE.findall(text):
            places = (Path(os.path.normpath(one / name)) for one in (path.parent, *folders))
            waiting += [one for one in places if one.is_relative_to(root) and one.is_file()][:1]
    return False


def _made(folder: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Sources that `make` would compile in `folder`, with their flags; nothing is run."""
    try:
        done = subprocess.run(
            ["make", "-n", "-B", "-k"], cwd=folder, capture_output=True, timeout=20, check=False,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return
    for line in done.stdout.decode("utf-8", "replace").replace("\\\n", " ").splitlines():
        words: list[str] = []
        with contextlib.suppress(ValueError):
            words = shlex.split(line.replace("-I ", "-I"))
        flags: dict[str, None] = {}
        for word in words:
            if word.startswith("-I"):
                flags["-I" + os.path.normpath(folder / word[2:])] = None
            elif re.match(r"-D\w|-std=(?:c|gnu)\+\+", word):
                flags[word] = None
        for word in words:
            if word.endswith(SOURCES) and not word.startswith("-"):
                yield Path(os.path.normpath(folder / word)), tuple(flags)


def hecbench(root: Path) -> Iterator[Unit]:
    """Units of HeCBench's HIP programs."""
    for program in sorted((root / "src").glob("*-hip")):
        found: dict[Path, tuple[str, ...]] = {}
        for makefile in (program / "Makefile", *sorted(program.glob("*/Makefile"))):
            if makefile.is_file():
                for source, flags in _made(makefile.parent):
                    if source.is_file() and source.is_relative_to(root):
                        found.setdefault(source, flags)
        for source, flags in found.items():
            yield Unit(str(source.relative_to(root)), source, flags)


def rocm_examples(root: Path) -> Iterator[Unit]:
    """Units of ROCm's examples."""
    for source in sorted(root.rglob("*.hip")):
        near = (source.parent / "include", source.parent.parent / "include")
        folders = [f"-I{one}" for one in (root / "Common", root / "External", *near)]
        if re.search(r"std::(span|ranges)", _text(source)):
            folders.append("-std=c++20")
        yield Unit(str(source.relative_to(root)), source, tuple(folders))


def units(roots: tuple[Path, Path]) -> list[Unit]:
    """Every unit of both repositories that holds kernels."""
    found = [
        (root, one)
        for root, of in zip(roots, (hecbench, rocm_examples), strict=True)
        for one in of(root)
    ]
    return [
        one
        for root, one in found
        if holds_kernels(
            one.source, tuple(Path(f[2:]) for f in one.flags if f.startswith("-I")), root
        )
    ]
