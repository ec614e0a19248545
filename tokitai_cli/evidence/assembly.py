"""Evidence of a run out of the records that the stages made.

Numbered steps, since order matters: a verdict is only taken from cases whose own records support
it, claims read the verdict, and the digest covers all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tokitai_cli.core.model.contract import ContractRecord
from tokitai_cli.core.model.evidence import (
    AgreementRecord,
    BuildRecord,
    CaseRecord,
    DeviceRecord,
    Evidence,
    GroupRecord,
    LeftOutRecord,
    MeasuredRecord,
    NonClaimRecord,
    SourceRecord,
    ToolRecord,
    VolatileRecord,
)
from tokitai_cli.core.model.judged import OutputRecord
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.core.model.verdict import Stage, Verdict, worst
from tokitai_cli.evidence import encoding, queries
from tokitai_cli.evidence.claims import elements, gates
from tokitai_cli.evidence.non_claims import merged, own_non_claims
from tokitai_cli.evidence.private import without_folders
from tokitai_cli.evidence.statements import statements


class Outcome(msgspec.Struct, frozen=True):
    """How a run ended beside its cases: interrupted, only built, a fault of the tool."""

    verdict: Verdict
    stage: Stage
    reason: str


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What the stages recorded.

    Keys: specs by sha256 of the file, sources by sha256 of their text, builds by build key, devices by
    name, oracles name -> sha256; cases refer to these. `non_claims` are those of specs and variants; a
    device's own stand in its record. `outcome` is None for a run that came to its end.
    """

    name: str
    rerun: str
    tool: ToolRecord
    volatile: VolatileRecord
    cases: Sequence[CaseRecord] = ()
    specs: Mapping[str, SourceRecord] = msgspec.field(default_factory=dict)
    sources: Mapping[str, SourceRecord] = msgspec.field(default_factory=dict)
    oracles: Mapping[str, str] = msgspec.field(default_factory=dict)
    builds: Mapping[str, BuildRecord] = msgspec.field(default_factory=dict)
    devices: Mapping[str, DeviceRecord] = msgspec.field(default_factory=dict)
    groups: Sequence[GroupRecord] = ()
    left_out: Sequence[LeftOutRecord] = ()
    non_claims: Sequence[NonClaimRecord] = ()
    outcome: Outcome | None = None
    settings: Settings | None = None
    agreement: Sequence[AgreementRecord] = ()
    contract: ContractRecord | None = None
    #: Cases that ran in a watched build beside the others.
    watched: Sequence[CaseRecord] = ()
    #: Absolute paths, and the words that stand in evidence for them.
    folders: Mapping[str, str] = msgspec.field(default_factory=dict)
    #: The cases were read from files of this tool, and are normal as they are.
    read_back: bool = False


def assemble(parts: Parts) -> Evidence:
    """Put a run's evidence together: verdict, statements, claims, non-claims and digest.

    Raises ValueError where a case refers to a record that is not there, or `parts.outcome` says
    that the run passed (only cases can).
    """
    _check_references(parts)
    # 1. A case that says verified without a record that supports it is a fault of the tool.
    cases = [_supported(case, parts.builds) for case in parts.cases]
    # 2. What may differ between two equal runs leaves the part that the digest covers.
    split = [_split(case) for case in cases]
    cases, measured = [case for case, _ in split], {one.key: more for one, more in split if more}
    # 3. The verdict, from the cases.
    outcome = _outcome(cases, parts)
    draft = Evidence(
        schema="tokitai/evidence/v4",
        name=parts.name,
        verdict=outcome.verdict,
        stage=outcome.stage,
        reason=outcome.reason,
        counts=counted(cases),
        tool=parts.tool,
        rerun=parts.rerun,
        specs=dict(parts.specs),
        sources=dict(parts.sources),
        oracles=dict(parts.oracles),
        builds=dict(parts.builds),
        devices=dict(parts.devices),
        cases=cases,
        left_out=list(parts.left_out),
        groups=list(parts.groups),
        statements=[],
        claims=[],
        non_claims=list(parts.non_claims),
        digest="",
        volatile=msgspec.structs.replace(parts.volatile, measured=measured),
        settings=parts.settings,
        agreement=list(parts.agreement),
        contract=parts.contract,
        watched=list(parts.watched),
    )
    draft = without_folders(_normal(draft, cases_are=parts.read_back), parts.folders)
    # 4. What can be said of it.
    draft = msgspec.structs.replace(
        draft,
        statements=statements(draft),
        claims=gates(draft),
        non_claims=list(map(encoding.normal, merged([*draft.non_claims, *own_non_claims(draft)]))),
    )
    # 5. The digest, last. All but the specs' own words was normal, and what is made of that is too.
    return encoding.sealed(draft)


def _normal(draft: Evidence, *, cases_are: bool) -> Evidence:
    """`draft` as reading it back gives it, without a look at its cases where they are normal."""
    if not cases_are:
        return encoding.normal(draft)
    bare = encoding.normal(msgspec.structs.replace(draft, cases=[]))
    return msgspec.structs.replace(bare, cases=draft.cases)


def _check_references(parts: Parts) -> None:
    for case in parts.cases:
        for kind, name, known in (
            ("device", case.device, parts.devices),
            ("spec", case.spec, parts.specs),
            ("build", case.build, parts.builds),
        ):
            if name not in known and (name or kind == "device"):
                raise ValueError(f"{case.key} refers to {kind} {name!r}, which is not recorded")


