"""`claims DIR`: what many reports claim together, each with its backing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tokitai_cli import evidence
from tokitai_cli.audit.door import sound
from tokitai_cli.audit.opened import MOST_BYTES
from tokitai_cli.core import storage
from tokitai_cli.core.errors import EvidenceError, Location, UsageError, near
from tokitai_cli.core.model.audit_answer import Answer, Grid, Remark
from tokitai_cli.core.model.evidence import EVIDENCE_SCHEMA, Evidence
from tokitai_cli.core.model.wording import plural
from tokitai_cli.core.model.words import CLAIM_STATES
from tokitai_cli.run.older import OLDER

_MOST_FILES = 10_000


class _Head(msgspec.Struct):
    schema: str = ""


def claims(
    places: Sequence[str], required: Sequence[str] = (), missing: Sequence[str] = ()
) -> Answer:
    """Gates over all evidence under folders; fine where those `required` are open in every file.

    A gate is computed again from the records of its report, whatever the report says. A file that
    cannot be read, or that contradicts itself, is a fault, and supports nothing; so is each line of
    `missing`, which says what of a batch has no evidence. Raises UsageError where there is no evidence,
    or no such claim.
    """
    runs, lacking = _read(places)
    unfit = len(lacking)
    lacking += [Remark(text, fault=True) for text in missing]
    whole = not lacking
    if not runs and not lacking:
        raise UsageError("no evidence found", hint="name folders with NAME.json of runs")
    gates = {file: {gate.name: gate for gate in evidence.gates(run)} for file, run in runs}
    names = list(dict.fromkeys(name for of_run in gates.values() for name in of_run))
    for name in required:
        if name not in names and runs:
            raise UsageError(f"--require {name}: no such claim", hint=near(name, names))
    summary, backing = [], []
    for name in names:
        records = [gates[file][name] for file, _ in runs]
        backed = sum(one.supported for one in records)
        state = CLAIM_STATES[evidence.supported_by_all(records) and whole]
        summary.append((name, state, f"{backed} of {len(runs) + unfit}"))
        for file, run in runs:
            gate = gates[file][name]
            backing.append((name, file, run.verdict, CLAIM_STATES[gate.supported], gate.reason))
        if name in required and state == CLAIM_STATES[False]:
            lacking.append(Remark(f"{name} is not supported by every report", fault=True))
    grids = [
        Grid(("claim", "together", "supported in"), summary),
        Grid(("claim", "report", "verdict", "", "supported by, or why not"), backing),
        Grid(("device", "class", "architecture", "compiler", "reports"), _places(runs)),
    ]
    return Answer(f"{plural(len(runs), 'report')}", not lacking, lacking, grids)


def _read(places: Sequence[str]) -> tuple[list[tuple[str, Evidence]], list[Remark]]:
    """Evidence that agrees with itself, by its file, and a fault for each file that does not."""
    runs, faults = [], []
    for path in _files(places):
        try:
            runs.append((str(path), sound(path)))
        except EvidenceError as error:
            faults.append(Remark(f"{path}: {error.message}", fault=True))
    return runs, faults


def _places(runs: Sequence[tuple[str, Evidence]]) -> list[tuple[str, ...]]:
    """Devices and compilers that verified cases ran on, over all reports."""
    found: dict[tuple[str, ...], set[str]] = {}
    for file, run in runs:
        for build in run.builds.values():
            device = run.devices.get(build.device)
            if device is not None and build.compiler is not None:
                version = build.compiler.version.strip().partition("\n")[0]
                place = (device.name, device.device_class, build.arch or device.arch, version)
                found.setdefault(place, set()).add(file)
    return [(*place, str(len(files))) for place, files in found.items()]


def _files(places: Sequence[str]) -> Iterator[Path]:
    """Evidence files, and those under folders; other JSON files are passed over, and older runs."""
    count = 0
    for place in map(Path, places):
        if not place.exists():
            raise EvidenceError("is not there", where=Location(place))
        for path in sorted(place.rglob("*.json")) if place.is_dir() else [place]:
            older = place.is_dir() and OLDER in path.relative_to(place).parts[:-1]
            if older or (place.is_dir() and not _may_be_evidence(path)):
                continue
            count += 1
            if count > _MOST_FILES:
                raise UsageError(f"more than {_MOST_FILES} reports", hint="name fewer folders")
            yield path


def _may_be_evidence(path: Path) -> bool:
    """Whether it is evidence, or cannot be read, so that nobody knows; other JSON is passed over."""
    family = EVIDENCE_SCHEMA.rstrip("0123456789")
    try:
        head = msgspec.json.decode(storage.read_plain(path, MOST_BYTES), type=_Head)
    except msgspec.ValidationError:  # JSON of another form
        return False
    except (OSError, ValueError, RecursionError):
        return True
    return head.schema.startswith(family)
