"""What is seen in a file of AMD machine code."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tokitai_cli.core.model.device import Fact


class SeenKernel(msgspec.Struct, frozen=True):
    """A kernel. unknown: words that are no instruction; refused: instructions that the gfx device cannot
    execute; listing: of one kernel, where it was asked for.
    """

    name: str
    demangled: str
    facts: tuple[Fact, ...]
    instructions: int
    unknown: int
    refused: tuple[str, ...]
    listing: tuple[str, ...] = ()


class Inspection(msgspec.Struct, frozen=True):
    """A file's kernels for one processor. names: mnemonic to how often it stands there."""

    file: str
    arch: str
    targets: tuple[str, ...]
    kernels: tuple[SeenKernel, ...]
    names: Mapping[str, int]
