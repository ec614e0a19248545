"""`merge DIR...`: the shards of one batch as one."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokitai_cli.cli import typer_options

if TYPE_CHECKING:
    from tokitai_cli.core.model.batch_record import BatchIndex


def verb(words: Sequence[str]) -> typer_options.Verb:
    """The verb."""
    help = "The --out folders of all shards."
    return typer_options.with_options(
        _merge, "merge", typer_options.argument("folders", list[str], "DIR...", help)
    )


def _merge(folders: list[str], **given: Any) -> int:
    """Join the shards of a batch into one index.

    Refuses results that do not belong to the same batch.

    Example: tokitai merge shard-1/ shard-2/ --out all/
    """
    from tokitai_cli import batch
    from tokitai_cli.audit.door import require_sound
    from tokitai_cli.run.run_options import checked, report_options_of

    given, front = typer_options.split("merge", given)
    given = checked("merge", given)
    index, files = batch.merge(
        [Path(folder) for folder in folders],
        Path(given["out"]),
        formats=given["format"],
        report_options=report_options_of(given),
        accept=require_sound,
    )
    show_index(index, files, front)
    return index.exit_code


def show_index(index: BatchIndex, files: tuple[Path, ...], front: Mapping[str, Any]) -> None:
    """Show what came of a batch, as the command line asks; with `json` the index goes to stdout and
    the rest to stderr.
    """
    from tokitai_cli import batch, report
    from tokitai_cli.cli import terminal

    to_json = front["json"]
    if to_json:
        sys.stdout.buffer.writelines(report.render_index(index, "json"))
    terminal.show_batch(index, files, to_stderr=to_json)
    if front["durations"] is not None:
        folder = next(file for file in files if file.name == "index.json")
        times = ((one.id, one.seconds) for one in batch.read_cases(index, folder) if not one.kept)
        terminal.show_slowest(times, front["durations"], to_stderr=to_json)
    if not to_json:
        terminal.annotate_batch(index)
