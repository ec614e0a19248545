"""Folders under names that are the same wherever they lie, so that a build gives the same bytes.

A compiler writes the paths that it is given into what it makes: line tables, `__FILE__`, checks. In
its own folder a build has a link to each folder that it reads from, and gives compilers the names of
the links. What compilers and children print of these is turned back into paths.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

# In place of the suffix of a log: a link to the folder of the executable that it is of.
BUILT = ".built"
_SOURCE, _TOOL, _INCLUDE = "tokitai-source", "tokitai-kernels", "tokitai-include-"
# Compilers put the working folder (its name in the environment), or `./`, in front of a relative path.
_NAME = re.compile(
    rf"(?<![\w./-])(?:/proc/self/cwd/)?(?:\./)*({_SOURCE}|{_TOOL}|{_INCLUDE}\d+)(?![\w-])"
)
_OPTION = r"(?P<option>-isystem|-iquote|-idirafter|-include=?|-I)?"


class LinkedFolders(msgspec.Struct, frozen=True):
    """Names of links in a folder, and where each leads."""

    targets: Mapping[str, str] = {}

    def word(self, word: str) -> str:
        """A word of a command with a link's name in place of the folder that its path begins with."""
        for name, target in sorted(self.targets.items(), key=lambda item: -len(item[1])):
            match = re.match(rf"{_OPTION}{re.escape(target)}(?=/|$)", word)
            if match is not None:
                return f"{match['option'] or ''}{name}{word[match.end() :]}"
        return word

    def text(self, text: str) -> str:
        """A text with folders in place of links' names."""
        if not self.targets:
            return text
        return _NAME.sub(lambda match: self.targets.get(match[1], match[0]), text)


NO_LINKS = LinkedFolders()


def link(
    folder: Path, tool: Path, source: Path | None = None, includes: Iterable[Path] = ()
) -> None:
    """Make links in `folder`, which no build has been in.

    tool: folder of the tool's C++; source: folder of the kernels'; includes: further ones, in order.
    """
    wanted = {_TOOL: tool, **({} if source is None else {_SOURCE: source})}
    wanted |= {f"{_INCLUDE}{at}": path for at, path in enumerate(includes, start=1)}
    for name, path in wanted.items():
        # A path such as / would stand for the beginning of every other one.
        if path.is_absolute() and len(path.parts) > 1:
            (folder / name).symlink_to(path)


def links_of(folder: Path) -> LinkedFolders:
    """The links of a folder; none where there are none, or no folder."""
    return _read(folder) if (folder / _TOOL).is_symlink() else NO_LINKS


@functools.lru_cache(maxsize=64)
def _read(folder: Path) -> LinkedFolders:
    links = (path for path in folder.iterdir() if _NAME.fullmatch(path.name) and path.is_symlink())
    return LinkedFolders({path.name: str(path.readlink()) for path in links})
