"""Joins the shards of one batch into one folder, and refuses what are no parts of one batch."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tokitai_cli.batch.alike import Shard, check_alike, read_shard, union
from tokitai_cli.batch.folder import BatchFolder, Finished
from tokitai_cli.batch.summary import summarise
from tokitai_cli.errors import Location, StorageError, UsageError
from tokitai_cli.model import encoding
from tokitai_cli.model.batch import BatchIndex, Begun, Done, Ended, Reply

# Cases that share the syncs of folders and journal, and are in memory together.
_AT_ONCE = 100


def merge(folders: Sequence[Path], out: Path, *, formats: Sequence[str] = ("md",)) -> BatchIndex:
    """Join the shards in `folders` into `out`, as if one batch had run them, and sum it up.

    Raises UsageError, which names the difference, where they are not all the shards of one batch,
    each run to its end by the same tool with like devices and compilers, or where `out` holds something
    else than an earlier merge of them; StorageError where a folder cannot be read or written.
    """
    with contextlib.ExitStack() as stack:
        shards = [read_shard(stack.enter_context(BatchFolder.read_only(one))) for one in folders]
        shards = check_alike(shards)
        start = _begun(shards, out)
        _check_out(shards, start, out)
        joined = stack.enter_context(BatchFolder.open(out))
        specs = {one.digest: _holder(shards, one.digest).spec(one.digest) for one in start.specs}
        sources = {digest: _source(shards, digest) for one in start.specs for digest in one.sources}
        joined.begin(start, specs, sources)
        _copy(shards, start, joined)
        joined.end(_ended(shards))
        return summarise(joined, formats=formats)


def _begun(shards: Sequence[Shard], out: Path) -> Begun:
    first = shards[0].begun
    return msgspec.structs.replace(
        first,
        specs=union(shards),
        rerun=_rerun(first.rerun, out),
        shard="",
        shards=[shard.begun.shard for shard in shards],
        total=sum(shard.begun.total for shard in shards),
        started=min(shard.begun.started for shard in shards),
        resumed=False,
    )


def _ended(shards: Sequence[Shard]) -> Ended:
    """End of the whole: the last one's time, and the wall time of the longest."""
    ends = [shard.ended for shard in shards if shard.ended is not None]
    longest = "the time is that of the longest shard"
    notes = dict.fromkeys([*(note for one in ends for note in one.notes), longest])
    return Ended(
        how="whole",
        finished=max(one.finished for one in ends),
        seconds=max(one.seconds for one in ends),
        notes=list(notes),
    )


def _rerun(words: str, out: Path) -> str:
    """Command line of a shard without the shard, and with `out` in place of its folder."""
    kept: list[str] = []
    try:
        given = iter(shlex.split(words))
    except ValueError as error:
        raise StorageError(
            f"the journal of a shard is damaged: its command line is {words!r} ({error})",
            mend="run that shard again",
        ) from error
    for word in given:
        if word in ("--shard", "--out"):
            next(given, None)
        else:
            kept.append(word)
    return shlex.join([*kept, "--out", str(out)])


def _check_out(shards: Sequence[Shard], start: Begun, out: Path) -> None:
    for shard in shards:
        if out.exists() and out.resolve() == shard.path.resolve():
            raise UsageError(
                f"--out {out} is one of the shards", mend="give another folder for the merge"
            )
    if not (out / "journal.jsonl").exists():
        return
    with BatchFolder.read_only(out) as folder:
        held = folder.begun()
    # Where an earlier merge began and ended does not matter: a shard may have run again since.
    like = {"started": start.started, "rerun": start.rerun, "total": start.total}
    if msgspec.structs.replace(held, **like) != start:
        raise UsageError(
            "holds a batch that is no merge of these shards",
            where=Location(out),
            mend="give another folder with --out",
        )


def _copy(shards: Sequence[Shard], start: Begun, joined: BatchFolder) -> None:
    """Copy all cases, numbered spec by spec, and in each shard by shard."""
    places = {entry.digest: place for place, entry in reversed(list(enumerate(start.specs)))}
    order = sorted(
        (
            (places[done.spec], at, done.number, done)
            for at, one in enumerate(shards)
            for done in one.dones
        ),
        key=lambda item: item[:3],
    )
    seen: set[str] = set()
    items = [(shards[at].folder, number, done) for number, (_, at, _, done) in enumerate(order)]
    for begin in range(0, len(items), _AT_ONCE):
        joined.commit([_finished(*item, seen) for item in items[begin : begin + _AT_ONCE]])
    kept = {done.id for *_, done in items if done.kept}
    joined.keep([done for done in joined.done() if done.id in kept])


def _finished(folder: BatchFolder, number: int, done: Done, seen: set[str]) -> Finished:
    """A case as a worker would hand it in; `seen` are records that were handed in before."""
    builds = {done.build: folder.build(done.build)} if done.build not in {"", *seen} else {}
    devices = {done.device: folder.device(done.device)} if done.device not in seen else {}
    seen.update(builds, devices)
    result = folder.result(done)
    reply = Reply(
        number=number,
        result=encoding.line(result),
        verdict=done.verdict,
        reason=result.record.reason,
        seconds=done.seconds,
        build=done.build,
        device=done.device,
        device_identity=done.device_identity,
        builds=builds,
        devices=devices,
    )
    return Finished(
        id=done.id, number=number, spec=done.spec, fingerprint=done.fingerprint, reply=reply
    )


def _holder(shards: Sequence[Shard], digest: str) -> BatchFolder:
    """Folder of a shard that has the spec."""
    return next(
        shard.folder
        for shard in shards
        if any(entry.digest == digest for entry in shard.begun.specs)
    )


def _source(shards: Sequence[Shard], digest: str) -> bytes:
    return next(
        shard.folder.source(digest)
        for shard in shards
        if any(digest in entry.sources for entry in shard.begun.specs)
    )
