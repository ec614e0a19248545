"""Slices of inputs zeroed, before the checks: what a user's own oracle can show of a dropped term.

An oracle that does not say what its output is a sum of is asked again with one slice of one input
zero. Where that changes most of the output, it is a term that a kernel may drop.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from tokitai_cli.core.model.expectation import DROPPED, SLICE_ZEROED, Expectation, Zeroed
from tokitai_cli.core.model.judged import MutantRecord
from tokitai_cli.judge.checks.output_checks import ResolvedCheck, all_loose
from tokitai_cli.judge.checks.target import Chunk, Target
from tokitai_cli.judge.mutants.trial import Given, Trials
from tokitai_cli.judge.mutants.values import Mutant, Status

KIND = SLICE_ZEROED
# A slice stands for a term where it changes at least so much of the output.
_MOST = 0.5
_KINDS = dict(zip(("last", "heaviest"), DROPPED, strict=True))


class _Asked(msgspec.Struct, frozen=True):
    """One slice: the dropped term that it is, "" for none; its status as that; what is told of it."""

    kind: str
    status: Status
    record: MutantRecord


def with_zeroed(
    mutants: Sequence[MutantRecord],
    reference: Target,
    expectation: Expectation,
    checks: list[ResolvedCheck],
    given: Given,
) -> list[MutantRecord]:
    """`mutants` with what the zeroed slices say of dropped terms that are not known, and the slices."""
    loose = expectation.error is None and all_loose(checks, reference)
    asked = [_ask(one, reference, checks, given) for one in expectation.zeroed]
    found = [
        _known(mutant, asked, loose=loose) if mutant.status == "not-known" else mutant
        for mutant in mutants
    ]
    return [*found, *(one.record for one in asked)]


def _ask(zeroed: Zeroed, reference: Target, checks: list[ResolvedCheck], given: Given) -> _Asked:
    """Try the checks on the positions that the oracle was asked for."""
    chunk = Chunk(reference, np.arange(0, reference.size, zeroed.stride))
    place = f"slice {zeroed.index} of {zeroed.input} along axis {zeroed.axis}"
    mutant = Mutant(KIND, f"{zeroed.which} {place} zeroed", lambda index: zeroed.values)
    trials = Trials([mutant], reference, checks, given)
    (trial,) = trials.every
    with np.errstate(all="ignore"):
        compared = trials.reference_chunk(chunk)
    changed = 0 if compared is None else int(np.count_nonzero(compared.differs))
    trials.close()
    (record,) = trials.records()
    detail = f"{record.detail}; {changed} of {zeroed.values.size} elements change"
    # A reader is told what passes, however near it is; no dropped term is accepted within doubt.
    told: Status = "accepted" if changed and not trial.rejected_by else record.status
    return _Asked(
        kind=_KINDS[zeroed.which] if changed >= _MOST * zeroed.values.size else "",
        status=record.status,
        record=msgspec.structs.replace(record, status=told, detail=detail, shown_only=True),
    )


def _known(mutant: MutantRecord, asked: Sequence[_Asked], *, loose: bool) -> MutantRecord:
    """A dropped term as the slices show it. What is accepted counts under loose limits alone."""
    terms = {one.status: one.record.detail for one in asked if one.kind == mutant.kind}
    if "rejected" in terms and "accepted" not in terms:
        return msgspec.structs.replace(
            mutant, status="rejected", detail=terms["rejected"], flat=loose
        )
    if not loose:
        return mutant
    if "accepted" in terms:
        mutant = msgspec.structs.replace(mutant, detail=terms["accepted"])
    status: Status = "accepted" if "accepted" in terms else "not-eligible"
    return msgspec.structs.replace(mutant, status=status, flat=True)
