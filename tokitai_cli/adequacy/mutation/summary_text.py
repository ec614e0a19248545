"""What came of the changes, as text."""

from __future__ import annotations

from collections.abc import Iterator

from tokitai_cli.adequacy.mutation.mutating import End, Trial, TrialReport
from tokitai_cli.core.model.wording import plural


def summary_lines(report: TrialReport) -> Iterator[str]:
    """Lines: every survivor with its diff, what was not counted and why, and the share."""
    for one in report.trials:
        if one.end is End.SURVIVED:
            yield f"survived, {one.change.kind}:"
            yield from _diff(one)
    for one in report.trials:
        if one.end is End.EQUIVALENT:
            change = one.change
            yield f"equivalent, {change.path.name}:{change.line}, {change.kind}: {one.message}"
    kinds = dict.fromkeys(one.change.kind for one in report.trials)
    for kind in kinds:
        ends = [one.end for one in report.trials if one.change.kind == kind]
        detected, tried = ends.count(End.NOTICED), ends.count(End.SURVIVED)
        yield f"  {kind}: {detected} of {detected + tried} detected"
    rest = [
        f"{report.count(end)} {end}"
        for end in (End.EQUIVALENT, End.SAME, End.UNBUILT)
        if report.count(end)
    ]
    detected = report.count(End.NOTICED)
    share = f"{100 * detected / report.tried:.1f} %" if report.tried else "none"
    counted = f"{detected} of {plural(report.tried, 'change')} detected, {share}"
    left = f"; not counted: {', '.join(rest)}" if rest else ""
    yield f"{report.op} on {report.device}, {plural(report.cases, 'case')}: {counted}{left}"
    if report.count(End.SURVIVED):
        yield (
            "  for each that survived, add a shape or a profile that detects it; one that cannot alter "
            "a result belongs under `equivalent_changes` of the spec"
        )
    rate = len(report.trials) / report.seconds if report.seconds else 0.0
    yield f"  {plural(len(report.trials), 'change')} in {report.seconds:.0f} s, {rate:.1f} a second"


def _diff(one: Trial) -> Iterator[str]:
    change = one.change
    yield f"  {change.path.name}:{change.line}"
    for sign, text in (("-", change.before), ("+", change.after)):
        yield from (f"  {sign}{line}" for line in text.splitlines())
