"""Keeps folders of people out of evidence: a review may be blind, and files are found from the spec."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeVar

import msgspec

from tokitai_cli.core import storage
from tokitai_cli.core.model.batch_record import BatchIndex
from tokitai_cli.core.model.evidence import Evidence

_Result = TypeVar("_Result", Evidence, BatchIndex)

# Where homes lie on Linux and macOS, also on the machines that the workers of a batch ran on.
_ROOTS = ("/home/", "/Users/")
# Behind a flag, or where a path begins.
_FLAGS = ("-I", "-L", "-isystem", "-iquote", "-idirafter", "-include")
_BEGINS = rf"(?:{'|'.join(f'(?<={one})' for one in _FLAGS)}|(?<![\w.~-]))"
_ENDS = r"(?=[/\s'\":,;)=]|$)"
# Texts of the user's own files, whose digests stand beside them: only their names change.
_VERBATIM = ("specs", "sources", "header_texts")
_ABSOLUTE = re.compile(r'"rerun":"(?:[^"\\]|\\.)*[ \']/')
# A shorter path, such as /tmp, holds more than what is meant.
_LEAST_PARTS = 3


def without_folders(evidence: _Result, folders: Mapping[str, str]) -> _Result:
    """Normal evidence with the words of `folders` in place of these absolute paths.

    Every home folder, the user's and others', reads `~`; commands that repeat it name files and
    folders that are not under the working folder by their last part.
    """
    text = msgspec.json.encode(evidence).decode()
    known = {one: word for one, word in folders.items() if len(PurePath(one).parts) >= _LEAST_PARTS}
    home = storage.home()
    known |= {} if home is None else {str(home): "~"}
    homes: list[str] = [f"{root}[^/\\s'\"]+" for root in _ROOTS if root in text]
    told: list[str] = [
        re.escape(one) for one in sorted(known, key=len, reverse=True) if _in_json(one) in text
    ]
    if not told and not homes and not _ABSOLUTE.search(text):
        return evidence
    if home is not None and _in_json(str(home)) in text:
        homes.insert(0, re.escape(str(home)))
    in_shells: list[str] = [re.escape(one) for one, word in known.items() if word.startswith("$")]
    clean = _Clean(_pattern([*told, *homes]), _pattern([*in_shells, *homes]), known)
    return msgspec.convert(clean.told(msgspec.to_builtins(evidence)), type(evidence))


def _in_json(path: str) -> str:
    """The path as JSON text has it: quotes and backslashes stand behind a backslash there."""
    return msgspec.json.encode(path).decode()[1:-1]


def index_without_folders(index: BatchIndex) -> BatchIndex:
    """An index for its files: specs by the last part of their paths where these are absolute."""
    specs = [msgspec.structs.replace(one, path=_bare(one.path)) for one in index.specs]
    return without_folders(msgspec.structs.replace(index, specs=specs), {})


def _bare(path: str) -> str:
    return PurePath(path).name if path.startswith("/") else path


def _pattern(folders: Sequence[str]) -> re.Pattern[str]:
    return re.compile(f"{_BEGINS}({'|'.join(folders) or '(?!)'}){_ENDS}")


class _Clean:
    """Words for folders; a debugger's line keeps all but homes and variables, which a shell knows."""

    def __init__(
        self, folders: re.Pattern[str], in_shells: re.Pattern[str], words: Mapping[str, str]
    ) -> None:
        self._folders = folders
        self._in_shells = in_shells
        self._words = words

    def text(self, text: str) -> str:
        if "/" not in text:
            return text
        return self._folders.sub(lambda match: self._words.get(match.group(), "~"), text)

    def _for_shells(self, text: str) -> str:
        return self._in_shells.sub(lambda match: self._words.get(match.group(), "~"), text)

    def told(self, tree: Any) -> Any:
        if isinstance(tree, str):
            return self.text(tree)
        if isinstance(tree, list):
            return [self.told(one) for one in tree]
        if not isinstance(tree, dict):
            return tree
        told: dict[str, Any] = {}
        for key, one in tree.items():
            if key == "rerun":
                told[key] = self._for_shells(shlex.join(map(_bare, shlex.split(one))))
            elif key == "debug":
                told[key] = self._for_shells(one)
            elif key in _VERBATIM and isinstance(one, dict):
                told[key] = self._renamed(one)
            else:
                told[self.text(key)] = self.told(one)
        return told

    def _renamed(self, files: Mapping[str, Any]) -> dict[str, Any]:
        """Files with their paths told and their texts as they are."""
        return {
            self.text(name): one if isinstance(one, str) else one | {"path": self.text(one["path"])}
            for name, one in files.items()
        }
