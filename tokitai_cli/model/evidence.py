"""The evidence file, schema tokitai/evidence/v2: one frozen struct per JSON object.

Every output (Markdown, terminal, JSON) is rendered from these. Numbers that may be NaN or infinite
have the type `Number`: a float, or one of the strings "nan", "inf", "-inf".
All that may differ between two equal runs stands under `Evidence.volatile`. For a case of a variant
that is not deterministic this includes what was measured on its outputs: fields documented as
"None: volatile" are None (or empty) there, and stand whole in `volatile.measured`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tokitai_cli.model.settings import Settings
from tokitai_cli.model.verdict import Stage, Verdict

EVIDENCE_SCHEMA = "tokitai/evidence/v2"

Number = float | Annotated[str, Meta(pattern="^(nan|inf|-inf)$")]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every object of an evidence file. All fields are always written."""


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
    mend: str
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
    header_texts: dict[str, str] = {}


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
    """A launch as it was made."""

    kernel: str
    grid: list[int]
    block: list[int]
    shared_bytes: int
    args: list[str]


class ElementRecord(Record, frozen=True, kw_only=True):
    """One element: `got_bits` are its bytes in hex (most significant first), `want_hex` float.hex."""

    index: list[int]
    got: Number
    want: Number
    error: Number
    limit: Number
    got_bits: str
    want_hex: str


class CheckRecord(Record, frozen=True, kw_only=True):
    """One check: the largest value of the metric, the limit and how many elements exceed it.

    `judges` is False where the value is only reported (bound-prob off the random profiles).
    `worst` are the worst elements, worst first; `note` warns, e.g. of a limit finer than one ulp.
    `passes_zeros` says that an output of zeros would be within the limit throughout.
    value, exceeding, fraction: None: volatile.
    """

    metric: str
    against: Literal["reference", "replay"]
    limit: Number
    value: Number | None
    passed: bool
    judges: bool
    elements: int
    exceeding: int | None
    fraction: float | None
    worst: list[ElementRecord]
    note: str
    passes_zeros: bool = False


class MetricsRecord(Record, frozen=True, kw_only=True):
    """Error of an output against the reference over its finite elements.

    ulp is in the output's dtype; bias is the mean error in ulp, signed and in the direction of the
    reference's sign; over_bound is the largest error / bound. The histogram counts errors against
    the rounded reference by power of two: the key "0" counts exact elements, "1" those of at most
    1 ulp, "2" of at most 2, "4" of at most 4, and so on; worst_row is the row (first axis) with
    the largest mean error over bound (in ulp where there is no bound), None without an error.
    open_elements: those of which the oracle knows nothing (its error is infinite): any value passes.
    """

    max_abs: Number
    max_rel: Number
    max_ulp: Number
    over_bound: Number | None
    over_bound_probable: Number | None
    bias_ulp: Number
    bias_outward_ulp: Number
    exact_elements: int
    ulp_histogram: dict[str, int]
    worst_row: int | None
    open_elements: int = 0


class StructureRecord(Record, frozen=True, kw_only=True):
    """A failure in front of the numbers: dtype or shape, never-written elements, or non-finite
    structure. `kind` names it, `first` is the first element's index.
    """

    kind: str
    count: int
    first: list[int]
    got: Number
    want: str
    message: str


class PatternRecord(Record, frozen=True, kw_only=True):
    """Where the failing elements lie: `kind` is one of every-element, rows, columns, tail, strided,
    tile-edges, scattered; `detail` says which. `values` says what they hold, if that is one value.
    """

    kind: str
    detail: str
    values: str = ""

    @property
    def words(self) -> str:
        """Place and value in words."""
        return f"{self.detail}, {self.values}" if self.values else self.detail


class OutputRecord(Record, frozen=True, kw_only=True):
    """One output judged. `metrics` is None where nothing could be compared. `non_finite` is what the
    spec says of NaN and infinities in it. sha256: of its little-endian bytes after each repetition.
    structure, metrics, pattern: None: volatile. sha256: empty: volatile.
    """

    name: str
    dtype: str
    shape: list[int]
    elements: int
    passed: bool
    structure: list[StructureRecord]
    checks: list[CheckRecord]
    metrics: MetricsRecord | None
    pattern: PatternRecord | None
    non_finite: str = ""
    sha256: list[str] = []


