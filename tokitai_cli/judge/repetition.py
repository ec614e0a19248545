"""One repetition of one output: everything that is counted while its chunks go by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.case import BufferPlan
from tokitai_cli.judge.checks.compared import Compared, Mask
from tokitai_cli.judge.checks.output_checks import Checked, CheckTally, ResolvedCheck
from tokitai_cli.judge.checks.tally import Metrics, MetricsTally
from tokitai_cli.judge.checks.target import Target
from tokitai_cli.judge.structure import Disagreements, StructureTally, disagreements


class Measured(NamedTuple):
    """What one chunk of a repetition is to its tallies."""

    #: Where it is in the output.
    place: slice | NDArray[np.int64]
    structure: Disagreements
    #: Which elements these are of; None for none.
    fails: Mask | None
    metrics: Metrics | None
    checks: list[Checked]


class Repetition:
    """All tallies of one repetition of one output."""

    def __init__(
        self,
        number: int,
        buffer: BufferPlan,
        reference: Target,
        checks: Sequence[ResolvedCheck],
        refined: NDArray[np.float64] | None = None,
    ) -> None:
        self.number = number
        self.refined = refined
        self.structure = StructureTally(buffer)
        self.metrics = MetricsTally(reference)
        self.tallies = [CheckTally(check, reference) for check in checks if not check.missing]
        self._size = reference.size
        self.failing: Mask | None = None

    def measured(
        self, compared: Compared, against: str, metrics: Metrics | None = None
    ) -> Measured:
        """What one chunk against the reference or the replay is to the tallies; metrics: where known."""
        structure, fails = Disagreements(), None
        if against == "reference":
            metrics = metrics or self.metrics.measured(compared)
            structure, fails = disagreements(compared), compared.structure_fails
        checks = [tally.measured(compared) for tally in self.against(against)]
        return Measured(compared.chunk.index, structure, fails, metrics, checks)

    def add(self, part: Measured, against: str) -> None:
        """Take in one chunk, which follows the one before."""
        if part.metrics is not None:
            self.structure.add(part.structure)
            self.metrics.add(part.metrics)
            self.mark(part.place, part.fails)
        for tally, checked in zip(self.against(against), part.checks, strict=True):
            tally.add(checked)
            if tally.check.judges:
                self.mark(part.place, checked.exceeds)

    def against(self, what: str) -> list[CheckTally]:
        """Tallies of checks against the reference, or the replay."""
        return [tally for tally in self.tallies if tally.check.against == what]

    def told_more(self, checks: Sequence[ResolvedCheck]) -> None:
        """Take the same checks with what is known of the reference after the walk."""
        made = (check for check in checks if not check.missing)
        for tally, check in zip(self.tallies, made, strict=True):
            tally.check = check

    def mark(self, index: slice | NDArray[np.int64], mask: Mask | None) -> None:
        """Remember failing elements, at one byte per element and only once there is one."""
        if mask is None:
            return
        if self.failing is None:
            self.failing = np.zeros(self._size, dtype=bool)
        self.failing[index] |= mask

    @property
    def shown(self) -> str:
        """Words that name the repetition, "" for the first."""
        return f", in repetition {self.number}" if self.number else ""

    @property
    def failed_checks(self) -> list[CheckTally]:
        """Judging checks that did not pass."""
        return [tally for tally in self.tallies if tally.check.judges and not tally.passed]

    @property
    def passed(self) -> bool:
        """Whether structure and all judging checks hold."""
        return not self.structure.records() and not self.failed_checks
