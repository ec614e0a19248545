"""Joins the shards of one batch into one folder, and refuses what are no parts of one batch."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli import report
from tokitai_cli.batch.index import Accept, summarise
from tokitai_cli.batch.store import Store, holds_batch
from tokitai_cli.core.errors import Location, StorageError, UsageError
from tokitai_cli.core.model.batch_record import BatchEnded, BatchIndex, Begun, SpecEntry
from tokitai_cli.core.model.wording import plural


class Shard(msgspec.Struct, frozen=True):
    """A folder as it was read; `index` of `count`."""

    store: Store
    begun: Begun
    ended: BatchEnded | None
    index: int
    count: int
    #: Of its cases.
    ids: list[str]
    #: Keys and digests of the records that they name.
    builds: list[str]
    devices: list[str]

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.store.path


def merge(
    folders: Sequence[Path],
    out: Path,
    *,
    formats: Sequence[str] = ("md",),
    report_options: report.ReportOptions = report.PLAIN,
    accept: Accept | None = None,
) -> BatchIndex:
    """Join the shards in `folders` into `out`, as if one batch had run them, and sum it up.

    Raises UsageError, which names the difference, where they are not all the shards of one batch,
    each run to its end by the same tool with like devices and compilers, or where `out` holds something
    else than an earlier merge of them; StorageError where a folder cannot be read or written; and what
    `accept` raises for evidence that was made of them.
    """
    with contextlib.ExitStack() as stack:
        shards = [_read(stack.enter_context(Store.read(one))) for one in folders]
        shards = check_alike(shards)
        start = _begun(shards, out)
        _check_out(shards, start, out)
        joined = stack.enter_context(Store.open(out))
        with joined.writing():
            joined.begin(start, {}, {})
            joined.copy([shard.store for shard in shards], [entry.name for entry in start.specs])
            joined.end(_ended(shards))
        return summarise(joined, formats=formats, report_options=report_options, accept=accept)


def check_alike(shards: Sequence[Shard]) -> list[Shard]:
    """The shards by index. Raises UsageError where they are not all and only those of one batch."""
    if not shards:
        raise UsageError("no shard is given", hint="name the folder of every shard")
    first = shards[0]
    # 1. The same question, put to the same tool.
    for other in shards[1:]:
        _check_asked(first, other)
    # 2. Every part of it once.
    found = _check_complete(shards)
    # 3. Every part whole.
    for shard in found:
        _check_whole(shard)
    # 4. Cases, each once.
    _check_cases(found)
    # 5. Like machines, as far as that decides what a result says.
    for other in found[1:]:
        _check_machines(found[0], other)
    return found


def union(shards: Sequence[Shard]) -> list[SpecEntry]:
    """Specs of all shards, each once, in the order of the first that has it."""
    return list({entry.name: entry for shard in shards for entry in shard.begun.specs}.values())


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


def _ended(shards: Sequence[Shard]) -> BatchEnded:
    """End of the whole: the last one's time, and the wall time of the longest."""
    ends = [shard.ended for shard in shards if shard.ended is not None]
    longest = "the shards run at the same time: the time given here is that of the longest"
    notes = dict.fromkeys([*(note for one in ends for note in one.notes), longest])
    return BatchEnded(
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
            f"a shard is damaged: its command line is {words!r} ({error})",
            hint="run that shard again",
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
                f"--out {out} is one of the shards", hint="give another folder for the merge"
            )
    if not holds_batch(out):
        return
    with Store.read(out) as store:
        held = store.begun()
    # Where an earlier merge began and ended does not matter: a shard may have run again since.
    like = {"started": start.started, "rerun": start.rerun, "total": start.total}
    if msgspec.structs.replace(held, **like) != start:
        raise UsageError(
            "contains a batch that is not a merge of these shards",
            where=Location(out),
            hint="give another folder with --out",
        )


def _read(store: Store) -> Shard:
    """Read a shard. Raises UsageError for a batch that is none, StorageError where it is unreadable."""
    begun = store.begun()
    index, _, count = begun.shard.partition("/")
    if not (index.isdecimal() and count.isdecimal()):
        raise UsageError(
            f"{store.path} is not a shard: the batch there ran as a whole",
            hint="run every part with --shard i/n",
        )
    ids: list[str] = []
    builds: dict[str, None] = {}
    devices: dict[str, None] = {}
    for done in store.done():
        ids.append(done.id)
        builds[done.build] = devices[done.device_record] = None
    builds.pop("", None)
    return Shard(
        store, begun, store.ended(), int(index), int(count), ids, list(builds), list(devices)
    )


def _unlike(first: Shard, other: Shard, what: str, here: Any, there: Any) -> UsageError:
    return UsageError(
        f"{first.path} and {other.path} are not shards of one batch: {what} is {here} in the first "
        f"and {there} in the other",
        hint="run both with the same version of tokitai, the same specs and the same options",
    )


