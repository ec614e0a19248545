"""What a device is to the rest of the tool: facts, a build recipe and a launch command."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    from tokitai_cli.core.model.harness import HarnessRequest
    from tokitai_cli.core.model.judged import FindingRecord


# What a tool can look at beside the numbers.
SanitizerKind = Literal[
    "memory", "races", "shared-races", "initialisation", "locals", "barriers", "undefined",
    "schedules", "coverage",
]  # fmt: skip


class DeviceClass(enum.StrEnum):
    """Kind of evidence that a device gives."""

    AMD_GPU = "amd-gpu"
    NVIDIA_GPU = "nvidia-gpu"
    GFX_ISA_ON_CPU = "gfx-isa-on-cpu"
    HOST_SIMT = "host-simt"


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a device without looking at a machine."""

    device_class: DeviceClass
    #: Whether `--device auto` may take it.
    auto: bool = True
    #: A machine has few of them, and each has a worker of its own.
    exclusive: bool = False
    #: Every worker of a cluster runs its cases; else those that offer it by name.
    anywhere: bool = False
    #: The tool chooses the order of blocks and warps: equal bits in one order prove nothing.
    schedules: bool = False
    #: Name of the program that watches its kernels, empty where there is none.
    sanitizer: str = ""
    #: Facts of a probe that make an old result stale; others, such as the number of cores, differ
    #: between machines that are alike.
    identifying: tuple[str, ...] = ()
    #: Environment variables that name its programs.
    found_by: tuple[str, ...] = ()
    #: Environment variables that its runtime obeys, and that are passed on to its children.
    obeyed: tuple[str, ...] = ()
    #: Folder of the tool's headers for it alone, below `kernels_dir()`.
    headers: str = ""
    #: Its compiler knows nothing of CUDA's own headers and names.
    hip_only: bool = False
    #: What it cannot run at all, by a regular expression of the source.
    refused: Mapping[str, str] = {}
    #: The same, of what its compiler may pass over: told where the compiler stumbles over it.
    explained: Mapping[str, str] = {}


