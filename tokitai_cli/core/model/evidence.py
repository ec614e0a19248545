"""The evidence file, schema tokitai/evidence/v4: one frozen struct per JSON object.

Every output (Markdown, terminal, JSON) is rendered from these. Numbers that may be NaN or infinite
have the type `Number`: a float, or one of the strings "nan", "inf", "-inf".
All that may differ between two equal runs stands under `Evidence.volatile`. For a case of a variant
that is not deterministic this includes what was measured on its outputs: fields documented as
"None: volatile" are None (or empty) there, and stand whole in `volatile.measured`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tokitai_cli.core.model.contract import ContractRecord
from tokitai_cli.core.model.judged import (
    ChangesRecord,
    ExaminationRecord,
    FindingRecord,
    GuessRecord,
    MutantRecord,
    Number,
    OutputRecord,
    PropertyRecord,
    Record,
    RepeatRecord,
)
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.core.model.verdict import Stage, Verdict

EVIDENCE_SCHEMA = "tokitai/evidence/v4"


class ToolRecord(Record, frozen=True, kw_only=True):
    """The tool: version, git commit ("" outside a checkout; "-dirty" appended), libraries."""

    name: str
    version: str
    commit: str
    python: str
    numpy: str
    platform: str


class SourceRecord(Record, frozen=True, kw_only=True):
    """A text file of the user's own, or of the shipped ops, by content. `text` is None above 1 MiB."""

    path: str
    bytes: int
    text: str | None


class FactRecord(Record, frozen=True, kw_only=True):
    """A fact with the command, file or call that it was read from."""

    name: str
    value: str
    source: str


class DeviceRecord(Record, frozen=True, kw_only=True):
    """A device as it was found on this machine."""

    name: str
    device_class: str
    available: bool
    arch: str
    facts: list[FactRecord]
    missing: str
    hint: str
    non_claims: list[str]


class CompilerRecord(Record, frozen=True, kw_only=True):
    """The compiler: path, whole version text, sha256 of the program and of those that it wraps."""

    path: str
    version: str
    sha256: str
    wraps: dict[str, str]


class BuildRecord(Record, frozen=True, kw_only=True):
    """One artifact. `failed` holds the first error lines, empty where the build succeeded.

    headers: path -> sha256 of each that was read; header_texts: path -> text of those that come neither
    with the compiler nor with this tool.
    """

    device: str
    arch: str
    source: str
    source_sha256: str
    harness_sha256: str
    headers: dict[str, str]
    command: list[str]
    compiler: CompilerRecord | None
    defines: dict[str, str]
    artifact_sha256: str
    code_object: list[FactRecord]
    notes: list[str]
    failed: list[str]
    header_texts: dict[str, str] = msgspec.field(default_factory=dict)


class InputRecord(Record, frozen=True, kw_only=True):
    """An input array as it was drawn: sha256 of its little-endian bytes, and its range."""

    name: str
    dtype: str
    shape: list[int]
    sha256: str
    smallest: Number
    largest: Number
    nonfinite: int
    generator: str


class LaunchRecord(Record, frozen=True, kw_only=True):
    """A launch as it was made; left_out: how many behind it are not listed."""

    kernel: str
    grid: list[int]
    block: list[int]
    shared_bytes: int
    args: list[str]
    left_out: int = 0


class ArrayRecord(Record, frozen=True, kw_only=True):
    """A saved array: sha256 of its little-endian bytes, as for inputs and outputs, and its .npy file.

    The file of a bfloat16 array, which .npy cannot name, holds the same values as float32. name:
    in_INPUT, got_OUTPUT_REPETITION, want_OUTPUT and the oracle's bounds of it. file: relative to the
    evidence.
    """

    name: str
    dtype: str
    shape: list[int]
    sha256: str
    file: str


class StatementRecord(Record, frozen=True, kw_only=True):
    """A sentence of evidence and the field that backs it, as a JSON Pointer (RFC 6901)."""

    text: str
    field: str


class CaseRecord(Record, frozen=True, kw_only=True):
    """One case on one device.

    `reproduced` says whether a refutation came out the same in a fresh child; None where it was
    not tried. `deterministic` is the variant's own declaration. workspaces: elements of each; nothing
    judges them. vacuous: nothing failed, but the checks could tell no wrong output here: the case counts
    among no verified ones, and every table says what it `reads`. drawn_as: whose inputs it took.
    guesses: those of the spec that all its failures hang on, which makes it inconclusive.
    """

    id: str
    op: str
    variant: str
    shape: dict[str, int]
    profile: str
    seed: int
    device: str
    spec: str
    build: str
    verdict: Verdict
    stage: Stage
    reason: str
    inputs: list[InputRecord]
    launches: list[LaunchRecord]
    outputs: list[OutputRecord]
    properties: list[PropertyRecord]
    mutants: list[MutantRecord]
    repeats: RepeatRecord | None
    findings: list[FindingRecord]
    replay_fraction: float | None
    known_bug: str
    rerun: str
    debug: str
    saved_arrays: list[ArrayRecord]
    reproduced: bool | None = None
    deterministic: bool = True
    examined: list[ExaminationRecord] = msgspec.field(default_factory=list)
    changes: list[ChangesRecord] = msgspec.field(default_factory=list)
    workspaces: dict[str, int] = msgspec.field(default_factory=dict)
    vacuous: bool = False
    drawn_as: str = ""
    guesses: list[GuessRecord] = msgspec.field(default_factory=list)

    @property
    def reads(self) -> Verdict:
        """What the case is called and counted as."""
        return (
            Verdict.VACUOUS if self.vacuous and self.verdict is Verdict.VERIFIED else self.verdict
        )

    @property
    def key(self) -> str:
        """Name of the case on its device, ID@DEVICE: the key of the case in `volatile`."""
        return f"{self.id}@{self.device}"


