"""What flows between the stages while a run is under way. Plain data; arrays are numpy arrays."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tokitai_cli.core import resources
from tokitai_cli.core.dtypes import DTYPES
from tokitai_cli.core.model.device import WARP_SIZES
from tokitai_cli.core.model.guesses import Guess
from tokitai_cli.core.model.models import Models
from tokitai_cli.core.model.sizes import sizes_at
from tokitai_cli.core.model.spec import WARP_SIZE, Spec, Variant

if TYPE_CHECKING:
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
    #: Of its sources, for all that read them.
    models: Models = msgspec.field(default_factory=Models)

    @property
    def is_shipped(self) -> bool:
        """Whether it is one of the tool's own, which tests hold against kernels and formulas."""
        return self.path.is_relative_to(resources.specs_dir())

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
