"""What a device is to the rest of the tool: facts, a build recipe and a launch command."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class DeviceClass(enum.StrEnum):
    """Kind of evidence that a device gives."""

    AMD_GPU = "amd-gpu"
    NVIDIA_GPU = "nvidia-gpu"
    GFX_ISA_ON_CPU = "gfx-isa-on-cpu"
    HOST_SIMT = "host-simt"


@dataclasses.dataclass(frozen=True, slots=True)
class Fact:
    """One fact with how it is known, such as a command, a file or a runtime call."""

    name: str
    value: str
    source: str


@dataclasses.dataclass(frozen=True, slots=True)
class Probe:
    """What is there. `missing` and `mend` are empty where the device is available."""

    device: str
    device_class: DeviceClass
    available: bool
    buildable: bool
    arch: str
    facts: tuple[Fact, ...] = ()
    missing: str = ""
    mend: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class DeviceOptions:
    """What the user asked of a device; resolved once and frozen.

    arch: "" for the device's own choice. gpu: index of the GPU. warp_size: 32 or 64, cpu device
    only, 0 for its default. threads: OS threads of the cpu device, 0 for all cores.
    """

    arch: str = ""
    gpu: int = 0
    warp_size: int = 0
    threads: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Recipe:
    """How to build one harness source into one executable.

    command: argv with the placeholders {source}, {output}, {depfile} standing for whole paths
        (each may be part of a longer word). The depfile is in Makefile syntax.
    environment: the whole, scrubbed environment of the compiler.
    wraps: programs that the compiler calls and whose identity belongs to the cache key.
    wrap_commands: commands that print the path of one more such program each.
    """

    device: str
    arch: str
    compiler: Path
    command: tuple[str, ...]
    environment: Mapping[str, str]
    source_suffix: str
    version_command: tuple[str, ...]
    wraps: tuple[Path, ...] = ()
    wrap_commands: tuple[tuple[str, ...], ...] = ()
    resolved_features: str = ""
    notice: str = ""


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
