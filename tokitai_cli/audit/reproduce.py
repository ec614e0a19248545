"""`reproduce FILE`: the same cases and seeds here, on a spec and a kernel of the same digests.

Of the file only names and numbers are used: which cases, how often. No command line of it is run.
What is run is a local spec, whose digest says that it is the same; or, where that is asked for in so
many words, the texts that the file holds.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli import devices, spec
from tokitai_cli.audit.opened import opened
from tokitai_cli.audit.run_diff import differences
from tokitai_cli.audit.unpack import unpack
from tokitai_cli.core import process
from tokitai_cli.core.errors import EvidenceError, Location, UsageError
from tokitai_cli.core.model.audit_answer import Answer, Remark
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.core.model.events import Listener
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.settings import MIN_REPEAT
from tokitai_cli.core.model.verdict import UNSETTLED
from tokitai_cli.core.model.wording import number, plural
from tokitai_cli.evidence import queries
from tokitai_cli.run.evidence_builder import choose
from tokitai_cli.run.loop import RunOutcome, verify
from tokitai_cli.run.run_options import RunOptions, run_options
from tokitai_cli.run.specs import load, load_op
from tokitai_cli.spec import plan
from tokitai_cli.spec.plan import MAX_CASES

_MOST_REPEAT = 1000
_UNPACK = "`tokitai unpack FILE DIR` writes the recorded one"
# Exit code where all is the same on a device of another name than the recorded one: it confirms less.
ELSEWHERE = 9


def reproduce(
    file: str,
    op: str | None,
    listener: Listener,
    given: Mapping[str, Any],
    *,
    authors_code: bool = False,
) -> tuple[Answer, RunOutcome]:
    """Run the cases again and compare; fine where verdicts and inputs are the same.

    op: a built-in op or the path of a local spec; the built-in of the recorded name where it is left
    out. given: options of `verify` for device, time limits and files. authors_code: run what the file
    holds where `op` is left out. Raises UsageError where spec or sources are not those of the file,
    EvidenceError, SpecError.
    """
    path = Path(file)
    found = opened(path)
    with contextlib.ExitStack() as stack:
        if authors_code and op is None and _builtin_of(found) is None:
            loaded = _unpacked(found, path, stack)
        else:
            loaded = _local(found, op, path)
        records = [case for case in found.cases if case.spec == loaded.digest]
        cases = _cases(records, loaded, path)
        _check_sources(found, cases, path)
        words = ["--run-authors-code"] if authors_code and op is None else []
        options = _options(found, loaded, records, (file, *words), given)
        outcome = verify(options, listener, cases)
    return _answer(found, outcome), outcome


def _unpacked(evidence: Evidence, path: Path, stack: contextlib.ExitStack) -> LoadedSpec:
    """The spec that the file holds, written with all that belongs to it into a temporary folder."""
    if len(evidence.specs) != 1:
        raise UsageError("it has several specs; name one", where=Location(path), hint=_UNPACK)
    folder = process.make_temporary_folder(process.temporary_base(), prefix="reproduce-")
    stack.callback(process.remove_temporary_folder, folder)
    written = unpack(str(path), str(folder / "files"))
    (digest,) = evidence.specs
    places = {sha256: place for place, sha256 in written.grids[0].rows}
    lacking = "; ".join(one.text for one in written.remarks if one.fault)
    if digest not in places:
        raise EvidenceError(f"does not hold its spec: {lacking}", where=Location(path))
    return load(Path(places[digest]))


def _builtin_of(evidence: Evidence) -> str | None:
    """Name of the built-in op that the evidence is of, by its spec's digest."""
    names = {case.op for case in evidence.cases} & {name for name, _ in spec.builtin()}
    return next((name for name in names if load_op(name).digest in evidence.specs), None)


def _local(evidence: Evidence, op: str | None, path: Path) -> LoadedSpec:
    if op is None:
        names = {case.op for case in evidence.cases} & {name for name, _ in spec.builtin()}
        if len(names) != 1:
            hint = f"name it: reproduce FILE SPEC; {_UNPACK}, --run-authors-code runs it"
            raise UsageError(
                "it is not of a built-in op, so a local spec is needed",
                where=Location(path),
                hint=hint,
            )
        (op,) = names
    loaded = load_op(op)
    if loaded.digest not in evidence.specs:
        raise _other(path, f"the spec {loaded.path.name}", loaded.digest)
    return loaded


def _other(path: Path, what: str, digest: str) -> UsageError:
    return UsageError(
        f"{what} differs here: its sha256 is {digest}",
        where=Location(path),
        hint=f"{_UNPACK}; or use the recorded version",
    )


def _cases(records: list[CaseRecord], loaded: LoadedSpec, path: Path) -> list[Case]:
    """The recorded cases as this version plans them, each once."""
    if not records:
        raise UsageError("it has no case of this spec", where=Location(path))
    if len(records) > MAX_CASES:
        raise UsageError(f"it has more than {MAX_CASES} cases", where=Location(path))
    cases: dict[str, Case] = {}
    for one in records:
        known = one.variant in loaded.spec.variants and one.profile in loaded.spec.profiles
        if not known or set(one.shape) != set(loaded.spec.params):
            raise UsageError(f"{one.id} is not a case of the spec", where=Location(path))
        empty = bool(one.outputs) and not any(output.elements for output in one.outputs)
        shape = {name: one.shape[name] for name in loaded.spec.params}
        case = plan.case_of(loaded, one.variant, shape, one.profile, one.seed, empty=empty)
        if one.drawn_as in loaded.spec.variants:
            case = msgspec.structs.replace(case, drawn_as=one.drawn_as)
        cases.setdefault(case.id, case)
    return list(cases.values())


