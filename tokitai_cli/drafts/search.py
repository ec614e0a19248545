"""The kernels of a source tree: what can be bound to a spec, and what not and why."""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tokitai_cli.core.errors import StorageError, TokitaiError, UsageError
from tokitai_cli.core.file_kind import is_machine_code
from tokitai_cli.core.model.spec import SCHEMA_FILE
from tokitai_cli.cpp import source_text
from tokitai_cli.cpp.build_macros import build_macros
from tokitai_cli.cpp.source.headers import Headers
from tokitai_cli.cpp.source.listing import FoundKernel, Unread
from tokitai_cli.cpp.source.signatures import unlisted
from tokitai_cli.cpp.source.source_files import included
from tokitai_cli.cpp.whole import program_of
from tokitai_cli.drafts.draft import Draft, drafts
from tokitai_cli.drafts.like import TemplateOp
from tokitai_cli.run.faults import fault_line
from tokitai_cli.spec import spec_schema

MAX_BYTES = 4 << 20  # of a file that is parsed
MAX_ENTRIES = 1 << 18  # of a tree that are looked at


def find_kernels(
    path: Path,
    folders: Sequence[Path] = (),
    place: Path | None = None,
    defines: Mapping[str, str] | None = None,
    room: bool = True,
) -> Iterator[list[Draft] | Unread]:
    """Drafts for the kernels of each source below `path`, each kernel once.

    folders: that #include is looked for in, before folders of the tree that hold what is missing. place:
    folder below which the specs are to lie, in folders of their own. defines: macros that the builds are
    to be given. room: see `DraftContext`. Raises UsageError where nothing is there.
    """
    if not path.exists():
        raise UsageError(
            f"no such file or folder: {path}", hint="name a source, or a folder of them"
        )
    seen: set[tuple[Path, int]] = set()
    told_of: set[str] = set()
    require_folders(folders)
    tree = path.parent if path.is_file() else path
    headers = Headers(_below(tree.resolve()))
    for file in [path] if path.is_file() else _sources(path, folders):
        more = headers.folders(file.resolve(), folders)
        at = place and place.resolve() / "spec"
        found = drafts_of(file, (*folders, *more), at, defines=defines, room=room, known=seen)
        if isinstance(found, Unread):
            yield found
            continue
        drafts, missed = found
        yield from (one for one in missed if one.file not in told_of)
        told_of |= {one.file for one in missed}
        seen |= {(one.kernel.file, one.kernel.line) for one in drafts}
        yield drafts


def drafts_of(
    file: Path,
    folders: Sequence[Path] = (),
    place: Path | None = None,
    op: TemplateOp | None = None,
    defines: Mapping[str, str] | None = None,
    room: bool = True,
    known: Collection[tuple[Path, int]] = (),
) -> tuple[list[Draft], list[Unread]] | Unread:
    """Drafts for the kernels of one source and of what it includes of the user's; what is none.

    known: kernels that need none, by file and line.
    """
    if is_machine_code(file):
        return Unread(str(file), "is machine code: `tokitai isa` lists its kernels")
    if file.is_file() and file.stat().st_size > MAX_BYTES:
        return Unread(str(file), "is larger than 4 MiB")
    if source_text.read(file) is None:
        return Unread(str(file), "is not a readable regular file")
    try:
        program = program_of(file.resolve(), folders, defines or {})
        supposed = build_macros(program)
        if supposed:
            program = program_of(file.resolve(), folders, {**(defines or {}), **supposed})
        missed = [Unread(f"{path}:{line}", reason) for path, line, reason in unlisted(program)]
        found = drafts(program, place, folders, op, room, supposed, known)
    except TokitaiError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, other files are read
        return Unread(str(file), fault_line(error, [str(file)]), fault=True)
    return [_named(one) if one.fault is not None else one for one in found], missed


def _named(draft: Draft) -> Draft:
    """The draft that the tool failed at, with what is to be said of that."""
    assert draft.fault is not None
    what = [f"{draft.kernel.file}:{draft.kernel.line}", draft.kernel.qualified]
    return msgspec.structs.replace(draft, reasons=(fault_line(draft.fault, what),))