def _supported(case: CaseRecord, builds: Mapping[str, BuildRecord]) -> CaseRecord:
    """`case`, or an internal error where it says verified and its own record does not."""
    if case.verdict is not Verdict.VERIFIED:
        return case
    fault = unsupported(case, builds)
    if not fault:
        return case
    return msgspec.structs.replace(
        case,
        verdict=Verdict.INTERNAL_ERROR,
        stage=Stage.EVIDENCE,
        reason=f"the case says {case.verdict}, but {fault}",
    )


def unsupported(case: CaseRecord, builds: Mapping[str, BuildRecord]) -> str:
    """Why the record of a case does not support that it is verified; empty where it does."""
    if not case.outputs:
        return "no output was judged"
    if case.build not in builds or builds[case.build].failed:
        return "no artifact was built that could have run"
    for output in case.outputs:
        if not output.passed or output.structure:
            return f"output {output.name} did not pass"
        if output.elements and not any(check.judges for check in output.checks):
            return f"no check judged output {output.name}"
        if any(check.judges and not check.passed for check in output.checks):
            return f"a check of output {output.name} failed"
    if not all(item.passed for item in case.properties):
        return "a property does not hold"
    if elements(case) and (case.repeats is None or case.repeats.repetitions < 2):
        return "it did not run at least twice"
    return ""


def _split(case: CaseRecord) -> tuple[CaseRecord, MeasuredRecord | None]:
    """Part what was measured from a case of a variant that is not deterministic.

    What stays: which checks judged what, with which limits, and whether they passed. What goes:
    every number, index and text that comes from the kernel's output, so that two runs with the
    same verdicts and findings have the same digest.
    """
    if case.deterministic or not (case.outputs or case.findings or case.properties):
        return case, None
    record = MeasuredRecord(
        reason=case.reason,
        outputs=case.outputs,
        properties=case.properties,
        repeats=case.repeats,
        findings=case.findings,
        reproduced=case.reproduced,
    )
    repeats = case.repeats
    if repeats is not None:
        repeats = msgspec.structs.replace(
            repeats, differing_outputs=[], differing_schedules=[], bitwise_equal=None
        )
    kept = msgspec.structs.replace(
        case,
        reason=_stable_reason(case),
        outputs=[_unmeasured(output) for output in case.outputs],
        properties=[
            msgspec.structs.replace(item, value=None, detail="") for item in case.properties
        ],
        repeats=repeats,
        # What was found, where and by whom is no measurement; how often it was met is.
        findings=[msgspec.structs.replace(one, count=1) for one in case.findings],
        reproduced=None,
    )
    return kept, record


def _unmeasured(output: OutputRecord) -> OutputRecord:
    checks = [
        msgspec.structs.replace(check, value=None, exceeding=None, fraction=None, worst=[], note="")
        for check in output.checks
    ]
    return msgspec.structs.replace(
        output, checks=checks, structure=[], metrics=None, pattern=None, sha256=[], unwritten=0
    )


def _stable_reason(case: CaseRecord) -> str:
    if case.verdict is not Verdict.REFUTED:
        return case.reason
    failed = [
        f"{check.metric} of {output.name}"
        for output in case.outputs
        for check in output.checks
        if check.judges and not check.passed
    ]
    failed += [f"structure of {output.name}" for output in case.outputs if output.structure]
    failed += [f"property {item.name}" for item in case.properties if not item.passed]
    failed += [f"finding of {tool}" for tool in dict.fromkeys(one.tool for one in case.findings)]
    return f"failed: {', '.join(failed)}" if failed else "failed"


def counted(cases: Iterable[CaseRecord]) -> dict[str, int]:
    """Cases by what they read."""
    counts = dict.fromkeys(map(str, Verdict), 0)
    for case in cases:
        counts[case.reads] += 1
    return {verdict: count for verdict, count in counts.items() if count}


def _outcome(cases: Sequence[CaseRecord], parts: Parts) -> Outcome:
    """Take the worst of the cases and the run's own end."""
    candidates = [
        Outcome(case.reads, case.stage, queries.headline(case))
        for case in (
            *queries.troubled(cases),
            *cases,
        )  # of those that are as bad, the plainest leads
    ]
    candidates += [
        Outcome(case.verdict, case.stage, queries.watch_headline(case))
        for case in parts.watched
        if queries.decides(case)
    ]
    if parts.outcome is not None:
        if parts.outcome.verdict in (Verdict.VERIFIED, Verdict.EXPECTED_FAILURE):
            raise ValueError(f"only cases can make a run {parts.outcome.verdict}")
        candidates.insert(0, parts.outcome)  # of two that are as bad, it tells of the whole run
    if not candidates:
        combos = len(parts.left_out)
        left = f"; {combos} combinations were skipped" if combos else ""
        return Outcome(Verdict.NOT_RUN, Stage.PLAN, f"no case was selected{left}")
    verdict = worst(candidate.verdict for candidate in candidates)
    chosen = next(candidate for candidate in candidates if candidate.verdict is verdict)
    if verdict is Verdict.VERIFIED:
        return msgspec.structs.replace(chosen, reason=verified_reason(cases))
    return chosen


def verified_reason(cases: Sequence[CaseRecord]) -> str:
    """Why a run of these cases is verified."""
    passed = [case for case in cases if case.reads is Verdict.VERIFIED]
    compared = sum(elements(case) > 0 for case in passed)
    if not compared:
        return "no output has elements, as the spec expects: nothing was compared"
    reason = f"every check of every output passed in {compared} of {len(cases)} cases"
    if compared < len(passed):
        reason += f"; {len(passed) - compared} have no elements, as the spec expects"
    if len(passed) < len(cases):
        less = len(cases) - len(passed)
        reason += f"; {less} prove{'s' * (less == 1)} nothing (vacuous)"
    return reason
