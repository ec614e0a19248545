"""Whether folders are the shards of one batch, and what the difference is where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli.batch.folder import BatchFolder
from tokitai_cli.errors import UsageError
from tokitai_cli.model.batch import Begun, Done, Ended, SpecEntry
from tokitai_cli.model.text import plural


class Shard(msgspec.Struct, frozen=True):
    """A folder as it was read; `index` of `count`."""

    folder: BatchFolder
    begun: Begun
    ended: Ended | None
    dones: list[Done]
    index: int
    count: int

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.folder.path


def read_shard(folder: BatchFolder) -> Shard:
    """Read a shard. Raises UsageError for a batch that is none, StorageError where it is unreadable."""
    begun = folder.begun()
    index, _, count = begun.shard.partition("/")
    if not (index.isdecimal() and count.isdecimal()):
        raise UsageError(
            f"{folder.path} is no shard: the batch there ran as a whole",
            mend="run every part with --shard i/n",
        )
    return Shard(folder, begun, folder.ended(), folder.done(), int(index), int(count))


def check_alike(shards: Sequence[Shard]) -> list[Shard]:
    """The shards by index. Raises UsageError where they are not all and only those of one batch."""
    if not shards:
        raise UsageError("no shard is given", mend="name the folder of every shard")
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


def _unlike(first: Shard, other: Shard, what: str, here: Any, there: Any) -> UsageError:
    return UsageError(
        f"{first.path} and {other.path} are no shards of one batch: {what} is {here} in the first "
        f"and {there} in the other",
        mend="run both with the same version of tokitai, the same specs and the same options",
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
        ("the number of combinations left out", one.left_out, two.left_out),
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
                mend="give each shard once",
            )
    count = shards[0].count
    lacking = [f"{index}/{count}" for index in range(1, count + 1) if index not in found]
    if lacking:
        raise UsageError(
            f"missing: {plural(len(lacking), 'shard')} {', '.join(lacking)}",
            mend="give the folders of all shards",
        )
    return [found[index] for index in sorted(found)]


def _check_whole(shard: Shard) -> None:
    ended, total = shard.ended, shard.begun.total
    if ended is None or ended.how != "whole" or len(shard.dones) < total:
        how = "was ended before it could say how" if ended is None else f"ended: {ended.how}"
        raise UsageError(
            f"shard {shard.begun.shard} in {shard.path} is not whole: it {how}, with "
            f"{len(shard.dones)} of {plural(total, 'case')} finished",
            mend=f"finish it: {shard.begun.rerun} --resume",
        )


def _check_cases(shards: Sequence[Shard]) -> None:
    home: dict[str, Shard] = {}
    for shard in shards:
        for done in shard.dones:
            twin = home.setdefault(done.id, shard)
            if twin is not shard:
                raise UsageError(
                    f"the case {done.id} stands in {twin.path} and in {shard.path}",
                    mend="cut the batch again with --shard, and run each part once",
                )
    cases = sum(entry.cases for entry in union(shards))
    if len(home) != cases:
        raise UsageError(
            f"the shards have {plural(len(home), 'case')} in all, and the batch {cases}",
            mend="cut the batch again with --shard, and run each part once",
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
    for digest in dict.fromkeys(done.device for done in shard.dones):
        device = shard.folder.device(digest)
        if device.available:
            found.setdefault(device.name, set()).add(f"{device.device_class} {device.arch}".strip())
    return found


def _compilers(shard: Shard) -> dict[str, set[str]]:
    """Version and digest of each compiler, and of what it wraps, by the name of the device."""
    found: dict[str, set[str]] = {}
    for key in dict.fromkeys(done.build for done in shard.dones if done.build):
        build = shard.folder.build(key).record
        if build.compiler is not None:
            version = build.compiler.version.strip().partition("\n")[0]
            digests = [build.compiler.sha256, *sorted(build.compiler.wraps.values())]
            found.setdefault(build.device, set()).add(f"{version}, sha256 {' + '.join(digests)}")
    return found