ASSEMBLY = "inline assembly"
UNBOUND_TEXTURE = "a texture that the spec does not bind"
# By name, in the order in which `auto` looks.
TRAITS: Mapping[str, Traits] = {
    "rocm": Traits(
        device_class=DeviceClass.AMD_GPU,
        exclusive=True,
        hip_only=True,
        identifying=("agent",),
        found_by=("HIPCC", "ROCM_PATH", "ROCM_HOME", "HIP_PATH"),
        obeyed=(
            *("HSA_OVERRIDE_GFX_VERSION", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"),
            "HSA_XNACK",
        ),
    ),
    "cuda": Traits(
        device_class=DeviceClass.NVIDIA_GPU,
        exclusive=True,
        sanitizer="compute-sanitizer",
        identifying=("gpu", "driver", "warp-size"),
        found_by=("CUDA_HOME",),
        obeyed=("CUDA_VISIBLE_DEVICES",),
        headers="cuda",
        refused={r"\b__builtin_amdgcn_\w+": "an AMD GPU intrinsic"},
    ),
    "gfx": Traits(
        device_class=DeviceClass.GFX_ISA_ON_CPU,
        sanitizer="the device itself, which watches every run",
        auto=False,
        schedules=True,
        identifying=("cpu", "machine"),
        found_by=("CLANG", "CXX"),
        headers="gfx",
    ),
    "cpu": Traits(
        device_class=DeviceClass.HOST_SIMT,
        anywhere=True,
        schedules=True,
        sanitizer="sanitizers of the compiler, and the tool's own watch",
        identifying=("cpu", "machine", "warp-size"),
        found_by=("CXX",),
        headers="host",
        refused={
            r"\b(?:asm|__asm|__asm__)\b(?=\s*(?:volatile|__volatile__)?\s*\()": ASSEMBLY,
            r"\b__builtin_amdgcn_\w*(?:mfma|wmma|swmmac|smfmac)\w*": "a matrix-core intrinsic",
            r"\b__builtin_amdgcn_\w+": "an AMD GPU intrinsic",
            r"\b__builtin_nvvm_\w+": "an NVIDIA GPU intrinsic",
            r"\brocwmma\s*::": "a matrix-core library",
        },
        explained={
            r"<<<": "a launch by a kernel",
            r"\btexture(?=\s*<)": UNBOUND_TEXTURE,
            r"\btex(?:1Dfetch|[123]D\w*)(?=\s*[<(])": UNBOUND_TEXTURE,
        },
    ),
}
AUTO = tuple(name for name, traits in TRAITS.items() if traits.auto)
# Devices that `sanitize` runs on, the one first that it takes by itself.
SANITIZED = tuple(name for name, traits in reversed(list(TRAITS.items())) if traits.sanitizer)


class Fact(msgspec.Struct, frozen=True):
    """One fact with how it is known, such as a command, a file or a runtime call."""

    name: str
    value: str
    source: str


class Probe(msgspec.Struct, frozen=True):
    """What is there. `missing` and `mend` are empty where the device is available."""

    device: str
    device_class: DeviceClass
    available: bool
    buildable: bool
    arch: str
    facts: tuple[Fact, ...] = ()
    missing: str = ""
    hint: str = ""


# The cpu device has either, the first where nothing is said.
WARP_SIZES = (32, 64)


class DeviceOptions(msgspec.Struct, frozen=True):
    """What the user asked of a device; resolved once and frozen."""

    #: "" for the device's own choice.
    arch: str = ""
    #: Index of the GPU.
    gpu: int = 0
    #: 32 or 64, cpu device only, 0 for its default.
    warp_size: int = 0
    #: OS threads of the cpu device, and of the tool beside it; 0 for all cores.
    threads: int = 0


# Name of the fact that tells which variables of the source outlive a launch; names joined by ", ".
WRITABLE = "writable variables"
# End of the name of the fact that tells which instructions of a kernel hardware gives within an error.
APPROXIMATE = "approximate instructions"

# Name of the fact that tells which processor of a source that is machine code was taken.
MACHINE_CODE = "machine code of the source"


class SharedGuards(msgspec.Struct, frozen=True):
    """Bytes kept free in front of each array of shared memory, behind it, and behind the last one."""

    front: int
    back: int
    last: int


def warp_size_of(device: str, arch: str, options: DeviceOptions) -> int:
    """Lanes of a warp of a device: 64 on AMD's GCN and CDNA (gfx9), 32 on RDNA and NVIDIA's GPUs.

    Source: AMD, "HIP hardware features", warp size.
    """
    if TRAITS[device].device_class is DeviceClass.HOST_SIMT:
        return options.warp_size or WARP_SIZES[0]
    return 64 if arch.startswith("gfx9") else 32


class BuildStage(msgspec.Struct, frozen=True):
    """A step of a build behind the first command, in the build's own folder."""

    #: Name of its file.
    makes: str
    #: Argv; or call: what makes the file by itself from the numbers, names and symbols of the
    #: request, in the folder, and returns facts.
    command: tuple[str, ...] = ()
    call: Callable[[Path, HarnessRequest], tuple[Fact, ...]] | None = None
    #: Of what `call` does.
    version: str = ""


class Unit(msgspec.Struct, frozen=True):
    """What makes the text of a unit from a source that is machine code, and facts."""

    make: Callable[[HarnessRequest], tuple[str, tuple[Fact, ...]]]
    #: Of it.
    version: str


class Recipe(msgspec.Struct, frozen=True):
    """How to build one harness source into one executable."""

    device: str
    arch: str
    compiler: Path
    #: Argv with the placeholders {source}, {output}, {depfile} standing for whole paths (each may be
    #: part of a longer word), and {assembled} for what the assembler tells that it read. Both lists
    #: are in Makefile syntax.
    command: tuple[str, ...]
    #: The whole, scrubbed environment of the compiler.
    environment: Mapping[str, str]
    source_suffix: str
    version_command: tuple[str, ...]
    #: Name of what `command` makes where `stages` go on from it; the last of them makes {object}.
    makes: str = ""
    #: Further steps, in order.
    stages: tuple[BuildStage, ...] = ()
    #: Files of the folder that stay beside the executable.
    kept: tuple[str, ...] = ()
    #: Of the stages.
    depfiles: tuple[str, ...] = ()
    #: Argv from {object} to {output}, where `command` makes an object file. It prints what it reads,
    #: a line for each file.
    link: tuple[str, ...] = ()
    #: Argv as `command`, for the unit that serves kernels, which `link` then has as {server}.
    server: tuple[str, ...] = ()
    #: Argv as `command` that makes assembler text, where {assembled} is not told: what an assembler
    #: would take in by it is refused.
    assembly: tuple[str, ...] = ()
    #: Macros, by name, that the GPU's own compiler defines and this one does not: what a source has
    #: for that compiler is what is built.
    branch: Mapping[str, str] = {}
    #: Whether vectors' copies must be written out for the compiler to check their addresses.
    shows_copies: bool = False
    #: What is kept free around shared arrays in that object file.
    shared_guards: SharedGuards | None = None
    #: Reads facts of the kernels from that object file.
    inspect_object: Callable[[Path], tuple[Fact, ...]] | None = None
    #: Programs that the compiler calls and whose identity belongs to the cache key.
    wraps: tuple[Path, ...] = ()
    #: Commands that print the path of one more such program each.
    wrap_commands: tuple[tuple[str, ...], ...] = ()
    resolved_features: str = ""
    notice: str = ""
    #: Reads facts of the code object from the artifact and the compiler's output.
    inspect: Callable[[Path, str], tuple[Fact, ...]] | None = None
    #: What may help, by a regular expression that the compiler's output matches.
    mends: tuple[tuple[str, str], ...] = ()
    unit: Unit | None = None
    #: How a source is built that is machine code itself; None where the device executes none. Its
    #: `unit` makes the text that `command` compiles.
    machine_code: Recipe | None = None


class Sanitizer(msgspec.Struct, frozen=True):
    """One tool that watches a kernel while it runs."""

    #: Its name as findings and evidence give it.
    tool: str
    #: What it looks at, kind and scope, as in ExaminationRecord.
    looks: tuple[tuple[SanitizerKind, str], ...]
    #: path.
    program: str = ""
    #: What it says of itself.
    version: str = ""
    #: The device as it builds and runs for the tool, with a log NAME.log of each child in the folder,
    #: by name in their order.
    under: Callable[[Device, Path], Device] = lambda device, folder: device
    #: A log to findings; raises ValueError where it shows that the tool itself did not work to its
    #: end, with its words.
    read: Callable[[str], tuple[FindingRecord, ...]] = lambda text: ()
    #: Whether the outputs are compared as well.
    judges: bool = True
    #: Least number of repetitions.
    repeat: int = 0
    #: One shows what there is to see.
    once: bool = False
    #: Why it cannot run here; then nothing of its looks is tested.
    missing: str = ""
    #: What no case has executed by the time that the children of a folder have ended, a sentence
    #: each.
    unexecuted: Callable[[Path], tuple[str, ...]] | None = None


class Device(Protocol):
    """A device. Implementations hold no state but cached probes."""

    name: str
    traits: Traits
    non_claims: tuple[str, ...]

    def probe(self, options: DeviceOptions) -> Probe:
        """Look for hardware, runtime and compiler; never raises for a missing one."""

    def recipe(
        self, options: DeviceOptions, defines: Mapping[str, str], flags: tuple[str, ...]
    ) -> Recipe:
        """Recipe for this machine; raises BuildError where no compiler is there."""

    def launch_command(self, artifact: Path, options: DeviceOptions) -> tuple[str, ...]:
        """Argv that starts the child; the run stage appends the descriptors of its pipes."""

    def launch_environment(self, options: DeviceOptions) -> Mapping[str, str]:
        """Environment of the child."""

    def sanitizers(self) -> tuple[Sanitizer, ...]:
        """Tools of its sanitizer; InadmissibleError where it has one that is not installed."""
