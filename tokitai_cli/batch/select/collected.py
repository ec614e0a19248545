"""A batch before it runs: its specs and its cases, in the order of the specs, and their shards."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import msgspec

from tokitai_cli.core.errors import SpecError
from tokitai_cli.core.model.batch_record import Done, Reply, Setup, SpecEntry, Task
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.core.model.evidence import SourceRecord


def task_of(number: int, case: Case, device: str, beside: tuple[str, ...] = ()) -> Task:
    """What a worker is told of a case."""
    return Task(
        number=number,
        spec=case.loaded.digest,
        variant=case.variant_name,
        shape=dict(case.shape),
        profile=case.profile,
        seed=case.seed,
        empty=case.expect_empty,
        device=device,
        beside=beside,
    )


class BatchSpec(msgspec.Struct, frozen=True):
    """A spec with its entry as it is kept; sources by sha256 of their bytes."""

    entry: SpecEntry
    loaded: LoadedSpec
    sources: dict[str, SourceRecord]


class BatchCase(msgspec.Struct, frozen=True):
    """A case on one device."""

    #: NAME/variant/shape/profile/seed@device, with `name` as in SpecEntry.
    id: str
    number: int
    name: str
    case: Case
    device: str
    #: Sha256 of all that its result depends on and that is known without a build.
    fingerprint: str
    #: What is judged for vacuity together (spec, variant, shape, device).
    group: str
    #: Estimated seconds, or another measure of size that grows with them.
    weight: float
    #: Devices whose outputs are compared with those of this one.
    beside: tuple[str, ...] = ()

    def task(self) -> Task:
        """What a worker is told of it."""
        return task_of(self.number, self.case, self.device, self.beside)

    def done(self, reply: Reply) -> Done:
        """What is kept of the reply to it, beside the result."""
        case = self.case
        return Done(
            id=self.id,
            number=self.number,
            name=self.name,
            spec=case.loaded.digest,
            variant=case.variant_name,
            shape=dict(case.shape),
            profile=case.profile,
            seed=case.seed,
            device=self.device,
            group=self.group,
            fingerprint=self.fingerprint,
            verdict=reply.verdict,
            seconds=reply.seconds,
            build=reply.build,
            device_record=reply.device,
            device_identity=reply.device_identity,
        )


class Collected(msgspec.Struct, frozen=True):
    """Everything that was selected. Case n stands at `cases[n]`, and has the number n."""

    specs: tuple[BatchSpec, ...]
    cases: tuple[BatchCase, ...]
    #: names.
    devices: tuple[str, ...]
    #: Combinations that no variant takes.
    left_out: int
    #: Files that hold no spec, and specs without a suite that was asked for, in words.
    skipped: tuple[str, ...]
    #: What workers are told.
    setup: Setup
    #: What is wrong with specs that are no part of the batch for it.
    faults: tuple[SpecError, ...] = ()


def shard(cases: Sequence[BatchCase], index: int, count: int) -> tuple[BatchCase, ...]:
    """Cases of part `index` of `count`, 1 <= index <= count, in their order and numbered from 0.

    What is judged together stays together: whole groups go to the part that has the least weight so
    far, the heaviest group first (R. L. Graham, SIAM J. Appl. Math. 17, 1969: the heaviest part has
    at most 4/3 of the least possible). Depends on nothing but names and weights of the groups.
    """
    weights: dict[str, list[float]] = {}
    for case in cases:
        weights.setdefault(case.group, []).append(case.weight)
    # fsum rounds once, so that the order of the cases has no say.
    groups = sorted(weights, key=lambda group: (-math.fsum(weights[group]), group))
    parts = [(0.0, 0, number) for number in range(1, count + 1)]
    ours = set()
    for group in groups:
        weight, size, number = parts[0]
        if number == index:
            ours.add(group)
        heavier = (weight + math.fsum(weights[group]), size + len(weights[group]), number)
        heapq.heapreplace(parts, heavier)
    return numbered([case for case in cases if case.group in ours])


def numbered(cases: Sequence[BatchCase]) -> tuple[BatchCase, ...]:
    """The cases with the number of their place."""
    return tuple(
        case if case.number == number else msgspec.structs.replace(case, number=number)
        for number, case in enumerate(cases)
    )
