"""What several devices gave for the same cases, put side by side as the run goes on."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.evidence import AgreementRecord
from tokitai_cli.core.numerics import bits_of, integer_distance
from tokitai_cli.judge.checks.numbers import number
from tokitai_cli.judge.checks.target import CHUNK

Outputs = Mapping[str, NDArray[Any]]


def agreement(case: Case, given: Mapping[str, Outputs | None]) -> list[AgreementRecord]:
    """What devices (by name) wrote in their first repetition of the case, where they did, by pairs."""
    outputs = {device: arrays for device, arrays in given.items() if arrays is not None}
    return [
        _record(case, name, (left, right), array, outputs[right][name])
        for left, right in itertools.combinations(outputs, 2)
        for name, array in outputs[left].items()
    ]


class Agreements:
    """Joins the records of cases to one for every variant, output and pair of devices."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, ...], tuple[AgreementRecord, bool]] = {}

    def add(self, records: Iterable[AgreementRecord], *, deterministic: bool) -> None:
        """Take in records of a variant that is, or is not, declared deterministic."""
        for record in records:
            key = (record.op, record.variant, record.output, *record.devices)
            known = self._records.get(key)
            joined = record if known is None else _joined(known[0], record)
            self._records[key] = (joined, deterministic)

    def records(self, *, deterministic: bool) -> list[AgreementRecord]:
        """Records of the variants that are, or are not, declared deterministic."""
        return [record for record, is_so in self._records.values() if is_so is deterministic]


def _record(
    case: Case, output: str, devices: tuple[str, str], left: NDArray[Any], right: NDArray[Any]
) -> AgreementRecord:
    found = apart(left, right)
    return AgreementRecord(
        op=case.loaded.spec.op,
        variant=case.variant_name,
        output=output,
        devices=list(devices),
        unit="1" if left.dtype.kind in "iub" else "ulp",
        cases=1,
        equal_cases=int(found.differing == 0),
        elements=found.elements,
        differing=found.differing,
        largest=number(found.largest),
        where=case.id if found.differing else "",
    )


def _joined(known: AgreementRecord, more: AgreementRecord) -> AgreementRecord:
    farther = more.where and (float(more.largest) > float(known.largest) or not known.where)
    return msgspec.structs.replace(
        known,
        cases=known.cases + more.cases,
        equal_cases=known.equal_cases + more.equal_cases,
        elements=known.elements + more.elements,
        differing=known.differing + more.differing,
        largest=more.largest if farther else known.largest,
        where=more.where if farther else known.where,
    )


class Apart(msgspec.Struct, frozen=True):
    """Elements compared, those whose bits differ, and the largest distance between two of them."""

    elements: int
    differing: int
    #: For floating point the representable values from one to the other (infinite where one alone is
    #: NaN), for integers and bool their difference.
    largest: float


def apart(left: NDArray[Any], right: NDArray[Any]) -> Apart:
    """Compare two arrays of one dtype and shape; a NaN equals any other NaN."""
    differing, largest = 0, 0.0
    first, second = left.reshape(-1), right.reshape(-1)
    for start in range(0, first.size, CHUNK):
        one, other = first[start : start + CHUNK], second[start : start + CHUNK]
        unlike = bits_of(one) != bits_of(other)
        if one.dtype.kind not in "iub":
            unlike &= ~(np.isnan(one) & np.isnan(other))
        found = int(np.count_nonzero(unlike))
        if found:
            differing += found
            largest = max(largest, float(_distance(one[unlike], other[unlike]).max()))
    return Apart(first.size, differing, largest)


def _distance(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
    if left.dtype.kind == "b":
        return integer_distance(left.view(np.uint8), right.view(np.uint8))
    if left.dtype.kind in "iu":
        return integer_distance(left, right)
    steps = integer_distance(_ordered(left), _ordered(right))
    steps[np.isnan(left) | np.isnan(right)] = np.inf
    return steps


def _ordered(values: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers whose order and distances are those of the floating-point values; both zeros are 0.

    IEEE 754 (3.4): without the sign, the bits of larger values are larger integers.
    """
    bits = bits_of(values)
    sign = bits.dtype.type(1 << (8 * bits.dtype.itemsize - 1))
    magnitude = (bits & ~sign).astype(np.int64)
    ordered: NDArray[np.int64] = np.where(bits & sign, -magnitude, magnitude)
    return ordered
