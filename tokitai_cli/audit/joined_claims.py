"""`claims DIR`: what many reports claim together, each with its backing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tokitai_cli.audit.opened import MOST_BYTES, opened
from tokitai_cli.core import storage
from tokitai_cli.core.errors import EvidenceError, Location, UsageError, near
from tokitai_cli.core.model.audit_answer import Answer, Grid, Remark
from tokitai_cli.core.model.evidence import EVIDENCE_SCHEMA, Evidence
from tokitai_cli.core.model.wording import plural

_MOST_FILES = 10_000


class _Head(msgspec.Struct):
    schema: str = ""


def claims(places: Sequence[str], required: Sequence[str] = ()) -> Answer:
    """Gates over all evidence under folders; fine where those `required` are open in every file.

    Raises UsageError where there is no evidence, or no such claim; EvidenceError for a file that
    cannot be read.
    """
    runs = [(str(path), opened(path)) for path in _files(places)]
    if not runs:
        raise UsageError("no evidence is there", hint="name folders with NAME.json of runs")
    names = list(dict.fromkeys(gate.name for _, run in runs for gate in run.claims))
    for name in required:
        if name not in names:
            raise UsageError(f"--require {name}: no such claim", hint=near(name, names))
    summary, backing, lacking = [], [], []
    for name in names:
        gates = [(file, run, _gate(run, name)) for file, run in runs]
        opens = sum(opened for _, _, (opened, _) in gates)
        state = "open" if opens == len(runs) else "closed"
        summary.append((name, state, f"{opens} of {len(runs)}"))
        backing += [
            (name, file, run.verdict, "open" if is_open else "closed", why)
            for file, run, (is_open, why) in gates
        ]
        if name in required and state == "closed":
            lacking.append(Remark(f"{name} is not open in every report", fault=True))
    grids = [
        Grid(("claim", "over all", "open in"), summary),
        Grid(("claim", "report", "verdict", "", "backed by, or why not"), backing),
        Grid(("device", "class", "architecture", "compiler", "reports"), _places(runs)),
    ]
    return Answer(f"{plural(len(runs), 'report')}", not lacking, lacking, grids)


def _gate(run: Evidence, name: str) -> tuple[bool, str]:
    for gate in run.claims:
        if gate.name == name:
            return gate.opened, gate.reason
    return False, "the report does not speak of it"


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
    """Evidence files, and those under folders; other JSON files are passed over."""
    count = 0
    for place in map(Path, places):
        if not place.exists():
            raise EvidenceError("is not there", where=Location(place))
        for path in sorted(place.rglob("*.json")) if place.is_dir() else [place]:
            if place.is_dir() and not _is_evidence(path):
                continue
            count += 1
            if count > _MOST_FILES:
                raise UsageError(f"more than {_MOST_FILES} reports", hint="name fewer folders")
            yield path


def _is_evidence(path: Path) -> bool:
    family = EVIDENCE_SCHEMA.rstrip("0123456789")
    try:
        head = msgspec.json.decode(storage.read_plain(path, MOST_BYTES), type=_Head)
    except (OSError, ValueError, RecursionError):
        return False
    return head.schema.startswith(family)
