"""What a run leaves open, computed from the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokitai_cli.core.model.device import DeviceClass
from tokitai_cli.core.model.evidence import CaseRecord, Evidence, NonClaimRecord
from tokitai_cli.evidence import queries
from tokitai_cli.evidence.claims import as_machine_code, but_beside, examined
from tokitai_cli.evidence.not_covered import not_covered

_WAVE_FACTS = ("warp-size", "warp_size")


def merged(non_claims: Iterable[NonClaimRecord]) -> list[NonClaimRecord]:
    """Each text once, in order of first appearance, with all who say it."""
    sources: dict[str, list[str]] = {}
    for claim in non_claims:
        known = sources.setdefault(claim.text, [])
        if claim.source not in known:
            known.append(claim.source)
    return [NonClaimRecord(text=text, source=", ".join(names)) for text, names in sources.items()]


def own_non_claims(evidence: Evidence) -> list[NonClaimRecord]:
    """Say what this run leaves open: device classes, wave sizes, shapes, schedules, sampled replays."""
    ran = [case for case in evidence.cases if case.outputs]
    used = dict.fromkeys(case.device for case in evidence.cases)
    found = []
    for name in used:
        device = evidence.devices[name]
        texts = list(device.non_claims)
        if device.device_class != DeviceClass.GFX_ISA_ON_CPU:
            texts.append("not machine-code verification")
        found += [NonClaimRecord(text=text, source=f"device {name}") for text in texts]
    found += not_covered(evidence.cases)
    if ran:
        texts = [
            *_untried_shapes(ran),
            *_always_equal(ran),
            *_untried_waves(evidence),
            *_sampled(ran),
        ]
        if not examined(evidence, "races"):
            executed = as_machine_code(evidence, ran)
            where = " within a wave, and between blocks behind a fence," if executed else ""
            shared = examined(evidence, "shared-races")
            but = but_beside(evidence)
            texts.append(f"races{' in global memory' if shared else where} not tested{but}")
        found += [NonClaimRecord(text=text, source="tool") for text in texts]
    found += [NonClaimRecord(text=text, source="watch") for text in _unwatched(evidence)]
    return found


def _unwatched(evidence: Evidence) -> list[str]:
    """Variants of which no case could be watched beside the others, and why."""
    seen = {case.variant for case in evidence.watched if not queries.unwatched(case)}
    why = {case.variant: case for case in evidence.watched if case.variant not in seen}
    return [
        f"{case.op} {name}: not checked on {case.device}: {case.reason}"
        for name, case in why.items()
    ]


def _untried_shapes(ran: Sequence[CaseRecord]) -> list[str]:
    """Name per variant what was tried: all else is left open."""
    texts = []
    for op, variant in dict.fromkeys((case.op, case.variant) for case in ran):
        cases = [case for case in ran if (case.op, case.variant) == (op, variant)]
        if tried := tried_values(cases):
            texts.append(f"shapes of {op} {variant} other than those tried ({tried})")
    return texts


def _always_equal(ran: Sequence[CaseRecord]) -> list[str]:
    """Name per variant the params that were equal in every case: their order could not show."""
    texts = []
    for op, variant in dict.fromkeys((case.op, case.variant) for case in ran):
        shapes = [case.shape for case in ran if (case.op, case.variant) == (op, variant)]
        columns: dict[tuple[int | None, ...], list[str]] = {}
        for name in shapes[0]:
            columns.setdefault(tuple(shape.get(name) for shape in shapes), []).append(name)
        texts += [
            f"{op} {variant}: {', '.join(names[:-1])} and {names[-1]} were equal in every "
            "case, so a kernel that confuses them would pass"
            for names in columns.values()
            if len(names) > 1
        ]
    return texts


def tried_values(cases: Sequence[CaseRecord]) -> str:
    """Values of each parameter in cases of one variant, and their residues modulo the blocks' extents.

    Kernels go wrong in tails, so what a shape shows of others is its residue.
    """
    blocks = {extent for case in cases for one in case.launches for extent in one.block}
    parts = []
    for name in dict.fromkeys(name for case in cases for name in case.shape):
        values = sorted({case.shape[name] for case in cases if name in case.shape})
        residues = [
            f"modulo {block}: {_few(sorted({value % block for value in values}))}"
            for block in sorted(block for block in blocks if block > 1)
        ]
        told = f" (residues {'; '.join(residues)})" if residues else ""
        parts.append(f"{name} = {_few(values)}{told}")
    return ", ".join(parts)


def _few(values: Sequence[int], most: int = 8) -> str:
    shown = ", ".join(map(str, values[:most]))
    return f"{shown} and {len(values) - most} more" if len(values) > most else shown


def _untried_waves(evidence: Evidence) -> list[str]:
    sizes = {
        fact.value
        for name in dict.fromkeys(case.device for case in evidence.cases)
        for fact in evidence.devices[name].facts
        if fact.name in _WAVE_FACTS
    }
    return [f"wave sizes other than {', '.join(sorted(sizes))}"] if sizes else []


def _sampled(ran: Sequence[CaseRecord]) -> list[str]:
    fractions = [case.replay_fraction for case in ran if case.replay_fraction is not None]
    if not fractions or min(fractions) >= 1:
        return []
    return [f"rows that the replay did not sample (least fraction replayed: {min(fractions):.6g})"]
