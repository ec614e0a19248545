"""A whole batch: collect, run, keep, sum up."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from tokitai_cli import evidence, report, spec
from tokitai_cli.batch.index import Accept, clear_index, summarise
from tokitai_cli.batch.joining import merge as merge_shards
from tokitai_cli.batch.select.batch_options import BatchOptions, rerun_words, selection_words
from tokitai_cli.batch.select.collected import BatchSpec, Collected
from tokitai_cli.batch.store import Store
from tokitai_cli.batch.work.conduct import Conductor, Listener
from tokitai_cli.batch.work.executor import Executor
from tokitai_cli.batch.work.local import LocalExecutor
from tokitai_cli.core import resources
from tokitai_cli.core.errors import EvidenceError, StorageError, UsageError
from tokitai_cli.core.model.batch_record import BatchIndex, BatchPlanned, Begun
from tokitai_cli.core.model.events import Note


class BatchOutcome(msgspec.Struct, frozen=True):
    """Index of a batch, the files that hold it, and the interrupt that ended it, if one did."""

    index: BatchIndex
    files: tuple[Path, ...]
    interrupted: KeyboardInterrupt | None = None


def run(
    options: BatchOptions,
    collected: Collected,
    listener: Listener,
    *,
    executor: Callable[[], Executor] | None = None,
) -> BatchOutcome:
    """Run what was collected and write the index; `executor` makes another one than the local one.

    Raises StorageError where results cannot be kept, ExecutorError where no worker can run: what was
    kept until then is kept, and --resume goes on with it.
    """
    interrupt: KeyboardInterrupt | None = None
    # Refuses what cannot be used or is not safe before anything is written; it starts nothing yet.
    workers = executor() if executor is not None else _local(options, collected)
    with Store.open(options.out) as store:
        conductor = Conductor(
            collected,
            store,
            store.newest(),
            listener,
            resume=options.resume,
            max_failures=options.max_failures,
        )
        store.begin(
            begun(options, collected),
            {one.loaded.digest: spec.file_bytes(one.loaded) for one in collected.specs},
            {digest: data for one in collected.specs for digest, data in _sources(one)},
        )
        clear_index(options.out)
        for text in (*_damage(store), *collected.skipped):
            listener(Note(text))
        listener(
            BatchPlanned(
                cases=len(collected.cases),
                specs=len(collected.specs),
                devices=collected.devices,
                left_out=collected.left_out,
                candidates=conductor.candidates(),
                workers=workers.workers,
            )
        )
        try:
            conductor.run(workers)
        except KeyboardInterrupt as stop:
            interrupt = stop
        index = _summed(store, options)
    return BatchOutcome(index, _files(options.out), interrupt)


def merge(
    folders: Sequence[Path],
    out: Path,
    *,
    formats: Sequence[str],
    report_options: report.ReportOptions,
    accept: Accept,
) -> tuple[BatchIndex, tuple[Path, ...]]:
    """Join the shards of one batch into `out`; returns the index and its files.

    accept: raises for evidence of the shards that contradicts itself, which stands at the path.

    Raises UsageError where they are not alike or not whole, StorageError where they cannot be read.
    """
    index = merge_shards(
        folders, out, formats=formats, report_options=report_options, accept=accept
    )
    return index, _files(out)


def _files(out: Path) -> tuple[Path, ...]:
    return tuple(out / name for name in report.INDEX_FILES.values())


def _summed(store: Store, options: BatchOptions) -> BatchIndex:
    """Write evidence and index. Raises StorageError where they cannot be written."""
    try:
        return summarise(store, formats=options.formats, report_options=options.report_options)
    except EvidenceError as error:
        hint = "free space there and run again with --resume; finished cases are kept"
        raise StorageError(error.message, where=error.where, hint=hint) from error


def begun(options: BatchOptions, collected: Collected) -> Begun:
    """What is kept of the start."""
    shard = options.shard
    if options.device == "auto":  # what repeats the batch names the device that it ran on
        options = msgspec.structs.replace(options, device=collected.devices[0])
    return Begun(
        tool=evidence.tool_record(),
        tool_digest=collected.setup.tool,
        settings=options.settings,
        devices=list(collected.devices),
        selection=selection_words(options),
        rerun=rerun_words(options),
        specs=[one.entry for one in collected.specs],
        shard="" if shard is None else f"{shard[0]}/{shard[1]}",
        total=len(collected.cases),
        left_out=collected.left_out,
        started=evidence.timestamp(os.environ),
        resumed=options.resume,
        faults=[str(fault) for fault in collected.faults],
    )


def _sources(one: BatchSpec) -> Iterator[tuple[str, bytes]]:
    """Sources of a spec by sha256. Raises UsageError where one was changed since it was read."""
    for digest, path in one.entry.sources.items():
        try:
            data = resources.file_of(one.loaded.folder, path).read_bytes()
        except OSError:
            data = b""
        if hashlib.sha256(data).hexdigest() != digest:
            raise UsageError(f"{path} was changed while the batch was put together")
        yield digest, data


def _damage(store: Store) -> Iterator[str]:
    if store.damaged:
        results = "a result" if store.damaged == 1 else f"{store.damaged} results"
        yield f"{results} in {store.path} cannot be read (damaged): such a case runs again"


def _local(options: BatchOptions, collected: Collected) -> LocalExecutor:
    return LocalExecutor(
        collected.setup,
        workers=max(1, min(options.jobs, len(collected.cases))),
        gpus=options.gpus,
        gpu_children=options.gpu_children,
    )