def _check_asked(first: Shard, other: Shard) -> None:
    """Tool, settings, devices, selection and specs."""
    one, two = first.begun, other.begun
    pairs: list[tuple[str, Any, Any]] = [
        ("the version of tokitai", one.tool.version, two.tool.version),
        ("the commit of tokitai", one.tool.commit or "none", two.tool.commit or "none"),
        ("the digest of tokitai", one.tool_digest, two.tool_digest),
        ("the number of shards", first.count, other.count),
        *(
            (f"the setting {name}", here, getattr(two.settings.anywhere, name))
            for name, here in msgspec.structs.asdict(one.settings.anywhere).items()
        ),
        ("the list of devices", ", ".join(one.devices), ", ".join(two.devices)),
        ("the selection", " ".join(one.selection), " ".join(two.selection)),
        ("the number of combinations skipped", one.left_out, two.left_out),
    ]
    known = {entry.name: entry for entry in one.specs}
    for entry in two.specs:
        mine = known.get(entry.name)
        if mine is not None:
            pairs += [
                (f"the digest of spec {entry.name}", mine.digest, entry.digest),
                (f"the digest of a source of {entry.name}", *_sources(mine, entry)),
                (f"the digest of an oracle of {entry.name}", *_oracles(mine, entry)),
                (f"the number of cases of {entry.name}", mine.cases, entry.cases),
            ]
    for what, here, there in pairs:
        if here != there:
            raise _unlike(first, other, what, here, there)


def _sources(one: SpecEntry, two: SpecEntry) -> tuple[str, str]:
    return ", ".join(sorted(one.sources)), ", ".join(sorted(two.sources))


def _oracles(one: SpecEntry, two: SpecEntry) -> tuple[str, str]:
    """Identities of oracles; the names are the spec's, which has a digest of its own."""
    return ", ".join(sorted(one.oracles.values())), ", ".join(sorted(two.oracles.values()))


def _check_complete(shards: Sequence[Shard]) -> list[Shard]:
    found: dict[int, Shard] = {}
    for shard in shards:
        twin = found.setdefault(shard.index, shard)
        if twin is not shard:
            raise UsageError(
                f"shard {shard.begun.shard} is given twice: {twin.path} and {shard.path}",
                hint="give each shard once",
            )
    count = shards[0].count
    lacking = [f"{index}/{count}" for index in range(1, count + 1) if index not in found]
    if lacking:
        raise UsageError(
            f"{plural(len(lacking), 'shard')} of {count} missing: {', '.join(lacking)}",
            hint="give the folders of all shards",
        )
    return [found[index] for index in sorted(found)]


def _check_whole(shard: Shard) -> None:
    ended, total = shard.ended, shard.begun.total
    if ended is None or ended.how != "whole" or len(shard.ids) < total:
        how = "was killed before it recorded how" if ended is None else f"ended: {ended.how}"
        raise UsageError(
            f"shard {shard.begun.shard} in {shard.path} is incomplete: it {how}, with "
            f"{len(shard.ids)} of {plural(total, 'case')} finished",
            hint=f"finish it: {shard.begun.rerun} --resume",
        )


def _check_cases(shards: Sequence[Shard]) -> None:
    home: dict[str, Shard] = {}
    for shard in shards:
        for name in shard.ids:
            twin = home.setdefault(name, shard)
            if twin is not shard:
                raise UsageError(
                    f"the case {name} occurs in {twin.path} and in {shard.path}",
                    hint="divide the batch again with --shard, and run each part once",
                )
    cases = sum(entry.cases for entry in union(shards))
    if len(home) != cases:
        raise UsageError(
            f"the shards have {plural(len(home), 'case')} in all, and the batch {cases}",
            hint="divide the batch again with --shard, and run each part once",
        )


def _check_machines(first: Shard, other: Shard) -> None:
    """Classes and architectures of devices, and compilers for them, where both shards have some."""
    for what, mine, theirs in (
        ("the architecture of device", _archs(first), _archs(other)),
        ("the compiler for device", _compilers(first), _compilers(other)),
    ):
        for name in mine:
            if name in theirs and mine[name] != theirs[name]:
                here, there = sorted(mine[name]), sorted(theirs[name])
                words = " and ".join(here), " and ".join(there)
                raise _unlike(first, other, f"{what} {name}", *words)


def _archs(shard: Shard) -> dict[str, set[str]]:
    """Class and architecture of each device that was there, by name."""
    found: dict[str, set[str]] = {}
    for digest in shard.devices:
        device = shard.store.device(digest)
        if device.available:
            found.setdefault(device.name, set()).add(f"{device.device_class} {device.arch}".strip())
    return found


def _compilers(shard: Shard) -> dict[str, set[str]]:
    """Version and digest of each compiler, and of what it wraps, by the name of the device."""
    found: dict[str, set[str]] = {}
    for key in shard.builds:
        build = shard.store.build(key).record
        if build.compiler is not None:
            version = build.compiler.version.strip().partition("\n")[0]
            digests = [build.compiler.sha256, *sorted(build.compiler.wraps.values())]
            found.setdefault(build.device, set()).add(f"{version}, sha256 {' + '.join(digests)}")
    return found
