"""`diff A B`: how two runs differ in verdicts, bits, metrics, claims, environment and times."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping

from tokitai_cli import devices
from tokitai_cli.audit.door import sound
from tokitai_cli.core.model.audit_answer import Answer, Grid
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.wording import number, plural
from tokitai_cli.core.model.words import CLAIM_STATES
from tokitai_cli.evidence import queries

_MOST_ROWS = 200
Row = tuple[str, ...]


def diff(first: str, second: str) -> Answer:
    """Compare two files; fine where nothing differs but times. Raises EvidenceError."""
    one, other = sound(first), sound(second)
    grids = differences(one, other)
    counted = sum(len(grid.rows) for grid in grids)
    text = f"{plural(counted, 'difference')}" if counted else "no difference but times"
    return Answer(text, not counted, grids=[*grids, *_times(one, other)])


def differences(first: Evidence, second: Evidence, *, elsewhere: bool = False) -> list[Grid]:
    """What differs, times left out: tables of two columns of values.

    elsewhere: the runs have no device in common, so cases are matched without it.
    """
    left, right = (
        {case.id if elsewhere else case.key: case for case in queries.cases(run)}
        for run in (first, second)
    )
    both = [key for key in left if key in right]
    told = {
        "run": list(_run(first, second)),
        "case": list(_cases(left, right)),
        "measured": [row for key in both for row in _measured(key, left[key], right[key])],
        "claim": list(_claims(first, second)),
        "environment": list(_environment(first, second)),
    }
    return [Grid((what, "", "first", "second"), _few(rows)) for what, rows in told.items() if rows]


def _few(rows: list[Row]) -> list[Row]:
    more = len(rows) - _MOST_ROWS
    return [*rows[:_MOST_ROWS], (f"{more} more", "", "", "")] if more > 0 else rows


def _unlike(place: str, pairs: Mapping[str, tuple[object, object]]) -> Iterator[Row]:
    for what, (left, right) in pairs.items():
        if left != right:
            yield place, what, _shown(left), _shown(right)


def _shown(value: object) -> str:
    if value is None or value == "":
        return "-"
    return number(value) if isinstance(value, int | float) else str(value)


def _run(first: Evidence, second: Evidence) -> Iterator[Row]:
    yield from _unlike(first.name, {"verdict": (first.verdict, second.verdict)})
    for what in ("specs", "sources"):
        left, right = (
            {source.path: digest for digest, source in getattr(run, what).items()}
            for run in (first, second)
        )
        for path in dict.fromkeys([*left, *right]):
            yield from _unlike(path, {"sha256": (left.get(path), right.get(path))})
    for name in dict.fromkeys([*first.oracles, *second.oracles]):
        yield from _unlike(name, {"sha256": (first.oracles.get(name), second.oracles.get(name))})


def _cases(mine: Mapping[str, CaseRecord], yours: Mapping[str, CaseRecord]) -> Iterator[Row]:
    for key in dict.fromkeys([*mine, *yours]):
        left, right = mine.get(key), yours.get(key)
        pair = (left.reads if left else "no such case", right.reads if right else "no such case")
        yield from _unlike(key, {"verdict": pair})


def _measured(key: str, left: CaseRecord, right: CaseRecord) -> Iterator[Row]:
    """Inputs, bits and numbers of a case that both have."""
    inputs = [{one.name: one.sha256 for one in case.inputs} for case in (left, right)]
    for name in dict.fromkeys([*inputs[0], *inputs[1]]):
        yield from _unlike(key, {f"bits of {name}": (inputs[0].get(name), inputs[1].get(name))})
    outputs = {one.name: one for one in right.outputs}
    for one in left.outputs:
        other = outputs.get(one.name)
        if other is None:
            yield key, one.name, "judged", "not judged"
            continue
        bits = (one.sha256[:1] or [""], other.sha256[:1] or [""])
        yield from _unlike(key, {f"bits of {one.name}": (bits[0][0], bits[1][0])})
        if one.metrics is not None and other.metrics is not None:
            yield from _unlike(key, {
                f"{name} of {one.name}": (getattr(one.metrics, name), getattr(other.metrics, name))
                for name in ("max_abs", "max_ulp", "over_bound", "bias_ulp")
            })  # fmt: skip


def _claims(first: Evidence, second: Evidence) -> Iterator[Row]:
    left, right = ({gate.name: gate.supported for gate in run.claims} for run in (first, second))
    for name in dict.fromkeys([*left, *right]):
        pair = (_state(left.get(name)), _state(right.get(name)))
        yield from _unlike(name, {"claim": pair})


def _state(supported: bool | None) -> str:
    return "-" if supported is None else CLAIM_STATES[supported]


def _environment(first: Evidence, second: Evidence) -> Iterator[Row]:
    for what in ("version", "commit", "python", "numpy", "platform"):
        yield from _unlike("tool", {what: (getattr(first.tool, what), getattr(second.tool, what))})
    left, right = (dict(_compilers(run)) for run in (first, second))
    for name in dict.fromkeys([*left, *right]):
        yield from _unlike(name, {"compiler": (left.get(name), right.get(name))})
    for name in dict.fromkeys([*first.devices, *second.devices]):
        facts = [_facts(run, name) for run in (first, second)]
        for fact in dict.fromkeys([*facts[0], *facts[1]]):
            yield from _unlike(f"device {name}", {fact: (facts[0].get(fact), facts[1].get(fact))})


def _compilers(run: Evidence) -> Iterator[tuple[str, str]]:
    for build in run.builds.values():
        if build.compiler is not None:
            version = build.compiler.version.strip().partition("\n")[0]
            yield f"build for {build.device}", f"{version}, sha256 {build.compiler.sha256[:16]}"


def _facts(run: Evidence, name: str) -> dict[str, str]:
    device = run.devices.get(name)
    if device is None:
        return {}
    told = {fact.name: fact.value for fact in device.facts if fact.name != devices.CHOSEN_BY}
    return told | {"class": device.device_class, "architecture": device.arch}


def _times(first: Evidence, second: Evidence) -> list[Grid]:
    left, right = first.volatile.case_times_ns, second.volatile.case_times_ns
    rows = [
        (key, number(old / 1000, 4), number(new / 1000, 4), number(new / old, 4) if old else "-")
        for key, old, new in (
            (key, statistics.median(left[key]), statistics.median(right[key]))
            for key in left
            if left[key] and right.get(key)
        )
    ]
    if not rows:
        return []
    return [Grid(("median time", ">first us", ">second us", ">ratio"), rows[:_MOST_ROWS])]
