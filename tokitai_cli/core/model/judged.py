"""What is recorded of one case's outputs: checks, metrics, failures, and what was tried and found.

Part of the evidence file; `model.evidence` has the rest of it, and says what is volatile.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tokitai_cli.core.model.device import SanitizerKind

Number = float | Annotated[str, Meta(pattern="^(nan|inf|-inf)$")]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every object of an evidence file. All fields are always written."""


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


class HeatRecord(Record, frozen=True, kw_only=True):
    """Where in an output the error lies: the largest in each cell of a coarse grid.

    Rows are all axes but the last, columns the last one. levels: a line for each row of cells, a letter
    for each cell: "." no error, "a" at most 2^-12, "b" at most 2^-11, ... "m" at most 1, ... "z" more
    than 2^12, in units of the bound, or of ulp where there is none.
    """

    unit: Literal["bound", "ulp"]
    rows: int
    columns: int
    levels: list[str]


class MetricsRecord(Record, frozen=True, kw_only=True):
    """Error of an output against the reference over its finite elements.

    ulp is in the output's dtype; bias is the mean error in ulp, signed and in the direction of the
    reference's sign; over_bound is the largest error / bound. The histogram counts errors against
    the rounded reference by power of two: the key "0" counts exact elements, "1" those of at most
    1 ulp, "2" of at most 2, "4" of at most 4, and so on; worst_row is the row (first axis) with
    the largest mean error over bound (in ulp where there is no bound), None without an error.
    undecided_elements: those with an infinite error of the oracle, where any value passes.
    bound_histogram: elements by error over bound, with keys as those of ulp_histogram, halves and less
    too; empty without a bound. heat: None without an error. allowance: the smallest factor on the
    oracle's error with which every element is still within its bound, the last rounding being left as it
    is; None without a bound, and in older evidence.
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
    undecided_elements: int = 0
    bound_histogram: dict[str, int] = msgspec.field(default_factory=dict)
    heat: HeatRecord | None = None
    allowance: Number | None = None


class BoundRecord(Record, frozen=True, kw_only=True):
    """Size of the bound that a user's own oracle states, or that follows from its formula.

    Over the elements that must be finite. derived: the tool made it of the formula, and of what the
    author says there (`loosen`, `precision`).

    In ulp of the output's dtype at the reference, and relative to the reference where that is a normal
    number; a median is that of a sample of at most 32,768 elements.
    """

    ulp_median: Number
    ulp_largest: Number
    relative_median: Number
    relative_largest: Number
    derived: bool = False


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


class ProofRecord(Record, frozen=True, kw_only=True):
    """A whole product of matrices of whole numbers, checked by random vectors.

    elements: of the output. vectors: how many, of elements of so many bits; missed: with what
    probability a wrong element passes, at most. wrong_rows: how many rows are not the product's.
    """

    elements: int
    vectors: int
    bits: int
    missed: float
    wrong_rows: int


class SampleRecord(Record, frozen=True, kw_only=True):
    """The block of an output that checks and metrics are of: how many of its rows and columns.

    Places in checks and metrics count these alone. proof: what is known of all elements, if anything.
    """

    rows: int
    columns: int
    proof: ProofRecord | None


Towards = Literal["towards zero", "away from zero", "upwards", "downwards"]


class LeanRecord(Record, frozen=True, kw_only=True):
    """Errors of a narrow output that lean one way: rounding to nearest leans nowhere.

    mean: in ulp, over the `elements` that the output's dtype does not hold.
    """

    towards: Towards
    mean: float
    elements: int


class MaskRecord(Record, frozen=True, kw_only=True):
    """What a mask shows that a kernel drew by chance, each element kept with the probability p.

    share_chance: probability, at most, of a share as far from p. distance: of elements whose
    correlation is nearest to, or most beyond, what chance exceeds. significance: the probability, at
    most, with which all this refutes a mask of independent elements.
    """

    kept: int
    elements: int
    p: float
    share_chance: float
    distance: int
    correlation: float
    correlation_limit: float
    significance: float


class OutputRecord(Record, frozen=True, kw_only=True):
    """One output judged. `metrics` is None where nothing could be compared. `non_finite` is what the
    spec says of NaN and infinities in it. sha256: of its little-endian bytes after each repetition.
    unwritten: elements that the oracle lets stay as they were, and that did: nothing judged them.
    may_be_nan: elements at which NaN passes too. unjudged: elements whose value the reference does not
    tell: it is NaN, overflows, may be NaN, has no bound, or one that an overflow on the way leaves; all
    where none of them is finite. choices: integer elements of which several values pass.
    sample: what was judged of it, where that is not the whole. lean: where its errors lean to, on random
    profiles; None for nowhere, or not known.
    structure, metrics, pattern: None: volatile. sha256: empty: volatile. unwritten: 0: volatile.
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
    unwritten: int = 0
    may_be_nan: int = 0
    unjudged: int = 0
    choices: int = 0
    own_bound: BoundRecord | None = None
    sample: SampleRecord | None = None
    lean: LeanRecord | None = None
    #: Of a mask that the kernel draws by chance.
    mask: MaskRecord | None = None
    #: Elements whose expected value is finite in the output's dtype; None in older evidence.
    finite: int | None = None
    #: Inputs and scalars that its reference does not depend on here; None where that was not asked.
    independent: list[str] | None = None


