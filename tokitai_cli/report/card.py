"""The card of a report: what a reader takes away, in a line each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set

from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.judged import ExaminationRecord, Number, OutputRecord
from tokitai_cli.core.model.wording import number, plural
from tokitai_cli.evidence import JoinedEvidence, queries
from tokitai_cli.evidence.not_covered import ignored
from tokitai_cli.evidence.survivors import survivors_of

Line = tuple[str, str]
_SHOWN = 6
# What an examination looked at, as the card says it; guards and inputs are looked at in every run.
_WATCHED = {
    "memory": "accesses",
    "races": "races",
    "shared-races": "races in shared memory",
    "initialisation": "uninitialised reads",
    "locals": "local variables",
    "barriers": "barriers",
    "undefined": "undefined behaviour",
    "schedules": "orders of blocks and threads",
}


def card(evidence: Evidence, cases: Sequence[CaseRecord]) -> list[Line]:
    """Label and words of each line; lines of which the evidence knows nothing are left
    out, and all of them where no output was judged.
    """
    outputs = [output for case in cases for output in case.outputs]
    if not outputs:
        return []
    lines = [
        ("verdict", f"{evidence.verdict} ({_counts(evidence)})" if evidence.counts else ""),
        ("device class", _classes(evidence, cases)),
        ("shapes", _shapes(cases)),
        ("worst error", _worst_error(cases)),
        ("limit", "; ".join(_limits(outputs))),
        ("error allowance", allowance_words(largest_allowance(outputs))),
        ("correctly rounded", _rounded(outputs)),
        ("wrong outputs detected", "; ".join(_noticed(evidence, cases))),
        ("watched", _watch(evidence)),
        ("reference ignores", "; ".join(_ignored(cases))),
        ("guesses", _guesses(evidence)),
        ("not claimed", _closed(evidence)),
    ]
    return [(label, words) for label, words in lines if words]


def _counts(evidence: Evidence) -> str:
    told = ", ".join(f"{plural(count, 'case')} {one}" for one, count in queries.counts(evidence))
    if isinstance(evidence, JoinedEvidence):
        different = len({case.id for case in evidence.cases})
        told += f": {plural(different, 'different case')} in {plural(len(evidence.runs), 'run')}"
    return told


def _classes(evidence: Evidence, cases: Sequence[CaseRecord]) -> str:
    used = dict.fromkeys(case.device for case in cases)
    return ", ".join(f"{evidence.devices[name].device_class} ({name})" for name in used)


def _shapes(cases: Sequence[CaseRecord]) -> str:
    shapes = {tuple(case.shape.items()) for case in cases}
    ends = []
    for name in dict.fromkeys(name for case in cases for name in case.shape):
        values = {case.shape[name] for case in cases if name in case.shape}
        least, most = min(values), max(values)
        ends.append(f"{name} {least}" if least == most else f"{name} {least} to {most}")
    return f"{plural(len(shapes), 'shape')}: {', '.join(ends)}" if ends else ""


def _worst_error(cases: Sequence[CaseRecord]) -> str:
    found = [
        (output.metrics.max_ulp, case, output)
        for case in cases
        for output in case.outputs
        if output.metrics is not None
    ]
    if not found:
        return ""
    most, case, output = max(found, key=lambda one: queries.magnitude(one[0]))
    return f"{number(most, 3)} ulp ({output.name} of {case.variant}, {case.profile})"


def _limits(outputs: Sequence[OutputRecord]) -> Iterator[str]:
    """Each check that judges, once."""
    asked = dict.fromkeys(
        (check.metric, check.against, check.limit)
        for output in outputs
        for check in output.checks
        if check.judges
    )
    for metric, against, limit in asked:
        of = " against the replay" if against == "replay" else ""
        yield f"{metric} at most {number(limit, 3)}{of}"


def largest_allowance(outputs: Sequence[OutputRecord]) -> Number | None:
    """The largest share of its error allowance that an output needs; None where none has one."""
    found = [
        one.metrics.allowance
        for one in outputs
        if one.metrics is not None and one.metrics.allowance is not None
    ]
    return max(found, key=queries.magnitude, default=None)


def allowance_words(most: Number | None) -> str:
    """`12 % of it is used`; empty where it is not known."""
    if most is None:
        return ""
    size = queries.magnitude(most)
    if math.isinf(size):
        return "exceeded: no multiple of it would be enough"
    return f"exceeded {number(most, 3)} times" if size > 1 else f"{100 * size:.3g} % of it is used"


def _rounded(outputs: Sequence[OutputRecord]) -> str:
    known = [one.metrics for one in outputs if one.metrics is not None]
    finite = sum(sum(one.ulp_histogram.values()) for one in known)
    exact = sum(one.exact_elements for one in known)
    return f"{percent(exact, finite)} of {finite} elements" if finite else ""


def percent(part: int, whole: int) -> str:
    """A share in percent; 100 % and 0 % are all and none."""
    share = 100 * part / whole
    for digits in range(1, 16):
        text = f"{share:.{digits}f}"
        if float(text) not in (0.0, 100.0):
            return f"{text} %"
        if part in (0, whole):
            break
    return f"{share:.0f} %"


def _noticed(evidence: Evidence, cases: Sequence[CaseRecord]) -> Iterator[str]:
    """Shares of wrong outputs, and of changes of formulas, that the checks tell."""
    groups = [
        one
        for one in evidence.groups
        if not one.profile and one.status not in ("not-applicable", "not-known", "undetected")
    ]
    if groups:
        told = sum(one.status == "rejected" for one in groups)
        yield f"{told} of {len(groups)} ({percent(told, len(groups))})"
    tried = left = 0
    for name, variant in dict.fromkeys((o.name, c.variant) for c in cases for o in c.outputs):
        records = [
            one
            for case in cases
            for one in case.changes
            if case.variant == variant and one.output == name
        ]
        if records:
            found = survivors_of(records)
            tried += found.tried
            left += len(found.accepted) + len(found.undetected)
    if tried:
        yield f"{tried - left} of {tried} changes of the formula ({percent(tried - left, tried)})"


def _watch(evidence: Evidence) -> str:
    """What was looked at beside the numbers; of several runs, by run."""
    if isinstance(evidence, JoinedEvidence):
        told = [(run.label, _watch(run.evidence)) for run in evidence.runs]
        return "; ".join(f"{label}: {words}" for label, words in told if words)
    return queries.watch_words(evidence) or _watched(evidence.cases)


def _watched(cases: Sequence[CaseRecord]) -> str:
    """What was looked at beside the numbers in every case that ran."""
    ran = [case.examined for case in cases if case.outputs or case.examined]
    if not ran:
        return ""
    kinds = [{one.kind for one in records} for records in ran]
    common = set.intersection(*kinds)
    inside = [words for kind, words in _WATCHED.items() if kind in common]
    around = [words for kind, words in _AROUND.items() if kind in common]
    if inside:
        return f"{', '.join(inside)} by {', '.join(_tools(ran, common & _WATCHED.keys()))}"
    if not around:
        return ""
    return f"{' and '.join(around)}; no access inside the kernels"


_AROUND = {"guards": "bytes around the buffers", "inputs": "inputs after the run"}


def _tools(ran: Sequence[list[ExaminationRecord]], kinds: Set[str]) -> list[str]:
    return list(dict.fromkeys(one.tool for records in ran for one in records if one.kind in kinds))


def _ignored(cases: Sequence[CaseRecord]) -> Iterator[str]:
    for (_, variant), names in ignored(cases).items():
        if names:
            yield f"{', '.join(names)} ({variant})"


def _guesses(evidence: Evidence) -> str:
    count = len(queries.unconfirmed(evidence))
    return f"{plural(count, 'guess')} not confirmed" if count else ""


def _closed(evidence: Evidence) -> str:
    names = [one.name for one in evidence.claims if not one.supported]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
