"""Vacuity: whether the checks of a group of cases could have refuted each wrong output.

A group is what shares variant, output, shape and device; its cases differ in profile and seed. A case
whose checks reject nothing but what every check rejects is vacuous by itself, and so is one with an
output of which less than half is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from tokitai_cli.core.model.evidence import CaseRecord, GroupRecord
from tokitai_cli.core.model.expectation import NON_FINITE
from tokitai_cli.core.model.judged import ChangesRecord, MutantRecord, OutputRecord
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.evidence.survivors import survivors_of

Key = tuple[str, str, str, tuple[tuple[str, int], ...], str]

_Members = list[tuple[CaseRecord, MutantRecord]]

_SHOWN = 4
# Rejected whatever the checks are, or made so that any sharp check rejects it.
_ALWAYS_REJECTED = frozenset({*NON_FINITE, "anchor"})
CONSTANT_HINT = (
    "; if its correct values are all equal at such a shape, declare it with "
    "`constant: {value: ..., when: ...}`"
)
_VACUOUS = (
    "no wrong output differs from the correct one here, except by NaN, infinity or one element"
)


def groups(cases: Sequence[CaseRecord], *, settled: bool = False) -> list[GroupRecord]:
    """Say what became of each mutant kind in each group, in the order of the cases.

    Only cases that passed count: what a refuted case rejects proves nothing of the checks elsewhere.
    A group without such a case has no record. settled: `settle` has judged the cases already, so that
    those count too whose checks passed and that it found inconclusive.
    """
    if settled:
        cases = [_unsettled(case) for case in cases]
    gathered: dict[tuple[Key, str], _Members] = {}
    for case in cases:
        if case.verdict is not Verdict.VERIFIED:
            continue
        for mutant in (one for one in case.mutants if not one.shown_only):
            key = (_key(case, mutant.output), mutant.kind)
            gathered.setdefault(key, []).append((case, mutant))
    made = []
    for members in gathered.values():
        group = _group(members)
        made += [group, *_accepted_by_profile(members, group)]
    return [*made, *_of_changes(cases)]


def _unsettled(case: CaseRecord) -> CaseRecord:
    """A case as it was in front of `settle`, which makes none inconclusive whose outputs failed."""
    passed = bool(case.outputs) and all(output.passed for output in case.outputs)
    if case.verdict is Verdict.INCONCLUSIVE and case.stage is Stage.COMPARE and passed:
        return msgspec.structs.replace(case, verdict=Verdict.VERIFIED)
    return case


def _of_changes(cases: Sequence[CaseRecord]) -> Iterator[GroupRecord]:
    """A record for each change that no passing case of its group rejects: accepted, or untold."""
    gathered: dict[tuple[object, ...], list[tuple[CaseRecord, ChangesRecord]]] = {}
    for case in cases:
        if case.verdict is Verdict.VERIFIED:
            for record in case.changes:
                shape = tuple(sorted(case.shape.items()))
                key = (case.op, case.variant, record.output, shape, case.device)
                gathered.setdefault(key, []).append((case, record))
    for members in gathered.values():
        case, first = members[0]
        left = survivors_of([one for _, one in members])
        for words in (*left.accepted, *left.undetected):
            accepted = [member.id for member, one in members if words in one.accepted]
            yield GroupRecord(
                op=case.op,
                variant=case.variant,
                output=first.output,
                shape=dict(case.shape),
                device=case.device,
                kind=words,
                status="accepted" if accepted else "undetected",
                rejected_by=[],
                accepted_by=accepted,
            )


def _accepted_by_profile(members: _Members, group: GroupRecord) -> Iterator[GroupRecord]:
    """A dropped term that flat limits accept on a profile, though they reject it on another one.

    How much a flat limit sees depends on the size of the values, which is the profile's.
    """
    if group.status != "rejected" or not group.flat:
        return
    by_profile: dict[str, _Members] = {}
    for case, one in members:
        by_profile.setdefault(case.profile, []).append((case, one))
    for profile, mine in by_profile.items():
        if any(one.flat and one.status == "accepted" for _, one in mine) and not any(
            one.status == "rejected" for _, one in mine
        ):
            yield msgspec.structs.replace(_group(mine), profile=profile)


_SAMPLED = (
    "{}: only a sample of the product was judged, and no profile of integers proves the rest here "
    "(exact-int does)"
)


def mark_vacuous(cases: Sequence[CaseRecord], groups: Sequence[GroupRecord]) -> list[CaseRecord]:
    """`cases` with those that passed but prove nothing under another verdict, and the reason.

    Inconclusive: of a group in which some mutant kind was accepted and rejected by none of its
    cases, or was nowhere far enough from the reference to be told. Vacuous: a case that rejects no
    mutant but NaN, infinity and the anchor, where others of its group reject the rest: without them
    it would be inconclusive, since zeros are a mutant of every output. Vacuous, too: a case with an
    output of which less than half is judged, where another of its group judges it; inconclusive where
    none does, as is a product judged on a sample that no verified case of its group proves.
    """
    verified = [
        (case, output)
        for case in cases
        for output in case.outputs
        if case.verdict is Verdict.VERIFIED
    ]
    whole = {
        _key(case, output.name)
        for case, output in verified
        if output.sample is None or output.sample.proof
    }
    judged = {_key(case, output.name) for case, output in verified if few_judged(output) is None}
    faults: dict[Key, list[GroupRecord]] = {}
    for group in groups:
        if group.status in ("accepted", "never-eligible"):
            faults.setdefault(_group_key(group), []).append(group)
    settled = []
    for case in cases:
        lacks, empty = "", ""
        if case.verdict is Verdict.VERIFIED:
            lacks = _lacks(cases, case, (whole, judged, faults))
            empty = "" if lacks else _proves_nothing(case)
        if lacks:
            settled.append(
                msgspec.structs.replace(
                    case, verdict=Verdict.INCONCLUSIVE, stage=Stage.COMPARE, reason=lacks
                )
            )
        elif empty:
            settled.append(msgspec.structs.replace(case, vacuous=True, reason=empty))
        else:
            settled.append(case)
    return settled


def _lacks(
    cases: Sequence[CaseRecord],
    case: CaseRecord,
    known: tuple[set[Key], set[Key], dict[Key, list[GroupRecord]]],
) -> str:
    """What no case of the group shows, though it should; known: see `settle`."""
    whole, judged, faults = known
    for output in case.outputs:
        if _key(case, output.name) not in whole:
            return _SAMPLED.format(output.name)
    for output in case.outputs:
        if _key(case, output.name) not in judged:
            return _of_few(output)
    found = [
        one
        for output in dict.fromkeys(mutant.output for mutant in case.mutants)
        for one in faults.get(_key(case, output), [])
        if one.profile in ("", case.profile)
    ]
    return _reason(found) + _others(cases, case) if found else ""


def _proves_nothing(case: CaseRecord) -> str:
    """Why the case says nothing that others of its group do not; empty where it does."""
    few = [output for output in case.outputs if few_judged(output) is not None]
    if few:
        return _of_few(few[0])
    return _VACUOUS if case.mutants and not _tells(case) else ""


def few_judged(output: OutputRecord) -> tuple[int, int] | None:
    """How many elements of an output are judged, and of how many: where it is less than half of them."""
    sample = output.sample
    size = output.elements if sample is None else sample.rows * sample.columns
    judged = size - output.unjudged
    return (judged, size) if 2 * judged < size else None


def _of_few(output: OutputRecord) -> str:
    judged, size = few_judged(output) or (0, 0)
    return (
        f"{output.name}: {judged} of {size} elements are judged; for the others the reference or "
        "an intermediate is NaN or may overflow, so that any value passes"
    )


def _tells(case: CaseRecord) -> bool:
    return any(
        one.status == "rejected" and one.kind not in _ALWAYS_REJECTED and not one.shown_only
        for one in case.mutants
    )


def _key(case: CaseRecord, output: str) -> Key:
    return (case.op, case.variant, output, tuple(sorted(case.shape.items())), case.device)


def _group_key(group: GroupRecord) -> Key:
    shape = tuple(sorted(group.shape.items()))
    return (group.op, group.variant, group.output, shape, group.device)


def _group(members: _Members) -> GroupRecord:
    case, mutant = members[0]
    seen = {one.status for _, one in members}
    status: Literal["rejected", "accepted", "never-eligible", "not-known", "not-applicable"]
    if "rejected" in seen:
        status = "rejected"
    elif "accepted" in seen:
        status = "accepted"
    elif "not-eligible" in seen:
        status = "never-eligible"
    else:
        status = "not-known" if "not-known" in seen else "not-applicable"
    return GroupRecord(
        op=case.op,
        variant=case.variant,
        output=mutant.output,
        shape=dict(case.shape),
        device=case.device,
        kind=mutant.kind,
        status=status,
        rejected_by=[member.id for member, one in members if one.status == "rejected"],
        accepted_by=[member.id for member, one in members if one.status == "accepted"],
        flat=any(one.flat for _, one in members),
    )


def _others(cases: Sequence[CaseRecord], case: CaseRecord) -> str:
    """Profiles of the case's group that did not pass: they might have told more."""
    group = (case.op, case.variant, case.shape, case.device)
    failed = [
        one.profile
        for one in cases
        if (one.op, one.variant, one.shape, one.device) == group
        and one.verdict is not Verdict.VERIFIED
    ]
    names = ", ".join(dict.fromkeys(failed))
    return f"; not counted, since they did not pass: {names}" if names else ""


def _reason(found: Sequence[GroupRecord]) -> str:
    """Name the accepted kinds of the first output concerned, else those that no profile tells."""
    accepted = [group for group in found if group.status == "accepted"]
    chosen = accepted or list(found)
    output = chosen[0].output
    kinds = [group.kind for group in chosen if group.output == output]
    names = ", ".join(kinds[:_SHOWN]) + (", ..." if len(kinds) > _SHOWN else "")
    profile = chosen[0].profile
    if accepted and profile:
        return (
            f"{output}: on the profile {profile} flat limits alone would also have passed a wrong "
            f"output ({names})"
        )
    if accepted:
        return (
            f"{output}: the checks would also have passed a wrong output ({names}), "
            "and no profile here rejects it"
        )
    if any(group.flat for group in chosen):
        return (
            f"{output}: only flat limits judge it, and nothing shows that they would detect a "
            f"dropped term ({names}): let the oracle return `error` or `wrong`, or write "
            "`reduction: none`"
        )
    said = f"{output}: no profile here distinguishes a wrong output from the reference ({names})"
    alike = not {"constant-mean", "roll", "zeros"}.isdisjoint(kinds)
    return said + CONSTANT_HINT * alike
