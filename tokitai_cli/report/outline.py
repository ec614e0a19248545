"""What a report shows of a run: every case in a small one, the telling ones in a large one."""

from __future__ import annotations

from typing import Any

import msgspec

from tokitai_cli.core.model.contract import ContractRecord, KernelRecord
from tokitai_cli.core.model.evidence import (
    BuildRecord,
    CaseRecord,
    Evidence,
    GateRecord,
    GroupRecord,
)
from tokitai_cli.core.model.judged import CheckRecord, Number, OutputRecord
from tokitai_cli.core.model.metrics import METRICS, named
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import shape_text
from tokitai_cli.core.model.words import CLAIM_STATES
from tokitai_cli.core.storage import data_sha256
from tokitai_cli.evidence import JoinedEvidence, gates_by_device, queries
from tokitai_cli.report.card import Line, card, percent
from tokitai_cli.report.format import ReportOptions
from tokitai_cli.report.limits import Limit, largest, limits_of
from tokitai_cli.report.nearness import Nearness, nearness

MOST_DETAILED = 20
MOST_ROWS = 2000
MOST_OPEN = 3
MOST_LOG_LINES = 60


class Rejection(msgspec.Struct, frozen=True):
    """A kind of wrong output of one variant, output and device, over all its shapes."""

    variant: str
    output: str
    device: str
    kind: str
    rejected: int
    accepted: int
    never_eligible: int
    undetected: int
    not_known: int
    not_applicable: int


class Flat(msgspec.Struct, frozen=True):
    """A flat limit on one output of a variant, over all cases that it holds for, beside the bound."""

    variant: str
    output: str
    device: str
    metric: str
    against: str
    limit: Number
    cases: int
    #: Largest value of the check.
    worst: Number | None
    #: Largest error over the derived bound in these cases, None without one.
    over_bound: Number | None
    #: Cases in which an output of zeros would be within the limit.
    zeros: int


class Policy(msgspec.Struct, frozen=True):
    """What the spec says of NaN and infinities in one output of a variant."""

    variant: str
    output: str
    text: str


class Log(msgspec.Struct, frozen=True):
    """The start of a log: its lines shown, and how many follow."""

    title: str
    text: str
    more: int


class OutlineDevice(msgspec.Struct, frozen=True):
    """A device that cases ran on, with the first line of its compilers' versions."""

    name: str
    device_class: str
    arch: str
    compiler: str


class Headers(msgspec.Struct, frozen=True):
    """Headers that a build read and that are nobody's own: how many, and one digest of all."""

    count: int
    sha256: str


class Outline(msgspec.Struct, frozen=True):
    """All that the template walks over, beside the evidence itself.

    first_open, more_open: what the checks leave open, on the first page and behind the command.
    """

    cases: list[CaseRecord]
    detailed: list[CaseRecord]
    not_detailed: int
    representative: CaseRecord | None
    tallies: list[queries.Tally]
    rows: list[queries.Row]
    more_rows: int
    metrics: list[tuple[str, str]]
    rejections: list[Rejection]
    unable: list[GroupRecord]
    flat: list[Flat]
    policies: list[Policy]
    logs: list[Log]
    smallest_failing: list[queries.Smallest]
    not_covered: list[str]
    first_open: list[str]
    more_open: list[str]
    kernels: list[tuple[str, KernelRecord]]
    places: list[OutlineDevice]
    limits: list[Limit]
    #: By the key of the build: headers of compiler, system and tool together.
    headers: dict[str, Headers]
    #: Cases in which the watch beside the run found something.
    watched: list[CaseRecord]
    card: list[Line]
    nearness: Nearness | None
    #: Guesses of a draft that nobody confirmed.
    guesses: list[str]
    #: By the code of a reference, the variants that have it.
    codes: list[tuple[str, str]]
    #: Claims of each device by itself; none where one device ran.
    claims: list[ClaimOfDevices]
    claim_devices: list[str]
    #: The one run, or all that the evidence joins.
    runs: list[OutlineRun]


class ClaimOfDevices(msgspec.Struct, frozen=True):
    """A claim, whether all runs support it, and whether each device does by itself, in words."""

    name: str
    supported: bool
    words: list[str]


