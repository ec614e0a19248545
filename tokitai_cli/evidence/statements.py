"""Sentences of evidence: each is built from one recorded fact, and names the field that holds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tokitai_cli.core.model.device import MACHINE_CODE
from tokitai_cli.core.model.evidence import CaseRecord, Evidence, StatementRecord
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import number, plural
from tokitai_cli.evidence import queries
from tokitai_cli.evidence.claims import elements
from tokitai_cli.evidence.non_claims import tried_values

_Where = tuple[int, CaseRecord]


def statements(evidence: Evidence) -> list[StatementRecord]:
    """All sentences that the recorded facts give; a fact that is not there gives none."""
    verified = [
        (at, case) for at, case in enumerate(evidence.cases) if case.reads is Verdict.VERIFIED
    ]
    return [
        *_counts(evidence),
        *_shapes(verified),
        *_devices(evidence),
        *_builds(evidence),
        *_oracles(evidence),
        *_checks(verified),
        *_products(verified),
        *_properties(verified),
        *_repeats(verified),
        *_examinations(evidence),
        *_mutants(evidence),
        *_changes(verified),
    ]


def at_pointer(tree: Any, pointer: str) -> Any:
    """Value at a JSON Pointer (RFC 6901) in a parsed evidence file.

    Raises LookupError or ValueError where nothing is there.
    """
    value = tree
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def _state(text: str, *path: str | int) -> StatementRecord:
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in path)
    return StatementRecord(text=text, field="/" + "/".join(parts))


def _counts(evidence: Evidence) -> Iterator[StatementRecord]:
    total = sum(evidence.counts.values())
    for verdict in Verdict:
        count = evidence.counts.get(verdict, 0)
        if count:
            yield _state(f"{count} of {plural(total, 'case')}: {verdict}.", "counts", verdict)


def _shapes(verified: list[_Where]) -> Iterator[StatementRecord]:
    """Name the shapes that were verified, with their residues modulo the blocks' extents."""
    with_elements = [(at, case) for at, case in verified if elements(case)]
    for op, variant in dict.fromkeys((case.op, case.variant) for _, case in with_elements):
        mine = [pair for pair in with_elements if (pair[1].op, pair[1].variant) == (op, variant)]
        if tried := tried_values([case for _, case in mine]):
            text = f"{op} {variant} was verified at {tried}."
            yield _state(text, "cases")


def _devices(evidence: Evidence) -> Iterator[StatementRecord]:
    for name in dict.fromkeys(case.device for case in evidence.cases):
        device = evidence.devices[name]
        if device.available and device.device_class:
            arch = f", {device.arch}" if device.arch else ""
            text = f"Device {name} is of class {device.device_class}{arch}."
            yield _state(text, "devices", name, "device_class")


def _builds(evidence: Evidence) -> Iterator[StatementRecord]:
    for key, build in evidence.builds.items():
        if build.artifact_sha256 and build.compiler is not None and not build.failed:
            version = build.compiler.version.strip().partition("\n")[0]
            text = f"{build.source} was built for {build.device} by {version}; "
            for fact in build.code_object:
                if fact.name == MACHINE_CODE:
                    text = (
                        f"{build.source} (sha256 {build.source_sha256}) is machine code for "
                        f"{fact.value} that was built elsewhere and is not part of the evidence; the "
                        f"program that serves its kernels on {build.device} was built by {version}; "
                    )
            text += f"the artifact has sha256 {build.artifact_sha256}."
            yield _state(text, "builds", key, "artifact_sha256")


def _oracles(evidence: Evidence) -> Iterator[StatementRecord]:
    draws = {one.generator for case in evidence.cases for one in case.inputs}
    for name, digest in evidence.oracles.items():
        if digest:
            what = "Draw " if name in draws else "Oracle "
            what = "The installed " if name.startswith("package ") else what
            yield _state(f"{what}{name} has sha256 {digest}.", "oracles", name)


def _checks(verified: list[_Where]) -> Iterator[StatementRecord]:
    """One sentence per variant, device, output, metric and side: its worst case."""
    found: dict[tuple[str, ...], list[tuple[float, int, int, int]]] = {}
    for at, case in verified:
        for o, output in enumerate(case.outputs):
            for c, check in enumerate(output.checks):
                if check.judges and check.passed and check.elements:
                    name = (case.variant, case.device, output.name, check.metric, check.against)
                    ratio = queries.severity(check)[2]
                    found.setdefault(name, []).append((ratio, at, o, c))
    cases = dict(verified)
    for (variant, device, _output, metric, against), places in found.items():
        _ratio, at, o, c = max(places, key=lambda place: (place[0], -place[1]))
        output = cases[at].outputs[o]
        check = output.checks[c]
        text = (
            f"{variant} on {device}, output {output.name}: {metric} against the {against} holds in "
            f"{plural(len(places), 'case')}; nearest to its limit is {_value(check.value)} of "
            f"{number(check.limit)}, over {check.elements} elements of {cases[at].id}."
        )
        yield _state(text, "cases", at, "outputs", o, "checks", c)


