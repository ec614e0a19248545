"""What flows in a batch: tasks to workers, replies back, and what stays on disk.

A batch is many cases of many specs. The conductor hands out `Task`s, a worker answers each with a
`Reply`, and what a reply carries is on disk before it is counted. All of it travels as MessagePack
or lies on disk as JSON, so nothing here holds an array or an open file.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tokitai_cli.core.model.evidence import (
    AgreementRecord,
    BuildRecord,
    CaseRecord,
    DeviceRecord,
    ToolRecord,
)
from tokitai_cli.core.model.judged import Record
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.core.model.verdict import Verdict

INDEX_SCHEMA = "tokitai/batch/v1"


class SpecPlace(Record, frozen=True, kw_only=True):
    """Where a worker finds a spec: `digest` of the file, its `path`, and how commands name it.

    data: the file's bytes, so that a change on disk does not reach a batch that has begun; empty
    where the worker reads the file. sources: path in the spec by sha256; oracles: name -> identity. A
    worker that finds others has no result for the case.
    """

    digest: str
    path: str
    called: str
    data: bytes = b""
    sources: dict[str, str] = msgspec.field(default_factory=dict)
    oracles: dict[str, str] = msgspec.field(default_factory=dict)


class Setup(Record, frozen=True, kw_only=True):
    """What a worker knows before its first task. `tool` is the digest of the tool's own sources.

    settings: threads are those that one worker's cpu device and BLAS use; each worker has a GPU of its
    own. arrays: absolute path of the folder for arrays of failing cases, empty where none are kept;
    all_arrays: of the others too.
    """

    settings: Settings
    specs: list[SpecPlace]
    tool: str
    arrays: str = ""
    all_arrays: bool = False


class Task(Record, frozen=True, kw_only=True):
    """One case on one device. `number` counts the cases of the batch from 0.

    spec: digest of the spec file. empty: the suite says that nothing is computed at this shape.
    beside: devices whose outputs are compared with those of this one.
    have_build, have_device: build key and device identity of a result that is on disk; a worker that
    would build and run the same answers that it is still fresh. known: digests of the build and
    device records that need not be sent again.
    """

    number: int
    spec: str
    variant: str
    shape: dict[str, int]
    profile: str
    seed: int
    empty: bool
    device: str
    beside: tuple[str, ...] = ()
    have_build: str = ""
    have_device: str = ""
    known: tuple[str, ...] = ()


class BuildInfo(Record, frozen=True, kw_only=True):
    """A build and what of it differs from run to run.

    log: path on the machine that built, or empty. seconds, None where it failed, are those that
    building or finding it in the cache took.
    """

    key: str
    record: BuildRecord
    log: str
    seconds: float | None
    cached: bool
    note: str


class CaseResult(Record, frozen=True, kw_only=True):
    """One finished case in full, as it is kept.

    The verdict is that of the case by itself; whether its group was vacuous is settled when the group
    is whole. device: digest of the device's record.
    seconds per stage; times_ns of the launch sequences. agreement: with the devices beside it.
    """

    schema: Literal["tokitai/batch-case/v1"] = "tokitai/batch-case/v1"
    record: CaseRecord
    device: str
    seconds: dict[str, float]
    times_ns: list[int]
    log: str
    oracle_log: str
    host: str
    finished: str
    agreement: list[AgreementRecord] = msgspec.field(default_factory=list)


class Reply(Record, frozen=True, kw_only=True):
    """A worker's answer to one task.

    fresh: the result on disk still holds, and nothing was run. result: JSON of a CaseResult, empty
    where `fresh`. device_identity: what must stay the same for the result to stay fresh. builds,
    devices: records by key and digest that the task did not know. notes: for the user. refused: why
    this worker cannot take part at all (another version of the tool); everything else is empty then.
    """

    number: int
    fresh: bool = False
    result: bytes = b""
    verdict: Verdict = Verdict.INTERNAL_ERROR
    reason: str = ""
    seconds: float = 0.0
    build: str = ""
    device: str = ""
    device_identity: str = ""
    builds: dict[str, BuildInfo] = msgspec.field(default_factory=dict)
    devices: dict[str, DeviceRecord] = msgspec.field(default_factory=dict)
    notes: list[str] = msgspec.field(default_factory=list)
    refused: str = ""


class SpecEntry(Record, frozen=True, kw_only=True):
    """A spec of a batch. `name` is unique in the batch: the op, or the path where ops share a name.

    path: as shown. sources: path in the spec by sha256; their texts are kept as well. oracles:
    name -> identity. cases: how many were selected.
    """

    name: str
    op: str
    digest: str
    path: str
    called: str
    sources: dict[str, str]
    oracles: dict[str, str]
    cases: int


class Begun(Record, frozen=True, kw_only=True):
    """A batch starts or goes on.

    All that must be alike for two shards to be parts of one batch stands here. tool_digest: of the
    tool's own sources. shard: "i/n", or empty. total: cases of this shard. selection: filters in words
    of the command line. left_out: combinations that no variant takes. shards: those that were joined,
    where this is no run but a merge.
    """

    tool: ToolRecord
    tool_digest: str
    settings: Settings
    devices: list[str]
    selection: list[str]
    rerun: str
    specs: list[SpecEntry]
    shard: str
    total: int
    left_out: int
    started: str
    resumed: bool
    shards: list[str] = msgspec.field(default_factory=list)
    #: What is wrong with specs that cannot be used, a line each.
    faults: list[str] = msgspec.field(default_factory=list)


class Done(Record, frozen=True, kw_only=True):
    """A finished case, as a row of the batch's file.

    id: NAME/variant/shape/profile/seed@device, with NAME as `name` of the SpecEntry; spec: its digest.
    shape: in the order of the spec's params. group: what is judged for vacuity together, in words.
    fingerprint: of everything that the result depends on and that is known without a build. build: key
    of the build, empty where there was none. device_record: digest of the device's record. kept: it was
    taken over from an earlier run of the batch.
    """

    id: str
    number: int
    name: str
    spec: str
    variant: str
    shape: dict[str, int]
    profile: str
    seed: int
    device: str
    group: str
    fingerprint: str
    verdict: Verdict
    seconds: float
    build: str
    device_record: str
    device_identity: str
    kept: bool = False


class BatchEnded(Record, frozen=True, kw_only=True):
    """A batch came to an end. `how` is "whole", "interrupted" or "stopped".

    stopped: by --fail-fast or --max-failures. seconds of wall time.
    """

    how: Literal["whole", "interrupted", "stopped"]
    finished: str
    seconds: float
    notes: list[str]


class IndexCase(Record, frozen=True, kw_only=True):
    """A case in the index. spec: name as in SpecEntry. reason is empty where it is verified.

    evidence: file of the batch that holds it, as a path from the index.
    """

    id: str
    spec: str
    op: str
    variant: str
    shape: dict[str, int]
    profile: str
    seed: int
    device: str
    arch: str
    verdict: Verdict
    stage: str
    reason: str
    seconds: float
    evidence: str
    rerun: str
    kept: bool


class Failure(Record, frozen=True, kw_only=True):
    """A case that needs a look. log is the end of what kernel, oracle or compiler printed.

    element: worst element in words, empty where none was compared. kernel: its file from the spec's
    folder, and the line there that matters, 0 where it is not known.
    """

    case: IndexCase
    element: str
    log: str
    kernel: str = ""
    line: int = 0


class Cell(Record, frozen=True, kw_only=True):
    """Op x variant x shape x profile x device: the worst verdict of its cases and their number.

    spec: name as in SpecEntry. In a large batch cells are joined over the profiles (`profile` is empty
    then), and in a very large one over the shapes too (`shape` is empty).
    """

    spec: str
    op: str
    variant: str
    shape: dict[str, int]
    profile: str
    device: str
    arch: str
    verdict: Verdict
    cases: int
    seconds: float


class SpecSummary(Record, frozen=True, kw_only=True):
    """What became of one spec. evidence: files, as paths from the index. counts by verdict."""

    name: str
    op: str
    path: str
    digest: str
    verdict: Verdict
    counts: dict[str, int]
    evidence: list[str]


class BatchIndex(Record, frozen=True, kw_only=True):
    """Index of a batch (schema tokitai/batch/v1), from its folder alone.

    counts by verdict over finished cases; not_started: cases that were selected and not run. kept:
    results of an earlier run that were still fresh. shards: those that were joined. builds: by key, in
    words. agreement: of devices with each other, over all specs. failures: worst first, the worst of
    them where there are very many; `counts` has them all.
    cases_file: an IndexCase a line, in the order of the plan.
    """

    schema: Literal["tokitai/batch/v1"] = "tokitai/batch/v1"
    verdict: Verdict
    reason: str
    counts: dict[str, int]
    total: int
    not_started: int
    kept: int
    left_out: int
    tool: ToolRecord
    settings: Settings
    selection: list[str]
    rerun: str
    shard: str
    shards: list[str]
    specs: list[SpecSummary]
    devices: dict[str, DeviceRecord]
    builds: dict[str, str]
    hosts: list[str]
    failures: list[Failure]
    matrix: list[Cell]
    agreement: list[AgreementRecord]
    cases_file: str
    notes: list[str]
    started: str
    finished: str
    seconds: float
    #: What is wrong with specs that cannot be used, a line each.
    faults: list[str] = msgspec.field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """That of the verdict; 2 where nothing is worse than specs that cannot be used."""
        return 2 if self.faults and self.verdict is Verdict.NOT_RUN else self.verdict.exit_code


class BatchPlanned(msgspec.Struct, frozen=True):
    """A batch is about to start: cases in all, kept from an earlier run as far as known, workers."""

    cases: int
    specs: int
    devices: tuple[str, ...]
    left_out: int
    candidates: int
    workers: int


class BatchProgress(msgspec.Struct, frozen=True):
    """A case is on disk. rate in cases a second; left: seconds that the rest may take, None unknown."""

    id: str
    verdict: Verdict
    reason: str
    position: int
    total: int
    failures: int
    kept: int
    rate: float
    remaining_seconds: float | None
