"""What flows between the stages while a run is under way. Plain data; arrays are numpy arrays."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tokitai_cli.core.dtypes import DTYPES
from tokitai_cli.core.model.device import WARP_SIZES
from tokitai_cli.core.model.guesses import Guess
from tokitai_cli.core.model.sizes import sizes_at
from tokitai_cli.core.model.spec import WARP_SIZE, Spec, Variant

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokitai_cli.core.model.judged import FindingRecord

Shape = Mapping[str, int]


class Role(enum.StrEnum):
    """What a kernel may do with a buffer."""

    INPUT = "input"
    OUTPUT = "output"
    INOUT = "inout"
    WORKSPACE = "workspace"
    SYMBOL = "symbol"
    LIST = "list"
    STRUCT = "struct"


class LoadedSpec(msgspec.Struct, frozen=True):
    """A spec with where it came from. `text` is the file as read, `digest` its sha256 in hex."""

    spec: Spec
    path: Path
    text: str
    digest: str
    #: What is to be said of it, that is no fault.
    notes: tuple[str, ...] = ()
    #: Of each variant, the workspaces that a kernel reads by its text, where that could be read.
    read_back: Mapping[str, frozenset[str]] = {}
    #: Lines of it, and of the files of its oracles, that are marked as guesses.
    guesses: tuple[Guess, ...] = ()

    @property
    def folder(self) -> Path:
        """Folder that relative paths in the spec start from."""
        return self.path.parent


class BufferPlan(msgspec.Struct, frozen=True):
    """A buffer with its numbers filled in. `init` is as in the spec, for outputs and workspaces."""

    name: str
    role: Role
    dtype: str
    shape: tuple[int, ...]
    init: str = "sentinel"
    #: The one value that a right output has throughout, None where it is not said.
    constant: float | None = None
    #: Of a list, the buffer that each pointer leads into, and the byte of its payload.
    points: tuple[tuple[str, int], ...] = ()
    #: The variable of the source that the kernels know it by, of an output or in-out that is no
    #: argument.
    symbol: str = ""
    #: Whether nothing need be in it beforehand, at the case's shape and scalars.
    unset: bool = False
    #: Of a mask that the kernel draws by chance, the probability with which an element is 1.
    kept: float | None = None

    @property
    def elements(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def nbytes(self) -> int:
        """Bytes of the payload, without guards."""
        return self.elements * DTYPES[self.dtype].nbytes


class BufferArg(msgspec.Struct, frozen=True):
    """A launch argument that is a device pointer to `buffer`."""

    buffer: str


class ScalarValue(msgspec.Struct, frozen=True):
    """A launch argument passed by value. `dtype` empty: an integer in the kernel's own type.

    `bits` are the value's bytes in `dtype`, little-endian; for an empty dtype an int64.
    """

    name: str
    dtype: str
    bits: bytes
    shown: str


class StructArg(msgspec.Struct, frozen=True):
    """A launch argument that is a struct: its places (".n", ".dims[1]") with what they hold.

    The kernel takes it by value or by a pointer, which its compiler knows; then the buffer of the
    struct's name is where it lies.
    """

    name: str
    fields: tuple[tuple[str, BufferArg | ScalarValue], ...]


class LaunchPlan(msgspec.Struct, frozen=True):
    """One launch with its numbers filled in. `index` counts the launches of the variant from 0."""

    index: int
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    args: tuple[BufferArg | ScalarValue | StructArg, ...]
    #: Of the loops around it, by name.
    steps: Shape = {}

    @property
    def leaves(self) -> tuple[BufferArg | ScalarValue, ...]:
        """Arguments as they are passed one by one: a struct's own buffer, and its fields behind it."""
        parts = ((one,) if not isinstance(one, StructArg) else _held(one) for one in self.args)
        return tuple(itertools.chain.from_iterable(parts))


def _held(struct: StructArg) -> tuple[BufferArg | ScalarValue, ...]:
    room = (BufferArg(struct.name),) if struct.fields else ()
    return (*room, *(value for _, value in struct.fields))


class Case(msgspec.Struct, frozen=True):
    """Variant x shape x profile x seed, before it meets a device."""

    loaded: LoadedSpec
    variant_name: str
    shape: Shape
    profile: str
    seed: int
    buffers: tuple[BufferPlan, ...]
    launches: tuple[LaunchPlan, ...]
    #: Those of the spec that no step of a loop changes.
    scalars: tuple[ScalarValue, ...] = ()
    expect_empty: bool = False
    #: The variant whose inputs it takes, where that is another one.
    drawn_as: str = ""
    warp_size: int = WARP_SIZES[0]

    @property
    def sizes(self) -> Shape:
        """Params and derived sizes, by name."""
        return sizes_at(self.loaded.spec, self.shape)

    @property
    def names(self) -> Shape:
        """What expressions of launches and macros may refer to, with its values."""
        return {**self.sizes, WARP_SIZE: self.warp_size}

    @property
    def variant(self) -> Variant:
        """The variant's part of the spec."""
        return self.loaded.spec.variants[self.variant_name]

    @property
    def id(self) -> str:
        """Stable name: op/variant/m=64,n=64/profile/seed."""
        shape = ",".join(f"{name}={value}" for name, value in self.shape.items())
        return f"{self.loaded.spec.op}/{self.variant_name}/{shape}/{self.profile}/{self.seed}"

    def buffers_of(self, *roles: Role) -> tuple[BufferPlan, ...]:
        """Buffers with one of the roles, in the order of the spec."""
        return tuple(buffer for buffer in self.buffers if buffer.role in roles)


