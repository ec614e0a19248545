"""The limits of a run, as the spec states them, each with what was measured."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tokitai_cli.core.model.contract import ContractRecord, LimitRecord
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.judged import Number
from tokitai_cli.evidence import queries

# Output, limit and value of a check, and the key of its case.
_Measured = tuple[str, Number | None, Number | None, str]


class Limit(msgspec.Struct, frozen=True):
    """A check or property of a variant over all cases that it judged, with the spec's reason for it."""

    variant: str
    name: str
    output: str
    against: str
    limit: Number | None
    tolerances: str
    why: str
    #: The largest that was measured; None where the limit is not one for all, or nothing was.
    value: Number | None
    cases: int


def limits_of(contract: ContractRecord | None, cases: list[CaseRecord]) -> list[Limit]:
    """Limits as the spec states them, each with what was measured; as cases have them without it."""
    values: dict[tuple[str, str, str], list[_Measured]] = {}
    for case in cases:
        for output in case.outputs:
            for check in output.checks:
                key: tuple[str, str, str] = (case.variant, check.metric, check.against)
                values.setdefault(key, []).append((output.name, check.limit, check.value, case.key))
        for one in case.properties:
            key = (case.variant, one.name, "")
            values.setdefault(key, []).append((one.output, None, one.value, case.key))
    if contract is None:
        asked = [
            (
                key[0],
                LimitRecord(
                    name=key[1],
                    output=output,
                    against=key[2],
                    limit=limit,
                    tolerances="",
                    profiles=[],
                    why="",
                ),
            )
            for key, measured in values.items()
            for output, limit in dict.fromkeys((name, limit) for name, limit, _, _ in measured)
        ]
    else:
        asked = [(name, one) for name, kernel in contract.variants.items() for one in kernel.limits]
    return [
        _limit(variant, one, values.get((variant, one.name, one.against), []))
        for variant, one in asked
    ]


def _limit(variant: str, asked: LimitRecord, measured: list[_Measured]) -> Limit:
    mine = [
        (value, case)
        for output, limit, value, case in measured
        if output == (asked.output or output) and limit == asked.limit
    ]
    known = None if asked.limit is None else largest([value for value, _ in mine])
    text = f"profiles {', '.join(asked.profiles)}: {asked.why}" if asked.profiles else asked.why
    what = (asked.name, asked.output, asked.against, asked.limit, asked.tolerances)
    return Limit(variant, *what, why=text, value=known, cases=len({case for _, case in mine}))


def largest(values: Iterable[Number | None]) -> Number | None:
    """The largest of the values that are there; None where none is."""
    return max(
        (value for value in values if value is not None), key=queries.magnitude, default=None
    )
