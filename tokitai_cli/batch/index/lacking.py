"""What the batches under folders lack: specs without evidence, for whoever counts reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tokitai_cli.batch.index.index_files import INDEX, is_index, read_index
from tokitai_cli.batch.store import holds_batch
from tokitai_cli.core.errors import EvidenceError
from tokitai_cli.core.model.batch_record import BatchIndex
from tokitai_cli.core.model.wording import plural
from tokitai_cli.run.older import OLDER


def lacking(places: Sequence[str]) -> list[str]:
    """A line for each thing that has no whole evidence in a batch under `places`, with its folder.

    That is a spec that could not be used, one without evidence, cases that did not run, evidence that
    the index names and that is not there, and a batch without an index, which has not ended. A shard
    lacks nothing that another shard has.
    """
    return [
        f"{folder}: {text}"
        for place in map(Path, places)
        if place.is_dir()
        for folder in (place, *sorted(one for one in place.rglob("*") if one.is_dir()))
        if OLDER not in folder.relative_to(place).parts
        for text in _of(folder)
    ]


def _of(folder: Path) -> Iterator[str]:
    if is_index(folder / INDEX):
        try:
            yield from _of_index(folder, read_index(folder / INDEX))
        except EvidenceError as error:
            yield f"{INDEX}: {error.message}"
    elif holds_batch(folder):
        yield "the batch has not ended; continue it with --resume"


def _of_index(folder: Path, index: BatchIndex) -> Iterator[str]:
    yield from (f"a spec could not be used: {fault}" for fault in index.faults)
    if index.not_started:
        yield f"{index.not_started} of {plural(index.total, 'case')} did not run"
    for spec in index.specs:
        if not spec.evidence:
            yield f"{spec.name}: no case has a result"
        for name in spec.evidence:
            if name.endswith(".json") and not (folder / name).is_file():
                yield f"{spec.name}: {name} is missing"