class GroupRecord(Record, frozen=True, kw_only=True):
    """Vacuity of one group (variant, output, shape, device): what became of each mutant kind.

    status: rejected (a verified case rejects it), accepted (accepted and rejected by no verified
    case), never-eligible (no profile here could tell it), not-known, not-applicable; untold (a change of
    a formula that no profile here could tell, which may be none).
    flat: a dropped term of an output that flat limits alone judge. profile: the one that they accept
    it on though they reject it on another; empty where the record is about all profiles.
    """

    op: str = ""
    variant: str
    output: str
    shape: dict[str, int]
    device: str
    kind: str
    status: Literal[
        "rejected", "accepted", "never-eligible", "not-known", "not-applicable", "undetected"
    ]
    rejected_by: list[str]
    accepted_by: list[str]
    flat: bool = False
    profile: str = ""


class AgreementRecord(Record, frozen=True, kw_only=True):
    """How far one output of a variant lies apart on two devices, over all cases that ran on both.

    equal_cases: those whose bits are all equal. differing: elements with other bits (a NaN equals any
    other). largest: largest difference, in representable values (unit "ulp") or numbers (unit "1"), in
    the case `where`.
    """

    op: str
    variant: str
    output: str
    devices: list[str]
    unit: Literal["ulp", "1"]
    cases: int
    equal_cases: int
    elements: int
    differing: int
    largest: Number
    where: str


class GateRecord(Record, frozen=True, kw_only=True):
    """A claim, and whether the evidence supports it."""

    name: str
    supported: bool
    #: What supports it, or why it is not supported.
    reason: str
    #: What would support it; empty where it is supported.
    needed: str


class NonClaimRecord(Record, frozen=True, kw_only=True):
    """What is not claimed, and who says so: spec, variant, device or tool."""

    text: str
    source: str


class LeftOutRecord(Record, frozen=True, kw_only=True):
    """A combination that is no case because the variant cannot take the shape."""

    variant: str
    shape: dict[str, int]
    requirement: str


class MeasuredRecord(Record, frozen=True, kw_only=True):
    """What was measured on a case of a variant that is not deterministic, as it was recorded."""

    reason: str
    outputs: list[OutputRecord]
    properties: list[PropertyRecord]
    repeats: RepeatRecord | None
    findings: list[FindingRecord]
    reproduced: bool | None


class MemoryRecord(Record, frozen=True, kw_only=True):
    """What the tool's own process and its workers held at most; other children are not counted."""

    #: Largest resident set up to the end of the run, pages of files that children share included.
    peak_bytes: int
    #: Of the case with the largest ones: inputs, and the outputs of all repetitions.
    arrays_bytes: int
    #: Over which its work was spread.
    threads: int


class VolatileRecord(Record, frozen=True, kw_only=True):
    """What may differ between two equal runs. Times in the unit that their name ends in.

    Case dictionaries are keyed by `CaseRecord.key`, build dictionaries by the key in `builds`.
    `measured` is filled in by the assembly.
    """

    started: str
    finished: str
    seconds: float
    case_times_ns: dict[str, list[int]]
    stage_seconds: dict[str, dict[str, float]]
    build_seconds: dict[str, float]
    build_cached: dict[str, bool]
    build_logs: dict[str, str]
    kernel_logs: dict[str, str]
    environment: dict[str, str]
    notes: list[str]
    measured: dict[str, MeasuredRecord] = msgspec.field(default_factory=dict)
    oracle_logs: dict[str, str] = msgspec.field(default_factory=dict)
    agreement: list[AgreementRecord] = msgspec.field(default_factory=list)
    #: sha256 of the compiled loops that large cases were computed by beside numpy; "" for numpy alone.
    native: str = ""
    memory: MemoryRecord | None = None


class CasesFileRecord(Record, frozen=True, kw_only=True):
    """Where the cases of a large run lie: JSON lines in a file beside the evidence."""

    name: str
    sha256: str
    cases: int


class Evidence(Record, frozen=True, kw_only=True):
    """One run.

    In memory all cases are in `cases` and `cases_file` is None; a file of a run with very many
    cases has them beside it. The digest is always that of the form in memory. `watched`: cases that ran
    once in a watched build beside the others; nothing compared their outputs, and one that says verified
    came to its end without a finding that refutes it. `settings` and
    `contract` are None where the file was written before they were recorded. Objects keep their order
    in files, so that shapes are shown as they were made; the digest does not depend on it.
    """

    schema: Literal["tokitai/evidence/v4"]
    name: str
    verdict: Verdict
    stage: Stage
    reason: str
    counts: dict[str, int]
    tool: ToolRecord
    rerun: str
    specs: dict[str, SourceRecord]
    sources: dict[str, SourceRecord]
    oracles: dict[str, str]
    builds: dict[str, BuildRecord]
    devices: dict[str, DeviceRecord]
    cases: list[CaseRecord]
    left_out: list[LeftOutRecord]
    groups: list[GroupRecord]
    statements: list[StatementRecord]
    claims: list[GateRecord]
    non_claims: list[NonClaimRecord]
    digest: str
    volatile: VolatileRecord
    cases_file: CasesFileRecord | None = None
    settings: Settings | None = None
    agreement: list[AgreementRecord] = msgspec.field(default_factory=list)
    contract: ContractRecord | None = None
    watched: list[CaseRecord] = msgspec.field(default_factory=list)