class OutlineRun(msgspec.Struct, frozen=True):
    """A run that the report is of: its name in a report of several, and its devices."""

    label: str
    evidence: Evidence
    devices: list[str]


def context(evidence: Evidence, report_options: ReportOptions | None = None) -> dict[str, Any]:
    """What templates of evidence may use; with pictures where the options ask for them."""
    return {
        "several": isinstance(evidence, JoinedEvidence),
        "headline": headline(evidence),
        "evidence": evidence,
        "outline": outline(evidence),
        "counts": queries.counts(evidence),
        "reason": queries.reason(evidence),
        "watched": queries.watch_words(evidence),
        "decision": queries.decision,
        "decisive": queries.decisive(evidence),
        "shape": shape_text,
        "rounded": rounded_share,
        "figures": _figures(evidence)
        if report_options is not None and report_options.plots
        else [],
    }


def _figures(evidence: Evidence) -> list[Any]:
    from tokitai_cli.report import canvas, figures

    return canvas.svgs(figures.figures_of(evidence))


def headline(evidence: Evidence) -> str:
    """Name, verdict, and the devices with their classes."""
    used = _devices_of(evidence) or evidence.devices
    places = [f"{name} ({evidence.devices[name].device_class})" for name in used]
    return f"{evidence.name}: {evidence.verdict}" + (f" on {', '.join(places)}" if places else "")


def outline(evidence: Evidence) -> Outline:
    """Choose what the report shows."""
    cases = queries.cases(evidence)
    left = queries.not_covered(evidence)
    first = len(left) if len(left) <= MOST_OPEN + 1 else MOST_OPEN
    told = queries.troubled(cases)
    told += [case for case in cases if case.verdict is Verdict.EXPECTED_FAILURE]
    detailed = queries.telling(told)[:MOST_DETAILED]
    verified = [case for case in cases if case.reads is Verdict.VERIFIED and case.outputs]
    every = _rows(cases)
    devices, claims = _claims_by_device(evidence)
    metrics = {check.metric for case in cases for output in case.outputs for check in output.checks}
    return Outline(
        cases=cases,
        detailed=detailed,
        not_detailed=len(told) - len(detailed),
        representative=max(verified, key=queries.nearness, default=None),
        tallies=queries.tallies(cases),
        rows=every[:MOST_ROWS],
        more_rows=len(every[MOST_ROWS:]),
        metrics=[(name, METRICS[name].sentence) for name in sorted(metrics & METRICS.keys())],
        rejections=_rejections(evidence.groups),
        unable=[one for one in evidence.groups if one.status in ("accepted", "never-eligible")],
        flat=_flat(cases),
        policies=_policies(cases),
        logs=_logs(evidence),
        smallest_failing=queries.smallest_failing(cases),
        not_covered=left,
        first_open=left[:first],
        more_open=left[first:],
        kernels=list(evidence.contract.variants.items()) if evidence.contract else [],
        places=_places(evidence),
        limits=limits_of(evidence.contract, cases),
        headers={key: _headers(build) for key, build in evidence.builds.items()},
        watched=[case for case in evidence.watched if case.findings][:MOST_DETAILED],
        card=card(evidence, cases),
        nearness=nearness(cases),
        guesses=queries.unconfirmed(evidence),
        codes=_codes(evidence.contract),
        claim_devices=devices,
        claims=claims,
        runs=[OutlineRun(label, one, _devices_of(one)) for label, one in _runs(evidence)],
    )


def _runs(evidence: Evidence) -> list[tuple[str, Evidence]]:
    if isinstance(evidence, JoinedEvidence):
        return [(run.label, run.evidence) for run in evidence.runs]
    return [("", evidence)]


def _devices_of(evidence: Evidence) -> list[str]:
    return list(dict.fromkeys(case.device for case in evidence.cases))


def _claims_by_device(evidence: Evidence) -> tuple[list[str], list[ClaimOfDevices]]:
    """Devices, and each claim with what they support of it by themselves; nothing of one device."""
    found: dict[str, list[GateRecord]] = {}
    for _, one in _runs(evidence):
        found |= gates_by_device(one)
    if len(found) < 2:
        return [], []
    return list(found), [
        ClaimOfDevices(claim.name, claim.supported, [CLAIM_STATES[one.supported] for one in own])
        for claim, *own in zip(evidence.claims, *found.values(), strict=True)
    ]


