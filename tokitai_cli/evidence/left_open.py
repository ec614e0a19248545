"""What the checks of a run let pass, in numbers: the non-claims that stand on a report's first page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tokitai_cli.model.evidence import CaseRecord, NonClaimRecord
from tokitai_cli.model.judged import OutputRecord
from tokitai_cli.model.verdict import PASSED
from tokitai_cli.model.view import LEFT_OPEN

_Place = tuple[str, str, str]
_SHOWN = 6
_Outputs = dict[_Place, list[tuple[CaseRecord, OutputRecord]]]


def left_open(cases: Sequence[CaseRecord]) -> list[NonClaimRecord]:
    """Say what passes in cases that passed, by op, variant and output."""
    outputs: _Outputs = {}
    for case in cases:
        if case.verdict in PASSED:
            for output in case.outputs:
                place = (case.op, case.variant, output.name)
                outputs.setdefault(place, []).append((case, output))
    return [
        NonClaimRecord(text=f"{op} {variant}, output {name}: {text}", source=LEFT_OPEN)
        for (op, variant, name), pairs in outputs.items()
        for text in (*_of_output(pairs), *_of_changes(pairs, name))
    ]


def _of_changes(pairs: Sequence[tuple[CaseRecord, OutputRecord]], output: str) -> Iterator[str]:
    """Changes of the formula that nothing in any case tells from the right output."""
    records = [one for case, _ in pairs for one in case.changes if one.output == output]
    if not records:
        return
    left = [dict.fromkeys([*one.accepted, *one.untold]) for one in records]
    untold = [words for words in left[0] if all(words in one for one in left)]
    if untold:
        most = max(one.tried for one in records)
        shown = "; ".join(untold[:_SHOWN]) + ("; ..." if len(untold) > _SHOWN else "")
        yield f"nothing here would notice {len(untold)} of {most} changes of the formula: {shown}"


def _of_output(pairs: Sequence[tuple[CaseRecord, OutputRecord]]) -> Iterator[str]:
    counts = [(one.metrics.open_elements, one.elements) for _, one in pairs if one.metrics]
    if opened := [pair for pair in counts if pair[0]]:
        most, of = max(opened, key=lambda pair: pair[0] / pair[1])
        yield (
            f"any value passes at {sum(count for count, _ in opened)} elements in {len(opened)} of "
            f"{len(pairs)} cases, since the oracle's error is infinite there (at most {most} of {of} "
            "in one case)"
        )
