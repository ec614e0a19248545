"""Kernels that a source only declares: their machine code is in a file that others built.

The source says TOKITAI_MACHINE_CODE("FILE") (kernels/harness/tokitai_kernel.hpp). Nothing of the file
runs but the kernels' instructions, translated.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from tokitai_cli.errors import CodeError, UntranslatedError
from tokitai_cli.gfx.code.objects import CodeObject, Kernel, read_code_object
from tokitai_cli.gfx.inspection import chosen

SYMBOL = "tokitai_machine_code"


def named(declared: CodeObject, folder: Path) -> Path | None:
    """The file that the source names, or None: below `folder`, or in an installed Python package.

    A package is not imported. Raises UntranslatedError where there is no such file.
    """
    if SYMBOL not in declared.symbols:
        return None
    text = declared.read(*declared.symbols[SYMBOL]).partition(b"\0")[0].decode("utf-8", "replace")
    if (folder / text).is_file():
        return (folder / text).resolve()
    package, _, rest = text.partition("/")
    spec = importlib.util.find_spec(package) if package.isidentifier() and rest else None
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        if (Path(place) / rest).is_file():
            return (Path(place) / rest).resolve()
    raise UntranslatedError(
        f"the file of machine code does not exist: {text}",
        mend="give a path beside the source, or PACKAGE/FILE of an installed Python package",
    )


def read_from(code_path: Path, folder: Path) -> Path:
    """The file with the machine code of a build: its code object, or what the source names."""
    return named(read_code_object(code_path.read_bytes()), folder) or code_path


def taken(path: Path, arch: str, declared: Sequence[Kernel]) -> tuple[CodeObject, list[Kernel]]:
    """The code object of the file that has the kernels of those symbols, and the kernels.

    Raises UntranslatedError where there is none, or an argument lies elsewhere than declared.
    """
    try:
        objects = chosen(path, arch)[2]
    except CodeError as error:
        raise UntranslatedError(str(error)) from None
    wanted = [one.name for one in declared]
    for code in objects:
        known = {one.name: one for one in code.kernels}
        if all(name in known for name in wanted):
            found = [known[name] for name in wanted]
            for ours, theirs in zip(declared, found, strict=True):
                _hold(ours, theirs)
            return code, found
    raise UntranslatedError(
        f"no code object of {path.name} for {arch} has all of {', '.join(wanted)}",
        mend="`tokitai isa FILE --json` tells the symbols",
    )


def _hold(declared: Kernel, found: Kernel) -> None:
    """UntranslatedError where the caller's arguments differ in place, size or kind."""
    ours, theirs = (
        [(one.offset, one.size, one.value_kind) for one in kernel.args if not one.hidden]
        for kernel in (declared, found)
    )
    if ours != theirs:
        raise UntranslatedError(
            f"the machine code of {found.demangled} takes other arguments than the source declares: "
            f"(offset, bytes, kind) {theirs}, not {ours}"
        )