class MutantRecord(Record, frozen=True, kw_only=True):
    """A wrong output that the checks were tried on.

    status: rejected (a check refuses it), accepted (no check does), not-eligible (too close to the
    reference to be told here), not-known (it cannot be made of what the oracle says), not-applicable
    (the structure forbids it).
    flat: the output is judged here by limits that no analysis of the computation stands behind.
    told: True where it is only shown, and no verdict hangs on it.
    """

    output: str
    kind: str
    status: Literal["rejected", "accepted", "not-eligible", "not-known", "not-applicable"]
    detail: str
    flat: bool = False
    told: bool = False


class RepeatRecord(Record, frozen=True, kw_only=True):
    """Repetitions: how many, with what sentinels and schedules, and which outputs changed bits.

    differing_outputs, differing_schedules, bitwise_equal: None: volatile. differing_schedules: orders of
    blocks, warps and threads in the first two repetitions whose bits differ; empty where the device
    chooses the order.
    """

    repetitions: int
    sentinels: list[str]
    schedules: list[str]
    differing_outputs: list[str]
    bitwise_equal: bool | None
    differing_schedules: list[str] = []


class FindingRecord(Record, frozen=True, kw_only=True):
    """Something found beside the numbers: guard damage, changed inputs, a sanitizer's report."""

    tool: str
    kind: str
    message: str
    kernel: str
    location: str
    threads: str


class ExaminationRecord(Record, frozen=True, kw_only=True):
    """Something that was looked at beside the numbers in a case, whether or not it found anything.

    kind: guards (bytes around the buffers), inputs (unchanged after the run), memory (each access
    inside the kernel watched), races (each pair of accesses ordered or reported), initialisation
    (reads of what nothing wrote), barriers (who comes to them). `tool` looked, `scope` says at what.
    """

    kind: Literal["guards", "inputs", "memory", "races", "initialisation", "barriers"]
    tool: str
    scope: str


class PropertyRecord(Record, frozen=True, kw_only=True):
    """An identity of the outputs: its value, its derived limit and whether it holds.

    value and limit are those of the place that is nearest to its limit or exceeds it most, which
    `detail` names. runs: 2 where the outputs of another run, on changed inputs, are compared.
    value: None: volatile.
    """

    name: str
    output: str
    value: Number | None
    limit: Number
    passed: bool
    detail: str
    runs: int = 1


class ArrayRecord(Record, frozen=True, kw_only=True):
    """A saved array: sha256 of its little-endian bytes, as for inputs and outputs, and its .npy file.

    The file of a bfloat16 array, which .npy cannot name, holds the same values as float32. name:
    in_INPUT, want_OUTPUT or got_OUTPUT_REPETITION. file: relative to the evidence.
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
    not tried. `deterministic` is the variant's own declaration.
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
    examined: list[ExaminationRecord] = []

    @property
    def key(self) -> str:
        """Name of the case on its device, ID@DEVICE: the key of the case in `volatile`."""
        return f"{self.id}@{self.device}"


class GroupRecord(Record, frozen=True, kw_only=True):
    """Vacuity of one group (variant, output, shape, device): what became of each mutant kind.

    status: rejected (a verified case rejects it), accepted (accepted and rejected by no verified
    case), never-eligible (no profile here could tell it), not-known, not-applicable.
    flat: a dropped term of an output that flat limits alone judge. profile: the one that they accept
    it on though they reject it on another; empty where the record is about all profiles.
    """

    op: str = ""
    variant: str
    output: str
    shape: dict[str, int]
    device: str
    kind: str
    status: Literal["rejected", "accepted", "never-eligible", "not-known", "not-applicable"]
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
    """A claim gate, computed from the evidence."""

    name: str
    opened: bool
    reason: str
    opened_by: str


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
    measured: dict[str, MeasuredRecord] = {}
    oracle_logs: dict[str, str] = {}
    agreement: list[AgreementRecord] = []


class CasesFileRecord(Record, frozen=True, kw_only=True):
    """Where the cases of a large run lie: JSON lines in a file beside the evidence."""

    name: str
    sha256: str
    cases: int


class Evidence(Record, frozen=True, kw_only=True):
    """One run.

    In memory all cases are in `cases` and `cases_file` is None; a file of a run with very many
    cases has them beside it. The digest is always that of the form in memory. `settings` is None
    where the file was written before they were recorded. Objects keep their order in files, so that
    shapes are shown as they were made; the digest does not depend on it.
    """

    schema: Literal["tokitai/evidence/v2"]
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
    agreement: list[AgreementRecord] = []