def require_folders(folders: Iterable[Path]) -> None:
    """Raise UsageError for a folder of headers that is none."""
    for folder in folders:
        if not folder.is_dir():
            hint = "name the folder that holds it" if folder.exists() else "name an existing one"
            raise UsageError(f"-I {folder}: no such folder", hint=hint)


def found_kernel(
    draft: Draft, ended: str | None = None, runs: int = 0, *, fault: bool = False
) -> FoundKernel:
    """A draft, and what came of its runs, as plain data; fault: of the tool's own in them."""
    kernel = draft.kernel
    return FoundKernel(
        file=str(kernel.file),
        line=kernel.line,
        name=kernel.qualified,
        instance=draft.instance,
        signature=kernel.text,
        parameters=list(kernel.parameters),
        bindable=not draft.reasons,
        reasons=draft.reasons,
        ended=ended,
        runs=runs,
        fault=fault or draft.fault is not None,
    )


def write_drafts(drafts: Sequence[Draft], folder: Path) -> list[Path]:
    """Write spec and formula of each draft below `folder`, each in a folder of its own.

    Returns the specs. Raises as `write_new` does.
    """
    places = places_of(drafts, folder)
    texts: dict[Path, str] = {}
    for place, draft in zip(places, drafts, strict=True):
        texts |= {place: draft.spec, place.parent / "formula.py": draft.formula}
        texts |= schema_beside(place)
    write_new(texts)
    return places


def places_of(drafts: Sequence[Draft], folder: Path) -> list[Path]:
    """Where the spec of each draft is to lie. Raises UsageError where a file exists already."""
    places: dict[Path, None] = {}
    for draft in drafts:
        name = re.sub(r"\W+", "-", draft.kernel.qualified).strip("-")
        place, number = folder / name / "spec.yaml", 2
        while place in places:
            place, number = folder / f"{name}-{number}" / "spec.yaml", number + 1
        places[place] = None
    _require_new([*places, *(one.parent / "formula.py" for one in places)])
    return list(places)


def _require_new(files: Iterable[Path]) -> None:
    for file in files:
        if os.path.lexists(file):
            hint = "choose another folder, or remove it"
            raise UsageError(f"{file} exists already", hint=hint)


def schema_beside(place: Path) -> dict[Path, str]:
    """The JSON Schema that the first line of a draft names for editors; nothing where it lies there."""
    file = place.parent / SCHEMA_FILE
    return {} if os.path.lexists(file) else {file: _schema_text()}


@functools.cache
def _schema_text() -> str:
    return json.dumps(spec_schema(), indent=1) + "\n"


def write_new(texts: Mapping[Path, str]) -> None:
    """Write files that are not there yet: all or, where one cannot be, none.

    Raises UsageError where one exists already, StorageError where one cannot be written.
    """
    _require_new(texts)
    written: list[Path] = []
    try:
        for file, text in texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8") as stream:
                written.append(file)
                stream.write(text)
    except OSError as error:
        for file in written:
            file.unlink(missing_ok=True)
        at = error.filename or next(iter(texts))
        raise StorageError(f"{at} cannot be written: {error.strerror or error}") from None


def _sources(folder: Path, folders: Sequence[Path]) -> list[Path]:
    """Sources below a folder that hold kernels or take some in; what is taken in comes last.

    Its types and its launches are those that stand around it. What cannot be read is among them.
    """
    files = _below(folder)
    parts = {one: included(one, folders) for one in files}
    known = {one for one in files if b"__global__" in (source_text.read(one) or b"__global__")}
    while more := {one for one in parts.keys() - known if not known.isdisjoint(parts[one])}:
        known |= more
    inner = {place for one in known for place in parts[one]}
    return sorted(
        known,
        key=lambda one: (one in inner, one.suffix.lower() not in source_text.SUFFIXES[:2], one),
    )


def _below(folder: Path) -> list[Path]:
    """Sources and headers below a folder, no more than a large tree has."""
    # What is taken away while the tree is read is left out.
    files = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    some = itertools.islice(files, MAX_ENTRIES)
    return sorted(one for one in some if one.suffix.lower() in source_text.SUFFIXES)
