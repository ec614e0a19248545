"""The memory file that tool and child share, and what is judged in it."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import mmap
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import FORMATS, numpy_dtype
from tokitai_cli.core.errors import NotRunError
from tokitai_cli.core.fills import NBYTES, fills_of, pattern
from tokitai_cli.core.model.case import BufferPlan, GuardDamage, Role
from tokitai_cli.run.child.memory_layout import Layout, Placed

GUARD = 0xC3
_MARGIN = 64 << 20


class Memory:
    """A memory file that can only grow. Views into it stay valid when it grows or is closed."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("tokitai", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
        self._nbytes = 0
        self._map: mmap.mmap | None = None
        self._bytes: NDArray[np.uint8] = np.empty(0, np.uint8)

    def close(self) -> None:
        """Close the descriptor; the memory goes when the last view does."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def reserve(self, nbytes: int, case_id: str) -> None:
        """Grow to `nbytes`; raises NotRunError where this machine has not that much memory."""
        if nbytes > self._nbytes:
            check_fits(nbytes - self._nbytes, nbytes, case_id)
            try:
                os.ftruncate(self.descriptor, nbytes)
                view = mmap.mmap(self.descriptor, nbytes)
            except (OSError, OverflowError, ValueError) as error:
                raise NotRunError(f"{case_id} needs {size_text(nbytes)}: {error}") from error
            self._nbytes = nbytes
            self._map = view
            self._bytes = np.frombuffer(view, np.uint8)

    def forget(self) -> None:
        """Give the memory back until it is written again: all of it is zero then, in views too."""
        if self._map is not None and hasattr(mmap, "MADV_REMOVE"):
            with contextlib.suppress(OSError):  # it only stays longer
                self._map.madvise(mmap.MADV_REMOVE)

    def write(
        self,
        layout: Layout,
        arrays: Mapping[str, NDArray[Any]],
        fills: Sequence[int] = (),
        among_zeros: Collection[str] = (),
    ) -> None:
        """Write the fills, and every content with its guards.

        fills: others than those of `fills_of`. among_zeros: arrays with zeros around them, in place of
        what shows. Raises ValueError for an array that does not fit.
        """
        fills = fills or fills_of(len(layout.fills))
        for fill, place in zip(fills, layout.fills, strict=True):
            self._bytes[place : place + NBYTES] = pattern(fill)
        for buffer in layout.buffers:
            if buffer.content:
                values, end = outside(buffer.plan.dtype), buffer.content + buffer.plan.nbytes
                values = np.zeros_like(values) if buffer.plan.name in among_zeros else values
                front = np.resize(values, buffer.front // values.itemsize)[::-1].copy()
                back = np.resize(values, buffer.back // values.itemsize)
                self._bytes[buffer.content - buffer.front : buffer.content] = front.view(np.uint8)
                self._bytes[end : end + buffer.back] = back.view(np.uint8)
                if buffer.plan.role is Role.STRUCT:  # the child knows what is there, and its size
                    self._bytes[buffer.content : end] = GUARD
                elif buffer.plan.role is not Role.LIST:  # whose pointers the child knows
                    array = arrays[buffer.plan.name]
                    _check_array(buffer.plan, array)
                    self.array(buffer.plan, buffer.content)[...] = array

    def keep(self, layout: Layout, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write workspaces that begin with what they held before."""
        for buffer in layout.buffers:
            if buffer.plan.name in arrays:
                self.array(buffer.plan, buffer.region)[...] = arrays[buffer.plan.name]

    def kept(self, layout: Layout) -> dict[str, NDArray[Any]]:
        """What workspaces that are zeroed once hold now, copied."""
        return {
            buffer.plan.name: self.array(buffer.plan, buffer.region).copy()
            for buffer in layout.buffers
            if buffer.plan.init == "zero-once"
        }

    def array(self, plan: BufferPlan, offset: int) -> NDArray[Any]:
        """View of the payload at `offset`."""
        part = self._bytes[offset : offset + plan.nbytes]
        return part.view(numpy_dtype(plan.dtype)).reshape(plan.shape)

    def outputs(self, layout: Layout, repetitions: int) -> tuple[dict[str, NDArray[Any]], ...]:
        """Read-only views of outputs and in-out buffers, by repetition and name."""
        found: tuple[dict[str, NDArray[Any]], ...] = tuple({} for _ in range(repetitions))
        for buffer in layout.buffers:
            if buffer.plan.role in (Role.OUTPUT, Role.INOUT):
                for turn, offset in buffer.regions(repetitions):
                    view = self.array(buffer.plan, offset)
                    view.flags.writeable = False
                    found[turn][buffer.plan.name] = view
        return found

    def guard_damage(self, layout: Layout, repetitions: int) -> tuple[GuardDamage, ...]:
        """Every guard of a result region that is not what the child filled it with."""
        damage: list[GuardDamage] = []
        for buffer in layout.buffers:
            for turn, offset in buffer.regions(repetitions):
                damage += self._damage(buffer, turn, offset)
        return tuple(damage)

    def image(self, nbytes: int) -> NDArray[np.uint8]:
        """First `nbytes` of the file, to be saved."""
        return self._bytes[:nbytes]

    def _damage(self, buffer: Placed, turn: int, offset: int) -> list[GuardDamage]:
        found: list[GuardDamage] = []
        end = offset + buffer.plan.nbytes
        for side, start, stop in (
            ("front", offset - buffer.front, offset),
            ("back", end, end + buffer.back),
        ):
            wrong = np.flatnonzero(self._bytes[start:stop] != GUARD)
            if wrong.size:
                first = start + int(wrong[0]) - offset
                found.append(GuardDamage(buffer.plan.name, turn, first, int(wrong.size), side))
        return found


