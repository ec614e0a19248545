"""Bytes of a spec file to a Document: YAML without aliases, tags, merges and duplicate keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import yaml

from tokitai_cli.core import storage
from tokitai_cli.core.errors import Location, SpecError
from tokitai_cli.spec.reader.document import Document, KeyPath, TextPosition, dotted
from tokitai_cli.spec.reader.plain import SurpriseError, plain

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_VALUES = 50_000
# Characters that YAML 1.2 (section 5.1) keeps out of a stream.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_bytes(file: Path) -> bytes:
    """Read the file; raises SpecError where it is no readable file of at most 1 MiB."""
    where = Location(file)
    try:
        with storage.open_plain(file) as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        hint = "check the path; `tokitai list` shows the built-in ops"
        raise SpecError("no such spec file", where=where, hint=hint) from None
    except IsADirectoryError:
        inside = sorted(path.name for path in file.glob("*.y*ml"))
        hint = f"name a file in it, such as {file / (inside or ['spec.yaml'])[0]}"
        raise SpecError("this is a folder, not a spec file", where=where, hint=hint) from None
    except OSError as error:
        raise SpecError(f"cannot be read: {error.strerror}", where=where) from None
    if len(data) > MAX_BYTES:
        raise SpecError(
            f"the spec file is larger than {MAX_BYTES >> 20} MiB",
            where=where,
            hint="a spec is a few kilobytes of YAML: is this the right file?",
        )
    return data


def decode(data: bytes, file: Path) -> str:
    """Decode as UTF-8, whatever the locale; raises SpecError with the line of what is not."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", errors="replace")
        where = Location(file, *_place(before, len(before)))
        hint = "save the file as UTF-8"
        raise SpecError(
            f"byte 0x{data[error.start]:02x} is not UTF-8", where=where, hint=hint
        ) from None
    match = _FORBIDDEN.search(text)
    if match is not None:
        where = Location(file, *_place(text, match.start()))
        message = f"control character U+{ord(match.group()):04X} in the file"
        raise SpecError(message, where=where, hint="remove it")
    return text


def parse(text: str, file: Path) -> Document:
    """Text to a Document whose root is a mapping; raises SpecError with line, column and mend."""
    builder = _Builder(text, file)
    try:
        return builder.document()
    except yaml.MarkedYAMLError as error:
        mark = cast("Any", error.problem_mark or error.context_mark)
        where = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)
        words = [error.context, error.problem]
        message = "not YAML: " + ", ".join(word for word in words if word)
        raise SpecError(message, where=where, hint=_yaml_hint(text, where)) from None
    except yaml.YAMLError as error:
        raise SpecError(f"not YAML: {error}", where=Location(file)) from None


def _place(text: str, index: int) -> TextPosition:
    line_start = text.rfind("\n", 0, index) + 1
    return text.count("\n", 0, index) + 1, index - line_start + 1


def _place_of(event: Any) -> TextPosition:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _yaml_hint(text: str, where: Location) -> str:
    lines = text.splitlines()
    line = lines[where.line - 1] if 0 < where.line <= len(lines) else ""
    if line[: len(line) - len(line.lstrip())].count("\t"):
        return "indent with spaces: YAML does not allow tabs"
    if line.count(": ") > 1:
        return "put text that holds `: ` in quotes"
    return "check indentation, quotes and brackets here and on the line above"


class _Builder:
    """Own construction from parser events, so that nothing is resolved behind our back."""

    def __init__(self, text: str, file: Path) -> None:
        self.file = file
        self.events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        self.values: dict[KeyPath, TextPosition] = {}
        self.keys: dict[KeyPath, TextPosition] = {}

    def document(self) -> Document:
        next(self.events)
        event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent):
            hint = "start with `schema: tokitai/spec/v1`; docs/spec.md has a whole example"
            raise SpecError("the spec file is empty", where=Location(self.file), hint=hint)
        event = next(self.events)
        root = self.value(event, ())
        next(self.events)
        event = next(self.events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise self.fault(event, (), "a second YAML document", "keep one spec per file")
        return Document(self.file, root, self.values, self.keys)

    def fault(self, event: Any, path: KeyPath, message: str, hint: str) -> SpecError:
        where = Location(self.file, *_place_of(event), dotted(path))
        return SpecError(message, where=where, hint=hint)

    def value(self, event: Any, path: KeyPath) -> Any:
        self.values[path] = _place_of(event)
        if len(self.values) > MAX_VALUES:
            raise self.fault(event, path, f"more than {MAX_VALUES} values", "use a smaller spec")
        self.check_features(event, path)
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event, path)
        if len(path) >= MAX_DEPTH:
            raise self.fault(event, path, f"nested deeper than {MAX_DEPTH}", "a spec needs less")
        if isinstance(event, yaml.MappingStartEvent):
            return self.mapping(path)
        items: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self.value(event, (*path, len(items))))
        return items

    def check_features(self, event: Any, path: KeyPath) -> None:
        if isinstance(event, yaml.AliasEvent):
            hint = "write the value out: specs have no anchors and aliases"
            raise self.fault(event, path, f"alias *{event.anchor}", hint)
        if event.anchor is not None:
            hint = "remove it: specs have no anchors and aliases"
            raise self.fault(event, path, f"anchor &{event.anchor}", hint)
        if event.tag is not None:
            hint = "remove it: specs have no tags; quotes make text"
            raise self.fault(event, path, f"tag {event.tag}", hint)

    def scalar(self, event: Any, path: KeyPath) -> Any:
        if not event.implicit[0]:
            return event.value
        try:
            return plain(event.value)
        except SurpriseError as surprise:
            raise self.fault(event, path, str(surprise), surprise.hint) from None

    def mapping(self, path: KeyPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            self.check_features(event, path)
            if not isinstance(event, yaml.ScalarEvent):
                raise self.fault(event, path, "a list or mapping as a key", "keys are plain words")
            key = event.value
            here = (*path, key)
            if key == "<<" and event.implicit[0]:
                hint = "write the keys out: specs have no merge keys"
                raise self.fault(event, here, "merge key <<", hint)
            if not key or "\n" in key:
                what = "a key of several lines" if key else "an empty key"
                raise self.fault(event, path, what, "put one word before the colon")
            if key in result:
                line = self.keys[here][0]
                hint = "remove one of the two"
                raise self.fault(event, here, f"key given twice, first on line {line}", hint)
            self.keys[here] = _place_of(event)
            result[key] = self.value(next(self.events), here)
        return result
