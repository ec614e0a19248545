"""What one generated harness serves: the kernels of a source by signature, and its symbols.

The order of `kernels` is the numbering that a run request refers to, so that the stage that builds
a harness and the stage that talks to it share nothing but this.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tokitai_cli.model.case import BufferArg, BufferPlan, LaunchPlan


class KernelArg(msgspec.Struct, frozen=True):
    """One parameter as it is passed: `dtype` is that of the elements or of the value.

    kind: buffer (a device pointer), scalar (by value, in `dtype`), integer (by value, in the
    kernel's own type; `dtype` is empty).
    """

    kind: Literal["buffer", "scalar", "integer"]
    dtype: str


class KernelEntry(msgspec.Struct, frozen=True):
    """A kernel, or an instantiation of a kernel template, with what is passed to it."""

    expr: str
    args: tuple[KernelArg, ...]


class HarnessRequest(msgspec.Struct, frozen=True):
    """A harness for `source` (absolute). `symbols` are (name, dtype); `defines` name to value text.

    places: key of the spec for each kernel, such as variants.main.launches[0].
    """

    source: Path
    kernels: tuple[KernelEntry, ...]
    symbols: tuple[tuple[str, str], ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    places: tuple[str, ...] = ()

    def index_of(self, launch: LaunchPlan, buffers: Sequence[BufferPlan]) -> int:
        """Return the number of the launch's kernel; raises ValueError where it is not served."""
        return self.kernels.index(kernel_entry(launch, buffers))


def kernel_entry(launch: LaunchPlan, buffers: Sequence[BufferPlan]) -> KernelEntry:
    """Kernel and signature of a launch; `buffers` are those of its case."""
    dtypes = {buffer.name: buffer.dtype for buffer in buffers}
    args: list[KernelArg] = []
    for arg in launch.args:
        if isinstance(arg, BufferArg):
            args.append(KernelArg("buffer", dtypes[arg.buffer]))
        elif arg.dtype:
            args.append(KernelArg("scalar", arg.dtype))
        else:
            args.append(KernelArg("integer", ""))
    return KernelEntry(launch.kernel, tuple(args))
