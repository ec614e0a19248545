"""Several runs of one kernel and spec as one: what a document of all of them is rendered from.

The joined evidence lives in memory alone. Each run stands for itself in it: a device that two runs used
has the name of its run behind its own, and a claim is supported where every run supports it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TypeVar

import msgspec

from tokitai_cli.core.errors import UsageError
from tokitai_cli.core.model.contract import ContractRecord, ReasonRecord
from tokitai_cli.core.model.evidence import (
    AgreementRecord,
    CaseRecord,
    DeviceRecord,
    Evidence,
    GateRecord,
    NonClaimRecord,
    StatementRecord,
    VolatileRecord,
)
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.evidence import queries
from tokitai_cli.evidence.assembly import counted, verified_reason
from tokitai_cli.evidence.claims import gates, supported_by_all

_Value = TypeVar("_Value")
# What of a run's volatile part has the key of a case, or of a build.
_BY_CASE = ("case_times_ns", "stage_seconds", "kernel_logs", "measured")
_BY_BUILD = ("build_seconds", "build_cached", "build_logs")
_ONE_KERNEL = "one document is of one kernel and one spec; run `tokitai report` for each of them"


class Run(msgspec.Struct, frozen=True):
    """One of several runs: its name in the document, its evidence with the devices' names there, and
    its gates, computed from its records.
    """

    label: str
    evidence: Evidence
    claims: list[GateRecord]


class JoinedEvidence(Evidence, frozen=True, kw_only=True):
    """Several runs as one, in memory alone: no file holds it, so that its digest is empty."""

    runs: list[Run]


def runs_of(files: Sequence[tuple[str, Evidence]]) -> list[Run]:
    """Runs of one kernel and spec, from the paths of their files and their evidence.

    Raises UsageError where they are not of the same spec, kernels and oracles, or where two are one run.
    """
    for (path, one), (other_path, other) in itertools.combinations(files, 2):
        if one.digest == other.digest and one.volatile == other.volatile:
            raise UsageError(f"{path} and {other_path} are the same run", hint="name it once")
        if difference := _unlike(one, other):
            raise UsageError(f"{path} and {other_path}: {difference}", hint=_ONE_KERNEL)
    labels = _labels([path for path, _ in files])
    used = [_used(one) for _, one in files]
    made = []
    for label, (_, one), mine in zip(labels, files, used, strict=True):
        shared = {name for name in mine if sum(name in names for names in used) > 1}
        names = {name: f"{name} of {label}" for name in shared}
        made.append(Run(label, _renamed(one, names), gates(one)))
    return made


def _unlike(one: Evidence, other: Evidence) -> str:
    """In what two runs are of different kernels or specs; empty where they are not."""
    if set(one.specs) != set(other.specs):
        return "their specs differ"
    mine, yours = (
        {source.path: digest for digest, source in found.sources.items()} for found in (one, other)
    )
    for path in mine.keys() & yours.keys():
        if mine[path] != yours[path]:
            return f"their source {path} differs"
    for name in sorted(one.oracles.keys() & other.oracles.keys()):
        if one.oracles[name] != other.oracles[name] and not name.startswith("package "):
            return f"their oracle {name} differs"
    return ""


def _labels(paths: Sequence[str]) -> list[str]:
    """The shortest ends of the paths, without their suffix, that differ."""
    parts = [PurePath(path).with_suffix("").parts for path in paths]
    for length in range(1, max(map(len, parts)) + 1):
        ends = ["/".join(one[-length:]) for one in parts]
        if len(set(ends)) == len(ends):
            return ends
    return [f"run {at}" for at in range(1, len(paths) + 1)]


def _used(evidence: Evidence) -> set[str]:
    """Devices on which something was built or ran."""
    found = {case.device for case in (*evidence.cases, *evidence.watched)}
    return found | {build.device for build in evidence.builds.values()}


def _renamed(evidence: Evidence, names: Mapping[str, str]) -> Evidence:
    """Evidence whose devices have other `names`."""
    if not names:
        return evidence

    def to(name: str) -> str:
        return names.get(name, name)

    def moved(case: CaseRecord) -> CaseRecord:
        return msgspec.structs.replace(case, device=to(case.device))

    def agreed(records: Sequence[AgreementRecord]) -> list[AgreementRecord]:
        return [
            msgspec.structs.replace(one, devices=[to(name) for name in one.devices])
            for one in records
        ]

    cases = [moved(case) for case in evidence.cases]
    keys = {old.key: new.key for old, new in zip(evidence.cases, cases, strict=True)}
    own = evidence.volatile
    by_case = {
        name: {keys.get(key, key): value for key, value in getattr(own, name).items()}
        for name in _BY_CASE
    }
    decided = queries.decisive(evidence)
    led = next((case for case in cases if decided and case.key == keys[decided]), None)
    return msgspec.structs.replace(
        evidence,
        reason=evidence.reason if led is None else queries.headline(led),
        cases=cases,
        watched=[moved(case) for case in evidence.watched],
        groups=[msgspec.structs.replace(one, device=to(one.device)) for one in evidence.groups],
        builds={
            key: msgspec.structs.replace(one, device=to(one.device))
            for key, one in evidence.builds.items()
        },
        devices={
            to(key): msgspec.structs.replace(one, name=to(one.name))
            for key, one in evidence.devices.items()
        },
        agreement=agreed(evidence.agreement),
        volatile=msgspec.structs.replace(own, agreement=agreed(own.agreement), **by_case),
    )


def joined(runs: Sequence[Run]) -> JoinedEvidence:
    """All runs as one; the worst of their verdicts with its reason, and all that they hold."""
    parts = [_keyed(run, [other.evidence for other in runs[:at]]) for at, run in enumerate(runs)]
    cases = [case for one in parts for case in one.cases]
    lead = min(parts, key=lambda one: one.verdict.rank)
    fields = {name: getattr(lead, name) for name in Evidence.__struct_fields__}
    fields |= {
        name: _merged(getattr(one, name) for one in parts)
        for name in ("specs", "sources", "oracles", "builds")
    }
    fields |= {
        name: [record for one in parts for record in getattr(one, name)]
        for name in ("watched", "groups", "agreement")
    }
    if lead.verdict is Verdict.VERIFIED:
        fields["reason"] = verified_reason(cases)
    fields |= {
        "name": parts[0].contract.op if parts[0].contract else parts[0].name,
        "counts": counted(cases),
        "rerun": "\n".join(dict.fromkeys(one.rerun for one in parts)),
        "devices": _devices(parts),
        "cases": cases,
        "left_out": _once(one for part in parts for one in part.left_out),
        "statements": [one for run in runs for one in _told(run)],
        "claims": _claims(runs),
        "non_claims": list(_non_claims(runs)),
        "digest": "",
        "volatile": _volatile(parts),
        "cases_file": None,
        "contract": _contract([one.contract for one in parts if one.contract is not None]),
    }
    return JoinedEvidence(runs=list(runs), **fields)


def _keyed(run: Run, before: Sequence[Evidence]) -> Evidence:
    """The run's evidence; a build whose key one of those `before` has gets the run's name to its key."""
    known = {key for one in before for key in one.builds}
    names = {key: f"{key} of {run.label}" for key in run.evidence.builds if key in known}
    if not names:
        return run.evidence
    own = run.evidence.volatile
    by_build = {
        name: {names.get(key, key): value for key, value in getattr(own, name).items()}
        for name in _BY_BUILD
    }
    return msgspec.structs.replace(
        run.evidence,
        builds={names.get(key, key): one for key, one in run.evidence.builds.items()},
        cases=[_of_build(case, names) for case in run.evidence.cases],
        watched=[_of_build(case, names) for case in run.evidence.watched],
        volatile=msgspec.structs.replace(own, **by_build),
    )


def _of_build(case: CaseRecord, names: Mapping[str, str]) -> CaseRecord:
    return msgspec.structs.replace(case, build=names.get(case.build, case.build))


def _merged(parts: Iterable[Mapping[str, _Value]]) -> dict[str, _Value]:
    found: dict[str, _Value] = {}
    for part in parts:
        found.update(part)
    return found


def _once(records: Iterable[_Value]) -> list[_Value]:
    found: list[_Value] = []
    for one in records:
        if one not in found:
            found.append(one)
    return found


def _devices(parts: Sequence[Evidence]) -> dict[str, DeviceRecord]:
    """Devices that ran, and of the others each once."""
    unused = _merged(one.devices for one in parts)
    used = {name: one.devices[name] for one in parts for name in _used(one) if name in one.devices}
    return unused | used


def _told(run: Run) -> Iterator[StatementRecord]:
    for one in run.evidence.statements:
        yield msgspec.structs.replace(one, field=f"{run.label}.json#{one.field}")


def _claims(runs: Sequence[Run]) -> list[GateRecord]:
    """Each claim over all runs, with the words of those runs that decide it."""
    found = []
    for records in zip(*(run.claims for run in runs), strict=True):
        supported = supported_by_all(records)
        words: dict[str, list[str]] = {}
        for run, one in zip(runs, records, strict=True):
            if one.supported is supported:
                words.setdefault(one.reason, []).append(run.label)
        found.append(
            msgspec.structs.replace(
                records[0],
                supported=supported,
                reason="; ".join(f"{', '.join(names)}: {text}" for text, names in words.items()),
                needed=next((one.needed for one in records if one.needed and not supported), ""),
            )
        )
    return found


def _non_claims(runs: Sequence[Run]) -> Iterator[NonClaimRecord]:
    """What is not claimed, once; what not all runs say has their names behind its source."""
    found: dict[NonClaimRecord, list[str]] = {}
    for run in runs:
        for one in run.evidence.non_claims:
            found.setdefault(one, []).append(run.label)
    for one, names in found.items():
        told = one.source in (queries.NOT_COVERED, queries.GUESSED) or len(names) == len(runs)
        source = one.source if told else f"{one.source}, {', '.join(names)}"
        yield msgspec.structs.replace(one, source=source)


def _volatile(parts: Sequence[Evidence]) -> VolatileRecord:
    """What is kept by case or by build; the rest stands with each run."""
    own = [one.volatile for one in parts]
    return msgspec.structs.replace(
        own[0],
        seconds=sum(one.seconds for one in own),
        agreement=[record for one in own for record in one.agreement],
        **{
            name: _merged(getattr(one, name) for one in own)
            for name in (*_BY_CASE, *_BY_BUILD, "oracle_logs")
        },
    )


def _contract(parts: Sequence[ContractRecord]) -> ContractRecord | None:
    if not parts:
        return None
    reasons: tuple[list[ReasonRecord], ...] = tuple(
        _once(one for part in parts for one in getattr(part, name))
        for name in ("shapes", "profiles")
    )
    return msgspec.structs.replace(
        parts[0],
        variants=_merged(one.variants for one in parts),
        shapes=reasons[0],
        profiles=reasons[1],
    )