def _codes(contract: ContractRecord | None) -> list[tuple[str, str]]:
    """Names of variants, and the code of the reference that they share."""
    found: dict[str, list[str]] = {}
    for name, one in contract.variants.items() if contract else ():
        if one.code:
            found.setdefault(one.code, []).append(name)
    return [(", ".join(names), code) for code, names in found.items()]


def _headers(build: BuildRecord) -> Headers:
    found = {path: one for path, one in build.headers.items() if path not in build.header_texts}
    return Headers(len(found), data_sha256(found))


def rounded_share(output: OutputRecord | None) -> str | None:
    """Share of an output's finite elements that are the correctly rounded value; None without any."""
    if output is None or output.metrics is None:
        return None
    finite = sum(output.metrics.ulp_histogram.values())
    return percent(output.metrics.exact_elements, finite) if finite else None


def rows(evidence: Evidence) -> list[queries.Row]:
    """A row for each output of each case, failures first."""
    return _rows(queries.cases(evidence))


def _rows(cases: list[CaseRecord]) -> list[queries.Row]:
    by_rank = sorted(cases, key=lambda case: case.reads in queries.FINE)
    return [row for case in by_rank for row in queries.rows(case)]


def bins(histogram: dict[str, int]) -> list[tuple[str, int]]:
    """Bins of a histogram in the order of the numbers that name them."""
    return sorted(histogram.items(), key=lambda item: float(item[0]))


def _places(evidence: Evidence) -> list[OutlineDevice]:
    found = []
    for name in _devices_of(evidence):
        device = evidence.devices[name]
        compilers = dict.fromkeys(
            build.compiler.version.strip().partition("\n")[0]
            for build in evidence.builds.values()
            if build.device == name and build.compiler is not None
        )
        found.append(OutlineDevice(name, device.device_class, device.arch, "; ".join(compilers)))
    return found


def _rejections(groups: list[GroupRecord]) -> list[Rejection]:
    grouped: dict[tuple[str, str, str, str], list[str]] = {}
    for one in groups:
        key = (one.variant, one.output, one.device, one.kind)
        grouped.setdefault(key, []).append(one.status)
    return [
        Rejection(
            *key,
            rejected=statuses.count("rejected"),
            accepted=statuses.count("accepted"),
            never_eligible=statuses.count("never-eligible"),
            undetected=statuses.count("undetected"),
            not_known=statuses.count("not-known"),
            not_applicable=statuses.count("not-applicable"),
        )
        for key, statuses in grouped.items()
    ]


def _flat(cases: list[CaseRecord]) -> list[Flat]:
    grouped: dict[tuple[str, str, str, str, str, Number], list[tuple[OutputRecord, CheckRecord]]]
    grouped = {}
    flat = named(flat=True)
    for case in cases:
        for output in case.outputs:
            for check in output.checks:
                if check.metric in flat:
                    place = (case.variant, output.name, case.device)
                    key = (*place, check.metric, check.against, check.limit)
                    grouped.setdefault(key, []).append((output, check))
    return [
        Flat(
            *key,
            cases=len(pairs),
            worst=largest([check.value for _, check in pairs]),
            over_bound=largest([one.metrics.over_bound for one, _ in pairs if one.metrics]),
            zeros=sum(check.passes_zeros for _, check in pairs),
        )
        for key, pairs in grouped.items()
    ]


def _policies(cases: list[CaseRecord]) -> list[Policy]:
    found = [
        Policy(case.variant, output.name, output.non_finite)
        for case in cases
        for output in case.outputs
        if output.non_finite
    ]
    return list(dict.fromkeys(found))


def _logs(evidence: Evidence) -> list[Log]:
    found = [(f"build {key}", text) for key, text in evidence.volatile.build_logs.items()]
    found += list(evidence.volatile.kernel_logs.items())
    found += [(f"oracle of {key}", text) for key, text in evidence.volatile.oracle_logs.items()]
    logs = []
    for title, text in found:
        lines = text.splitlines()
        if lines:
            more = max(len(lines) - MOST_LOG_LINES, 0)
            logs.append(Log(title, "\n".join(lines[:MOST_LOG_LINES]), more))
    return logs
