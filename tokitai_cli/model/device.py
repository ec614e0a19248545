"""What a device is to the rest of the tool: facts, a build recipe and a launch command."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec


class DeviceClass(enum.StrEnum):
    """Kind of evidence that a device gives."""

    AMD_GPU = "amd-gpu"
    NVIDIA_GPU = "nvidia-gpu"
    GFX_ISA_ON_CPU = "gfx-isa-on-cpu"
    HOST_SIMT = "host-simt"


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
    mend: str = ""


class DeviceOptions(msgspec.Struct, frozen=True):
    """What the user asked of a device; resolved once and frozen.

    arch: "" for the device's own choice. gpu: index of the GPU. warp_size: 32 or 64, cpu device
    only, 0 for its default. threads: OS threads of the cpu device, 0 for all cores.
    """

    arch: str = ""
    gpu: int = 0
    warp_size: int = 0
    threads: int = 0


class SharedGuards(msgspec.Struct, frozen=True):
    """Bytes kept free in front of each array of shared memory, behind it, and behind the last one."""

    front: int
    back: int
    last: int


class Recipe(msgspec.Struct, frozen=True):
    """How to build one harness source into one executable.

    command: argv with the placeholders {source}, {output}, {depfile} standing for whole paths
        (each may be part of a longer word). The depfile is in Makefile syntax.
    link: argv from {object} to {output}, where `command` makes an object file.
    shared_guards: what is kept free around shared arrays in that object file.
    environment: the whole, scrubbed environment of the compiler.
    wraps: programs that the compiler calls and whose identity belongs to the cache key.
    wrap_commands: commands that print the path of one more such program each.
    inspect: reads facts of the code object from the artifact and the compiler's output.
    mends: what may help, by a regular expression that the compiler's output matches.
    """

    device: str
    arch: str
    compiler: Path
    command: tuple[str, ...]
    environment: Mapping[str, str]
    source_suffix: str
    version_command: tuple[str, ...]
    link: tuple[str, ...] = ()
    shared_guards: SharedGuards | None = None
    wraps: tuple[Path, ...] = ()
    wrap_commands: tuple[tuple[str, ...], ...] = ()
    resolved_features: str = ""
    notice: str = ""
    inspect: Callable[[Path, str], tuple[Fact, ...]] | None = None
    mends: tuple[tuple[str, str], ...] = ()


class Device(Protocol):
    """A device. Implementations hold no state but cached probes."""

    name: str
    device_class: DeviceClass
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
