"""Claim gates, computed from the evidence and never set by hand.

A gate reads only what the digest covers, so that it can be recomputed from a file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from tokitai_cli.core.model.device import APPROXIMATE, TRAITS, DeviceClass
from tokitai_cli.core.model.evidence import CaseRecord, Evidence, GateRecord
from tokitai_cli.core.model.judged import ExaminationRecord
from tokitai_cli.core.model.verdict import Verdict, worst
from tokitai_cli.core.model.wording import plural
from tokitai_cli.evidence import queries

_SCHEDULED = {traits.device_class for traits in TRAITS.values() if traits.schedules}


def gates(evidence: Evidence) -> list[GateRecord]:
    """Judge every gate. `needed` says what would support one that is not supported."""
    return [
        _numerical_agreement(evidence),
        _bitwise_reproducible(evidence),
        _memory_safe(evidence),
        _race_free(evidence),
        _machine_code(evidence),
        _amd_device(evidence),
        _portable(evidence),
        GateRecord(
            name="production-speedup",
            supported=False,
            reason="this run has no reviewed baseline to compare with",
            needed="a reviewed baseline and timings of both on one device",
        ),
    ]


def supported_by_all(records: Collection[GateRecord]) -> bool:
    """The rule of several runs: they claim together what each of them supports."""
    return bool(records) and all(one.supported for one in records)


def gates_by_device(evidence: Evidence) -> dict[str, list[GateRecord]]:
    """The gates of each device that cases ran on, as if no other had been there.

    What ended the whole run counts for each of them, and so does what was watched beside the cases.
    """
    return {
        name: gates(_of_device(evidence, name))
        for name in dict.fromkeys(case.device for case in evidence.cases)
    }


def _of_device(evidence: Evidence, name: str) -> Evidence:
    mine = [case for case in evidence.cases if case.device == name]
    decided = queries.decisive(evidence)
    if not decided or any(case.key == decided for case in mine):
        return msgspec.structs.replace(evidence, cases=mine)
    watched = [case for case in evidence.watched if queries.decides(case)]
    verdicts = [case.reads for case in mine] + [case.verdict for case in watched]
    verdict = worst(verdicts)
    ends = {queries.headline(case): case.reads for case in mine}
    ends |= {queries.watch_headline(case): case.verdict for case in watched}
    reason = next(words for words, end in ends.items() if end is verdict)
    return msgspec.structs.replace(evidence, cases=mine, verdict=verdict, reason=reason)


def elements(case: CaseRecord) -> int:
    """Count the output elements that the case judged."""
    return sum(output.elements for output in case.outputs)


def _gate(name: str, obstacle: str, support: str, needed: str) -> GateRecord:
    """A claim that is supported unless there is an obstacle."""
    if obstacle:
        return GateRecord(name=name, supported=False, reason=obstacle, needed=needed)
    return GateRecord(name=name, supported=True, reason=support, needed="")


def _verified(cases: Iterable[CaseRecord]) -> list[CaseRecord]:
    return [case for case in cases if case.reads is Verdict.VERIFIED and elements(case)]


def _not_all(evidence: Evidence, cases: Sequence[CaseRecord] | None = None) -> str:
    """Say why not all cases hold; empty where they do and at least one element was judged."""
    chosen = evidence.cases if cases is None else cases
    chosen = [case for case in chosen if not case.vacuous]
    if not _verified(chosen):
        return "no case with elements was verified"
    good = sum(case.reads is Verdict.VERIFIED for case in chosen)
    if good < len(chosen):
        return f"{good} of {len(chosen)} cases are verified"
    return ""


def _numerical_agreement(evidence: Evidence) -> GateRecord:
    obstacle = _not_all(evidence)
    if not obstacle and evidence.verdict is not Verdict.VERIFIED:
        obstacle = f"the run is {evidence.verdict}: {evidence.reason}"
    ran = _verified(evidence.cases)
    finite = [case for case in ran if _has_numbers(case)]
    for variant in dict.fromkeys(case.variant for case in ran):
        if not obstacle and not any(case.variant == variant for case in finite):
            obstacle = f"no case of {variant} has an element whose correct value is finite"
    count = len([case for case in finite if not case.vacuous])
    return _gate(
        "numerical-agreement",
        obstacle,
        f"every check of every output passed in {plural(count, 'case')}",
        "a run in which every case is verified and the checks reject every applicable wrong output",
    )


def _has_numbers(case: CaseRecord) -> bool:
    """Whether some element's right value is finite: NaN and infinities alone agree with no number.

    Older evidence does not say; what it claimed by its time's rule stands.
    """
    return any(one.finite is None or one.finite for one in case.outputs if one.elements)


def _bitwise_reproducible(evidence: Evidence) -> GateRecord:
    obstacle = _not_all(evidence)
    for case in evidence.cases:
        if obstacle:
            break
        obstacle = _not_repeated(evidence, case)
    count = len(_verified(evidence.cases))
    return _gate(
        "bitwise-reproducible",
        obstacle,
        f"all repetitions gave the same bits in {plural(count, 'case')}",
        "equal bits in two or more repetitions of every case of deterministic variants; "
        "and in different schedules on devices where the tool controls the schedule",
    )


def _not_repeated(evidence: Evidence, case: CaseRecord) -> str:
    if not case.deterministic:
        return f"variant {case.variant} is declared not deterministic"
    if not elements(case):
        return ""
    repeats = case.repeats
    if repeats is None or repeats.repetitions < 2:
        return f"{case.key} was not repeated"
    if not repeats.bitwise_equal:
        return f"repetitions of {case.key} differ in bits"
    scheduled = evidence.devices[case.device].device_class in _SCHEDULED
    if scheduled and len(set(repeats.schedules)) < 2:
        return f"repetitions of {case.key} all ran in one schedule"
    return ""


def examined(evidence: Evidence, kind: str) -> list[ExaminationRecord]:
    """What the cases tell of an examination of that kind."""
    return [look for case in evidence.cases for look in case.examined if look.kind == kind]


def as_machine_code(evidence: Evidence, cases: Sequence[CaseRecord]) -> bool:
    """Whether every case ran on a device that looks at each access that it executes."""
    classes = {evidence.devices[case.device].device_class for case in cases}
    return classes == {DeviceClass.GFX_ISA_ON_CPU}


def _everywhere(cases: Sequence[CaseRecord], kind: str) -> bool:
    return all(any(look.kind == kind for look in case.examined) for case in cases)


def _memory_safe(evidence: Evidence) -> GateRecord:
    ran = _verified(evidence.cases)
    obstacle = _not_all(evidence)
    found = next((case for case in evidence.cases if case.findings), None)
    if not obstacle and found is not None:
        obstacle = f"{found.key}: {found.findings[0].message}"
    if not obstacle and (as_machine_code(evidence, ran) or not _everywhere(ran, "memory")):
        looked = [
            words
            for kind, words in (
                ("guards", "the guards around the buffers"),
                ("inputs", "the inputs"),
            )
            if _everywhere(ran, kind)
        ]
        seen = f"{' and '.join(looked)} were checked and are intact; " if looked else ""
        obstacle = seen + (
            "accesses of the machine code were compared with the launch's arrays, without a sanitizer"
            if as_machine_code(evidence, ran)
            else f"accesses inside the kernels were not checked{but_beside(evidence)}"
        )
    return _gate(
        "memory-safe",
        obstacle,
        f"every access was checked in {plural(len(ran), 'case')}, without a finding",
        "a run of every case under a memory sanitizer (tokitai sanitize: AddressSanitizer on cpu, "
        "compute-sanitizer memcheck), without a finding",
    )


def _race_free(evidence: Evidence) -> GateRecord:
    ran = _verified(evidence.cases)
    obstacle = _not_all(evidence)
    found = next((case for case in evidence.cases if case.findings), None)
    if not obstacle and found is not None:
        obstacle = f"{found.key}: {found.findings[0].message}"
    if not obstacle and (shared := _watched_in_shared_memory_alone(ran)):
        obstacle = (
            f"{shared[0].key}: the race detector of {shared[0].device} covers shared memory "
            "only, and no case of the same name ran under the cpu device's race detector, "
            "which covers global memory too"
        )
    elif not obstacle and (
        as_machine_code(evidence, ran) or not _everywhere(_of_own_watch(ran), "races")
    ):
        obstacle = f"no race detector ran{but_beside(evidence)}" + (
            "; races between waves of the machine code are findings of the device"
            if as_machine_code(evidence, ran)
            else ""
        )
    least = min((look.schedules for look in examined(evidence, "races")), default=0)
    schedules = {name for case in ran if case.repeats for name in case.repeats.schedules}
    return _gate(
        "race-free-in-tested-schedules",
        obstacle,
        f"a race detector checked {plural(len(ran), 'case')} in "
        f"{plural(least or max(len(schedules), 1), 'schedule')}, without a finding",
        "a run of every case under a race detector of global and shared memory (tokitai sanitize on "
        "cpu; compute-sanitizer racecheck beside it), without a finding",
    )


def but_beside(evidence: Evidence) -> str:
    """Of which cases the watch made runs of their own; nothing where it made none."""
    seen = [case for case in evidence.watched if not queries.unwatched(case)]
    if not seen:
        return ""
    compared = {case.id for case in evidence.cases}
    same = len({case.id for case in seen} & compared)
    other = f"{plural(len(seen) - same, 'case')} of other shapes" if same < len(seen) else ""
    of = f"{same} of the {plural(len(compared), 'case')}" if same else ""
    return (
        " in the runs whose outputs were compared; the watch checked accesses and races in separate "
        f"runs of {' and '.join(filter(None, (of, other)))}"
    )


def _of_own_watch(cases: Sequence[CaseRecord]) -> list[CaseRecord]:
    """Cases but for those of which shared memory was watched, and the rest on another device."""
    watched = {case.id for case in cases if _everywhere([case], "races")}
    return [
        case for case in cases if not (_everywhere([case], "shared-races") and case.id in watched)
    ]


def _watched_in_shared_memory_alone(cases: Sequence[CaseRecord]) -> list[CaseRecord]:
    return [
        case
        for case in _of_own_watch(cases)
        if _everywhere([case], "shared-races") and not _everywhere([case], "races")
    ]


def _on(evidence: Evidence, device_class: DeviceClass) -> list[CaseRecord]:
    return [
        case
        for case in evidence.cases
        if evidence.devices[case.device].device_class == device_class
    ]


def _machine_code(evidence: Evidence) -> GateRecord:
    cases = _on(evidence, DeviceClass.GFX_ISA_ON_CPU)
    archs = sorted({evidence.devices[case.device].arch for case in cases})
    told = {
        word
        for key in {case.build for case in _verified(cases)}
        for fact in evidence.builds[key].code_object
        if fact.name.endswith(APPROXIMATE) and fact.value != "none"
        for word in fact.value.split(", ")
    }
    limits = f"; what went through {', '.join(sorted(told))} is no GPU's bit by bit" if told else ""
    return _gate(
        "machine-code-executed",
        _not_all(evidence, cases) if cases else "no case ran on a device of class gfx-isa-on-cpu",
        f"machine code for {', '.join(archs)} was executed on the CPU in {len(_verified(cases))} "
        f"verified cases{limits}",
        "every case verified by `tokitai verify --device gfx`, which needs no GPU but clang with "
        "ld.lld, or pip install 'tokitai[gfx]'",
    )


def _amd_device(evidence: Evidence) -> GateRecord:
    cases = _on(evidence, DeviceClass.AMD_GPU)
    archs = sorted({evidence.devices[case.device].arch for case in cases})
    return _gate(
        "amd-device",
        _not_all(evidence, cases) if cases else "no case ran on a device of class amd-gpu",
        f"{len(_verified(cases))} cases were verified on {', '.join(archs)}",
        "every case verified on the device rocm, with an AMD GPU",
    )


def _portable(evidence: Evidence) -> GateRecord:
    cases = _on(evidence, DeviceClass.AMD_GPU)
    pairs = {
        (build.arch, build.compiler.sha256)
        for case in _verified(cases)
        if (build := evidence.builds.get(case.build)) is not None and build.compiler is not None
    }
    obstacle = _not_all(evidence, cases) if cases else "no case ran on a device of class amd-gpu"
    if not obstacle and len(pairs) < 2:
        obstacle = f"{len(pairs)} pair of AMD device and compiler passed"
    return _gate(
        "portable",
        obstacle,
        f"{len(pairs)} pairs of AMD device and compiler passed",
        "verified evidence from two or more pairs of AMD device and compiler",
    )
