"""Mutants before the checks: which of them would have passed as a right output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.expectation import DROPPED, Expectation
from tokitai_cli.core.model.judged import MutantRecord
from tokitai_cli.core.model.metrics import METRICS
from tokitai_cli.judge.checks.compared import Compared, Mask, part_of
from tokitai_cli.judge.checks.output_checks import ResolvedCheck, all_loose, values_of
from tokitai_cli.judge.checks.reference_tally import Summary
from tokitai_cli.judge.checks.tally import BiasTally, bias_of
from tokitai_cli.judge.checks.target import Chunk, Target
from tokitai_cli.judge.mutants.freedom import RIGHT_TOO, arranged
from tokitai_cli.judge.mutants.values import Mutant, Status, mutants_of

FIRST_CHUNK = 1 << 11
# Elements that may stay unwritten, and the errors that the run's other outputs leave.
Given = tuple[Mask | None, NDArray[np.float64] | None]
# A mutant can be told from the reference where it is off by more than this many E (or ulp).
ELIGIBLE = 4.0


class MutantTrial:
    """One mutant before the judging checks, chunk by chunk, until nothing more can change."""

    def __init__(
        self,
        mutant: Mutant,
        checks: list[ResolvedCheck],
        integer: bool,
        given: Given,
        *,
        free: bool = False,
    ) -> None:
        self.mutant = mutant
        #: Whether it is none of the right outputs, of which there are others where the target is free.
        self.wrong = not free
        self._excused, self._refined = given
        self.integer = integer
        self.eligible = False
        self.rejected_by = ""
        self._checks = [check for check in checks if check.judges]
        # Any other number than the right one is wrong by the word of an exact check.
        self._exact = any(
            not METRICS[check.metric].limited and check.against == "reference"
            for check in self._checks
        )
        self._biases = {
            place: BiasTally() for place, check in enumerate(self._checks) if check.of_whole
        }

    @property
    def settled(self) -> bool:
        """Whether the rest of the array cannot change the status."""
        return bool(self.mutant.status) or (bool(self.rejected_by) and self.eligible)

    def release_if_settled(self) -> None:
        """Let go of the values once they are not asked for again: a dropped term is an array."""
        if self.settled:
            self.mutant = msgspec.structs.replace(self.mutant, values=None)

    def reference_chunk(self, chunk: Chunk) -> Compared | None:
        """Try the checks against the reference, and ask whether the mutant can be told.

        Returns what was compared; None where nothing there is wrong.
        """
        if not self._biases and not self.mutant.touches(chunk.index):
            return None
        refined = None if self._refined is None else self._refined[chunk.index]
        excused = part_of(self._excused, chunk)
        compared = Compared(chunk, values_at(self.mutant, chunk), excused, refined)
        self.wrong = self.wrong or bool(compared.differs.any())
        if not self.eligible:
            self.eligible = bool(beyond_doubt(compared).any())
        if self._exact and not self.eligible:
            self.eligible = bool((compared.rounded_error > 0).any())
        if not self.rejected_by and compared.structure:
            self.rejected_by = "non-finite structure: " + next(iter(compared.structure))
        self._add_bias(compared, "reference")
        self._try(compared, "reference")
        return compared

    def replay_chunk(self, chunk: Chunk, reference: Chunk) -> None:
        """Try the checks against the replay; `reference` is the reference at the same elements.

        Only elements that are told from the reference beyond doubt count: the reference in another
        rounding than the replay's is no fault of the mutant.
        """
        if not self._biases and not self.mutant.touches(chunk.index):
            return
        values = values_at(self.mutant, chunk)
        self._add_bias(Compared(chunk, values), "replay")
        compared = Compared(reference, values, part_of(self._excused, chunk))
        told = compared.differs if self.integer else beyond_doubt(compared)
        if told.any():
            self._try(Compared(chunk, values, ~told), "replay")

    def _try(self, compared: Compared, against: str) -> None:
        for check in self._checks:
            if self.rejected_by:
                return
            if check.against != against or check.of_whole:
                continue
            if bool((values_of(check, compared) > check.limit).any()):
                self.rejected_by = check.label

    def _add_bias(self, compared: Compared, against: str) -> None:
        for place, tally in self._biases.items():
            if self._checks[place].against == against:
                tally.add(bias_of(compared))

    def close(self) -> None:
        """Judge what only the whole array can say: the mean error."""
        for place, tally in self._biases.items():
            if not self.rejected_by and tally.value > self._checks[place].limit:
                self.rejected_by = self._checks[place].label

    def record(self, output: str) -> MutantRecord:
        """Return the evidence.

        Floats count only where the difference is beyond doubt, or where an exact check judges them.
        Integers are exact: any that a check rejects was wrong, so a small difference counts as well.
        """
        status: Status = self.mutant.status or "not-eligible"
        detail = self.mutant.detail
        if not self.mutant.status and not self.wrong:
            status, detail = "not-applicable", f"{detail}; {RIGHT_TOO}"
        if self.rejected_by and (self.eligible or self.integer):
            status, detail = "rejected", f"{detail}; rejected by {self.rejected_by}"
        elif self.eligible:
            status = "accepted"
        return MutantRecord(output=output, kind=self.mutant.kind, status=status, detail=detail)


def beyond_doubt(compared: Compared) -> NDArray[np.bool_]:
    """Return which elements are off by more than 4 max(E, 1 ulp), or of another class.

    E is the oracle's worst-case bound, never a limit of the spec. A bool differs or it does not.
    """
    chunk = compared.chunk
    if chunk.target.dtype == "bool":
        return np.asarray(compared.error > 0)
    with np.errstate(all="ignore"):
        told = np.asarray(compared.error > ELIGIBLE * np.maximum(chunk.bound_or_ulps, chunk.ulp))
    if compared.structure_fails is not None:
        told |= compared.structure_fails
    return told


def values_at(mutant: Mutant, chunk: Chunk) -> NDArray[Any]:
    """Return the mutant's values at a chunk as the output would hold them."""
    if mutant.values is None:
        raise ValueError(f"the mutant {mutant.kind} has no values")
    return chunk.target.round(mutant.values(chunk.index))


