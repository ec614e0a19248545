"""What is seen in a file of AMD machine code."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tokitai_cli.core.model.device import Fact


class SeenKernel(msgspec.Struct, frozen=True):
    """A kernel."""

    name: str
    demangled: str
    facts: tuple[Fact, ...]
    instructions: int
    #: Words that are no instruction.
    unknown: int
    #: Instructions that the gfx device cannot execute.
    refused: tuple[str, ...]
    #: Of one kernel, where it was asked for.
    listing: tuple[str, ...] = ()


class Inspection(msgspec.Struct, frozen=True):
    """A file's kernels for one processor."""

    file: str
    arch: str
    targets: tuple[str, ...]
    kernels: tuple[SeenKernel, ...]
    #: Mnemonic to how often it stands there.
    names: Mapping[str, int]