def _value(value: float | str | None) -> str:
    return "a value that may differ between runs" if value is None else number(value)


def _products(verified: list[_Where]) -> Iterator[StatementRecord]:
    """What is proved of large products, and what of them was sampled."""
    for at, case in verified:
        for o, output in enumerate(case.outputs):
            if output.sample is None:
                continue
            sample, proof = output.sample, output.sample.proof
            text = f"{output.name} of {case.id}: "
            if proof is not None:
                text += (
                    f"all {proof.elements} elements equal the product of integers, by "
                    f"{proof.vectors} random vectors of {proof.bits} bits, which miss a wrong element "
                    f"with a probability of at most {number(proof.missed, 2)}; "
                )
            text += (
                f"the checks were made on {sample.rows * sample.columns} elements, at {sample.rows} "
                f"rows and {sample.columns} columns."
            )
            yield _state(text, "cases", at, "outputs", o, "sample")


def _properties(verified: list[_Where]) -> Iterator[StatementRecord]:
    found: dict[tuple[str, str, str, str, int], list[tuple[int, int]]] = {}
    for at, case in verified:
        for p, item in enumerate(case.properties):
            if item.passed:
                place = (case.variant, case.device, item.output, item.name, item.runs)
                found.setdefault(place, []).append((at, p))
    for (variant, device, output, name, runs), places in found.items():
        held = plural(len(places), "case")
        text = f"{variant} on {device}, output {output}: property {name} holds in {held}"
        text += ", each run once more on changed inputs." if runs > 1 else "."
        yield _state(text, "cases", places[0][0], "properties", places[0][1])


def _repeats(verified: list[_Where]) -> Iterator[StatementRecord]:
    ran = [
        (case.repeats.repetitions, at, case.repeats)
        for at, case in verified
        if case.repeats is not None and elements(case)
    ]
    filled = [(count, at, one) for count, at, one in ran if len(set(one.sentinels)) > 1]
    if filled:
        count, at, one = min(filled, key=lambda item: item[:2])
        text = (
            f"{plural(len(filled), 'verified case')} ran at least {count} times, with outputs "
            f"filled before with {', '.join(one.sentinels)}; every element that must be "
            "written was written."
        )
        yield _state(text, "cases", at, "repeats", "sentinels")
    equal = [(count, at, one) for count, at, one in ran if one.bitwise_equal and count > 1]
    if equal:
        count, at, one = min(equal, key=lambda item: item[:2])
        schedules = ", ".join(dict.fromkeys(one.schedules)) or "of the device"
        text = (
            f"At least {count} repetitions gave the same bits in each of "
            f"{plural(len(equal), 'verified case')}; schedules: {schedules}."
        )
        yield _state(text, "cases", at, "repeats", "bitwise_equal")


def _examinations(evidence: Evidence) -> Iterator[StatementRecord]:
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for at, case in enumerate(evidence.cases):
        if not case.findings and case.reads is Verdict.VERIFIED:
            for e, look in enumerate(case.examined):
                found.setdefault((look.kind, look.tool), []).append((at, e))
    for (kind, tool), places in found.items():
        at, e = places[0]
        scope = evidence.cases[at].examined[e].scope
        seen = plural(len(places), "verified case")
        text = f"{kind}: {tool} checked {scope} in {seen} and found nothing."
        yield _state(text, "cases", at, "examined", e)


def _mutants(evidence: Evidence) -> Iterator[StatementRecord]:
    rejected = [(at, group) for at, group in enumerate(evidence.groups) if group.rejected_by]
    for variant, device in dict.fromkeys((group.variant, group.device) for _, group in rejected):
        mine = [pair for pair in rejected if (pair[1].variant, pair[1].device) == (variant, device)]
        kinds = ", ".join(dict.fromkeys(group.kind for _, group in mine))
        text = (
            f"The checks of {variant} on {device} reject wrong outputs, "
            f"in {len(mine)} pairs of place and kind: {kinds}."
        )
        yield _state(text, "groups", mine[0][0])


def _changes(verified: list[_Where]) -> Iterator[StatementRecord]:
    """The case of each variant and output whose checks reject the most changes of the formula."""
    best: dict[tuple[str, str], tuple[int, StatementRecord]] = {}
    for at, case in verified:
        for place, one in enumerate(case.changes):
            rejected = one.tried - len(one.accepted) - len(one.undetected)
            key = (case.variant, one.output)
            if key in best and rejected <= best[key][0]:
                continue
            text = (
                f"The checks of {one.output} of {case.variant} reject {rejected} of {one.tried} changes "
                f"of the formula in {case.id}."
            )
            best[key] = (rejected, _state(text, "cases", at, "changes", place))
    for _, statement in best.values():
        yield statement
