"""A YAML file as plain values, with the place of every key and value."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli.core.errors import Location, SpecError

Step = str | int
KeyPath = tuple[Step, ...]
TextPosition = tuple[int, int]


class Document(msgspec.Struct, frozen=True):
    """`root` is made of dict, list, str, int, float, bool and None only."""

    file: Path
    root: Any
    #: (line, column), both from 1, of the value at a path and of the key before it.
    values: dict[KeyPath, TextPosition]
    keys: dict[KeyPath, TextPosition]

    def where(self, path: KeyPath, *, at_key: bool = False) -> Location:
        """Place of the value (or key) at `path`, or of what is nearest around it."""
        first, second = (self.keys, self.values) if at_key else (self.values, self.keys)
        for length in range(len(path), -1, -1):
            place = first.get(path[:length]) or second.get(path[:length])
            if place is not None:
                return Location(self.file, *place, dotted(path))
        return Location(self.file, key=dotted(path))

    def fault(
        self, path: KeyPath, message: str, hint: str = "", *, at_key: bool = False
    ) -> SpecError:
        """Error at `path`, to be raised by the caller."""
        return SpecError(message, where=self.where(path, at_key=at_key), hint=hint)

    def value(self, path: KeyPath) -> Any:
        """The value at `path`; None too where there is none."""
        found = self.root
        for step in path:
            if isinstance(found, dict):
                found = found.get(step)
            else:
                found = found[step] if isinstance(found, list) and isinstance(step, int) else None
        return found

    def given(self, path: KeyPath) -> bool:
        """Whether the file itself has a value at `path`."""
        return path in self.values


def dotted(path: KeyPath) -> str:
    """Path as a person writes it: variants.grad-a.checks[0].limit."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f"{'.' if text else ''}{step}"
    return text


def keys_of(place: str) -> KeyPath:
    """Keys of a place that stands as an expression says it: ".dims[1]"."""
    return tuple(int(key) if key.isdigit() else key for key in re.findall(r"\w+", place))