class MutantRecord(Record, frozen=True, kw_only=True):
    """A wrong output that the checks were tried on.

    status: rejected (a check refuses it), accepted (no check does), not-eligible (too close to the
    reference to be told here), not-known (it cannot be made of what the oracle says), not-applicable
    (the structure forbids it).
    flat: the output is judged here by limits that no analysis of the computation stands behind.
    shown_only: no verdict hangs on it.
    """

    output: str
    kind: str
    status: Literal["rejected", "accepted", "not-eligible", "not-known", "not-applicable"]
    detail: str
    flat: bool = False
    shown_only: bool = False


class RepeatRecord(Record, frozen=True, kw_only=True):
    """Repetitions: how many, with what sentinels and schedules, and which outputs changed bits.

    differing_outputs, differing_schedules, bitwise_equal: None: volatile. differing_schedules: orders of
    blocks, warps and threads in the first two repetitions whose bits differ; empty where the device
    chooses the order. other_inputs: further repetitions on other inputs, each judged by its own
    reference, where variables of the source outlive a launch; other_inputs_fault: what failed in them.
    """

    repetitions: int
    sentinels: list[str]
    schedules: list[str]
    differing_outputs: list[str]
    bitwise_equal: bool | None
    differing_schedules: list[str] = []
    other_inputs: int = 0
    other_inputs_fault: str = ""


class FindingRecord(Record, frozen=True, kw_only=True):
    """Something found beside the numbers: guard damage, changed inputs, a sanitizer's report.

    location: file:line, of both accesses of a race. threads: block and thread of each. array: name and
    element, where they are known. count: how often the tool told it in its case. severity: a warning
    refutes nothing, but no claim stands beside it.
    """

    tool: str
    kind: str
    message: str
    kernel: str
    location: str
    threads: str
    array: str = ""
    count: int = 1
    severity: Literal["error", "warning"] = "error"

    @property
    def words(self) -> str:
        """The message, with kernel and place, which it may say itself."""
        location = self.location * (self.location not in self.message)
        place = ", ".join(filter(None, (self.kernel, location, self.array, self.threads)))
        seen = f", seen {self.count} times" if self.count > 1 else ""
        mild = "warning: " if self.severity == "warning" else ""
        return f"{mild}{self.message} ({place}{seen})" if place else f"{mild}{self.message}{seen}"

    @property
    def line(self) -> str:
        """The words behind the tool and the kind."""
        return f"{self.tool}, {self.kind}: {self.words}"


def graver(finding: FindingRecord, *, strict: bool) -> FindingRecord:
    """The finding; as an error where `strict`."""
    return msgspec.structs.replace(finding, severity="error") if strict else finding


class GuessRecord(Record, frozen=True, kw_only=True):
    """A guess of the spec that a failure hangs on: until it is confirmed, the failure says nothing.

    place: file and line. about: what is guessed there. words: what stands behind the mark.
    """

    place: str
    about: str
    words: str


class ExaminationRecord(Record, frozen=True, kw_only=True):
    """Something that was looked at beside the numbers in a case, whether or not it found anything.

    kind: guards (bytes around the buffers), inputs (unchanged after the run), memory (each access
    inside the kernel watched), races (each pair of accesses ordered or reported), shared-races (those
    of shared memory), initialisation (reads of what nothing wrote), locals (values of variables that
    nothing set), barriers (who comes to them), undefined (what C++ leaves undefined), schedules (equal
    outputs in several orders).
    `tool` looked, `scope` says at what; schedules: in how many orders, 0 where the device chooses.
    """

    kind: Literal["guards", "inputs"] | SanitizerKind
    tool: str
    scope: str
    schedules: int = 0


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


class ChangesRecord(Record, frozen=True, kw_only=True):
    """What the checks make of the changes of a formula, for one output of a case.

    tried: how many changes alter the output here. accepted: those that the checks let pass though the
    bound tells them from the reference. undetected: those that even the bound does not tell. rejected:
    all others; older evidence does not name them. rows: how many rows they were tried on, 0 for all.
    """

    output: str
    tried: int
    accepted: list[str]
    undetected: list[str]
    rejected: list[str] = []
    rows: int = 0


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """What the checks of an output tell of the changes of its formula, on some cases together.

    tried: changes that alter the output in some case. accepted, undetected: as in ChangesRecord, of
    those that the checks reject in no case. profiles: those of the cases, all of one shape. skipped:
    other profiles, and why.
    """

    variant: str
    output: str
    shape: dict[str, int]
    tried: int
    accepted: list[str]
    undetected: list[str]
    profiles: list[str]
    skipped: dict[str, str]
