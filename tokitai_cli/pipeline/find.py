"""The kernels of a source tree: what can be bound to a spec, and what not and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tokitai_cli import kernel_source, sources, spec
from tokitai_cli.errors import UsageError
from tokitai_cli.model.found import FoundKernel, FoundParameter, Unread
from tokitai_cli.spec import Draft

SUFFIXES = (
    ".cu",
    ".hip",
    ".cuh",
    ".cpp",
    ".cc",
    ".cxx",
    ".hpp",
    ".h",
    ".inl",
    ".hxx",
    ".hh",
    ".inc",
)
MAX_BYTES = 4 << 20  # of a file that is parsed


def find_kernels(
    path: Path, folders: Sequence[Path] = (), place: Path | None = None
) -> Iterator[list[Draft] | Unread]:
    """Drafts for the kernels of each source below `path`, each kernel once.

    folders: that #include is looked for in. place: folder below which the specs are to lie, in folders
    of their own. Raises UsageError where nothing is there.
    """
    if not path.exists():
        raise UsageError(
            f"no such file or folder: {path}", mend="name a source, or a folder of them"
        )
    seen: set[tuple[Path, int]] = set()
    for file in [path] if path.is_file() else _sources(path):
        data = sources.read(file)
        if data is None or len(data) > MAX_BYTES:
            what = "is no regular file that can be read" if data is None else "is larger than 4 MiB"
            yield Unread(str(file), what)
            continue
        if b"__global__" not in data:
            continue
        try:
            program = kernel_source.program(file.resolve(), folders)
            drafts = spec.drafts(program, place and place.resolve() / "spec", folders)
        except (RecursionError, ValueError, LookupError, re.error) as error:
            yield Unread(str(file), f"could not be parsed: {type(error).__name__}")
            continue
        new = [one for one in drafts if (one.kernel.file, one.kernel.line) not in seen]
        seen |= {(one.kernel.file, one.kernel.line) for one in new}
        yield new


def told(draft: Draft) -> FoundKernel:
    """A draft as plain data."""
    kernel = draft.kernel
    return FoundKernel(
        file=str(kernel.file),
        line=kernel.line,
        name=kernel.qualified,
        instance=draft.instance,
        signature=kernel.text,
        parameters=[FoundParameter(**msgspec.structs.asdict(one)) for one in kernel.parameters],
        bindable=not draft.reasons,
        reasons=draft.reasons,
    )


def write_drafts(drafts: Sequence[Draft], folder: Path) -> list[Path]:
    """Write spec and formula of each draft below `folder`, each in a folder of its own.

    Returns the specs. Raises UsageError where a file is there already.
    """
    written: list[Path] = []
    for draft in drafts:
        name = re.sub(r"\W+", "-", draft.kernel.qualified).strip("-")
        place = folder / name
        number = 2
        while place / "spec.yaml" in written:
            place, number = folder / f"{name}-{number}", number + 1
        for file, text in (("spec.yaml", draft.spec), ("formula.py", draft.formula)):
            if (place / file).exists():
                raise UsageError(
                    f"{place / file} is there already", mend="choose another folder, or remove it"
                )
            place.mkdir(parents=True, exist_ok=True)
            (place / file).write_text(text, encoding="utf-8")
        written.append(place / "spec.yaml")
    return written


def _sources(folder: Path) -> Iterator[Path]:
    """Sources below a folder, those that are compiled before what they include."""
    files = [one for one in sorted(folder.rglob("*")) if one.suffix.lower() in SUFFIXES]
    yield from sorted(files, key=lambda one: one.suffix.lower() not in SUFFIXES[:2])
