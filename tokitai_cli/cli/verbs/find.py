"""`find`: the kernels of a source tree."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tokitai_cli.cli.ending import collect_garbage
from tokitai_cli.cli.verbs.json_option import Json, print_json

if TYPE_CHECKING:
    from tokitai_cli.cpp.source.listing import FoundKernel, Unread
    from tokitai_cli.drafts.draft import Draft

Includes = Annotated[
    list[Path] | None,
    typer.Option(
        "-I", "--include", metavar="DIR", help="A folder to search for headers; may be repeated."
    ),
]
Defines = Annotated[
    list[str] | None,
    typer.Option(
        "-D",
        "--define",
        metavar="NAME[=VALUE]",
        help="Define a macro for the build; may be repeated.",
    ),
]


def macros(given: list[str] | None) -> dict[str, str]:
    """Macros by name. Raises UsageError for one that a spec's flags cannot give."""
    from tokitai_cli.core import flags
    from tokitai_cli.core.errors import UsageError

    for one in given or ():
        message, hint = flags.fault(f"-D{one}")
        if message:
            raise UsageError(message, hint=hint)
    parts = (one.partition("=") for one in given or ())
    return {name: value for name, _, value in parts}


def find(
    path: Annotated[
        Path, typer.Argument(metavar="FILE|DIR", help="A source file, or a folder of sources.")
    ],
    include: Includes = None,
    define: Defines = None,
    write: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write a spec draft for each kernel below DIR."),
    ] = None,
    run: Annotated[
        bool,
        typer.Option(
            "--run",
            help="Run each draft once on the cpu device; change guesses until the kernel ends.",
        ),
    ] = False,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time limit per kernel (with --run).", min=0.1)
    ] = 10.0,
    json: Json = False,
) -> int:
    """List the kernels of source files.

    Shows each kernel's signature, whether a spec can be written for it, and if not, why.

    Example: tokitai find src/ --run
    """
    from tokitai_cli.cli import terminal
    from tokitai_cli.drafts.search import write_drafts

    collect_garbage()  # trees of sources that are done with hold each other
    settled, unread = _settled(path, include or (), macros(define), write, timeout if run else None)
    kernels = [kernel for _, kernel in settled]
    written = write_drafts([one for one, _ in settled if not one.reasons], write) if write else []
    if json:
        listing = {"kernels": kernels, "unread": unread, "written": [str(one) for one in written]}
        print_json(listing)
    else:
        terminal.show_kernels(kernels, unread, written)
    faults = [*(one.fault for one in kernels), *(one.fault for one in unread)]
    return 70 if any(faults) else 0


def _settled(
    path: Path,
    include: Sequence[Path],
    defines: Mapping[str, str],
    write: Path | None,
    timeout: float | None,
) -> tuple[list[tuple[Draft, FoundKernel]], list[Unread]]:
    """Kernels below `path` with their drafts, and what was not read.

    write: where drafts are to lie. timeout: of a kernel's run; None where none is run.
    """
    import os

    from tokitai_cli.drafts.search import find_kernels, found_kernel, places_of

    folders = [Path(os.path.abspath(one)) for one in include]  # noqa: PTH100 - links stay
    with contextlib.ExitStack() as stack:
        # A draft's paths begin at a folder of its own, which its runs need as well.
        trial: Path | None = None
        if timeout is not None:
            from tokitai_cli.drafts.trial import (
                source_tree,  # what builds and runs, which a listing needs not
            )

            trial = stack.enter_context(source_tree.folder_in(write))
        place = write or (trial and trial.parent)
        found = list(find_kernels(path, folders, place, defines))
        drafts = [draft for one in found if isinstance(one, list) for draft in one]
        unread = [one for one in found if not isinstance(one, list)]
        if write:
            # What exists already ends it before any run.
            places_of([one for one in drafts if not one.reasons], write)
        if trial is None or timeout is None:
            return [(one, found_kernel(one)) for one in drafts], unread
        return list(source_tree.settled(drafts, trial, timeout, sys.stderr.write)), unread
