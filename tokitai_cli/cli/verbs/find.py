"""`find`: the kernels of a source tree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tokitai_cli.cli.verbs.doctor import Json


def find(
    path: Annotated[
        Path, typer.Argument(metavar="FILE|DIR", help="A source, or a folder of them.")
    ],
    include: Annotated[
        list[Path] | None,
        typer.Option(
            "-I", "--include", metavar="DIR", help="A folder of headers; may be repeated."
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write a draft of a spec for each kernel below DIR."),
    ] = None,
    json: Json = False,
) -> int:
    """List the kernels of a source tree: signature, what the tool can bind, what not and why."""
    import os

    from tokitai_cli import console
    from tokitai_cli.pipeline.find import find_kernels, told, write_drafts

    folders = [Path(os.path.abspath(one)) for one in include or ()]  # noqa: PTH100 - links stay
    found = list(find_kernels(path, folders, write))
    drafts = [draft for one in found if isinstance(one, list) for draft in one]
    unread = [one for one in found if not isinstance(one, list)]
    kernels = [told(one) for one in drafts]
    written = write_drafts([one for one in drafts if one.spec], write) if write else []
    if json:
        import msgspec

        listing = {"kernels": kernels, "unread": unread, "written": [str(one) for one in written]}
        typer.echo(msgspec.json.format(msgspec.json.encode(listing), indent=2).decode())
    else:
        console.show_kernels(kernels, unread, written)
    return 0
