"""What a run leaves open by what it was given: profiles left out, and settings with one value only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tokitai_cli.core.model.evidence import CaseRecord, NonClaimRecord
from tokitai_cli.core.model.spec import Spec, Variant


def untried(spec: Spec, cases: Iterable[CaseRecord]) -> Iterator[NonClaimRecord]:
    """Non-claims by name, for each variant that ran: profiles of the spec, scalars and defines."""
    profiles: dict[str, set[str]] = {}
    for case in cases:
        if case.outputs:
            profiles.setdefault(case.variant, set()).add(case.profile)
    for name, tried in profiles.items():
        if left := [profile for profile in spec.profiles if profile not in tried]:
            yield _tool(f"profiles of {spec.op} {name} that were not tried: {', '.join(left)}")
        if fixed := _fixed(spec.variants[name]):
            yield _tool(f"settings of {spec.op} {name} other than those tried ({', '.join(fixed)})")


def _fixed(variant: Variant) -> list[str]:
    """Settings that every case of a variant has alike; those that follow from a parameter are none."""
    scalars = {name: scalar.value for name, scalar in variant.scalars.items()}
    given = {**variant.defines, **scalars}
    return [f"{name} = {value}" for name, value in given.items() if not isinstance(value, str)]


def _tool(text: str) -> NonClaimRecord:
    return NonClaimRecord(text=text, source="tool")
