"""Mutants before the checks: which of them would have passed as a right output."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
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
from tokitai_cli.judge.checks.target import CHUNK, Chunk, Target
from tokitai_cli.judge.mutants.freedom import RIGHT_TOO, arranged
from tokitai_cli.judge.mutants.values import Mutant, Status, mutants_of

FIRST_CHUNK = 1 << 11
# Elements that may stay unwritten, and the errors that the run's other outputs leave.
Given = tuple[Mask | None, NDArray[np.float64] | None]
# A mutant can be told from the reference where it is off by more than this many E (or ulp).
ELIGIBLE = 4.0


class MutantTrial:
    """What is known of one mutant so far."""

    def __init__(self, mutant: Mutant, biases: Sequence[int], *, free: bool) -> None:
        self.mutant = mutant
        #: Whether it is none of the right outputs, of which there are others where the target is free.
        self.wrong = not free
        self.eligible = False
        self.rejected_by = ""
        #: By the place of the check that has a value of the whole output alone.
        self.biases = {place: BiasTally() for place in biases}

    @property
    def settled(self) -> bool:
        """Whether the rest of the array cannot change the status."""
        return bool(self.mutant.status) or (bool(self.rejected_by) and self.eligible)

    def release_if_settled(self) -> None:
        """Let go of the values once they are not asked for again: a dropped term is an array."""
        if self.settled:
            self.mutant = msgspec.structs.replace(self.mutant, values=None)

    def concerns(self, chunk: Chunk) -> bool:
        """Whether something may be wrong there, or counts for the whole."""
        return bool(self.biases) or self.mutant.touches(chunk.index)

    def record(self, output: str, *, integer: bool) -> MutantRecord:
        """Return the evidence.

        Floats count only where the difference is beyond doubt, or where an exact check judges them.
        Integers are exact: any that a check rejects was wrong, so a small difference counts as well.
        """
        status: Status = self.mutant.status or "not-eligible"
        detail = self.mutant.detail
        if not self.mutant.status and not self.wrong:
            status, detail = "not-applicable", f"{detail}; {RIGHT_TOO}"
        if self.rejected_by and (self.eligible or integer):
            status, detail = "rejected", f"{detail}; rejected by {self.rejected_by}"
        elif self.eligible:
            status = "accepted"
        return MutantRecord(output=output, kind=self.mutant.kind, status=status, detail=detail)


class Trials:
    """Mutants of one output before the judging checks, chunk by chunk, until nothing more can change."""

    def __init__(
        self,
        mutants: Sequence[Mutant],
        reference: Target,
        checks: list[ResolvedCheck],
        given: Given,
        *,
        free: bool = False,
    ) -> None:
        self._reference = reference
        self._integer = reference.form is None
        self._excused, self._refined = given
        self._checks = [check for check in checks if check.judges]
        # Any other number than the right one is wrong by the word of an exact check.
        self._exact = any(
            not METRICS[check.metric].limited and check.against == "reference"
            for check in self._checks
        )
        biases = [place for place, check in enumerate(self._checks) if check.of_whole]
        # What several are compared with together has one right value at each place.
        self._apart = bool(biases) or reference.allowed is not None
        self.every = [MutantTrial(mutant, biases, free=free) for mutant in mutants]
        self.waiting = [trial for trial in self.every if not trial.settled]

    @property
    def by_replay(self) -> bool:
        """Whether a check judges against the replay."""
        return any(check.against == "replay" for check in self._checks)

    def reference_chunk(self, chunk: Chunk) -> Compared | None:
        """Try the checks against the reference, and ask whether the mutants can be told.

        Several are compared together, a row each. Returns what was compared last; None where nothing
        there is wrong.
        """
        compared = None
        asked = [trial for trial in self.waiting if trial.concerns(chunk)]
        if not asked:  # a large reference is evaluated again where it is read
            return None
        rows = 1 if self._apart else max(CHUNK // chunk.reference.size, 1)
        for start in range(0, len(asked), rows):
            compared = self._try_rows(asked[start : start + rows], chunk)
        return compared

    def _try_rows(self, trials: Sequence[MutantTrial], chunk: Chunk) -> Compared:
        refined = None if self._refined is None else self._refined[chunk.index]
        excused = part_of(self._excused, chunk)
        values = values_at([trial.mutant for trial in trials], chunk)
        compared = Compared(chunk, values, excused, refined)

        for trial in _among(trials, compared.differs):
            trial.wrong = True
        for trial in _among(trials, beyond_doubt(compared)):
            trial.eligible = True
        if self._exact and not all(trial.eligible for trial in trials):
            for trial in _among(trials, compared.rounded_error > 0):
                trial.eligible = True
        if self._apart:
            self._add_bias(trials[0], compared, "reference")
        self._reject(trials, compared)
        return compared

    def _reject(self, trials: Sequence[MutantTrial], compared: Compared) -> None:
        """Note what rejects each first: where it is no finite number, or the checks in their order."""
        for kind, mask in compared.structure.items():
            for trial in _among(trials, mask):
                trial.rejected_by = trial.rejected_by or f"non-finite structure: {kind}"
        for check in self._tried_against("reference"):
            if all(trial.rejected_by for trial in trials):
                return
            for trial in _among(trials, values_of(check, compared) > check.limit):
                trial.rejected_by = trial.rejected_by or check.label

    def replay_chunks(self, replay: Target) -> None:
        """Try the checks against the replay on the mutants that nothing has rejected yet."""
        for trial in self.waiting:
            for chunk in replay.chunks(FIRST_CHUNK):
                if trial.rejected_by:
                    break
                if trial.concerns(chunk):
                    self._try_replay(trial, chunk, Chunk(self._reference, chunk.index))

    def _try_replay(self, trial: MutantTrial, chunk: Chunk, reference: Chunk) -> None:
        """Only elements that are told from the reference beyond doubt count: the reference in another
        rounding than the replay's is no fault of the mutant.
        """
        values = values_at([trial.mutant], chunk)
        self._add_bias(trial, Compared(chunk, values), "replay")
        compared = Compared(reference, values, part_of(self._excused, chunk))
        told = compared.differs if self._integer else beyond_doubt(compared)
        if not told.any():
            return
        compared = Compared(chunk, values, ~told)
        for check in self._tried_against("replay"):
            if not trial.rejected_by and bool((values_of(check, compared) > check.limit).any()):
                trial.rejected_by = check.label

    def _tried_against(self, target: str) -> Iterator[ResolvedCheck]:
        return (one for one in self._checks if one.against == target and not one.of_whole)

    def _add_bias(self, trial: MutantTrial, compared: Compared, against: str) -> None:
        for place, tally in trial.biases.items():
            if self._checks[place].against == against:
                tally.add(bias_of(compared))

    def go_on(self) -> bool:
        """Let go of the mutants of which all is known; whether others wait."""
        for trial in self.waiting:
            trial.release_if_settled()
        self.waiting = [trial for trial in self.waiting if not trial.settled]
        return bool(self.waiting)

    def close(self) -> None:
        """Judge what only the whole array can say: the mean error."""
        for trial in self.waiting:
            for place, tally in trial.biases.items():
                if not trial.rejected_by and tally.value > self._checks[place].limit:
                    trial.rejected_by = self._checks[place].label

    def records(self) -> list[MutantRecord]:
        """What becomes of each."""
        return [trial.record(self._reference.name, integer=self._integer) for trial in self.every]


def _among(trials: Sequence[MutantTrial], mask: Mask) -> Iterator[MutantTrial]:
    """Those with an element in the mask, in which each has a row."""
    told: NDArray[np.bool_] = np.any(mask.reshape(len(trials), -1), axis=1)
    return itertools.compress(trials, told.tolist())


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


def values_at(mutants: Sequence[Mutant], chunk: Chunk) -> NDArray[Any]:
    """Return the mutants' values at a chunk as the output would hold them, of several a row each."""
    found = []
    for mutant in mutants:
        if mutant.values is None:
            raise ValueError(f"the mutant {mutant.kind} has no values")
        found.append(mutant.values(chunk.index))
    if len(found) == 1:
        return chunk.target.round(found[0])
    if chunk.target.form is None:
        found = [chunk.target.round(values) for values in found]
    rows = np.concatenate(found).reshape(len(found), -1)
    return rows if chunk.target.form is None else chunk.target.round(rows)


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
    made = (*mutants_of(reference, summary, expectation, checks), *further)
    by_kind = {mutant.kind: arranged(reference, mutant) for mutant in made}
    trials = Trials([*by_kind.values()], reference, checks, given, free=reference.free)
    with np.errstate(all="ignore"):
        for number, chunk in enumerate(reference.chunks(FIRST_CHUNK)):
            trials.reference_chunk(chunk)
            if number == 0 and replay is not None and trials.by_replay:
                trials.replay_chunks(replay)
            if not trials.go_on():
                break
    trials.close()
    flat = all_loose(checks, reference)
    return [
        msgspec.structs.replace(record, flat=flat and record.kind in DROPPED)
        for record in trials.records()
    ]
