"""What one generated harness serves: the kernels of a source by signature, and its symbols.

The order of `kernels` is the numbering that a run request refers to, so that the stage that builds
a harness and the stage that talks to it share nothing but this.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from tokitai_cli.core.model.buffers import leaves_of, listed, passed_buffers
from tokitai_cli.core.model.spec import Expression, Launch, Variant
from tokitai_cli.core.model.textures import references


class KernelArg(msgspec.Struct, frozen=True):
    """One parameter as it is passed: `dtype` is that of the elements or of the value."""

    #: Buffer (a device pointer), list (a pointer to such pointers), scalar (by value, in `dtype`),
    #: integer (by value, in the kernel's own type; `dtype` is empty), zero (an integer, or no address
    #: for a pointer), struct (place by place, by value or by a pointer as the kernel has it).
    kind: Literal["buffer", "list", "scalar", "integer", "zero", "struct"]
    dtype: str
    fields: tuple[tuple[str, KernelArg], ...] = ()


class KernelEntry(msgspec.Struct, frozen=True):
    """A kernel, or an instantiation of a kernel template, with what is passed to it."""

    expr: str
    args: tuple[KernelArg, ...]
    #: Textures at namespace scope that are set in front of it, by the source's names: the first `args`.
    references: tuple[str, ...] = ()
    #: Whether it is handed any texture.
    textures: bool = False


MAX_WORDS = 512  # arguments of a launch, structs and their fields: argument_limit of the harness
STRUCT_BYTES = 4096  # that a struct behind a pointer has at most: struct_limit of the harness


class HarnessRequest(msgspec.Struct, frozen=True):
    """A harness for `source` (absolute). `symbols` are (name, dtype); `defines` name to value text."""

    source: Path
    kernels: tuple[KernelEntry, ...]
    symbols: tuple[tuple[str, str], ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    #: Key of the spec for each kernel, such as variants.main.launches[0].
    places: tuple[str, ...] = ()

    def index_of(self, variant: Variant, launch: int, warp_size: int) -> int:
        """Return the number of the kernel of a launch; raises ValueError where it is not served."""
        return self.kernels.index(kernel_entry(variant, variant.launches[launch], warp_size))


def kernel_entry(variant: Variant, launch: Launch, warp_size: int) -> KernelEntry:
    """Kernel and signature of a launch on a device with such warps."""
    bound = references(variant)
    given = (*bound, *launch.args)
    return KernelEntry(
        launch.kernel_at(warp_size),
        tuple(_arg(variant, arg) for arg in given),
        tuple(bound.values()),
        any(str(arg) in variant.textures for arg in given),
    )


def _arg(variant: Variant, arg: Expression) -> KernelArg:
    buffers = passed_buffers(variant)
    name = str(arg)
    if name in buffers:
        return KernelArg("buffer", buffers[name].dtype)
    if name in variant.lists:
        return KernelArg("list", buffers[listed(variant, name)[0]].dtype)
    if name in variant.scalars:
        return KernelArg("scalar", variant.scalars[name].dtype)
    if name in variant.structs:
        fields = leaves_of(variant.structs[name])
        return KernelArg("struct", "", tuple((at, _arg(variant, one)) for at, one in fields))
    return KernelArg("zero" if arg == 0 else "integer", "")
