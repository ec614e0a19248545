"""What several devices gave for the same cases, put side by side as the run goes on."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import msgspec
from numpy.typing import NDArray

from tokitai_cli import compare
from tokitai_cli.model.case import Case
from tokitai_cli.model.evidence import AgreementRecord

Outputs = Mapping[str, NDArray[Any]]


class Agreements:
    """Collects a record for every variant, output and pair of devices."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, str, str, str], AgreementRecord] = {}
        self._settled: dict[str, bool] = {}

    def add(self, case: Case, given: Mapping[str, Outputs | None]) -> None:
        """Compare what devices (by name) wrote in their first repetition of the case, where they did."""
        outputs = {device: arrays for device, arrays in given.items() if arrays is not None}
        self._settled[case.variant_name] = case.variant.deterministic
        for left, right in itertools.combinations(outputs, 2):
            for name, array in outputs[left].items():
                found = compare.apart(array, outputs[right][name])
                key = (case.variant_name, name, left, right)
                known = self._records.get(key) or AgreementRecord(
                    op=case.loaded.spec.op,
                    variant=case.variant_name,
                    output=name,
                    devices=[left, right],
                    unit="1" if array.dtype.kind in "iub" else "ulp",
                    cases=0,
                    equal_cases=0,
                    elements=0,
                    differing=0,
                    largest=0.0,
                    where="",
                )
                self._records[key] = _with(known, found, case.id)

    def records(self, *, deterministic: bool) -> list[AgreementRecord]:
        """Records of the variants that are, or are not, declared deterministic."""
        return [
            record
            for (variant, *_), record in self._records.items()
            if self._settled[variant] is deterministic
        ]


def _with(known: AgreementRecord, found: compare.Apart, where: str) -> AgreementRecord:
    largest = float(known.largest)
    farther = found.differing and (found.largest > largest or not known.where)
    return msgspec.structs.replace(
        known,
        cases=known.cases + 1,
        equal_cases=known.equal_cases + (found.differing == 0),
        elements=known.elements + found.elements,
        differing=known.differing + found.differing,
        largest=compare.number(max(largest, found.largest)),
        where=where if farther else known.where,
    )
