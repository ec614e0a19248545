"""From a name on the command line to a spec file, and from a file to a LoadedSpec."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tokitai_cli.core import resources
from tokitai_cli.core.errors import Location, SpecError, UsageError, near
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.core.model.models import Models
from tokitai_cli.cpp import source_text
from tokitai_cli.spec.reader.convert import to_spec
from tokitai_cli.spec.reader.document import dotted
from tokitai_cli.spec.reader.gaps import check_gaps, guesses_of, noted
from tokitai_cli.spec.reader.rules import check
from tokitai_cli.spec.reader.yaml_document import MAX_BYTES, decode, parse, read_bytes

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SCHEMA = b"tokitai/"
_SCHEMA_LINE = re.compile(rb"""^[ \t{]*["']?schema["']?\s*:\s*["']?tokitai/""", re.MULTILINE)


def load(path: Path, data: bytes | None = None, *, judged: bool = True) -> LoadedSpec:
    """Read and check a spec file (UTF-8 YAML of at most 1 MiB), strictly.

    `data` are the file's bytes where they were read before, and may no longer be those on disk. The
    judged: the outputs are to be, so that the oracles' files must have no gaps either. The
    LoadedSpec's path is absolute, its digest the sha256 of the file's bytes. Raises SpecError with
    file, line, column, dotted key and mend at the first fault in the order of the checks: bytes,
    YAML, structure, gaps of a draft, meaning.
    """
    if data is None:
        data = read_bytes(path)
    text = decode(data, path)
    document = parse(text, path)
    spec = to_spec(document)
    ours = path.absolute().is_relative_to(resources.specs_dir())
    if not ours:
        check_gaps(document, text, spec if judged else None)
    guesses = () if ours else guesses_of(document, text, spec)
    notes = noted(guesses)
    check(document, spec, judged=judged)
    read_back: Mapping[str, frozenset[str]] = {}
    models = Models()
    if not ours:  # the tool's own are held against their kernels by its tests, and start faster
        from tokitai_cli.cpp.programs import Programs
        from tokitai_cli.spec.reader.kernel_signatures import check_signatures

        more, read_back = check_signatures(document, spec, models.of(Programs))
        notes += more
    return LoadedSpec(
        spec=spec,
        path=path.absolute(),
        text=text,
        digest=hashlib.sha256(data).hexdigest(),
        notes=notes,
        read_back=read_back,
        guesses=guesses,
        models=models,
    )


def recall(path: Path, data: bytes) -> LoadedSpec:
    """A spec from the bytes that a batch kept of it, without looking at the files that it names.

    It was checked when the batch began, maybe on another machine. Raises SpecError where this version
    does not read it.
    """
    text = decode(data, path)
    document = parse(text, path)
    spec = to_spec(document)
    digest = hashlib.sha256(data).hexdigest()
    guesses = guesses_of(document, text)
    return LoadedSpec(spec=spec, path=path.absolute(), text=text, digest=digest, guesses=guesses)


def placed(loaded: LoadedSpec, error: SpecError) -> SpecError:
    """`error` about a key of the spec, with the key's line and column in the file."""
    key = error.where.key if error.where is not None else ""
    document = parse(loaded.text, loaded.path)
    around = [path for path in document.values if key.startswith(dotted(path))]
    where = document.where(max(around, key=lambda path: len(dotted(path)), default=()))
    where = msgspec.structs.replace(where, key=key)
    return SpecError(error.message, where=where, hint=error.hint)


def is_spec(path: Path) -> bool:
    """Whether a YAML file means to be a spec: it has `schema: tokitai/...` at its top level.

    A mistyped schema of ours is a spec at fault, and no other tool's file.

    Where its YAML is at fault in front of that key, a line that reads so decides, so that a broken
    spec is no other tool's file. Raises SpecError where the file cannot be read.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES)
    except OSError as error:
        where = Location(path)
        raise SpecError(f"cannot be read: {error.strerror or error}", where=where) from None
    if _SCHEMA not in data:  # most YAML files of other tools
        return False
    try:
        return _schema_of(data).startswith(_SCHEMA.decode())
    except (yaml.YAMLError, UnicodeDecodeError):
        return _SCHEMA_LINE.search(data) is not None


def _schema_of(data: bytes) -> str:
    """Value of the key `schema` at the top level of the first document, empty without one."""
    depth = 0
    key: str | None = None
    for event in yaml.parse(data, Loader=_LOADER):
        if isinstance(event, yaml.DocumentEndEvent):
            break
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.NodeEvent):
            if depth == 1:
                value = event.value if isinstance(event, yaml.ScalarEvent) else ""
                if key == "schema":
                    return str(value)
                key = str(value) if key is None else None
            if isinstance(event, yaml.CollectionStartEvent):
                if depth == 0 and not isinstance(event, yaml.MappingStartEvent):
                    break
                depth += 1
    return ""


def file_bytes(loaded: LoadedSpec) -> bytes:
    """Bytes of the file that a spec was read from: its text, and the byte order mark it may have had."""
    data = loaded.text.encode()
    same = hashlib.sha256(data).hexdigest() == loaded.digest
    return data if same else codecs.BOM_UTF8 + data


def builtin() -> list[tuple[str, Path]]:
    """Names and files of the ops that ship with the tool, by name."""
    return sorted((path.stem, path) for path in resources.specs_dir().glob("*.yaml"))


def find(op: str) -> Path:
    """Spec file of a built-in op, or of the path `op` (with a / or .yaml, or of a file there is).

    A built-in name goes before a file of the same name. Raises UsageError for an unknown name.
    """
    ops = dict(builtin())
    if op in ops:
        return ops[op]
    if op.endswith(source_text.SUFFIXES):
        hint = f"`tokitai new {op}` writes a spec for its kernels"
        raise UsageError(f"{op} is a source, not a spec", hint=hint)
    looks_like_path = "/" in op or op.endswith((".yaml", ".yml"))
    if looks_like_path or os.path.exists(op):  # noqa: PTH110 - false where it can be no path
        return Path(op)
    suggestion = near(op, ops)
    hint = f"{suggestion}; " if suggestion else ""
    raise UsageError(f"unknown op `{op}`", hint=f"{hint}name a spec file of your own by its path")