class Zeroed(msgspec.Struct, frozen=True):
    """An oracle's reference of inputs of which one slice is zero, at every `stride`-th flat position."""

    #: "last", or "heaviest", the slice of the largest sum of squares.
    which: Literal["last", "heaviest"]
    input: str
    axis: int
    index: int
    stride: int
    values: NDArray[Any]


# Names of wrong references whose sums lack a term, in Expectation.dropped.
DROPPED = (LAST_DROPPED, HEAVIEST_DROPPED) = ("last-term-dropped", "heaviest-term-dropped")
# An output of inputs with one slice zeroed, as a user's own oracle has it.
SLICE_ZEROED = "slice-zeroed"
# Wrong outputs that are tried whatever the case is; those that are not finite, on floats alone.
NON_FINITE = ("all-nan", "one-nan", "all-inf")
ALWAYS_TRIED = ("zeros", "constant-mean", "roll", *DROPPED, "sign-flipped", *NON_FINITE, "anchor")


class ChangedRows(msgspec.Struct, frozen=True):
    """A wrong reference in `Expectation.dropped`: the right one but for some rows of it."""

    #: The right one.
    reference: NDArray[Any]
    #: Of the first axis; None for all.
    rows: NDArray[np.int64] | None
    #: What these have instead, None where nothing changes.
    values: NDArray[Any] | None

    def __call__(self) -> NDArray[Any]:
        """The whole of it."""
        whole = self.reference.copy()
        if self.values is not None:
            whole[slice(None) if self.rows is None else self.rows] = self.values
        return whole