@functools.cache
def outside(dtype: str) -> NDArray[Any]:
    """Elements around an input, from its ends outwards, that show where a kernel takes them in.

    Infinity shows in a sum, in a maximum and times 0; minus infinity, which comes next, in a minimum.
    """
    form = FORMATS.get(dtype)
    if form is not None:
        infinite = (np.inf, -np.inf) if form.overflows == "infinity" else ()
        return np.array([*infinite, np.nan]).astype(numpy_dtype(dtype))
    if dtype == "bool":
        return np.array([True])
    limits = np.iinfo(dtype)
    return np.array([limits.max, limits.min or limits.max], dtype)


def check_fits(more: int, whole: int, case_id: str) -> None:
    """Raise NotRunError where `more` bytes are not to be had now; says the size needed."""
    available = available_bytes()
    if available is not None and more + _MARGIN > available:
        raise NotRunError(
            f"{case_id} needs {size_text(whole)} of memory, and {size_text(available)} are free",
            hint="choose a smaller shape or fewer repetitions, or a machine with more memory",
        )


def available_bytes() -> int | None:
    """Memory that can be had without swapping: MemAvailable, or less under a cgroup's limit.

    Sources: proc(5), /proc/meminfo; the kernel's cgroup-v2 document, memory.max and memory.current
    (reclaimable file pages count as free, memory.stat). None where neither is told.
    """
    lines = _read("/proc/meminfo").splitlines()
    found = [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    group = Path("/sys/fs/cgroup")
    limit, used = _read(group / "memory.max").strip(), _read(group / "memory.current").strip()
    if limit.isdigit() and used.isdigit():
        cached = 0
        for line in _read(group / "memory.stat").splitlines():
            if line.startswith("inactive_file "):
                cached = int(line.split()[1])
        found.append(max(0, int(limit) - int(used) + cached))
    return min(found, default=None)


def size_text(nbytes: int) -> str:
    """Bytes in words: 1.5 GiB."""
    value = float(nbytes)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"


def _check_array(plan: BufferPlan, array: NDArray[Any]) -> None:
    if array.shape != plan.shape or array.dtype != numpy_dtype(plan.dtype):
        raise ValueError(
            f"{plan.name} is {array.dtype} {array.shape}, planned {plan.dtype} {plan.shape}"
        )


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
