"""Whether evidence agrees with itself: every step from records to the verdict is taken again.

What a tool of another version would have said otherwise is told, and is no fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath

import msgspec

from tokitai_cli import evidence, spec
from tokitai_cli.audit import measured, one_case, origin, planned, run_record
from tokitai_cli.core import storage
from tokitai_cli.core.errors import TokitaiError
from tokitai_cli.core.model.audit_answer import Remark
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.core.model.contract import ContractRecord
from tokitai_cli.core.model.evidence import CaseRecord, Evidence, GroupRecord, SourceRecord
from tokitai_cli.core.model.guesses import GUESS
from tokitai_cli.core.model.metrics import METRICS
from tokitai_cli.core.model.verdict import Verdict, worst
from tokitai_cli.core.model.wording import shape_text
from tokitai_cli.evidence import encoding, queries
from tokitai_cli.evidence.spec_record import contract, unconfirmed
from tokitai_cli.evidence.statements import statements
from tokitai_cli.run.evidence_builder import shipped_code
from tokitai_cli.run.untried import untried

# How a run may end beside its cases.
_ENDS = {
    Verdict.INTERNAL_ERROR,
    Verdict.INTERRUPTED,
    Verdict.BUILD_FAILED,
    Verdict.INADMISSIBLE,
    Verdict.NOT_RUN,
    Verdict.BUILT,
}
# Of these, those after which cases may be missing.
_CUT = _ENDS - {Verdict.INADMISSIBLE}
_SHOWN = 20


def remarks(evidence: Evidence, *, same: bool) -> list[Remark]:
    """All that does not fit, and what could not be looked at. same: this very tool has written it."""
    told = list(_references(evidence))
    if told:  # nothing can be followed
        return told
    if fault := one_case.rerun_fault(evidence.rerun):
        told.append(Remark(fault, fault=True))
    told += _texts(evidence)
    for case in queries.cases(evidence):
        told += [
            Remark(f"{case.key}: {text}", fault=True) for text in one_case.faults(evidence, case)
        ]
    for case in evidence.watched:
        told += [
            Remark(f"{case.key}, watched: {text}", fault=True)
            for text in one_case.watched_faults(case)
        ]
    lacking = measured.lacking(queries.cases(evidence))
    told += [Remark(f"{case.key}: {text}", fault=True) for case, text in lacking]
    told += _verdicts(evidence)
    told += run_record.remarks(evidence, same=same)
    told += origin.remarks(evidence, same=same)
    told += _said(evidence, same=same)
    told += _spec(evidence, same=same)
    told += _groups(evidence, same=same)
    return _first(told)


def _first(told: list[Remark]) -> list[Remark]:
    """Faults first; of very many only so many."""
    told.sort(key=lambda one: not one.fault)
    more = len(told) - _SHOWN
    return [*told[:_SHOWN], Remark(f"{more} more", fault=told[_SHOWN].fault)] if more > 0 else told


def _references(evidence: Evidence) -> Iterator[Remark]:
    seen: set[str] = set()
    for case in evidence.cases:
        if case.key in seen:
            yield Remark(f"{case.key} occurs twice in it", fault=True)
        seen.add(case.key)
    for case in (*evidence.cases, *evidence.watched):
        for what, name, known in (
            ("device", case.device, evidence.devices),
            ("spec", case.spec, evidence.specs),
            ("build", case.build, evidence.builds),
        ):
            if name not in known and (name or what == "device"):
                yield Remark(f"{case.key} refers to a {what} that is not in it", fault=True)
    for build in evidence.builds.values():
        if build.artifact_sha256 and build.source_sha256 not in evidence.sources:
            yield Remark(f"a build for {build.device} is of a source that is not in it", fault=True)


def _texts(evidence: Evidence) -> Iterator[Remark]:
    for digest, one in [*evidence.specs.items(), *evidence.sources.items()]:
        yield from _text(digest, one)
    for build in evidence.builds.values():
        for path, text in build.header_texts.items():
            if storage.sha256(text.encode()) != build.headers.get(path) and "\ufffd" not in text:
                yield Remark(f"the text of {path} has another digest than its record", fault=True)


def _text(digest: str, one: SourceRecord) -> Iterator[Remark]:
    if one.text is None or "\ufffd" in one.text:
        yield Remark(f"the text of {one.path} is not in it: only its digest is there")
    elif storage.sha256(one.text.encode()) != digest or len(one.text.encode()) != one.bytes:
        yield Remark(f"the text of {one.path} has another digest than its record", fault=True)


def _verdicts(found: Evidence) -> Iterator[Remark]:
    if evidence.counted(found.cases) != found.counts:
        yield Remark("its counts differ from those of its cases", fault=True)
    settled = evidence.mark_vacuous(found.cases, evidence.groups(found.cases))
    for old, new in zip(found.cases, settled, strict=True):
        if old.reads is not new.reads:
            text = f"{old.key} says {old.reads}, and its group makes it {new.reads}: {new.reason}"
            yield Remark(text, fault=True)
    beside = [case.verdict for case in found.watched if queries.decides(case)]
    least = worst([*(case.reads for case in found.cases), *beside])
    ends = {least} | {one for one in _ENDS if not found.cases or one.rank < least.rank}
    if found.verdict not in ends:
        text = f"it says {found.verdict}, and the worst of its cases is {least}"
        yield Remark(text, fault=True)


def _groups(found: Evidence, *, same: bool) -> Iterator[Remark]:
    """Groups of wrong outputs that are not those of the cases, whoever wrote the file.

    A case that is inconclusive may have become so by its groups, or may have been so before and have no
    part in them: its record does not say, and either is taken.
    """
    plain = {_place(one): one for one in evidence.groups(found.cases)}
    whole = {_place(one): one for one in evidence.groups(found.cases, settled=True)}
    stated = {_place(one): one for one in found.groups}
    for place, one in stated.items():
        made = [of[place] for of in (plain, whole) if place in of]
        if not made:
            yield Remark(
                f"no case tried {_group_words(one)}, although it claims that it is {one.status}",
                fault=True,
            )
        elif one.status not in {mine.status for mine in made}:
            text = f"{_group_words(one)} is {one.status} in it, and {made[0].status} by its cases"
            yield Remark(text, fault=True)
        elif _judges(one) not in map(_judges, made):
            text = (
                f"{_group_words(one)} is {one.status} in it with other cases than the records show"
            )
            yield Remark(text, fault=same)
    for place in (place for place in plain if place not in stated):
        yield Remark(f"it does not report {_group_words(plain[place])}", fault=True)


def _judges(group: GroupRecord) -> tuple[list[str], list[str]]:
    return sorted(group.rejected_by), sorted(group.accepted_by)


def _place(group: GroupRecord) -> tuple[object, ...]:
    shape = tuple(sorted(group.shape.items()))
    return (group.variant, group.output, shape, group.device, group.kind, group.profile)


def _group_words(group: GroupRecord) -> str:
    profile = f" on {group.profile}" if group.profile else ""
    place = f"{group.variant} at {shape_text(group.shape)} on {group.device}"
    return f"the wrong output {group.kind} of {group.output} of {place}{profile}"


def _said(found: Evidence, *, same: bool) -> Iterator[Remark]:
    """Sentences that are not those of its records, and what it claims."""
    tree = encoding.plain(found)
    backed = {(one.text, one.field) for one in statements(found)}
    if lacking := sorted(backed - {(one.text, one.field) for one in found.statements}):
        more = f", and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        yield Remark(f"a sentence is missing: {lacking[0][0]}{more}", fault=same)
    yield from _claimed(found, same=same)
    for one in found.statements:
        try:
            evidence.at_pointer(tree, one.field)
        except (LookupError, ValueError, TypeError):
            yield Remark(
                f"nothing is at {one.field}, the recorded fact for: {one.text}", fault=True
            )
            continue
        if (one.text, one.field) not in backed:
            yield Remark(f"its records do not support the sentence: {one.text}", fault=same)


def _claimed(found: Evidence, *, same: bool) -> Iterator[Remark]:
    """Claims and non-claims that are not those of its records."""
    gates = {one.name: one for one in evidence.gates(found)}
    for gate in found.claims:
        mine = gates.get(gate.name)
        if gate.supported and (mine is None or not mine.supported):
            why = "this version does not know the claim" if mine is None else mine.reason
            yield Remark(
                f"it claims {gate.name}, but its records do not support that: {why}", fault=True
            )
        elif mine is not None and mine != gate:
            text = f"{gate.name} has different words in this version: {mine.reason}"
            yield Remark(text, fault=same)
    for name in gates.keys() - {gate.name for gate in found.claims}:
        yield Remark(f"the claim {name} is missing", fault=same)
    told = {one.text for one in found.non_claims}
    for text in (one.text for one in evidence.own_non_claims(found)):
        if text not in told:
            yield Remark(f"a non-claim is missing: {text}", fault=same)


def _spec(evidence: Evidence, *, same: bool) -> Iterator[Remark]:
    """What does not follow from the text of the spec."""
    for digest, one in evidence.specs.items():
        cases = [case for case in evidence.cases if case.spec == digest]
        loaded = recalled(one)
        if loaded is None:
            yield Remark(f"the text of {one.path} is not a spec that this version can read")
            continue
        yield from _limits(loaded, queries.cases(evidence), digest)
        yield from _guesses(evidence, loaded, digest)
        yield from _not_covered(evidence, loaded, same=same)
        if len(evidence.specs) == 1 and evidence.verdict not in _CUT:
            yield from planned.remarks(evidence, loaded)
            yield from planned.watched(evidence, loaded)
        if evidence.contract is not None and cases:
            theirs = evidence.contract
            shipped = shipped_code(loaded.spec)
            mine = contract(loaded.spec, theirs.path, cases, evidence.sources, shipped)
            if _told(mine, theirs, shipped, same=same) != theirs:
                yield Remark("its description of the spec does not match the spec", fault=True)


def _told(
    mine: ContractRecord, theirs: ContractRecord, shipped: Mapping[str, str], *, same: bool
) -> ContractRecord:
    """`mine` with sources of an absolute path as evidence tells them: it names no folder outside.

    Code that an older file does not have, or that ships with another version of the tool, is theirs.
    """
    variants = {}
    for name, one in mine.variants.items():
        other = theirs.variants.get(name, one)
        more: dict[str, str] = {}
        if not same and (not other.code or one.oracle in shipped):
            more["code"] = other.code
        alike = PurePath(one.source).name == PurePath(other.source).name
        if PurePath(one.source).is_absolute() and alike:
            more |= {"source": other.source, "source_sha256": other.source_sha256}
        variants[name] = msgspec.structs.replace(one, **more)
    return msgspec.structs.replace(mine, variants=variants)


def _not_covered(evidence: Evidence, loaded: LoadedSpec, *, same: bool) -> Iterator[Remark]:
    """What the spec and the devices leave open by their own word, and the evidence does not say."""
    variants = {case.variant for case in evidence.cases} & set(loaded.spec.variants)
    texts = [*loaded.spec.non_claims]
    for name in sorted(variants):
        texts += loaded.spec.variants[name].non_claims
    for name in dict.fromkeys(case.device for case in evidence.cases):
        texts += evidence.devices[name].non_claims
    told = {one.text for one in evidence.non_claims}
    for text in dict.fromkeys(texts):
        if text not in told:
            yield Remark(f"a non-claim of spec or device is missing: {text}", fault=True)
    theirs = [case for case in evidence.cases if case.variant in variants]
    said = [unconfirmed(one).text for one in loaded.guesses]
    for text in (*said, *(one.text for one in untried(loaded.spec, theirs))):
        if text not in told:
            yield Remark(f"a non-claim of the spec is missing: {text}", fault=same)


def recalled(record: SourceRecord) -> LoadedSpec | None:
    """The spec whose text evidence holds; no file of it is looked at. None where it cannot be read."""
    if record.text is None:
        return None
    try:
        return spec.recall(Path(record.path).absolute(), record.text.encode())
    except TokitaiError:
        return None


def _guesses(evidence: Evidence, loaded: LoadedSpec, digest: str) -> Iterator[Remark]:
    """Guesses that cases hang on, and that neither the spec nor a source marks."""
    marked = {one.place for one in loaded.guesses}
    for source in evidence.sources.values():
        for number, line in enumerate((source.text or "").splitlines(), 1):
            marked |= {f"{PurePath(source.path).name}:{number}"} if GUESS in line else set()
    for case in queries.cases(evidence):
        for one in case.guesses if case.spec == digest else ():
            if one.place not in marked:
                text = f"{case.key}: it depends on a guess in {one.place}, which has no such mark"
                yield Remark(text, fault=True)


def _limits(loaded: LoadedSpec, cases: Iterable[CaseRecord], digest: str) -> Iterator[Remark]:
    """Limits in cases that the spec does not state."""
    for case in cases:
        variant = loaded.spec.variants.get(case.variant)
        if case.spec != digest:
            continue
        if variant is None or case.op != loaded.spec.op:
            yield Remark(f"{case.key}: the spec has no such variant", fault=True)
            continue
        if case.deterministic != variant.deterministic:
            yield Remark(f"{case.key}: the spec says otherwise of deterministic", fault=True)
        if case.known_bug and case.known_bug not in {one.reason for one in loaded.spec.known_bugs}:
            yield Remark(f"{case.key}: the spec has no such known bug", fault=True)
        stated = {
            (one.metric, one.against, one.limit if METRICS[one.metric].limited else 0.0)
            for one in variant.checks
        }
        for output in case.outputs:
            for check in output.checks:
                if (check.metric, check.against, check.limit) not in stated:
                    text = f"{check.metric} of {output.name} has the limit {check.limit}"
                    yield Remark(f"{case.key}: {text}, which the spec does not state", fault=True)