class Block(msgspec.Struct, frozen=True):
    """The rows and columns of a large product that an expectation is of, and the product's factors."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    #: The matrices as they are multiplied.
    left: NDArray[Any]
    right: NDArray[Any]
    #: Whole numbers up to which the kernel's accumulator has no rounding.
    counted: float


class Further(msgspec.Struct, frozen=True):
    """What a formula is asked once more, of the case that it answered."""

    #: Outputs of one repetition, by name, for `stored(x, output=...)`.
    outputs: Mapping[str, NDArray[Any]] = msgspec.field(default_factory=dict)
    #: Whether these stand for what the formula returns under their names, where it goes on from there.
    kept: bool = False
    #: Forms that its operations may have besides their own, by name (`formula.forms`).
    forms: tuple[str, ...] = ()


class Expectation(msgspec.Struct, frozen=True):
    """What an oracle says of one output (bounds.md)."""

    #: Float64 (or the output's integer/bool dtype), the output's shape; NaN where a correct kernel
    #: must give NaN, +-inf where it must give that infinity.
    reference: NDArray[Any]
    #: Worst-case absolute error e >= 0 in front of the last rounding to the output's dtype, or None
    #: where the oracle has no bound. The comparison derives F(e, r) and, from |r| +- e and the
    #: dtype's overflow threshold, which elements must be finite, must be infinite or may be either.
    #: Zero means that the value in front of that rounding is the reference itself.
    error: NDArray[np.float64] | None = None
    #: The probabilistic form of `error`, or None.
    error_probable: NDArray[np.float64] | None = None
    #: The same for values below and above the reference, where the two differ; both or neither, and
    #: `error` is then the larger of them.
    error_below: NDArray[np.float64] | None = None
    error_above: NDArray[np.float64] | None = None
    #: Outputs of one repetition, by name -> a smaller `error`, for an output that the kernel computes
    #: from another one of its own (bounds.md, the chained check of layernorm). Judged by the metric
    #: bound-chained, beside `bound`. None where there is no such thing.
    refine: Callable[[Mapping[str, NDArray[Any]]], NDArray[np.float64]] | None = None
    #: Asks the formula once more, for a reference and the errors below and above it; None for other
    #: oracles. For words alone: no verdict hangs on it.
    again: Callable[[Further], tuple[NDArray[np.float64], ...] | None] | None = None
    #: What it can be asked about, `Further.forms`, and what to do where a kernel fits one.
    forms: Mapping[str, str] = msgspec.field(default_factory=dict)
    #: Elements that the kernel may leave as they were, or None.
    may_be_unwritten: NDArray[np.bool_] | None = None
    #: Elements that may be NaN as well as within the error, or None.
    may_be_nan: NDArray[np.bool_] | None = None
    #: Elements whose error says little of their value, such as where an intermediate may overflow and
    #: 0 comes out; or None. They are compared, and count as not judged.
    unbounded: NDArray[np.bool_] | None = None
    #: Further values that are right for an output, (choices, *shape), or None.
    allowed: NDArray[Any] | None = None
    #: Of an output whose order is free, a number for each element: those of one number may stand in
    #: each other's places, those below 0 have their own. None where the spec says it.
    segments: NDArray[Any] | None = None
    #: Number of terms of the reduction behind each element (0: not a reduction, None: not known).
    terms: int | None = 0
    #: Mutant name -> a wrong reference of the same shape, such as "last-term-dropped" and
    #: "heaviest-term-dropped"; only those that the oracle can compute. Values are callables without
    #: arguments, so that nothing is computed before it is judged; each returns the wrong reference,
    #: or a function from flat positions (a slice or int64) to its float64 values there, which spares
    #: an array of the output's size.
    dropped: Mapping[str, Any] = msgspec.field(default_factory=dict)
    #: What `reference` + `low` is nearer to the truth by (double-double), for float64 outputs whose
    #: oracle goes beyond float64; |low| is at most half an ulp of the reference. None for others.
    low: NDArray[np.float64] | None = None
    #: Whether reference and error are the word of a user's own oracle: nothing derived them.
    own: bool = False
    #: What a user's own oracle says of other inputs, with one slice of one of them zero.
    zeroed: tuple[Zeroed, ...] = ()
    #: What a formula gives with one operation changed, by words for the change; no group has to tell
    #: all of them.
    changes: Mapping[str, NDArray[Any]] = msgspec.field(default_factory=dict)
    #: Those, of the first axis, that they are of; None for all.
    rows: NDArray[np.int64] | None = None
    #: What a formula gives in float32, rounded to the output's dtype; None for other oracles.
    replay: NDArray[Any] | None = None
    #: The rows and columns that all this is of, None for the whole output.
    block: Block | None = None
    #: Inputs and scalars that the reference does not depend on in this case; None: it was not asked.
    independent: tuple[str, ...] | None = None


class Deviations(msgspec.Struct, frozen=True):
    """An identity at each of its places, all float64 of one shape: must be |got - want| <= limit."""

    got: NDArray[np.float64]
    want: NDArray[np.float64]
    limit: NDArray[np.float64]
    #: Places at which the identity is claimed; None for all.
    judged: NDArray[np.bool_] | None = None
    #: Along the first axis, which of all places the first of these is.
    first: int = 0


class StatedProperty(msgspec.Struct, frozen=True):
    """An identity that an oracle states of the outputs of a case."""

    name: str
    output: str
    #: What its places are: "row", "column" or "element".
    places: str
    #: Outputs of one repetition, by name, and those of a run on `changed` arrays where there are any
    #: -> how far they are from the identity, part by part in order.
    deviations: Callable[
        [Mapping[str, NDArray[Any]], Mapping[str, NDArray[Any]]], Iterable[Deviations]
    ]
    #: Arrays by name that replace the drawn ones in another run of the same artifact; empty where the
    #: property is one of a single run.
    changed: Mapping[str, NDArray[Any]] = msgspec.field(default_factory=dict)
    #: Words for what was done to them.
    change: str = ""


class Replay(msgspec.Struct, frozen=True):
    """What the same-precision replay gives for one output."""

    #: In the output's dtype, for the rows (first axis) `rows`, or for all where `rows` is None.
    values: NDArray[Any]
    rows: NDArray[np.int64] | None = None


class GuardDamage(msgspec.Struct, frozen=True):
    """Bytes outside a payload that changed: `offset` is counted from the payload's first byte."""

    buffer: str
    repetition: int
    offset: int
    bytes_changed: int
    side: str
    #: Kernel, block and thread that a second run found, empty where they are not known.
    writer: str = ""


class InputDamage(msgspec.Struct, frozen=True):
    """An input that changed while the kernel ran; `offset` in bytes of the payload."""

    buffer: str
    offset: int
    bytes_changed: int
    #: Number of the field, of a struct in device memory; None where no field is there.
    field: int | None = None


class RunResult(msgspec.Struct, frozen=True):
    """What a child gave back for one case.

    outputs[r][name] is the array of repetition r (outputs and in-outs), valid until the child's next
    case; `fills[r]` is the number of the fill (tokitai_cli.core.fills) of repetition r. Times are of
    whole launch sequences, in nanoseconds, warm-ups left out. `schedules[r]` names the order of blocks
    and warps in repetition r, empty where the device has no say in it.
    """

    outputs: tuple[Mapping[str, NDArray[Any]], ...]
    fills: tuple[int, ...]
    times_ns: tuple[int, ...]
    guards: tuple[GuardDamage, ...] = ()
    inputs_changed: tuple[InputDamage, ...] = ()
    #: What the device itself found while kernels ran.
    findings: tuple[FindingRecord, ...] = ()
    log: str = ""
    log_bytes: int = 0
    schedules: tuple[str, ...] = ()
    #: What workspaces that are zeroed once held in the end.
    kept: Mapping[str, NDArray[Any]] = {}
