"""What is judged beside the numbers: dtype, shape, never-written elements, NaN and infinity, and
whether every repetition gave the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import numpy_dtype
from tokitai_cli.core.fills import held
from tokitai_cli.core.model.case import BufferPlan, Role, RunResult
from tokitai_cli.core.model.judged import StructureRecord
from tokitai_cli.core.model.wording import plural
from tokitai_cli.core.numerics import bits_of
from tokitai_cli.judge.checks import compared as kinds
from tokitai_cli.judge.checks.compared import Compared, Mask, flat_index
from tokitai_cli.judge.checks.numbers import (
    elements_text,
    hex_bits,
    index_of,
    number,
    shown,
    shown_index,
)
from tokitai_cli.judge.checks.target import CHUNK

NEVER_WRITTEN = "never-written"

_SENTENCES = {
    kinds.NAN_UNEXPECTED: "NaN where the reference is a number",
    kinds.NAN_MISSING: "a number where the reference is NaN",
    kinds.INF_UNEXPECTED: "infinity where the reference is a number",
    kinds.INF_MISSING: "a number where the reference is infinite or overflows",
    kinds.INF_SIGN: "infinity of the wrong sign",
}

# Every kind of failure in front of the numbers: of the array as a whole, and of elements of it.
OF_FORM = frozenset({"missing", "dtype", "shape"})
OF_ELEMENTS = frozenset({NEVER_WRITTEN, *_SENTENCES})


def form_failures(buffer: BufferPlan, result: RunResult) -> list[StructureRecord]:
    """dtype and shape of every repetition, without broadcasting; an output that is not there."""
    for repetition, outputs in enumerate(result.outputs):
        got = outputs.get(buffer.name)
        where = f"{buffer.name} in repetition {repetition}"
        if got is None:
            return [_form("missing", f"{where} was not returned", buffer.dtype)]
        if got.dtype != numpy_dtype(buffer.dtype):
            text = f"{where} has dtype {got.dtype}, want {buffer.dtype}"
            return [_form("dtype", text, buffer.dtype)]
        if got.shape != buffer.shape:
            text = f"{where} has shape {list(got.shape)}, want {list(buffer.shape)}"
            return [_form("shape", text, str(list(buffer.shape)))]
    return []


def _form(kind: str, message: str, want: str) -> StructureRecord:
    return StructureRecord(kind=kind, count=1, first=[], got="nan", want=want, message=message)


def can_tell_unwritten(buffer: BufferPlan, fills: Sequence[int]) -> str:
    """Why never-written elements of `buffer` cannot be told, or "" where they can."""
    if buffer.role is Role.INOUT:
        return ""
    if buffer.init == "zero":
        return "never-written elements cannot be detected: the output starts as zero"
    if not any(fill ^ 1 in fills for fill in fills):
        return (
            "never-written elements cannot be detected: no two repetitions had complementary fills"
        )
    return ""


def never_written(
    buffer: BufferPlan, arrays: Sequence[NDArray[Any]], fills: Sequence[int]
) -> Mask | None:
    """Find elements that still hold their fill under one fill and under its complement.

    None where there are none. A value that happens to equal one fill cannot equal its complement,
    so nothing is mistaken whatever the dtype. `arrays` are the flat bits of each repetition.
    """
    if buffer.role is Role.INOUT or buffer.init == "zero" or not arrays[0].size:
        return None
    mask: Mask | None = None
    for fill in sorted({fill & ~1 for fill in fills if fill ^ 1 in fills}):
        for start in range(0, arrays[0].size, CHUNK):
            where = slice(start, start + CHUNK)
            stayed = _stayed(buffer, arrays, fills, fill, where)
            if not stayed.any():
                continue
            stayed &= _stayed(buffer, arrays, fills, fill ^ 1, where)
            if stayed.any():
                mask = np.zeros(arrays[0].size, dtype=bool) if mask is None else mask
                mask[where] |= stayed
    return mask


def _stayed(
    buffer: BufferPlan,
    arrays: Sequence[NDArray[Any]],
    fills: Sequence[int],
    fill: int,
    where: slice,
) -> Mask:
    first = arrays[0][where]
    before = held(buffer.name, fill, where.start * first.itemsize, first.nbytes).view(first.dtype)
    hits = [
        array[where] == before
        for array, number in zip(arrays, fills, strict=True)
        if number == fill
    ]
    return np.asarray(np.logical_or.reduce(hits))


def never_written_failure(buffer: BufferPlan, mask: Mask, first_value: float) -> StructureRecord:
    """Return the record of elements that the kernel left as they were."""
    count = int(np.count_nonzero(mask))
    first = index_of(int(np.argmax(mask)), buffer.shape)
    return StructureRecord(
        kind=NEVER_WRITTEN,
        count=count,
        first=first,
        got=number(first_value),
        want="a value written by the kernel",
        message=f"{plural(count, 'element')} never written, first index {shown_index(first)}",
    )


# Non-finite disagreements by kind: how many, and the flat place of the first, what was got and wanted.
Disagreements = dict[str, tuple[int, int, float, str]]


def disagreements(compared: Compared) -> Disagreements:
    """Those of one chunk."""
    found = {}
    for kind, mask in compared.structure.items():
        place = int(np.argmax(mask))
        got, want = float(compared.got[place]), float(compared.chunk.reference[place])
        found[kind] = (int(np.count_nonzero(mask)), flat_index(compared, place), got, shown(want))
    return found


class StructureTally:
    """Non-finite disagreements with the oracle's masks over the chunks of one repetition."""

    def __init__(self, buffer: BufferPlan) -> None:
        self.buffer = buffer
        self._found: Disagreements = {}

    def add(self, part: Disagreements) -> None:
        """Take in one chunk, which follows the one before."""
        for kind, found in part.items():
            known = self._found.get(kind)
            self._found[kind] = found if known is None else (known[0] + found[0], *known[1:])

    def records(self) -> list[StructureRecord]:
        """One record per kind, the kind with the first failing element first."""
        records = []
        for kind, (count, flat, got, want) in sorted(
            self._found.items(), key=lambda item: item[1][1]
        ):
            index = index_of(flat, self.buffer.shape)
            total = elements_text(count, self.buffer.elements)
            sides = f"got {shown(got)}, want {want} at {shown_index(index)}"
            message = f"{_SENTENCES[kind]}: {sides}; {total}"
            records.append(
                StructureRecord(
                    kind=kind,
                    count=count,
                    first=index,
                    got=number(got),
                    want=want,
                    message=message,
                )
            )
        return records


