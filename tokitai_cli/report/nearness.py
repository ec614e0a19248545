"""How near each kind of input comes to its limits: what the picture on the first page is drawn from."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.judged import Number
from tokitai_cli.evidence import queries
from tokitai_cli.report.card import largest_allowance

# Ends of the axis, in powers of ten of the limit; what lies beyond an end is drawn at it.
_LEAST, _MOST = -4, 2
_MOST_BARS = 40


class Bar(msgspec.Struct, frozen=True):
    """A variant and profile on a device: its largest error over a limit, and what it needs of its
    allowance. Places are 0 at the left end of the axis and 1 at the right one.
    """

    name: str
    share: Number
    allowance: Number | None
    place: float
    #: None where no allowance is known, or none is needed.
    mark: float | None


class Nearness(msgspec.Struct, frozen=True):
    """The picture: bars, the place of the limit, and ticks with their words."""

    bars: list[Bar]
    limit: float
    ticks: list[tuple[float, str]]
    more: int


def nearness(cases: Sequence[CaseRecord]) -> Nearness | None:
    """The picture of all cases; None where no check was made."""
    grouped: dict[tuple[str, str, str], list[CaseRecord]] = {}
    for case in cases:
        if any(output.checks for output in case.outputs):
            grouped.setdefault((case.variant, case.profile, case.device), []).append(case)
    if not grouped:
        return None
    several = len({device for _, _, device in grouped}) > 1
    bars = []
    for (variant, profile, device), mine in grouped.items():
        outputs = [output for case in mine for output in case.outputs]
        shares = [
            _over(check.value, check.limit) for o in outputs for check in o.checks if check.judges
        ]
        share = max(shares, default=0.0)
        needed = largest_allowance(outputs)
        name = f"{variant} {profile}" + (f" on {device}" if several else "")
        mark = None if needed is None or not queries.magnitude(needed) else _place(float(needed))
        bars.append(Bar(name, share, needed, _place(share), mark))
    bars.sort(key=lambda bar: -queries.magnitude(bar.share))
    ticks = [(_place(10.0**at), _word(at)) for at in range(_LEAST, _MOST + 1)]
    return Nearness(bars[:_MOST_BARS], _place(1.0), ticks, max(len(bars) - _MOST_BARS, 0))


def _over(value: Number | None, limit: Number) -> float:
    size, most = queries.magnitude(value), queries.magnitude(limit)
    if size <= 0:
        return 0.0
    return size / most if most else math.inf


def _place(share: float) -> float:
    if not share > 0:
        return 0.0
    power = math.log10(share) if share < math.inf else math.inf
    return min(max((power - _LEAST) / (_MOST - _LEAST), 0.0), 1.0)


def _word(power: int) -> str:
    return "limit" if power == 0 else f"{10.0**power:g}"