def try_mutants(
    reference: Target,
    replay: Target | None,
    summary: Summary,
    expectation: Expectation,
    checks: list[ResolvedCheck],
    given: Given = (None, None),
    further: Sequence[Mutant] = (),
) -> list[MutantRecord]:
    """Say what becomes of each mutant of one output. The reference is seen once, by chunks.

    What a mutant has at elements that may stay unwritten counts for nothing.
    The replay, an extra pass, is tried only with what the checks against the reference let through
    in the first chunk, and only where a check judges against it.
    """
    integer = reference.form is None
    made = (*mutants_of(reference, summary, expectation, checks), *further)
    entries = {
        mutant.kind: MutantTrial(
            arranged(reference, mutant), checks, integer, given, free=reference.free
        )
        for mutant in made
    }
    use_replay = replay is not None and any(
        check.judges and check.against == "replay" for check in checks
    )
    waiting = [trial for trial in entries.values() if not trial.settled]
    with np.errstate(all="ignore"):
        for number, chunk in enumerate(reference.chunks(FIRST_CHUNK)):
            for trial in waiting:
                trial.reference_chunk(chunk)
                if number == 0 and use_replay and replay is not None:
                    _try_replay(trial, replay, reference)
                trial.release_if_settled()
            waiting = [trial for trial in waiting if not trial.settled]
            if not waiting:
                break
    for trial in waiting:
        trial.close()
    flat = all_loose(checks, reference)
    return [
        msgspec.structs.replace(record, flat=flat and record.kind in DROPPED)
        for record in (trial.record(reference.name) for trial in entries.values())
    ]


def _try_replay(trial: MutantTrial, replay: Target, reference: Target) -> None:
    """Try the checks against the replay on a mutant that nothing has rejected yet."""
    for chunk in replay.chunks(FIRST_CHUNK):
        if trial.rejected_by:
            return
        trial.replay_chunk(chunk, Chunk(reference, chunk.index))