class Difference(msgspec.Struct, frozen=True):
    """An output whose bits differ between repetitions: the first one that differs from 0."""

    output: str
    repetition: int
    message: str


def difference(
    buffer: BufferPlan,
    arrays: Sequence[NDArray[Any]],
    differing: Sequence[int],
    skip: Mask | None,
) -> Difference | None:
    """Compare repetitions `differing` with repetition 0, as bytes; a NaN equals any other NaN.

    `skip` leaves out elements that no repetition wrote.
    """
    for repetition in differing:
        count, first = 0, -1
        for start in range(0, arrays[0].size, CHUNK):
            where = slice(start, start + CHUNK)
            left, right = arrays[0][where], arrays[repetition][where]
            unlike = bits_of(left) != bits_of(right)
            unlike &= ~(np.isnan(left) & np.isnan(right))
            if skip is not None:
                unlike &= ~skip[where]
            found = int(np.count_nonzero(unlike))
            if found and first < 0:
                first = start + int(np.argmax(unlike))
            count += found
        if count:
            place = shown_index(index_of(first, buffer.shape))
            message = (
                f"{buffer.name} has different bits in repetition {repetition} than in repetition 0: "
                f"{elements_text(count, buffer.elements)}, first {place}: "
                f"{hex_bits(arrays[0][first])} and {hex_bits(arrays[repetition][first])}"
            )
            return Difference(buffer.name, repetition, message)
    return None