def _check_sources(evidence: Evidence, cases: list[Case], path: Path) -> None:
    for digest, one in choose(cases).sources.items():
        if digest not in evidence.sources:
            raise _other(path, one.path, digest)


def _options(
    evidence: Evidence,
    loaded: LoadedSpec,
    records: list[CaseRecord],
    words: Sequence[str],
    given: Mapping[str, Any],
) -> RunOptions:
    told = dict(given)
    if told.get("device") is None:
        used = dict.fromkeys(case.device for case in records)
        names = [devices.get(name).name for name in used]
        told["device"] = names[0] if len(names) == 1 else "all"
    if evidence.settings is not None and told.get("repeat") is None:
        told["repeat"] = min(max(evidence.settings.repeat, MIN_REPEAT), _MOST_REPEAT)
    if evidence.settings is not None and told.get("warmup") is None:
        told["warmup"] = min(max(evidence.settings.warmup, 0), _MOST_REPEAT)
    told["name"] = told.get("name") or f"{loaded.spec.op}-reproduced"
    options = run_options(loaded, **told)
    local = [] if len(words) > 1 else [options.called or str(loaded.path)]
    rerun = shlex.join(["tokitai", "reproduce", *words, *local])
    full = len(evidence.watched) >= len(evidence.cases) > 0
    watch = ("full" if full else "auto") if evidence.watched else "off"
    rerun = f"{rerun} --device {options.device}"
    return msgspec.structs.replace(options, rerun=rerun, watch=watch)


def _answer(evidence: Evidence, outcome: RunOutcome) -> Answer:
    """Verdicts and inputs decide; bits and numbers may differ with the compiler, and are told."""
    here = outcome.evidence
    again = {case.key: case for case in here.cases}
    elsewhere = not any(case.key in again for case in evidence.cases)
    if elsewhere:
        again = _by_recorded(evidence, here)
    remarks, same, equal, met = list[Remark](), 0, 0, 0
    for one in evidence.cases:
        other = again.get(one.key)
        if other is None:
            remarks.append(Remark(f"{one.key} was not run again"))
            continue
        met += 1
        if fault := _differs(one, other):
            remarks.append(Remark(fault, fault=True))
        else:
            same += 1
            equal += _bits(evidence, one) == _bits(here, other)
    watched = {case.id: case for case in here.watched}
    for one in filter(queries.decides, evidence.watched):
        other = watched.get(one.id)
        if other is None or other.verdict is not one.verdict:
            told = "was not watched here" if other is None else f"is {other.verdict} here"
            remarks.append(Remark(f"{queries.watch_headline(one)}: it {told}", fault=True))
    if not met:
        remarks.append(Remark("no recorded case was run here", fault=True))
    remarks.append(Remark(_circumstances(evidence, here)))
    text = f"{same} of {plural(len(evidence.cases), 'case')} gave the same result"
    if elsewhere and met:
        ran, recorded = (
            ", ".join(dict.fromkeys(c.device for c in run.cases)) for run in (here, evidence)
        )
        text = (
            f"{same} of {plural(len(evidence.cases), 'case')} have the same verdict and inputs on "
            f"{ran}; this does not confirm {recorded}"
        )
    fine = not any(one.fault for one in remarks)
    code = ELSEWHERE if elsewhere else 0
    text += f"; bits equal in {equal}"
    return Answer(text, fine, remarks, differences(evidence, here, elsewhere=elsewhere), code)


def _by_recorded(evidence: Evidence, here: Evidence) -> dict[str, CaseRecord]:
    """Cases that ran on other devices than the recorded ones, by the key of the recorded case."""
    ran = {case.id: case for case in here.cases}
    return {case.key: ran[case.id] for case in evidence.cases if case.id in ran}


def _differs(recorded: CaseRecord, here: CaseRecord) -> str:
    """What decides that a case is not the same; empty where nothing does."""
    inputs = [{name.name: name.sha256 for name in case.inputs} for case in (recorded, here)]
    if recorded.reads is not here.reads:
        return f"{recorded.key} is {here.reads} here, and was {recorded.reads}"
    if inputs[0] and inputs[0] != inputs[1]:
        return f"{recorded.key} had other inputs"
    if here.verdict in UNSETTLED:
        return f"{recorded.key}: {here.reason}"
    return ""


def _bits(run: Evidence, case: CaseRecord) -> list[tuple[str, str]]:
    """Digest of each output after the first repetition."""
    whole = queries.measured(run, case)
    return [(one.name, one.sha256[0] if one.sha256 else "") for one in whole.outputs]


def _circumstances(evidence: Evidence, here: Evidence) -> str:
    """Devices, compilers and times of both runs."""

    def of(run: Evidence) -> str:
        names = dict.fromkeys(case.device for case in run.cases)
        places = [f"{name} ({run.devices[name].device_class})" for name in names]
        versions = {
            build.compiler.version.strip().partition("\n")[0]: None
            for build in run.builds.values()
            if build.compiler is not None
        }
        built = ", ".join(versions) or "no compiler"
        return f"{', '.join(places)}, {built}, {number(run.volatile.seconds, 3)} s"

    return f"here: {of(here)}; recorded: {of(evidence)}"
