"""`reproduce FILE`: the same cases and seeds here, on a local spec and kernel of the same digests.

Of the file only names and numbers are used: which cases, how often. No command line, flag or text of it
is run; what is run is the local spec, whose digest says that it is the same.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli import devices, spec
from tokitai_cli.audit.opened import opened
from tokitai_cli.audit.run_diff import differences
from tokitai_cli.core.errors import Location, UsageError
from tokitai_cli.core.model.audit_answer import Answer, Remark
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.core.model.events import Listener
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.settings import MIN_REPEAT
from tokitai_cli.core.model.verdict import UNSETTLED
from tokitai_cli.core.model.wording import plural
from tokitai_cli.run.evidence_builder import choose
from tokitai_cli.run.loop import RunOutcome, verify
from tokitai_cli.run.run_options import RunOptions, run_options
from tokitai_cli.run.specs import load_op
from tokitai_cli.spec import plan
from tokitai_cli.spec.plan import MAX_CASES

_MOST_REPEAT = 1000


def reproduce(
    file: str, op: str | None, listener: Listener, given: Mapping[str, Any]
) -> tuple[Answer, RunOutcome]:
    """Run the cases again and compare; fine where verdicts and inputs are the same.

    op: a built-in op or the path of a local spec; the built-in of the recorded name where it is left
    out. given: options of `verify` for device, time limits and files. Raises UsageError where spec or
    sources are not those of the file, EvidenceError, SpecError.
    """
    path = Path(file)
    found = opened(path)
    loaded = _local(found, op, path)
    records = [case for case in found.cases if case.spec == loaded.digest]
    cases = _cases(records, loaded, path)
    _check_sources(found, cases, path)
    outcome = verify(_options(found, loaded, records, file, given), listener, cases)
    return _answer(found, outcome), outcome


def _local(found: Evidence, op: str | None, path: Path) -> LoadedSpec:
    if op is None:
        names = {case.op for case in found.cases} & {name for name, _ in spec.builtin()}
        if len(names) != 1:
            hint = "name it: reproduce FILE SPEC; `tokitai unpack FILE DIR` writes the recorded one"
            raise UsageError(
                "it is of no built-in op, so a local spec is needed",
                where=Location(path),
                hint=hint,
            )
        (op,) = names
    loaded = load_op(op)
    if loaded.digest not in found.specs:
        raise _other(path, f"the spec {loaded.path.name}", loaded.digest)
    return loaded


def _other(path: Path, what: str, digest: str) -> UsageError:
    return UsageError(
        f"{what} is another one here: its sha256 is {digest}",
        where=Location(path),
        hint="`tokitai unpack FILE DIR` writes the recorded one; or take the version that is recorded",
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
            raise UsageError(f"{one.id} is no case of the spec", where=Location(path))
        empty = bool(one.outputs) and not any(output.elements for output in one.outputs)
        shape = {name: one.shape[name] for name in loaded.spec.params}
        case = plan.case_of(loaded, one.variant, shape, one.profile, one.seed, empty=empty)
        if one.drawn_as in loaded.spec.variants:
            case = msgspec.structs.replace(case, drawn_as=one.drawn_as)
        cases.setdefault(case.id, case)
    return list(cases.values())


def _check_sources(found: Evidence, cases: list[Case], path: Path) -> None:
    for digest, one in choose(cases).sources.items():
        if digest not in found.sources:
            raise _other(path, one.path, digest)


def _options(
    found: Evidence,
    loaded: LoadedSpec,
    records: list[CaseRecord],
    file: str,
    given: Mapping[str, Any],
) -> RunOptions:
    told = dict(given)
    if told.get("device") is None:
        used = dict.fromkeys(case.device for case in records)
        names = [devices.get(name).name for name in used]
        told["device"] = names[0] if len(names) == 1 else "all"
    if found.settings is not None and told.get("repeat") is None:
        told["repeat"] = min(max(found.settings.repeat, MIN_REPEAT), _MOST_REPEAT)
    if found.settings is not None and told.get("warmup") is None:
        told["warmup"] = min(max(found.settings.warmup, 0), _MOST_REPEAT)
    told["name"] = told.get("name") or f"{loaded.spec.op}-reproduced"
    options = run_options(loaded, **told)
    rerun = shlex.join(["tokitai", "reproduce", file, options.called or str(loaded.path)])
    return msgspec.structs.replace(options, rerun=f"{rerun} --device {options.device}")


def _answer(found: Evidence, outcome: RunOutcome) -> Answer:
    """Verdicts and inputs decide; bits and numbers may differ with the compiler, and are told."""
    again = {case.key: case for case in outcome.evidence.cases}
    remarks, met = [], 0
    for one in found.cases:
        other = again.get(one.key)
        if other is None:
            remarks.append(Remark(f"{one.key} was not run again"))
            continue
        met += 1
        inputs = [{name.name: name.sha256 for name in case.inputs} for case in (one, other)]
        if one.reads is not other.reads:
            what = f"{one.key} is {other.reads} here, and was {one.reads}"
            remarks.append(Remark(what, fault=True))
        elif inputs[0] and inputs[0] != inputs[1]:
            remarks.append(Remark(f"{one.key} had other inputs", fault=True))
        elif other.verdict in UNSETTLED:
            remarks.append(Remark(f"{one.key}: {other.reason}", fault=True))
    if not met:
        remarks.append(Remark("no case ran on a device of the same name", fault=True))
    failed = sum(one.fault for one in remarks)
    said = f"{met - failed} of {plural(len(found.cases), 'case')} came out the same"
    return Answer(said, not failed, remarks, differences(found, outcome.evidence))
