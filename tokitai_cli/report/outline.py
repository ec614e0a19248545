"""What a report shows of a run: every case in a small one, the telling ones in a large one."""

from __future__ import annotations

import msgspec

from tokitai_cli.model import view
from tokitai_cli.model.evidence import CaseRecord, Evidence, GroupRecord
from tokitai_cli.model.verdict import Verdict

MOST_DETAILED = 20
MOST_ROWS = 200
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
    not_applicable: int


class Log(msgspec.Struct, frozen=True):
    """The start of a log: its lines shown, and how many follow."""

    title: str
    text: str
    more: int


class Outline(msgspec.Struct, frozen=True):
    """All that the template walks over, beside the evidence itself."""

    cases: list[CaseRecord]
    detailed: list[CaseRecord]
    not_detailed: int
    representative: CaseRecord | None
    tallies: list[view.Tally]
    rows: list[view.Row]
    metrics: list[str]
    rejections: list[Rejection]
    unable: list[GroupRecord]
    logs: list[Log]
    smallest_failing: list[view.Smallest]


def outline(evidence: Evidence) -> Outline:
    """Choose what the report shows."""
    cases = view.cases(evidence)
    told = view.troubled(cases)
    told += [case for case in cases if case.verdict is Verdict.EXPECTED_FAILURE]
    detailed = view.telling(told)[:MOST_DETAILED]
    verified = [case for case in cases if case.verdict is Verdict.VERIFIED and case.outputs]
    rows = [row for case in cases for row in view.rows(case)]
    metrics = {check.metric for case in cases for output in case.outputs for check in output.checks}
    return Outline(
        cases=cases,
        detailed=detailed,
        not_detailed=len(told) - len(detailed),
        representative=max(verified, key=view.nearness, default=None),
        tallies=view.tallies(cases),
        rows=rows if len(rows) <= MOST_ROWS else [],
        metrics=sorted(metrics),
        rejections=_rejections(evidence.groups),
        unable=[one for one in evidence.groups if one.status in ("accepted", "never-eligible")],
        logs=_logs(evidence),
        smallest_failing=view.smallest_failing(cases),
    )


def bins(histogram: dict[str, int]) -> list[tuple[str, int]]:
    """Bins of a histogram in the order of the numbers that name them."""
    return sorted(histogram.items(), key=lambda item: float(item[0]))


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
            not_applicable=statuses.count("not-applicable"),
        )
        for key, statuses in grouped.items()
    ]


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
